"""The plan: what would run, in which order and why. Explaining and running read the same one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from datacoolie_core.plan.advice import advice_for
from datacoolie_core.plan.describe import describe_step, plan_document, reason_of
from datacoolie_core.plan.edges import Buckets, Edge
from datacoolie_core.plan.lookback import effective_lower
from datacoolie_core.plan.replay import replay_refusal
from datacoolie_core.plan.waiting import kept_buckets, waiting_edges
from datacoolie_core.plan.windows import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from datacoolie_core.metadata.models import Dataflow, InvalidDataflow
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.selection import Selection
    from datacoolie_core.plan.windows import Watermark, Window

__all__ = [
    "Mode",
    "Plan",
    "Step",
    "build_plan",
    "describe_step",
    "plan_document",
    "replay_refusal",
]

Mode = Literal["load", "replay"]


@dataclass(frozen=True)
class Step:
    """One dataflow of a plan.

    Attributes:
        dataflow: As in the metadata.
        waits_for: Edges from other steps by lineage and ``depends_on``, and by what leads through
            dataflows that are not in the plan.
        group: Its group, None without one.
        bucket: Its place among the plan's buckets of that group, from 0.
        skip_reason: Why it is not run; None runs it.
        reason: What it waits for, for people.
        lower: Where its read starts: stored watermark less look-back. Empty is the beginning.
        windows: The chunks of a replay, in order.
        query: The SQL text of its query, as far as the graph could read it.
        warnings: What is odd about it.
    """

    dataflow: Dataflow
    waits_for: tuple[Edge, ...] = ()
    group: int | None = None
    bucket: int = 0
    skip_reason: str | None = None
    reason: str = ""
    lower: Watermark = field(default_factory=dict[str, Scalar])
    windows: tuple[Window, ...] = ()
    query: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What would run.

    Attributes:
        steps: Each after what it waits for.
        order_groups: Group number → buckets of ids in order, of the dataflows in this plan.
        warnings: Those of all steps.
        shard: How many jobs there are and which one this is.
        mode: A normal load, or a replay of windows.
        invalid: Dataflows that were meant and can't be loaded at all.
    """

    steps: tuple[Step, ...]
    order_groups: Mapping[int, Buckets] = field(default_factory=dict[int, Buckets])
    warnings: tuple[str, ...] = ()
    shard: tuple[int, int] | None = None
    mode: Mode = "load"
    invalid: tuple[InvalidDataflow, ...] = ()


def build_plan(
    graph: Graph,
    selection: Selection,
    *,
    watermarks: Mapping[str, Watermark],
    now: datetime,
    replay: Mapping[str, Sequence[Window]] | None = None,
) -> Plan:
    """Return the plan of a selection.

    A replay runs its dataflows beside each other; only those with ``respect_order`` wait.

    Args:
        graph: All dataflows.
        selection: The ones that are meant.
        watermarks: Dataflow id → what is stored; none for a dataflow that starts over.
        now: The current instant, aware.
        replay: Dataflow id → its windows; None plans a normal load.
    """
    selected = {flow.dataflow_id for flow in selection.dataflows}
    ordered = selected if replay is None else _respecting(selection)
    waits = waiting_edges(graph, ordered)
    buckets = kept_buckets(graph, ordered)
    places = {
        one: (group, index)
        for group, members in buckets.items()
        for index, bucket in enumerate(members)
        for one in bucket
    }
    labels = {flow.dataflow_id: flow.label for flow in graph.dataflows}
    notices: dict[str, list[str]] = {}
    for notice in graph.warnings:
        notices.setdefault(notice.dataflow_id, []).append(notice.message)
    steps: list[Step] = []
    for flow in selection.dataflows:
        identifier = flow.dataflow_id
        group, bucket = places.get(identifier, (flow.group_number, 0))
        edges = waits.get(identifier, ())
        steps.append(
            Step(
                dataflow=flow,
                waits_for=edges,
                group=group,
                bucket=bucket,
                skip_reason=selection.skip_reasons.get(identifier),
                reason=reason_of(edges, labels, _previous(graph, buckets, group, bucket)),
                lower=effective_lower(flow, watermarks.get(identifier, {}), now),
                windows=tuple((replay or {}).get(identifier, ())),
                query=graph.queries.get(identifier),
                warnings=(*notices.get(identifier, ()), *advice_for(flow, graph)),
            )
        )
    return Plan(
        steps=tuple(steps),
        order_groups=buckets,
        warnings=tuple(text for step in steps for text in step.warnings),
        shard=selection.shard,
        mode="load" if replay is None else "replay",
        invalid=selection.invalid,
    )


def _respecting(selection: Selection) -> set[str]:
    return {
        flow.dataflow_id
        for flow in selection.dataflows
        if flow.options.replay is not None and flow.options.replay.respect_order
    }


def _previous(
    graph: Graph, buckets: Mapping[int, Buckets], group: int | None, bucket: int
) -> str | None:
    if group is None or bucket == 0:
        return None
    order = graph.places[buckets[group][bucket - 1][0]].order
    return f"order {order} of group {group}"
