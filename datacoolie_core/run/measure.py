"""Figures of a destination that a run did not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import DataCoolieError
from datacoolie_core.run.bounds import destination_window
from datacoolie_core.run.prepare import prepare
from datacoolie_core.writers.destination import writer_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.writers.request import WriteResult


def count_windows(dataflow: Dataflow, windows: Sequence[Window], context: RunContext) -> list[int]:
    """Return how many rows of the destination lie in each window."""
    if not windows:
        return []
    prepared = prepare(dataflow, context)
    placed = [destination_window(dataflow, window) for window in windows]
    zone = dataflow.transform.configure.timestamp_timezone
    return writer_for(dataflow.destination).count_windows(
        prepared.uri, placed[0].column, placed, prepared.storage_options, zone=zone
    )


def table_figures(
    prepared: Prepared, written: WriteResult | None
) -> tuple[int | None, Mapping[str, str]]:
    """Return rows and columns of the destination after a load, also after a skipped one.

    Args:
        prepared: The dataflow.
        written: What the writer did, None if it was not asked.
    """
    rows = written.table_rows if written else None
    schema: Mapping[str, str] = written.schema if written else {}
    try:
        if rows is None:
            rows = writer_for(prepared.dataflow.destination).table_row_count(
                prepared.uri, prepared.storage_options
            )
        if not schema:
            schema = (
                writer_for(prepared.dataflow.destination).read_schema(
                    prepared.uri, prepared.storage_options
                )
                or {}
            )
    except DataCoolieError:
        return rows, schema  # the load is over; what can't be counted must not fail it
    return rows, schema
