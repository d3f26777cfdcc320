"""Warnings about dataflows that will run, but not as somebody may expect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.plan.replay import replaces_windows
from datacoolie_core.plan.selection import skip_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph


def advice_for(dataflow: Dataflow, graph: Graph) -> tuple[str, ...]:
    """Return the warnings about one dataflow.

    Args:
        dataflow: One that is not skipped, or nobody needs to know.
        graph: Tells who writes what it reads and who else writes where it writes.
    """
    if skip_reason(dataflow) is not None:
        return ()
    return (*_append_twice(dataflow), *_unseen_replay(dataflow, graph), *_shared(dataflow, graph))


def _append_twice(dataflow: Dataflow) -> Iterator[str]:
    destination = dataflow.destination
    flat = destination.connection.connection_type == "file"
    if flat and destination.load_type == "append" and dataflow.source.look_back() is not None:
        yield (
            f"'{dataflow.label}' looks back and appends to files: every run adds the rows of the "
            "look-back again. Write to Delta, or take the look-back away"
        )


def _unseen_replay(dataflow: Dataflow, graph: Graph) -> Iterator[str]:
    columns = {column.casefold() for column in dataflow.source.watermark_columns}
    if not columns or "__updated_at" in columns:
        return
    if dataflow.source.connection.format != "delta":
        return
    for edge in graph.upstream_edges(dataflow.dataflow_id):
        writer = graph.by_id[edge.upstream_id]
        replayed = writer.options.replay is not None and replaces_windows(writer)
        if edge.origin == "lineage" and replayed:
            yield (
                f"'{dataflow.label}' reads '{writer.label}' by "
                f"{', '.join(dataflow.source.watermark_columns)}: it does not see old windows "
                "that are loaded again there. Use __updated_at as its watermark column"
            )


def _shared(dataflow: Dataflow, graph: Graph) -> Iterator[str]:
    destination = dataflow.destination
    identity = destination_identity(destination)
    if identity is None or destination.load_type not in {"overwrite", "full_load"}:
        return
    others = [graph.by_id[one] for one in graph.writers_of(identity)]
    labels = [
        f"'{one.label}'"
        for one in others
        if one.dataflow_id != dataflow.dataflow_id and skip_reason(one) is None
    ]
    if labels:
        yield (
            f"'{dataflow.label}' replaces a table that {', '.join(labels)} writes too: whoever "
            "runs last wins"
        )
