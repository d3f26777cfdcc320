"""Which dataflows share a step, and by which edges declared order shows between steps.

A group with wide joints is one step, or a few: the order inside is kept by the core's driver. Order
between two steps needs one edge only, so that a joint of 200 by 200 dataflows is no 40,000 edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core.plan.edges import Edge
from datacoolie_core.plan.selection import skip_reason
from datacoolie_core.plan.waiting import waiting_edges

if TYPE_CHECKING:
    from datacoolie_core.plan.graph import Graph

Granularity = Literal["auto", "dataflow", "group"]

NARROW = 100
"""Order edges that a group may have and still be shown edge by edge."""
MOST_MEMBERS = 200
"""Dataflows in a step: what Dagster does for each output grows with their number."""


@dataclass(frozen=True)
class Grouping:
    """How the active dataflows of a graph are shared out.

    Attributes:
        graph: The core's.
        steps: The ids of each step that loads several dataflows, each after what it waits for.
        wide: Groups whose order is not shown edge by edge.
    """

    graph: Graph
    steps: tuple[tuple[str, ...], ...] = ()
    wide: frozenset[int] = frozenset()
    _waits: Mapping[str, tuple[Edge, ...]] = field(default_factory=dict[str, tuple[Edge, ...]])
    _step_of: Mapping[str, int] = field(default_factory=dict[str, int])
    _buckets: Mapping[int, Sequence[Sequence[str]]] = field(
        default_factory=dict[int, Sequence[Sequence[str]]]
    )
    _place: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def step_of(self, dataflow_id: str) -> int | None:
        """Return the place of its step in ``steps``, None if it has one of its own."""
        return self._step_of.get(dataflow_id)

    def edges_to(self, dataflow_id: str) -> Iterator[Edge]:
        """Yield an edge from each dataflow that one waits for, once.

        What it needs, as the metadata says it, also through dataflows that are inactive; then the
        declared order: the next lower bucket that is loaded. In a wide group that is one edge
        from each step in that bucket, and none within a step.
        """
        explicit = (*self.graph.upstream_edges(dataflow_id), *self._waits.get(dataflow_id, ()))
        known: set[str] = set()
        for edge in (*explicit, *self._order_edges(dataflow_id)):
            if edge.upstream_id not in known:
                known.add(edge.upstream_id)
                yield Edge(edge.upstream_id, dataflow_id, edge.origin, edge.detail)

    def _order_edges(self, dataflow_id: str) -> Iterator[Edge]:
        place = self._place.get(dataflow_id)
        if place is None or place[1] == 0:
            return
        group, bucket = place
        lower = self._buckets[group][bucket - 1]
        for upstream, count in self._shown(dataflow_id, group, lower):
            yield Edge(upstream, dataflow_id, "order", self._detail(dataflow_id, upstream, count))

    def _shown(
        self, dataflow_id: str, group: int, lower: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Yield an upstream dataflow and how many it stands for."""
        if group not in self.wide:
            yield from ((one, 1) for one in lower)
            return
        mine = self._step_of.get(dataflow_id)
        together: dict[tuple[int, str | None], list[str]] = {}
        for one in lower:
            step = self._step_of.get(one)
            if step is None:
                yield one, 1
            elif step != mine:
                stage = self.graph.by_id[one].stage
                together.setdefault((step, stage), []).append(one)
        for members in together.values():
            yield members[-1], len(members)

    def _detail(self, dataflow_id: str, upstream: str, count: int) -> str:
        group = self._place[dataflow_id][0]
        before = self.graph.by_id[upstream].execution_order or 0
        mine = self.graph.by_id[dataflow_id].execution_order or 0
        others = f", and {count - 1} more of that order" if count > 1 else ""
        return f"group {group}: order {mine} after {before}{others}"


def share_out(
    graph: Graph, partitions: Mapping[str, Any], granularity: Granularity = "auto"
) -> Grouping:
    """Return which dataflows share a step.

    Those of a step are of one group and have the same partitions. Steps that would need each
    other fall apart into steps of one dataflow.

    Args:
        graph: The core's.
        partitions: Dataflow id → its partitions, None for none.
        granularity: ``auto`` takes groups with more than ``NARROW`` order edges together, ``group``
            every group, ``dataflow`` none. A dataflow's own option wins.
    """
    active = {one.dataflow_id for one in graph.dataflows if skip_reason(one) is None}
    buckets = dict(_loaded_buckets(graph, active))
    place = {
        one: (group, index)
        for group, kept in buckets.items()
        for index, bucket in enumerate(kept)
        for one in bucket
    }
    wide = frozenset(group for group, kept in buckets.items() if _order_edges(kept) > NARROW)
    kept = {group: _sharing(graph, it, granularity, group in wide) for group, it in buckets.items()}
    whole = Grouping(
        graph,
        wide=frozenset(group for group in wide if kept[group]),
        _waits=waiting_edges(graph, active),
        _buckets=buckets,
        _place=place,
    )
    steps = [step for it in kept.values() if it for step in _cut(it, partitions)]
    rank = {one.dataflow_id: index for index, one in enumerate(graph.dataflows)}
    ordered = [tuple(sorted(step, key=rank.__getitem__)) for step in steps if len(step) > 1]
    return _untangled(whole, ordered, active)


def _loaded_buckets(graph: Graph, active: set[str]) -> Iterator[tuple[int, list[list[str]]]]:
    for group, buckets in graph.order_groups.items():
        kept = [[one for one in bucket if one in active] for bucket in buckets]
        yield group, [bucket for bucket in kept if bucket]


def _sharing(
    graph: Graph, buckets: Sequence[Sequence[str]], granularity: Granularity, is_wide: bool
) -> list[list[str]]:
    """Return the buckets of a group without dataflows that have a step of their own."""
    default = granularity if granularity != "auto" else "group" if is_wide else "dataflow"
    wanted = {one: graph.by_id[one].options.granularity for bucket in buckets for one in bucket}
    found = [
        [one for one in it if (default if wanted[one] == "auto" else wanted[one]) == "group"]
        for it in buckets
    ]
    return [bucket for bucket in found if bucket]


def _order_edges(buckets: Sequence[Sequence[str]]) -> int:
    return sum(len(lower) * len(upper) for lower, upper in pairwise(buckets))


def _cut(buckets: Sequence[Sequence[str]], partitions: Mapping[str, Any]) -> list[list[str]]:
    """Return a group in steps: buckets together as long as there is room and one partitioning."""
    kinds = {partitions[one] for bucket in buckets for one in bucket}
    found: list[list[str]] = [[]]
    for bucket in buckets:
        if len(kinds) > 1 or len(found[-1]) + len(bucket) > MOST_MEMBERS:
            found.append([])
        for kind in kinds:
            members = [one for one in bucket if partitions[one] == kind]
            for start in range(0, len(members), MOST_MEMBERS):
                if start or kind != partitions[bucket[0]]:
                    found.append([])
                found[-1] += members[start : start + MOST_MEMBERS]
        if len(bucket) > MOST_MEMBERS:
            found.append([])
    return found


def _untangled(whole: Grouping, steps: Sequence[tuple[str, ...]], active: set[str]) -> Grouping:
    """Return the grouping without steps that need each other."""
    while True:
        step_of = {one: index for index, step in enumerate(steps) for one in step}
        grouping = replace(whole, steps=tuple(steps), _step_of=step_of)
        knotted = _on_a_cycle(grouping, active)
        if not knotted:
            return grouping
        steps = [step for index, step in enumerate(steps) if index not in knotted]


def _on_a_cycle(grouping: Grouping, active: set[str]) -> set[int]:
    """Return the steps of one cycle among all steps; none if there is none."""
    needs: dict[int | str, set[int | str]] = {}
    for one in active:
        mine = grouping.step_of(one)
        node: int | str = one if mine is None else mine
        waits = needs.setdefault(node, set())
        for edge in grouping.edges_to(one):
            if edge.upstream_id in active:
                step = grouping.step_of(edge.upstream_id)
                waits.add(edge.upstream_id if step is None else step)
        waits.discard(node)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return {node for node in error.args[1] if isinstance(node, int)}
    return set()
