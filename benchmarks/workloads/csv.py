"""Append a CSV file of a gigabyte, five million rows, to a new Delta table; types are inferred."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise

if TYPE_CHECKING:
    from pathlib import Path

ROWS = int(os.environ.get("BENCH_ROWS", "5000000"))
PROMISE = Promise("sink_delta", wall=0.9, memory=1.0)


def generate() -> None:
    """Make the source's file."""
    rows.order_csv(ROWS)


def prepare(folder: Path) -> None:
    """Nothing is there before an append."""


def sink_delta(folder: Path) -> None:
    """The plain script."""
    source = rows.order_csv(ROWS)
    scanned = pl.scan_csv(source / "*.csv", try_parse_dates=True)
    scanned.sink_delta(str(folder / "table"), mode="append")


def duckdb_copy(folder: Path) -> None:
    """DuckDB parses and writes parquet files; one commit makes them a table."""
    import duckdb
    import pyarrow.parquet as pq
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction

    source, table = rows.order_csv(ROWS), folder / "table"
    table.mkdir()
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
        connection.execute(
            f"COPY (FROM read_csv('{source}/*.csv')) TO '{table}' (FORMAT parquet,"
            " COMPRESSION snappy, PER_THREAD_OUTPUT true, FILENAME_PATTERN 'part-{uuid}',"
            " ROW_GROUP_SIZE 250000)"
        )
    files = sorted(table.glob("*.parquet"))
    schema = Schema.from_arrow(pq.read_schema(files[0]))
    made = DeltaTable.create(str(table), schema)
    added = [
        AddAction(
            path=file.name,
            size=file.stat().st_size,
            partition_values={},
            modification_time=int(file.stat().st_mtime * 1000),
            data_change=True,
            stats=f'{{"numRecords": {pq.read_metadata(file).num_rows}}}',
        )
        for file in files
    ]
    made.create_write_transaction(added, "append", schema)


def product(folder: Path) -> None:
    """Ours, with its system columns, its statistics, its commit info and its state."""
    source = rows.order_csv(ROWS)
    document = ours.dataflow("csv", source, folder / "table", load_type="append")
    files = document["connections"][0]
    files["format"] = "csv"
    files["configure"]["read_options"] = {"infer_schema": True, "try_parse_dates": True}
    ours.runner(document, folder)()


def check(folder: Path) -> list[Any]:
    """Return what the tables must agree on."""
    found = pl.scan_delta(str(folder / "table")).select(
        pl.len(),
        pl.col("id").sum(),
        pl.col("price").sum().cast(pl.Float64).round(2),
        pl.col("created_at").max().cast(pl.String).str.head(19),
        pl.col("comment").str.len_bytes().sum(),
    )
    return list(found.collect(engine="streaming").row(0))


VARIANTS = {"sink_delta": sink_delta, "duckdb_copy": duckdb_copy, OURS: product}
