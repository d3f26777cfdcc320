"""The plan: what would run, in which order and why. Explaining and running read the same one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from datacoolie_core.plan.advice import advice_for
from datacoolie_core.plan.describe import describe_step, plan_document, reason_of
from datacoolie_core.plan.edges import Buckets, Edge
from datacoolie_core.plan.lookback import effective_lower
from datacoolie_core.plan.refusal import load_refusal
from datacoolie_core.plan.replay import Chunks, Replay, chunks_for, replay_refusal
from datacoolie_core.plan.waiting import kept_buckets, waiting_edges
from datacoolie_core.plan.windows import Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping
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
        state_known: Whether its state was read; a dry run reads none.
        windows: The chunks of a replay, in order.
        save_watermark: Whether the chunks of its replay move the saved watermark.
        refusal: Why the plan refuses it, with the remedy: it would fail.
        trouble: Why it would fail as things stand: its SQL file or its state can't be read. A run
            looks again.
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
    state_known: bool = True
    windows: tuple[Window, ...] = ()
    save_watermark: bool = False
    refusal: str | None = None
    trouble: str | None = None
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
    watermarks: Mapping[str, Watermark] | None,
    now: datetime,
    replay: Replay | None = None,
    save_watermark: bool = False,
    respect_order: bool = False,
    full_refresh: bool = False,
    troubles: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan of a selection.

    A replay runs its dataflows beside each other; only those that respect the order wait.

    Args:
        graph: All dataflows.
        selection: The ones that are meant.
        watermarks: Dataflow id → what is stored; none for a dataflow that starts over. None: no
            state was read, windows are rules.
        now: The current instant, aware.
        replay: What is to be loaded again; None plans a normal load.
        save_watermark: Whether all chunks of the replay move the saved watermark.
        respect_order: Whether all dataflows of the replay wait as in a normal run.
        full_refresh: Whether everything is to be loaded anew.
        troubles: Dataflow id → why its SQL file or its state can't be read.

    Raises:
        SettingsError: A range or its interval makes no sense.
    """
    chunks: dict[str, Chunks] | None = None
    if replay is not None:
        asked = {
            flow.dataflow_id: chunks_for(flow, graph, replay, now) for flow in selection.dataflows
        }
        chunks = {
            identifier: replace(
                one,
                save_watermark=save_watermark or one.save_watermark,
                respect_order=respect_order or one.respect_order,
            )
            for identifier, one in asked.items()
        }
    selected = {flow.dataflow_id for flow in selection.dataflows}
    ordered = {one for one in selected if chunks is None or chunks[one].respect_order}
    drawn = _Drawn(
        graph=graph,
        selection=selection,
        known=_Known(now, watermarks, troubles or {}, full_refresh),
        waits=waiting_edges(graph, ordered),
        buckets=kept_buckets(graph, ordered),
        chunks=chunks,
    )
    steps = tuple(drawn.step(flow) for flow in selection.dataflows)
    return Plan(
        steps=steps,
        order_groups=drawn.buckets,
        warnings=tuple(text for step in steps for text in step.warnings),
        shard=selection.shard,
        mode="load" if replay is None else "replay",
        invalid=selection.invalid,
    )


@dataclass(frozen=True)
class _Known:
    now: datetime
    watermarks: Mapping[str, Watermark] | None
    troubles: Mapping[str, str]
    full_refresh: bool


@dataclass(frozen=True)
class _Drawn:
    """What all steps of a plan are made of."""

    graph: Graph
    selection: Selection
    known: _Known
    waits: Mapping[str, tuple[Edge, ...]]
    buckets: Mapping[int, Buckets]
    chunks: Mapping[str, Chunks] | None

    def step(self, flow: Dataflow) -> Step:
        identifier, known = flow.dataflow_id, self.known
        stored = (known.watermarks or {}).get(identifier, {})
        chunks = Chunks() if self.chunks is None else self.chunks[identifier]
        refusal = chunks.refusal
        if self.chunks is None:
            refusal = load_refusal(flow, self.graph, full_refresh=known.full_refresh)
        group, bucket = self._places.get(identifier, (flow.group_number, 0))
        edges = self.waits.get(identifier, ())
        skipped = self.selection.skip_reasons.get(identifier)
        return Step(
            dataflow=flow,
            waits_for=edges,
            group=group,
            bucket=bucket,
            skip_reason=skipped,
            reason=reason_of(edges, self._labels, self._previous(group, bucket)),
            lower=effective_lower(flow, stored, known.now),
            state_known=known.watermarks is not None,
            windows=chunks.windows,
            save_watermark=chunks.save_watermark,
            refusal=None if skipped else refusal,
            trouble=None if skipped else known.troubles.get(identifier),
            query=self.graph.queries.get(identifier),
            warnings=self._warnings(flow, stored),
        )

    @cached_property
    def _places(self) -> Mapping[str, tuple[int, int]]:
        return {
            one: (group, index)
            for group, members in self.buckets.items()
            for index, bucket in enumerate(members)
            for one in bucket
        }

    @cached_property
    def _labels(self) -> Mapping[str, str]:
        return {flow.dataflow_id: flow.label for flow in self.graph.dataflows}

    @cached_property
    def _notices(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for notice in self.graph.warnings:
            found.setdefault(notice.dataflow_id, []).append(notice.message)
        return found

    def _previous(self, group: int | None, bucket: int) -> str | None:
        if group is None or bucket == 0:
            return None
        order = self.graph.places[self.buckets[group][bucket - 1][0]].order
        return f"order {order} of group {group}"

    def _warnings(self, flow: Dataflow, stored: Watermark) -> tuple[str, ...]:
        chunks = None if self.chunks is None else self.chunks[flow.dataflow_id]
        advice = advice_for(flow, self.graph, watermark=stored, now=self.known.now, replay=chunks)
        return (*self._notices.get(flow.dataflow_id, ()), *advice)
