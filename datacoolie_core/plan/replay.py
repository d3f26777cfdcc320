"""Whether a window of a dataflow can be loaded again without harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.plan.columns import blocked_by
from datacoolie_core.plan.selection import skip_reason

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph


def chunk_column(dataflow: Dataflow) -> str | None:
    """Return the source column that the chunks of a dataflow bound, None if nothing says it."""
    options = dataflow.options.replay
    if options is not None and options.chunk_column:
        return options.chunk_column
    return next(iter(dataflow.source.watermark_columns), None)


def replaces_windows(dataflow: Dataflow) -> bool:
    """Return whether a replay replaces the rows of its window, rather than merging by key."""
    destination = dataflow.destination
    if destination.load_type == "merge_overwrite":
        return destination.configure.replace_by_watermark
    return destination.load_type in {"append", "overwrite", "full_load"}


def replay_refusal(dataflow: Dataflow, graph: Graph, column: str | None = None) -> str | None:
    """Return why a dataflow can't be replayed safely, with the remedy; None if it can.

    Args:
        dataflow: Any dataflow.
        graph: Tells who else writes its destination.
        column: The source column of the chunks; None takes the dataflow's own.
    """
    bound = column or chunk_column(dataflow)
    if bound is None:
        return (
            "nothing says which column its chunks bound. Set watermark_columns of the source, or "
            "configure.datacoolie.replay.chunk_column"
        )
    if not replaces_windows(dataflow):
        return None
    blocked = blocked_by(dataflow, bound)
    if blocked is not None:
        return (
            f"rows of a window can't be told in the destination by '{bound}': {blocked}. Set "
            "configure.datacoolie.replay.chunk_column to a column that arrives unchanged, or use "
            "load_type merge_upsert"
        )
    return _shared_destination(dataflow, graph)


def _shared_destination(dataflow: Dataflow, graph: Graph) -> str | None:
    identity = destination_identity(dataflow.destination)
    writers = () if identity is None else graph.writers_of(identity)
    others = [graph.by_id[one] for one in writers if one != dataflow.dataflow_id]
    active = [f"'{one.label}'" for one in others if skip_reason(one) is None]
    if not active:
        return None
    return (
        f"{', '.join(active)} writes the same destination, so replacing a window would take "
        "those rows too. Give this dataflow a destination of its own, or use load_type "
        "merge_upsert"
    )
