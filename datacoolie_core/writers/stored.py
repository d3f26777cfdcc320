"""Scan some live files of a table, with the partition values that the log gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.delta_scan import scan_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.tables import LiveFile, Place

_CASTS = pl.ScanCastOptions(
    integer_cast="upcast",
    float_cast="upcast",
    datetime_cast=("nanosecond-downcast", "millisecond-upcast", "convert-timezone"),
    missing_struct_fields="insert",
    extra_struct_fields="ignore",
    categorical_to_string="allow",
)


def scan(
    place: Place,
    files: Sequence[LiveFile],
    schema: pl.Schema,
    *,
    path_column: str | None = None,
) -> pl.LazyFrame:
    """Return the rows of some files.

    Args:
        place: The table.
        files: Some of its live files.
        schema: The table's columns; a file that lacks one gives nulls.
        path_column: Adds the absolute path of each row's file under this name.
    """
    if not files:
        return pl.LazyFrame(schema={**schema, **({path_column: pl.String} if path_column else {})})
    partitions = list(files[0].partition)
    data = pl.Schema({name: dtype for name, dtype in schema.items() if name not in partitions})
    order = [*schema, *([path_column] if path_column else [])]
    parts = [
        pl.scan_parquet(
            [place.path(path) for path in paths],
            schema=data,
            glob=False,
            hive_partitioning=False,
            missing_columns="insert",
            extra_columns="ignore",
            cast_options=_CASTS,
            include_file_paths=path_column,
            storage_options=place.options,
        )
        .with_columns(pl.lit(value, dtype=schema[name]).alias(name) for name, value in key)
        .select(order)
        for key, paths in _by_partition(files)
    ]
    return parts[0] if len(parts) == 1 else pl.concat(parts, how="vertical")


def _by_partition(
    files: Sequence[LiveFile],
) -> Iterable[tuple[tuple[tuple[str, object], ...], list[str]]]:
    groups: dict[tuple[tuple[str, object], ...], list[str]] = {}
    for file in files:
        groups.setdefault(tuple(file.partition.items()), []).append(file.path)
    return groups.items()


def scan_live(
    place: Place, table: DeltaTable, files: Sequence[LiveFile], schema: pl.Schema
) -> pl.LazyFrame:
    """Return the rows of some files of a table that may have deletion vectors.

    polars reads those only with the whole table.

    Args:
        place: The table.
        table: Its present version.
        files: Some of its live files.
        schema: The table's columns.
    """
    if "deletionVectors" in (table.protocol().reader_features or []):
        return scan_table(table).select(list(schema))
    return scan(place, files, schema)
