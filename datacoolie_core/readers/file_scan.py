"""From files and their schemas to one lazy frame, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.readers.file_columns import SCANNED_PATH, with_file_columns
from datacoolie_core.readers.source import Source
from datacoolie_core.readers.union import Schema, concatenated, united

if TYPE_CHECKING:
    from datacoolie_core.errors import ReadError
    from datacoolie_core.readers.discovery import Discovery
    from datacoolie_core.readers.local_files import LocalFile

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
    """
    action = {
        "path": found.uri,
        "files": len(found.files),
        "bytes": sum(info.size for info in found.files),
    }
    told = (*found.warnings, *warnings)
    if not files:
        return Source(pl.LazyFrame(), action, told, empty=True, close=close)
    schema = united((entry.file.info.uri, entry.schema) for entry in files)
    if one_scan:
        frame = scan([entry.file.path for entry in files], schema)
    else:
        groups = [(scan(paths, own), own) for own, paths in _alike(files)]
        frame = concatenated(groups, schema)
    local = [entry.file for entry in files]
    frame = with_file_columns(frame, local, found.hive, [*schema, SCANNED_PATH])
    return Source(frame, action, told, diagnose=diagnose, close=close)


def _alike(files: Sequence[ScannedFile]) -> list[tuple[Schema, list[str]]]:
    groups: dict[tuple[tuple[str, pl.DataType], ...], list[str]] = {}
    for entry in files:
        groups.setdefault(tuple(entry.schema.items()), []).append(entry.file.path)
    return [(dict(key), paths) for key, paths in groups.items()]
