"""Topological order, and what stands in its way: cycles, printed; contradictions, dropped.

A wide bucket waits for a wide bucket through one barrier node between them, so the number of
edges grows with the number of dataflows.
"""

from __future__ import annotations

import heapq
from collections import deque
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacoolie_core.plan.edges import Buckets, Edge

Barrier = tuple[int, int]
Node = str | Barrier
Needs = dict[Node, list[Node]]
"""Node → what it waits for, itself never."""


def needs_of(
    ids: Iterable[str], groups: Mapping[int, Buckets], edges: Iterable[Edge] = ()
) -> Needs:
    """Return what each dataflow waits for: explicit edges, and order through barriers."""
    needs: Needs = {identifier: [] for identifier in ids}
    for group, buckets in groups.items():
        for index in range(1, len(buckets)):
            barrier = (group, index)
            needs[barrier] = list(buckets[index - 1])
            for identifier in buckets[index]:
                needs[identifier].append(barrier)
    for edge in edges:
        needs[edge.downstream_id].append(edge.upstream_id)
    return needs


def topological(needs: Needs, rank: Callable[[str], tuple[int, ...]]) -> list[str] | None:
    """Return the dataflows so that each comes after what it waits for; None if there is a cycle.

    Args:
        needs: What each node waits for.
        rank: Which of several possible ones comes first.
    """
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError:
        return None
    found: list[str] = []
    ready: list[tuple[tuple[int, ...], Node]] = []
    while sorter.is_active():
        for node in sorter.get_ready():
            # barriers go first, since they only let others through
            heapq.heappush(ready, (rank(node) if isinstance(node, str) else (), node))
        _, node = heapq.heappop(ready)
        sorter.done(node)
        if isinstance(node, str):
            found.append(node)
    return found


def knotted(needs: Needs) -> set[Node]:
    """Return the nodes on cycles, and those between cycles."""
    left = {node: set(waits) for node, waits in needs.items()}
    _peel(left)
    dependents: dict[Node, set[Node]] = {node: set() for node in left}
    for node, waits in left.items():
        for one in waits:
            dependents[one].add(node)
    _peel(dependents)
    return set(dependents)


def _peel(left: dict[Node, set[Node]]) -> None:
    users: dict[Node, list[Node]] = {}
    for node, waits in left.items():
        for one in waits:
            users.setdefault(one, []).append(node)
    free = [node for node, waits in left.items() if not waits]
    while free:
        node = free.pop()
        del left[node]
        for user in users.get(node, ()):
            left[user].discard(node)
            if not left[user]:
                free.append(user)


def path_between(needs: Needs, start: Node, goal: Node) -> list[Node] | None:
    """Return the shortest way along what is waited for, both ends included; None if none."""
    came_from: dict[Node, Node] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for one in needs.get(node, ()):
            if one == goal:
                path = [goal, node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if one not in came_from:
                came_from[one] = node
                queue.append(one)
    return None


def cycles(needs: Needs) -> list[list[str]]:
    """Return a shortest cycle through each dataflow that is on one, without repeats.

    A cycle is written along what is waited for and ends where it starts.
    """
    knot = knotted(needs)
    inside: Needs = {node: [one for one in needs[node] if one in knot] for node in knot}
    found: list[list[str]] = []
    covered: set[Node] = set()
    for node in sorted(one for one in knot if isinstance(one, str)):
        path = None if node in covered else path_between(inside, node, node)
        if path is not None:
            covered.update(path)
            found.append([one for one in path if isinstance(one, str)])
    return found
