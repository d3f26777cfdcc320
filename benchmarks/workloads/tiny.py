"""A thousand dataflows of a hundred rows each, with two workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise

if TYPE_CHECKING:
    from pathlib import Path

FLOWS = 1000
ROWS = 100
WORKERS = 2
PROMISE = Promise("thread pool", wall=1.5)


def source() -> Path:
    """Return the folder of the sources, made once."""

    def make(folder: Path) -> None:
        for flow in range(FLOWS):
            (folder / f"s{flow:04d}").mkdir()
            ids = np.arange(flow * ROWS, (flow + 1) * ROWS)
            frame = rows.orders(ids, flow, FLOWS * ROWS)
            frame.write_parquet(folder / f"s{flow:04d}" / "part.parquet")

    return rows.kept("tiny", make)


def generate() -> None:
    """Make a source folder for each dataflow."""
    source()


def prepare(folder: Path) -> None:
    """Nothing is there before the run."""


def hand_written(folder: Path) -> None:
    """The plain script: a thread pool of polars and deltalake."""
    from deltalake import write_deltalake

    def one(flow: int) -> None:
        batch = pl.scan_parquet(source() / f"s{flow:04d}" / "part.parquet").collect()
        write_deltalake(str(folder / f"t{flow:04d}"), batch.to_arrow(), mode="overwrite")

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(FLOWS)))


def product(folder: Path) -> None:
    """Ours: twenty groups of five orders, one driver."""
    document: dict[str, list[Any]] = {"connections": [], "dataflows": []}
    for flow in range(FLOWS):
        one = ours.dataflow(
            f"f{flow:04d}",
            source() / f"s{flow:04d}",
            folder / f"t{flow:04d}",
            load_type="overwrite",
        )
        one["dataflows"][0].update(group_number=flow % 20, execution_order=flow // 20 % 5)
        if flow == 0:
            document["connections"] = one["connections"]
        for side in ("source", "destination"):
            kind = "files" if side == "source" else "lake"
            one["dataflows"][0][side]["connection_name"] = f"f0000_{kind}"
        document["dataflows"] += one["dataflows"]
    ours.runner(document, folder, max_workers=WORKERS)()


def check(folder: Path) -> list[Any]:
    """Return what both sets of tables must agree on."""
    tables = [pl.scan_delta(str(folder / f"t{flow:04d}")) for flow in range(0, FLOWS, 50)]
    found = pl.concat([table.select("id") for table in tables]).select(pl.len(), pl.col("id").sum())
    return list(found.collect().row(0))


VARIANTS = {"thread pool": hand_written, OURS: product}
