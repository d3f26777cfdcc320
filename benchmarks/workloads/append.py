"""Append ten million rows of parquet files to a new Delta table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise

if TYPE_CHECKING:
    from pathlib import Path

ROWS = int(os.environ.get("BENCH_ROWS", "10000000"))
PROMISE = Promise("sink_delta", wall=0.6, memory=0.8)


def generate() -> None:
    """Make the source's files."""
    rows.order_files(ROWS)


def prepare(folder: Path) -> None:
    """Nothing is there before an append."""


def sink_delta(folder: Path) -> None:
    """The plain script."""
    source = rows.order_files(ROWS)
    pl.scan_parquet(source / "*.parquet").sink_delta(str(folder / "table"), mode="append")


def product(folder: Path) -> None:
    """Ours, with its system columns, its commit info and its state."""
    document = ours.dataflow("append", rows.order_files(ROWS), folder / "table", load_type="append")
    ours.runner(document, folder)()


def check(folder: Path) -> list[Any]:
    """Return what both tables must agree on."""
    found = pl.scan_delta(str(folder / "table")).select(
        pl.len(), pl.col("id").sum(), pl.col("amount").sum().cast(pl.Float64).round(2)
    )
    return list(found.collect(engine="streaming").row(0))


VARIANTS = {"sink_delta": sink_delta, OURS: product}
