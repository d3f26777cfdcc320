"""A hundred small loads: each appends the thousand rows that are new since the watermark."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise

if TYPE_CHECKING:
    from pathlib import Path

LOADS = 100
ROWS = 1000
PROMISE = Promise("hand-written loop", wall=1.2)


def _source() -> Path:
    def make(folder: Path) -> None:
        for load in range(LOADS):
            ids = np.arange(load * ROWS, (load + 1) * ROWS)
            frame = rows.orders(ids, load, LOADS * ROWS)
            frame.write_parquet(folder / f"part-{load:04d}.parquet")

    return rows.kept("increments", make)


def generate() -> None:
    """Make a file for each load."""
    _source()


def prepare(folder: Path) -> None:
    """Start with an empty source folder."""
    (folder / "source").mkdir()


def _feed(folder: Path, load: int) -> None:
    name = f"part-{load:04d}.parquet"
    os.link(_source() / name, folder / "source" / name)


def hand_written(folder: Path) -> None:
    """The plain script: a watermark in a JSON file, read, append, replace the file."""
    from deltalake import write_deltalake

    mark = folder / "watermark.json"
    for load in range(LOADS):
        _feed(folder, load)
        above = json.loads(mark.read_text())["id"] if mark.exists() else -1
        new = pl.scan_parquet(folder / "source" / "*.parquet").filter(pl.col("id") > above)
        batch = new.collect()
        write_deltalake(str(folder / "table"), batch.to_arrow(), mode="append")
        temporary = folder / "watermark.new"
        temporary.write_text(json.dumps({"id": batch["id"].max()}))
        temporary.replace(mark)


def product(folder: Path) -> None:
    """Ours: one driver, a run for each file."""
    document = ours.dataflow(
        "increments",
        folder / "source",
        folder / "table",
        load_type="append",
        watermark_columns=["id"],
    )
    once = ours.runner(document, folder)
    for load in range(LOADS):
        _feed(folder, load)
        once()


def check(folder: Path) -> list[Any]:
    """Return what both tables must agree on."""
    found = pl.scan_delta(str(folder / "table")).select(pl.len(), pl.col("id").sum())
    return list(found.collect().row(0))


VARIANTS = {"hand-written loop": hand_written, OURS: product}
