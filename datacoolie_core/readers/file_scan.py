"""From files and their schemas to one lazy frame, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.readers.file_columns import file_column_names, with_file_columns
from datacoolie_core.readers.file_times import passed_by_time
from datacoolie_core.readers.source import Source
from datacoolie_core.readers.union import Rule, Schema, concatenated, united

if TYPE_CHECKING:
    from datacoolie_core.errors import ReadError
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.discovery import Discovery
    from datacoolie_core.readers.local_files import LocalFile

SINGLE_SCANS = 64
"""Up to this many files are scanned one by one."""
Scan = Callable[[Sequence[str], Schema], pl.LazyFrame]
"""Paths and their schema → a scan that has ``SCANNED_PATH`` too."""


@dataclass(frozen=True)
class ScannedFile:
    """A file and the columns that it has."""

    file: LocalFile
    schema: Schema


def scanned(
    files: Sequence[ScannedFile],
    found: Discovery,
    scan: Scan,
    *,
    close: Callable[[], None],
    diagnose: Callable[[Exception], ReadError | None],
    warnings: Sequence[tuple[str, str]] = (),
    one_scan: bool = False,
    limit: int | None = None,
    unneeded: Callable[[Schema], Sequence[bool]] | None = None,
    request: ReadRequest | None = None,
    otherwise: Rule | None = None,
) -> Source:
    """Return the rows of all files, columns united by name, with the file columns.

    Args:
        files: Files that hold something.
        found: Where they come from.
        scan: Scans files of one schema.
        close: Removes temporary files.
        diagnose: Explains an error of the engine.
        warnings: Code and message.
        one_scan: The format can read files of different schemas as the united one.
        limit: Rows to read at most, over all files.
        unneeded: Says of each file whether no row of it can pass the bounds, from the united
            schema.
        request: Passes files by that are too old for it, or too new.
        otherwise: Which type holds two that do not fit together, for formats without declared ones.
    """
    action = _action(found)
    told = (*found.warnings, *warnings)
    if not files:
        return Source(pl.LazyFrame(), action, told, tracked=found.tracked, empty=True, close=close)
    ours = file_column_names(found.hive)
    # most files share one schema object, which is then compared by identity
    whole = {
        key: _without(ours, own) for key, own in {id(e.schema): e.schema for e in files}.items()
    }
    schema = united(
        ((entry.file.info.uri, whole[id(entry.schema)]) for entry in files), otherwise=otherwise
    )
    passed = [False] * len(files) if unneeded is None else list(unneeded(schema))
    if request is not None and limit is None:
        too_old = passed_by_time([entry.file.info for entry in files], request)
        passed = [one or other for one, other in zip(passed, too_old, strict=True)]
    needed = [entry for entry, out in zip(files, passed, strict=True) if not out] or files[-1:]
    parts: list[tuple[pl.LazyFrame, Schema]] = []
    for own, together in _groups(needed, schema if one_scan else None):
        part = scan([file.path for file in together], own)
        parts.append(
            (with_file_columns(part, together, found.hive, list(own)), _without(ours, own))
        )
    frame = concatenated(parts, schema)
    frame = frame if limit is None else frame.head(limit)
    action["files_scanned"] = len(needed)
    return Source(frame, action, told, tracked=found.tracked, diagnose=diagnose, close=close)


def _action(found: Discovery) -> dict[str, Any]:
    return {
        "path": found.uri,
        "files": len(found.files),
        "bytes": sum(info.size for info in found.files),
    }


def _without(names: Sequence[str], schema: Schema) -> Schema:
    return {name: dtype for name, dtype in schema.items() if name not in names}


def _groups(
    files: Sequence[ScannedFile], united_schema: Schema | None
) -> list[tuple[Schema, list[LocalFile]]]:
    """Return which files are scanned together.

    A file on its own is cheapest: what its rows say of it is a constant. But a plan of many scans
    costs time with the square of their number, so many files of one schema are one scan.
    """
    if len(files) <= SINGLE_SCANS:
        return [(united_schema or entry.schema, [entry.file]) for entry in files]
    groups: dict[tuple[tuple[str, pl.DataType], ...], list[LocalFile]] = {}
    for entry in files:
        own = united_schema or entry.schema
        groups.setdefault(tuple(own.items()), []).append(entry.file)
    return [(dict(key), together) for key, together in groups.items()]
