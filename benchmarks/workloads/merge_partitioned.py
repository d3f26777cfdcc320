"""Merge 500,000 changed rows into ten million, in the newest partitions of a table by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.measure import OURS, Promise
from benchmarks.workloads import merging

if TYPE_CHECKING:
    from pathlib import Path

PROMISE = Promise("DeltaTable.merge", wall=0.3, memory_mb=1200)


def generate() -> None:
    """Make the table and the changes."""
    merging.make(recent=True, partition_by="order_date")


def prepare(folder: Path) -> None:
    """Put a copy of the table in place."""
    merging.copy_table(merging.make(recent=True, partition_by="order_date")[0], folder)


def hand_written(folder: Path) -> None:
    """The plain script."""
    merging.hand_written(folder, merging.make(recent=True, partition_by="order_date")[1])


def product(folder: Path) -> None:
    """Ours."""
    merging.product(
        folder,
        merging.make(recent=True, partition_by="order_date")[1],
        partition_columns=["order_date"],
    )


check = merging.check
VARIANTS = {"DeltaTable.merge": hand_written, OURS: product}
