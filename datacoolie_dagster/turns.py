"""Whose turn it is in a run: what a step waits for, and what of that has failed.

Dagster orders the steps of a run by the edges between the assets that are selected. A selection
that leaves out an asset in the middle, or a whole bucket of a group, leaves no edge; the core still
knows the order, so a step that starts too early asks to be repeated. And a group step lets what
is downstream start although some of its dataflows failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core.plan.waiting import kept_buckets, waiting_edges
from datacoolie_dagster.project import asked_partitions, recorded_keys, resumed_runs
from datacoolie_dagster.recording import earlier_chunks

if TYPE_CHECKING:
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.run.executor import FailedBefore
    from datacoolie_dagster.project import Loaded, Project

_PLANNED = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
_MOST_ASKS = 100_000
_WAITS = (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30)
"""Seconds before a step asks again: the first time, the second, and so on; then always the last."""
_PATIENCE = 4
"""How often a step asks while nothing else of the run is at work: then what it waits for was given
up by Dagster, since a step before that one failed."""


@dataclass(frozen=True)
class Turn:
    """A step of a run, and the dataflows that it is about to load.

    Attributes:
        context: The step's.
        project: The metadata and its assets.
        members: What the step loads in this run.
    """

    context: dg.AssetExecutionContext
    project: Project
    members: Sequence[Loaded]

    def failed_before(self) -> FailedBefore:
        """Return what the step's dataflows wait for and failed in this run, once it is its turn.

        Returns:
            Dataflow id → id and label of each; dataflows without any are left out.

        Raises:
            RetryRequested: Something that they wait for has not ended yet.
        """
        left = {one for one in self._waited_for if not self._is_recorded(one)}
        if left:
            self._wait_for(left)
        by_id = self.project.loaded
        return {
            member: {one: by_id[one].dataflow.label for one in waits if one in left}
            for member, waits in self._waits.items()
            if left.intersection(waits)
        }

    @cached_property
    def _mine(self) -> set[str]:
        return {one.dataflow.dataflow_id for one in self.members}

    @cached_property
    def _present(self) -> set[str]:
        """The dataflows of this run."""
        run_id = self.context.run.run_id
        planned = self.context.instance.get_asset_keys_for_run(run_id, of_type=_PLANNED)
        loaded = self.project.loaded.items()
        return self._mine | {one for one, it in loaded if it.key in planned}

    @cached_property
    def _waits(self) -> dict[str, list[str]]:
        """Dataflow id → what it waits for in other steps of this run."""
        if not any(self.project.waits(one) for one in self._mine):
            return {}
        elsewhere = self._present - self._mine
        if not elsewhere:
            return {}
        return waits_among(self.project.graph, self._present, self._mine, elsewhere)

    @cached_property
    def _waited_for(self) -> set[str]:
        return {one for waits in self._waits.values() for one in waits}

    @cached_property
    def _recorded(self) -> set[dg.AssetKey]:
        runs = {self.context.run.run_id, *resumed_runs(self.context)}
        return recorded_keys(self.context, runs)

    def _is_recorded(self, dataflow_id: str) -> bool:
        loaded = self.project.loaded[dataflow_id]
        if loaded.key not in self._recorded:
            return False
        keys = asked_partitions(self.context, loaded)
        return len(earlier_chunks(self.context, loaded, keys, own=True)) >= len(keys)

    def _wait_for(self, left: set[str]) -> None:
        steps = {self.project.steps[one] for one in left}
        stats = self.context.instance.get_run_step_stats(self.context.run.run_id)
        ended = {one.step_key for one in stats if one.end_time is not None}
        working = {one.step_key for one in stats if one.end_time is None} - {self._own_step}
        if steps <= ended:
            return
        asks = self.context.retry_number
        if not working and asks >= _PATIENCE:
            return
        names = sorted(steps - ended)
        self.context.log.info("it is not yet its turn: %s come first", ", ".join(names[:5]))
        seconds = _WAITS[min(asks, len(_WAITS) - 1)]
        raise dg.RetryRequested(max_retries=_MOST_ASKS, seconds_to_wait=seconds)

    @property
    def _own_step(self) -> str:
        return str(self.context.op_execution_context.op_handle)


def waits_among(
    graph: Graph, present: Collection[str], waiting: Collection[str], upstream: Collection[str]
) -> dict[str, list[str]]:
    """Return dataflow id → what it waits for, directly or through dataflows that do not run.

    Args:
        graph: All dataflows.
        present: Ids of those that run.
        waiting: Those of them that are asked about.
        upstream: Those of them that count as waited for.
    """
    edges = waiting_edges(graph, present)
    lower = dict(_lower(graph, present, waiting, upstream))
    return {
        one: list(
            dict.fromkeys(
                [edge.upstream_id for edge in edges[one] if edge.upstream_id in upstream]
                + lower.get(one, [])
            )
        )
        for one in waiting
    }


def _lower(
    graph: Graph, present: Collection[str], waiting: Collection[str], upstream: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each waiting member of a group with all of lower order."""
    for buckets in kept_buckets(graph, present).values():
        lower: list[str] = []
        for bucket in buckets:
            yield from ((one, list(lower)) for one in bucket if one in waiting)
            lower += [one for one in bucket if one in upstream]
