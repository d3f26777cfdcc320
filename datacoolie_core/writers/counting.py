"""Figures of a table without loading it: rows, rows of windows, the maximum of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.handles import keep, newest
from datacoolie_core.writers.load import rows_of
from datacoolie_core.writers.ranges import range_of
from datacoolie_core.writers.stored import scan_live
from datacoolie_core.writers.tables import Place, live_files, table_schema
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.plan.windows import Scalar, Window


def table_row_count(uri: str, storage_options: Mapping[str, str] | None = None) -> int | None:
    """Return the rows of a table, from its log where the log knows them; None without a table."""
    place = Place(uri, storage_options or {})
    table = newest(place)
    if table is None:
        return None
    files = live_files(table)
    known = rows_of(table, files)
    if known is None:
        rows = scan_live(place, table, files, table_schema(table))
        known = int(rows.select(pl.len()).collect(engine="streaming").item())
    keep(place, table)
    return known


def count_windows(
    uri: str,
    column: str,
    windows: Sequence[Window],
    storage_options: Mapping[str, str] | None = None,
    *,
    zone: str | None = None,
) -> list[int]:
    """Return how many rows of a table lie in each window, by one pass over one column.

    Args:
        uri: The table's location; zeros if there is no table.
        column: The destination column; the windows' own column names do not matter.
        windows: Half-open.
        storage_options: For the object store.
        zone: The zone of bounds or values that have none.

    Raises:
        WriteError: There is no such column, or bounds that it can't be compared with.
    """
    place = Place(uri, storage_options or {})
    table = newest(place)
    if table is None or not windows:
        return [0] * len(windows)
    schema = table_schema(table)
    ranges = [
        range_of(column, schema, (w.lower, w.upper), zone=zone, written_in=w.zone) for w in windows
    ]
    rows = scan_live(place, table, live_files(table), schema)
    counts = rows.select(
        known.rows.sum().cast(pl.Int64).alias(str(number)) for number, known in enumerate(ranges)
    )
    return list(counts.collect(engine="streaming").row(0))


def column_maximum(
    uri: str, column: str, storage_options: Mapping[str, str] | None = None
) -> Scalar | None:
    """Return the highest value of a table's column, nulls and NaN left aside; None if there is none.

    Args:
        uri: The table's location.
        column: The destination column.
        storage_options: For the object store.

    Raises:
        WriteError: There is no such column.
    """
    place = Place(uri, storage_options or {})
    table = newest(place)
    if table is None:
        return None
    schema = table_schema(table)
    if column not in schema:
        raise WriteError(f"the table has no column '{column}'", place=uri, code="missing_column")
    values = pl.col(column)
    kept = values.drop_nans() if schema[column].is_float() else values
    rows = scan_live(place, table, live_files(table), schema)
    return rows.select(kept.max()).collect(engine="streaming").item()


def no_rows(uri: str, storage_options: Mapping[str, str] | None = None) -> pl.LazyFrame | None:
    """Return a frame with a table's columns and no row; None without a table."""
    table = newest(Place(uri, storage_options or {}))
    return None if table is None else pl.LazyFrame(schema=table_schema(table))


def read_schema(
    uri: str, storage_options: Mapping[str, str] | None = None
) -> dict[str, str] | None:
    """Return column → Delta type of a table, in order; None without a table."""
    place = Place(uri, storage_options or {})
    table = newest(place)
    if table is None:
        return None
    columns = {name: delta_name(dtype) for name, dtype in table_schema(table).items()}
    keep(place, table)
    return columns
