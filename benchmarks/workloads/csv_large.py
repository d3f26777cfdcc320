"""A CSV file of six gigabytes into a Delta table, by a process that may take two gigabytes.

A watcher looks at the resident memory of the process fifty times a second and ends it above the limit.
The kernel's own limits count what an allocator has reserved, used or not, so they say little.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise

ROWS = int(os.environ.get("BENCH_ROWS", "24000000"))
LIMIT = 2 << 30
PROMISE = Promise(OURS, memory_mb=LIMIT >> 20)


def generate() -> None:
    """Make the source's file."""
    rows.order_csv(ROWS)


def prepare(folder: Path) -> None:
    """Nothing is there before an append."""


def _watch() -> None:
    status, pause = Path("/proc/self/status"), threading.Event()
    while status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        if int(lines["VmRSS"].split()[0]) << 10 > LIMIT:
            sys.stderr.write(f"more than {LIMIT >> 20} MB were in use\n")
            os._exit(137)
        pause.wait(0.02)


def product(folder: Path) -> None:
    """Ours, within the limit."""
    threading.Thread(target=_watch, daemon=True).start()
    document = ours.dataflow("csv", rows.order_csv(ROWS), folder / "table", load_type="append")
    files = document["connections"][0]
    files["format"] = "csv"
    files["configure"]["read_options"] = {"infer_schema": True, "try_parse_dates": True}
    ours.runner(document, folder)()


def check(folder: Path) -> list[Any]:
    """Return what the table must hold: every row, once."""
    found = pl.scan_delta(str(folder / "table")).select(pl.len(), pl.col("id").n_unique())
    counted = list(found.collect(engine="streaming").row(0))
    if counted != [ROWS, ROWS]:
        raise RuntimeError(f"{counted[0]} rows with {counted[1]} keys, not {ROWS}")
    return counted


VARIANTS = {OURS: product}
