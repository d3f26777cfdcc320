"""Append twice as many rows: memory must stay where it was (flat with size)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise
from benchmarks.workloads import append

if TYPE_CHECKING:
    from pathlib import Path

HALF = "half the rows"
CHECKS_DIFFER = True
PROMISE = Promise(HALF, memory=1.15)


def generate() -> None:
    """Make the files of both sizes."""
    rows.order_files(append.ROWS)
    rows.order_files(2 * append.ROWS)


def prepare(folder: Path) -> None:
    """Nothing is there before an append."""


def _load(folder: Path, count: int) -> None:
    document = ours.dataflow(
        "append", rows.order_files(count), folder / "table", load_type="append"
    )
    ours.runner(document, folder)()


def half(folder: Path) -> None:
    """Ours, with the rows of the other workload."""
    _load(folder, append.ROWS)


def double(folder: Path) -> None:
    """Ours, with twice as many."""
    _load(folder, 2 * append.ROWS)


check = append.check
VARIANTS = {HALF: half, OURS: double}
