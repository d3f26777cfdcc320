"""Rules of the load type scd2: what it needs, and what has no meaning with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacoolie_core.metadata.problems import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacoolie_core.metadata.models import Dataflow

_OWN = "destination.configure.datacoolie"
_EFFECTIVE = "destination.configure.scd2_effective_column"
_CHANGING = re.compile(r"\b__(?:is_current|valid_to)\b", re.IGNORECASE)
_COLUMNS = ("__valid_from", "__valid_to", "__is_current")
_CLOCK = re.compile(r"\b(?:current_timestamp|now\s*\(\s*\))", re.IGNORECASE)
LOAD_TIME = re.compile(r"\s*(?:current_timestamp|now)\s*(?:\(\s*\))?\s*", re.IGNORECASE)
"""SQL for the time of the load. The engine's own would be the clock of the machine's zone."""


def check_scd2(flow: Dataflow) -> Iterator[Finding]:
    """Yield what is wrong with how a dataflow keeps history, or asks for it elsewhere."""
    own = flow.destination.configure.datacoolie
    if flow.destination.load_type != "scd2":
        if own.scd2_close_missing:
            message = f"it needs load_type scd2, not {flow.destination.load_type}"
            yield Finding(f"{_OWN}.scd2_close_missing", message)
        return
    if own.delete_when:
        message = "scd2 removes no row: a version ends when another begins. It is for merge_upsert"
        yield Finding(f"{_OWN}.delete_when", message)
    yield from _columns(flow)
    yield from _load_time(flow)
    if own.scd2_close_missing:
        yield from _close_missing(flow)


def _columns(flow: Dataflow) -> Iterator[Finding]:
    for key in flow.destination.merge_keys:
        if key.casefold() in _COLUMNS:
            message = f"'{key}' tells the versions of a key apart, it is no part of the key"
            yield Finding("destination.merge_keys", message)
    for index, column in enumerate(flow.destination.partition_columns):
        found = _CHANGING.search(column.expression or "")
        if found:
            path = f"destination.partition_columns[{index}].expression"
            message = f"{found[0]} changes when a version ends; partition by __is_current itself"
            yield Finding(path, message)


def _load_time(flow: Dataflow) -> Iterator[Finding]:
    written = flow.destination.configure.scd2_effective_column
    alone = written is not None and LOAD_TIME.fullmatch(written) is not None
    if written and not alone and _CLOCK.search(written):
        message = "the time of the load can only stand alone: CURRENT_TIMESTAMP"
        yield Finding(_EFFECTIVE, message)
    by_load = alone or (written is None and not flow.source.watermark_columns)
    if by_load and flow.options.replay is not None:
        message = (
            "versions are valid from the time of the load, so old rows that are loaded again"
            f" would be new versions; set {_EFFECTIVE} to when a row was valid"
        )
        yield Finding("configure.datacoolie.replay", message)


def _close_missing(flow: Dataflow) -> Iterator[Finding]:
    source, connection = flow.source, flow.source.connection.configure
    partial = {
        "source.watermark_columns": bool(source.watermark_columns),
        "the connection's date_folder_partitions": bool(connection.date_folder_partitions),
        "source.configure.datacoolie.file_registry": source.configure.datacoolie.file_registry,
    }
    for field, asked in partial.items():
        if asked:
            message = (
                f"it needs a read of the whole source every time, and {field} reads a part of it:"
                " all other keys would be closed"
            )
            yield Finding(f"{_OWN}.scd2_close_missing", message)
