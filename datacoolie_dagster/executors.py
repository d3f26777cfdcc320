"""The executor that definitions with group steps get when nobody chose one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_dagster.warm import warm_executor

if TYPE_CHECKING:
    import dagster as dg


def group_executor() -> dg.ExecutorDefinition:
    """Return the warm executor, which lets what depends on a good dataflow of a group run."""
    return warm_executor()
