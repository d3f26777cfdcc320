"""Figures of a destination that a run did not touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from datacoolie_core.run.bounds import followed_column
from datacoolie_core.run.prepare import prepare
from datacoolie_core.writers import delta

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.context import RunContext


def count_windows(
    dataflow: Dataflow, windows: Sequence[Window], context: RunContext
) -> list[int]:
    """Return how many rows of the destination lie in each window."""
    if not windows:
        return []
    prepared = prepare(dataflow, context)
    column = followed_column(dataflow, windows[0].column)
    return delta.count_windows(prepared.uri, column, windows, prepared.storage_options)
