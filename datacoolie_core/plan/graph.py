"""One graph of all dataflows: what each waits for, and why.

Edges come from declared order, from ``depends_on`` and from lineage, in this order of authority.
Order inside a group is kept as buckets, never as pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from datacoolie_core.errors import MetadataError, Problem
from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.metadata.models import InvalidDataflow
from datacoolie_core.plan.declared import declared_edges
from datacoolie_core.plan.edges import Buckets, Edge, Fault, Notice, Place, order_groups
from datacoolie_core.plan.lineage import ExternalSource, ReadQuery, lineage_edges
from datacoolie_core.plan.sorting import cycles, knotted, needs_of, path_between, topological

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow, Metadata


@dataclass(frozen=True)
class Graph:
    """The dataflows of one metadata scope and what each waits for.

    Attributes:
        dataflows: All of them, inactive ones too, each after what it waits for; among equals by
            group, order and place in the metadata.
        order_groups: Group number → buckets in order, as ids.
        externals: Dataflow id → what it reads that no dataflow writes.
        destinations: Destination identity → the dataflows that write it.
        warnings: Edges that were dropped, queries that could not be read.
        edges: All edges of ``depends_on`` and lineage, one for each pair.
        places: Where each dataflow of a group stands in it.
        queries: Dataflow id → the SQL text of its query, as far as it could be read.
        invalid: Dataflows of the scope that can't be loaded at all.
    """

    dataflows: tuple[Dataflow, ...]
    order_groups: Mapping[int, Buckets] = field(default_factory=dict[int, Buckets])
    externals: Mapping[str, tuple[ExternalSource, ...]] = field(
        default_factory=dict[str, tuple[ExternalSource, ...]]
    )
    destinations: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    warnings: tuple[Notice, ...] = ()
    edges: tuple[Edge, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    queries: Mapping[str, str] = field(default_factory=dict[str, str])
    invalid: tuple[InvalidDataflow, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, Dataflow]:
        """The dataflows by their ids."""
        return {flow.dataflow_id: flow for flow in self.dataflows}

    @cached_property
    def _upstream(self) -> Mapping[str, tuple[Edge, ...]]:
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.downstream_id, []).append(edge)
        return {identifier: tuple(edges) for identifier, edges in found.items()}

    @cached_property
    def _downstream(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for edge in self.edges:
            found.setdefault(edge.upstream_id, []).append(edge.downstream_id)
        return {identifier: tuple(ids) for identifier, ids in found.items()}

    def upstream_edges(self, dataflow_id: str, *, order: bool = False) -> tuple[Edge, ...]:
        """Return the edges that lead to a dataflow.

        Args:
            dataflow_id: Whose.
            order: Whether declared order counts too: an edge from each dataflow of the next lower
                bucket. Lineage and ``depends_on`` always count.
        """
        explicit = self._upstream.get(dataflow_id, ())
        if not order:
            return explicit
        known = {edge.upstream_id for edge in explicit}
        return (
            *explicit,
            *(e for e in self._order_edges(dataflow_id) if e.upstream_id not in known),
        )

    def _order_edges(self, dataflow_id: str) -> Iterator[Edge]:
        place = self.places.get(dataflow_id)
        if place is None or place.bucket == 0:
            return
        lower = self.order_groups[place.group][place.bucket - 1]
        before = self.places[lower[0]].order
        detail = f"group {place.group}: order {place.order} after {before}"
        for identifier in lower:
            yield Edge(identifier, dataflow_id, "order", detail)

    def downstream_ids(self, dataflow_id: str) -> tuple[str, ...]:
        """Return the dataflows that wait for one, by lineage and ``depends_on``."""
        return self._downstream.get(dataflow_id, ())

    def writers_of(self, identity: str) -> tuple[str, ...]:
        """Return the ids of the dataflows that write a destination."""
        return self.destinations.get(identity, ())


def build_graph(
    metadata: Metadata,
    *,
    read_query: ReadQuery | None = None,
    on_invalid: Literal["fail", "quarantine"] = "fail",
) -> Graph:
    """Return the graph of a metadata scope.

    Args:
        metadata: The scope.
        read_query: Gives the SQL text of a dataflow's query; None reads inline queries alone. A
            query that can't be read or parsed gives a warning and no edges.
        on_invalid: ``quarantine`` leaves the dataflows of a cycle, or with a ``depends_on`` that
            names nothing, out of the graph, into its ``invalid``.

    Raises:
        MetadataError: A ``depends_on`` names nothing, or there are cycles; all at once.
    """
    found = _attempt(metadata, read_query)
    while not isinstance(found, Graph):
        if on_invalid == "fail":
            raise MetadataError([fault.problem for fault in found])
        metadata = _without(metadata, found)
        found = _attempt(metadata, read_query)
    return found


def _attempt(metadata: Metadata, read_query: ReadQuery | None) -> Graph | list[Fault]:
    flows = metadata.dataflows
    groups, places = order_groups(flows)
    declared, faults = declared_edges(metadata)
    destinations = _destinations(flows)
    found = lineage_edges(flows, destinations, read_query)
    warnings = list(found.warnings)
    lineage = _without_contradictions(flows, groups, places, declared, found.edges, warnings)
    edges = _strongest(declared, lineage)
    needs = needs_of((flow.dataflow_id for flow in flows), groups, edges)
    rank = {flow.dataflow_id: _rank(flow, index) for index, flow in enumerate(flows)}
    by_id = {flow.dataflow_id: flow for flow in flows}
    ordered = topological(needs, rank.__getitem__)
    if ordered is None or faults:
        origins = metadata.origins
        knots = [[by_id[one] for one in cycle] for cycle in cycles(needs)]
        return faults + [_cycle_fault(cycle, origins) for cycle in knots]
    return Graph(
        dataflows=tuple(by_id[identifier] for identifier in ordered),
        order_groups=groups,
        externals=found.externals,
        destinations=destinations,
        warnings=tuple(warnings),
        edges=edges,
        places=places,
        queries=found.queries,
        invalid=metadata.invalid,
    )


def _without(metadata: Metadata, faults: Sequence[Fault]) -> Metadata:
    problems: dict[str, list[Problem]] = {}
    for fault in faults:
        for identifier in fault.dataflow_ids:
            problems.setdefault(identifier, []).append(fault.problem)
    invalid = [
        InvalidDataflow(
            label=flow.label,
            dataflow_id=flow.dataflow_id,
            stage=flow.stage,
            problems=tuple(problems[flow.dataflow_id]),
        )
        for flow in metadata.dataflows
        if flow.dataflow_id in problems
    ]
    kept = tuple(flow for flow in metadata.dataflows if flow.dataflow_id not in problems)
    return metadata.model_copy(update={"dataflows": kept, "invalid": (*metadata.invalid, *invalid)})


def _rank(flow: Dataflow, position: int) -> tuple[int, ...]:
    if flow.group_number is None:
        return (1, 0, 0, position)
    return (0, flow.group_number, flow.execution_order or 0, position)


def _destinations(flows: Sequence[Dataflow]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for flow in flows:
        identity = destination_identity(flow.destination)
        if identity is not None:
            found[identity] = (*found.get(identity, ()), flow.dataflow_id)
    return found


def _without_contradictions(
    flows: Sequence[Dataflow],
    groups: Mapping[int, Buckets],
    places: Mapping[str, Place],
    declared: Sequence[Edge],
    lineage: Sequence[Edge],
    warnings: list[Notice],
) -> list[Edge]:
    """Drop the lineage edges whose upstream has to wait for their downstream anyway."""
    ids = [flow.dataflow_id for flow in flows]
    labels = {flow.dataflow_id: flow.label for flow in flows}
    knot = knotted(needs_of(ids, groups, [*declared, *lineage]))
    if not knot:
        return list(lineage)
    firm = needs_of(ids, groups, declared)
    kept: list[Edge] = []
    for edge in lineage:
        up, down = edge.upstream_id, edge.downstream_id
        if {up, down} <= knot and path_between(firm, up, down) is not None:
            text = (
                f"'{labels[down]}' {edge.detail}, which '{labels[up]}' writes, but "
                f"{_claim(up, down, places)} '{labels[down]}' first: it reads what an earlier "
                "run left"
            )
            warnings.append(Notice(down, text))
        else:
            kept.append(edge)
    return kept


def _claim(up: str, down: str, places: Mapping[str, Place]) -> str:
    one, other = places.get(up), places.get(down)
    same = one is not None and other is not None and one.group == other.group
    return "the declared order has" if same else "depends_on and order have"


def _strongest(declared: Sequence[Edge], lineage: Sequence[Edge]) -> tuple[Edge, ...]:
    found: dict[tuple[str, str], Edge] = {}
    for edge in (*declared, *lineage):
        found.setdefault((edge.upstream_id, edge.downstream_id), edge)
    return tuple(found.values())


def _cycle_fault(cycle: Sequence[Dataflow], origins: Mapping[str, str]) -> Fault:
    files = {one.dataflow_id: origins.get(one.dataflow_id, Problem.source) for one in cycle}
    here = files[cycle[0].dataflow_id]
    names = [
        one.label if files[one.dataflow_id] == here else f"{one.label} ({files[one.dataflow_id]})"
        for one in cycle
    ]
    problem = Problem(
        f"these dataflows wait for each other: {' -> '.join(names)} (read "
        "'->' as 'waits for'). Take one of these edges out: depends_on, execution_order, or the "
        "table that is read",
        source=here,
        dataflow=cycle[0].label,
    )
    return Fault(tuple({one.dataflow_id: None for one in cycle}), problem)
