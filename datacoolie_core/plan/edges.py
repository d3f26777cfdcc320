"""Edges of the graph: who waits for whom, why, and the order inside groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.errors import Problem
    from datacoolie_core.metadata.models import Dataflow

Origin = Literal["order", "declared", "lineage"]
Buckets = tuple[tuple[str, ...], ...]
"""Ids of one group: buckets in ascending ``execution_order``."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One dataflow waits for another.

    Attributes:
        upstream_id: Runs first.
        downstream_id: Waits.
        origin: Which of the three places the edge comes from.
        detail: Why, for people: ``depends_on: bronze/orders``, ``reads lake/bronze/orders``.
    """

    upstream_id: str
    downstream_id: str
    origin: Origin
    detail: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about one dataflow; as text it is the message.

    Attributes:
        dataflow_id: Whom it concerns.
        message: What is odd, and what to do, as text for people.
    """

    dataflow_id: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Fault:
    """Why dataflows can have no place in the graph.

    Attributes:
        dataflow_ids: Which ones.
        problem: What is wrong, for people.
    """

    dataflow_ids: tuple[str, ...]
    problem: Problem


@dataclass(frozen=True, slots=True)
class Place:
    """Where a dataflow stands in its group.

    Attributes:
        group: The group's number.
        bucket: Which bucket of the group, from 0.
        order: The ``execution_order`` of that bucket.
    """

    group: int
    bucket: int
    order: int


def order_groups(dataflows: Iterable[Dataflow]) -> tuple[dict[int, Buckets], dict[str, Place]]:
    """Return the buckets of every group, and where each grouped dataflow stands.

    A missing order is 0; a dataflow without a group has no order, whatever it says.
    """
    by_order: dict[int, dict[int, list[str]]] = {}
    for flow in dataflows:
        if flow.group_number is not None:
            group = by_order.setdefault(flow.group_number, {})
            group.setdefault(flow.execution_order or 0, []).append(flow.dataflow_id)
    groups: dict[int, Buckets] = {}
    places: dict[str, Place] = {}
    for group, orders in sorted(by_order.items()):
        ascending = sorted(orders.items())
        groups[group] = tuple(tuple(ids) for _, ids in ascending)
        for bucket, (order, ids) in enumerate(ascending):
            places.update((one, Place(group, bucket, order)) for one in ids)
    return groups, places
