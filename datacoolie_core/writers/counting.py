"""Count rows of a table without loading it: all of them, or those of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers.load import rows_of
from datacoolie_core.writers.ranges import range_of
from datacoolie_core.writers.stored import scan_live
from datacoolie_core.writers.tables import Place, live_files, open_table, table_schema
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.plan.windows import Window


def table_row_count(uri: str, storage_options: Mapping[str, str] | None = None) -> int | None:
    """Return the rows of a table, from its log where the log knows them; None without a table."""
    place = Place(uri, storage_options or {})
    table = open_table(place)
    if table is None:
        return None
    exact = "deletionVectors" not in (table.protocol().reader_features or [])
    files = live_files(table)
    known = rows_of(files) if exact else None
    if known is not None:
        return known
    rows = scan_live(place, table, files, table_schema(table))
    return rows.select(pl.len()).collect(engine="streaming").item()


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
    table = open_table(place)
    if table is None or not windows:
        return [0] * len(windows)
    schema = table_schema(table)
    ranges = [range_of(column, schema, (w.lower, w.upper), zone=zone) for w in windows]
    rows = scan_live(place, table, live_files(table), schema)
    counts = rows.select(
        known.rows.sum().cast(pl.Int64).alias(str(number)) for number, known in enumerate(ranges)
    )
    return list(counts.collect(engine="streaming").row(0))


def read_schema(
    uri: str, storage_options: Mapping[str, str] | None = None
) -> dict[str, str] | None:
    """Return column → Delta type of a table, in order; None without a table."""
    table = open_table(Place(uri, storage_options or {}))
    if table is None:
        return None
    return {name: delta_name(dtype) for name, dtype in table_schema(table).items()}
