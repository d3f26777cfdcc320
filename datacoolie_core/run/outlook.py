"""What a plan has to know beside the metadata: saved watermarks, and what can't be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacoolie_core.errors import DataCoolieError
from datacoolie_core.run.saved_state import load_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.lineage import ReadQuery
    from datacoolie_core.plan.windows import Watermark
    from datacoolie_core.state.stores import StateStore


@dataclass(frozen=True)
class Outlook:
    """What is known of some dataflows.

    Attributes:
        watermarks: Dataflow id → what is stored; None if no state was read.
        troubles: Dataflow id → why its SQL file or its state can't be read.
    """

    watermarks: Mapping[str, Watermark] | None = None
    troubles: Mapping[str, str] = field(default_factory=dict[str, str])


def look(
    dataflows: Iterable[Dataflow],
    graph: Graph,
    read_query: ReadQuery,
    store: StateStore | None,
    *,
    full_refresh: bool = False,
) -> Outlook:
    """Return what is known of dataflows; what fails for one is told of that one.

    Args:
        dataflows: Whose.
        graph: Has the queries that it could read.
        read_query: Gives the SQL text of a query.
        store: Where state is kept; None reads none.
        full_refresh: Saved watermarks don't count.
    """
    watermarks: dict[str, Watermark] = {}
    troubles: dict[str, str] = {}
    for flow in dataflows:
        identifier = flow.dataflow_id
        try:
            if flow.source.query is not None and identifier not in graph.queries:
                read_query(flow)
            record = None if store is None else load_state(store, identifier)
        except DataCoolieError as error:
            troubles[identifier] = str(error)
            continue
        if record is not None and not full_refresh:
            watermarks[identifier] = record.watermark
    return Outlook(None if store is None else watermarks, troubles)
