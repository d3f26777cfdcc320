"""The definitions of 5,000 dataflows: fifty groups of five buckets of 20."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import definitions
from benchmarks.definitions import BARE, check
from benchmarks.measure import Promise

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check"]

COUNT, GROUPS = 5000, 50
PROMISE = Promise(BARE, cpu=0.5)
VARIANTS = definitions.variants(COUNT, GROUPS)


def generate() -> None:
    """The metadata is written for each run."""


def prepare(folder: Path) -> None:
    """Write the metadata."""
    definitions.prepare(folder, COUNT, GROUPS)
