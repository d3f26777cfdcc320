"""Merge 500,000 changed rows into ten million, in the newest tenth of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import OURS, Promise
from benchmarks.workloads import merging

if TYPE_CHECKING:
    from pathlib import Path

PROMISE = Promise("DeltaTable.merge", wall=0.3, memory_mb=1200)


def generate() -> None:
    """Make the table and the changes."""
    merging.make(recent=True)


def prepare(folder: Path) -> None:
    """Put a copy of the table in place."""
    merging.copy_table(merging.make(recent=True)[0], folder)


def hand_written(folder: Path) -> None:
    """The plain script."""
    merging.hand_written(folder, merging.make(recent=True)[1])


def product(folder: Path) -> None:
    """Ours."""
    merging.product(folder, merging.make(recent=True)[1])


check = merging.check
VARIANTS = {"DeltaTable.merge": hand_written, OURS: product}
