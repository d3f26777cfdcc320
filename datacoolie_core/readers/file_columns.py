"""``__file_name``, ``__file_path`` and ``__file_modification_time`` of every file-sourced row."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.moments import instant_literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.readers.discovery import FolderValues
    from datacoolie_core.readers.local_files import LocalFile

SCANNED_PATH = "__dc_path"
"""Name under which the engine gives the path that it scanned; it never leaves the reader."""
FILE_NAME = "__file_name"
FILE_PATH = "__file_path"
FILE_TIME = "__file_modification_time"
_INSTANT = pl.Datetime("us", "UTC")


def file_column_names(hive: Mapping[str, FolderValues]) -> list[str]:
    """Return the columns that come from a file's path: its ``key=value`` folders, then ours."""
    keys = dict.fromkeys(key for values in hive.values() for key in values)
    return [*keys, FILE_NAME, FILE_PATH, FILE_TIME]


def with_file_columns(
    frame: pl.LazyFrame,
    files: Sequence[LocalFile],
    hive: Mapping[str, FolderValues],
    columns: Sequence[str],
) -> pl.LazyFrame:
    """Return a scan with the file columns at its end, and those of its ``key=value`` folders.

    Columns of these names that the files hold themselves (from an earlier load) are dropped.

    Args:
        frame: A scan with ``include_file_paths=SCANNED_PATH``.
        files: Every file of the scan.
        hive: File → the values of its folders, as text.
        columns: The files' own columns.
    """
    added = [
        _by_file(FILE_NAME, {file.path: file.name for file in files}, pl.String),
        _by_file(FILE_PATH, {file.path: file.info.uri for file in files}, pl.String),
        _by_file(FILE_TIME, {file.path: file.info.modified_at for file in files}, _INSTANT),
    ]
    names = file_column_names(hive)
    folders = [
        _by_file(key, {file.path: hive[file.info.uri].get(key) for file in files}, pl.String)
        for key in names[: -len(added)]
    ]
    stale = [name for name in names if name in columns]
    return frame.drop(stale).with_columns(*folders, *added).drop(SCANNED_PATH)


def _by_file(
    name: str, values: Mapping[str, object], dtype: pl.DataType | type[pl.DataType]
) -> pl.Expr:
    distinct = set(values.values())
    if len(distinct) == 1:
        only = next(iter(distinct))
        fixed = instant_literal(only) if isinstance(only, datetime) else pl.lit(only, dtype=dtype)
        return fixed.alias(name)
    return (
        pl.col(SCANNED_PATH)
        .replace_strict(list(values), pl.Series(list(values.values()), dtype=dtype))
        .alias(name)
    )
