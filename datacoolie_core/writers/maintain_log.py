"""The table's log: a checkpoint, so that it opens fast, and expired commits removed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from datacoolie_core.errors import MissingPathError
from datacoolie_core.writers.maintain_properties import why_log_is_kept, why_no_files_removed
from datacoolie_core.writers.maintain_request import Operation
from datacoolie_core.writers.objects import count_files, read_file
from datacoolie_core.writers.tables import open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.writers.maintain_request import Upkeep
    from datacoolie_core.writers.tables import Place

_LOG = "_delta_log"


def checkpoint(upkeep: Upkeep) -> Operation:
    """Write the table's present content into one file, unless that is there."""
    table = open_table(upkeep.place)
    if table is None:
        return Operation("checkpoint", "skipped", "the table is not there")
    if not upkeep.options.checkpoint:
        return Operation("checkpoint", "skipped", "switched off by cleanup_options.checkpoint")
    reason = why_no_files_removed(table)
    if reason is not None:
        return Operation("checkpoint", "skipped", reason)
    version, last = table.version(), _last(upkeep.place)
    if last == version:
        return Operation("checkpoint", "succeeded", f"version {version} has one")
    if upkeep.options.dry_run:
        return Operation("checkpoint", "skipped", f"dry run: one of version {version} is due")
    table.create_checkpoint()
    return Operation("checkpoint", "succeeded", f"of version {version}")


def _last(place: Place) -> int | None:
    try:
        return json.loads(read_file(place, f"{_LOG}/_last_checkpoint"))["version"]
    except (MissingPathError, ValueError, KeyError):
        return None


def log_cleanup(upkeep: Upkeep) -> Operation:
    """Remove commits older than the table's log retention that a checkpoint stands for.

    What a dataflow needs to go on survives: its transaction is in the checkpoint.
    """
    table = open_table(upkeep.place)
    if table is None:
        return Operation("log_cleanup", "skipped", "the table is not there")
    reason = _kept_because(upkeep, table)
    if reason is not None:
        return Operation("log_cleanup", "skipped", reason)
    if upkeep.options.dry_run:
        return Operation("log_cleanup", "skipped", "dry run")
    before = count_files(upkeep.place, _LOG)
    table.cleanup_metadata()
    gone = before - count_files(upkeep.place, _LOG)
    return Operation("log_cleanup", "succeeded", f"{gone} files removed", files_removed=gone)


def _kept_because(upkeep: Upkeep, table: DeltaTable) -> str | None:
    if not upkeep.options.log_cleanup:
        return "switched off by cleanup_options.log_cleanup"
    return why_log_is_kept(table.metadata().configuration) or why_no_files_removed(table)
