"""What the selected dataflows wait for, when only some are selected.

An edge that leads through dataflows which are not selected still counts: nothing starts before
what it waits for, directly or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.plan.edges import Edge

if TYPE_CHECKING:
    from collections.abc import Collection

    from datacoolie_core.plan.edges import Buckets, Place
    from datacoolie_core.plan.graph import Graph

_Waits = dict[str, Edge]
"""Upstream id → the edge that starts there."""


def waiting_edges(graph: Graph, selected: Collection[str]) -> dict[str, tuple[Edge, ...]]:
    """Return the edges from selected dataflows that each selected dataflow waits for.

    Lineage and ``depends_on``, and whatever reaches it through unselected dataflows; the order of
    selected dataflows inside a group is not repeated here. An edge that leads through others is
    the first edge of that way, so its downstream is one of those.

    Args:
        graph: All dataflows.
        selected: Ids.
    """
    ways = _Ways(graph, selected)
    return {
        flow.dataflow_id: tuple(ways.of_selected(flow.dataflow_id).values())
        for flow in graph.dataflows
        if flow.dataflow_id in selected
    }


def kept_buckets(graph: Graph, selected: Collection[str]) -> dict[int, Buckets]:
    """Return the groups and buckets that are left of declared order; empty ones go."""
    kept = {
        group: tuple(
            members
            for bucket in buckets
            if (members := tuple(one for one in bucket if one in selected))
        )
        for group, buckets in graph.order_groups.items()
    }
    return {group: buckets for group, buckets in kept.items() if buckets}


class _Ways:
    """Memoised ways up from a dataflow to the nearest selected ones."""

    def __init__(self, graph: Graph, selected: Collection[str]) -> None:
        self._graph = graph
        self._selected = selected
        self._open: dict[str, _Waits] = {}
        self._hidden: dict[tuple[int, int], _Waits] = {}
        self._barriers: dict[tuple[int, int], _Waits] = {}
        # upstream first, so that no step below goes deep
        for flow in graph.dataflows:
            if flow.dataflow_id not in selected:
                self._of_unselected(flow.dataflow_id)
            elif (place := graph.places.get(flow.dataflow_id)) is not None:
                self._behind(place.group, place.bucket)

    def of_selected(self, identifier: str) -> _Waits:
        waits = self._explicit(identifier)
        place = self._graph.places.get(identifier)
        if place is not None:
            waits = {**self._behind(place.group, place.bucket), **waits}
        return waits

    def _explicit(self, identifier: str) -> _Waits:
        waits: _Waits = {}
        for edge in self._graph.upstream_edges(identifier):
            if edge.upstream_id in self._selected:
                waits[edge.upstream_id] = edge
            else:
                for upstream, way in self._of_unselected(edge.upstream_id).items():
                    waits.setdefault(upstream, way)
        return waits

    def _of_unselected(self, identifier: str) -> _Waits:
        found = self._open.get(identifier)
        if found is None:
            found = self._explicit(identifier)
            place = self._graph.places.get(identifier)
            if place is not None:
                found = {**self._barrier(place), **found}
            self._open[identifier] = found
        return found

    def _behind(self, group: int, bucket: int) -> _Waits:
        """What unselected dataflows of lower buckets wait for, up to the next selected bucket."""
        if bucket == 0:
            return {}
        found = self._hidden.get((group, bucket))
        if found is None:
            found = _Waits()
            lower = self._graph.order_groups[group][bucket - 1]
            for identifier in lower:
                if identifier not in self._selected:
                    found.update(self._explicit(identifier))
            if not any(one in self._selected for one in lower):
                found.update(self._behind(group, bucket - 1))
            self._hidden[group, bucket] = found
        return found

    def _barrier(self, place: Place) -> _Waits:
        """What a whole bucket waits for: `_behind`, and the next selected bucket below."""
        key = (place.group, place.bucket)
        found = self._barriers.get(key)
        if found is None:
            found = dict(self._behind(*key))
            buckets = self._graph.order_groups[place.group]
            stands_for = buckets[place.bucket][0]
            for lower in reversed(buckets[: place.bucket]):
                near = [one for one in lower if one in self._selected]
                if near:
                    before = self._graph.places[near[0]].order
                    detail = f"group {place.group}: order {place.order} after {before}"
                    found.update((one, Edge(one, stands_for, "order", detail)) for one in near)
                    break
            self._barriers[key] = found
        return found
