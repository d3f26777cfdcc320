"""Compact a table of a thousand small files, then vacuum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise
from benchmarks.workloads.merging import copy_table

if TYPE_CHECKING:
    from pathlib import Path

FILES = 1000
ROWS = 1000
PROMISE = Promise("optimize and vacuum", wall=1.2)


def _table() -> Path:
    def make(folder: Path) -> None:
        from deltalake import write_deltalake

        for file in range(FILES):
            ids = np.arange(file * ROWS, (file + 1) * ROWS)
            frame = rows.orders(ids, file, FILES * ROWS)
            write_deltalake(str(folder / "table"), frame.to_arrow(), mode="append")

    return rows.kept("small_files", make) / "table"


def generate() -> None:
    """Make the small files."""
    _table()


def prepare(folder: Path) -> None:
    """Put a copy of the table in place."""
    copy_table(_table(), folder)


def optimize(folder: Path) -> None:
    """The plain script."""
    from deltalake import DeltaTable

    table = DeltaTable(str(folder / "table"))
    table.optimize.compact()
    table.vacuum(retention_hours=168, dry_run=False)


def product(folder: Path) -> None:
    """Ours."""
    source = folder / "none"
    document = ours.dataflow("small", source, folder / "table", load_type="append")
    ours.maintain(document, folder)


def check(folder: Path) -> list[Any]:
    """Return what both tables must agree on."""
    from deltalake import DeltaTable

    table = DeltaTable(str(folder / "table"))
    found = pl.scan_delta(table).select(pl.len(), pl.col("id").sum()).collect()
    return [*found.row(0), len(table.file_uris()) < FILES // 10]


VARIANTS = {"optimize and vacuum": optimize, OURS: product}
