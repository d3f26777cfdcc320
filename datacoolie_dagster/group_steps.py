"""What the step of a group does: one run of the core's driver, each dataflow recorded as it ends.

The step raises only after all its dataflows have ended. What depends on a good one still runs, what
depends on a failed one follows ``on_upstream_failure`` (docs/dagster.md, "Granularity").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core import clock
from datacoolie_core.run.events import ChunkFinished
from datacoolie_dagster.load_recorder import LoadRecorder
from datacoolie_dagster.partitions import is_open, replay_windows, windows_for
from datacoolie_dagster.project import recorded_keys, resumed_runs
from datacoolie_dagster.provenance import input_tags
from datacoolie_dagster.recording import ChunkRecorder, counter, earlier_chunks, record_failure
from datacoolie_dagster.silent_output import is_known, silent_output
from datacoolie_dagster.steps import failure_of_many, is_bad, told_whole
from datacoolie_dagster.turns import Turn

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.executor import FailedBefore
    from datacoolie_core.run.results import DataflowResult
    from datacoolie_dagster.project import Loaded, Project
    from datacoolie_dagster.resources import DataCoolieResource
    from datacoolie_dagster.steps import Request


def load_group(
    context: dg.AssetExecutionContext,
    project: Project,
    members: Sequence[Loaded],
    resource: DataCoolieResource,
    request: Request,
) -> Iterator[dg.Output[None]]:
    """Load the selected dataflows of a group, and yield what lets the steps downstream start.

    Raises:
        Failure: Dataflows failed, or were not loaded because of it; it names them.
        RetryRequested: Something that they wait for has not ended yet.
    """
    selected = [one for one in members if one.key in context.selected_asset_keys]
    step = _GroupStep(context, project, selected, resource, request)
    with told_whole():
        before = Turn(context, project, selected).failed_before()
        failure = step.replay(before) if step.is_keyed else step.load(before)
    if failure is not None and _comes_again(context, failure):
        # downstream must not start before the next try
        raise failure
    silent = is_known()
    for one in selected:
        name = context.assets_def.get_output_name_for_asset_key(one.key)
        if silent or one.key in step.recorded:
            yield silent_output(name)
    if failure is not None:
        failure.allow_retries = False
        raise failure


@dataclass
class _GroupStep:
    context: dg.AssetExecutionContext
    project: Project
    members: Sequence[Loaded]
    resource: DataCoolieResource
    request: Request
    recorded: set[dg.AssetKey] = field(default_factory=set[dg.AssetKey])

    @property
    def is_keyed(self) -> bool:
        """Whether partitions are asked for, and the group has some."""
        keyed = self.context.has_partition_key or self.context.has_partition_key_range
        return keyed and self.members[0].spec.partitions_def is not None

    def load(self, before: FailedBefore) -> dg.Failure | None:
        """Load what is new in the dataflows that this run has not loaded yet."""
        done = recorded_keys(self.context, resumed_runs(self.context))
        self.recorded |= done
        return self._incremental([one for one in self.members if one.key not in done], before)

    def _incremental(self, todo: Sequence[Loaded], before: FailedBefore) -> dg.Failure | None:
        if len(todo) < len(self.members):
            self.context.log.info("%d dataflows are loaded already", len(self.members) - len(todo))
        if not todo:
            return None
        recorder = LoadRecorder(self.context, self.project.loaded)
        with self._open(todo, recorder) as driver:
            recorder.driver = driver
            result = driver.run(
                dataflows=[one.dataflow for one in todo],
                full_refresh=self.request.full_refresh,
                run_id=self.context.run.run_id,
                failed_before=before,
            )
            for one in result.dataflows:
                recorder.record(one)
        return self._ended(result.dataflows, recorder.problems)

    def replay(self, before: FailedBefore) -> dg.Failure | None:
        """Replay the partitions of all dataflows, in order; then load the running one up to now."""
        keys, now = list(self.context.partition_keys), clock.utc_now()
        windows = {
            one.dataflow.dataflow_id: windows_for(one.dataflow, keys, now) for one in self.members
        }
        running = self._running(windows)
        closed = {
            one: [window for window in cut if window.key != running.get(one)]
            for one, cut in windows.items()
        }
        failure, failed = self._chunks(closed, before)
        left = [
            one
            for one in self.members
            if one.dataflow.dataflow_id in running and one.dataflow.dataflow_id not in failed
        ]
        later = self._incremental(left, {**before, **failed}) if left else None
        return failure or later

    def _running(self, windows: Mapping[str, Sequence[Window]]) -> dict[str, str]:
        """Return dataflow id → the key of the partition that means up to now."""
        if self.request.reload:
            return {}
        last = {
            one.dataflow.dataflow_id: replay_windows(one.dataflow)[-1].key
            for one in self.members
            if is_open(one.dataflow)
        }
        return {one: key for one, key in last.items() if windows[one][-1].key == key}

    def _chunks(
        self, windows: Mapping[str, Sequence[Window]], before: FailedBefore
    ) -> tuple[dg.Failure | None, dict[str, Mapping[str, str]]]:
        """Replay windows; return the failure, and what failed as what fails its dependents."""
        left = {
            one.dataflow.dataflow_id: self._undone(one, windows[one.dataflow.dataflow_id])
            for one in self.members
        }
        todo = [one for one in self.members if left[one.dataflow.dataflow_id]]
        if not todo:
            return None, {}
        recorder = _ChunkRecorders(
            {
                one.dataflow.dataflow_id: ChunkRecorder(
                    self.context, one, inputs=input_tags(self.context.instance, one)
                )
                for one in todo
            }
        )
        with self._open(todo, recorder) as driver:
            for one in todo:
                recorder.by_id[one.dataflow.dataflow_id].count = counter(driver, one)
            result = driver.run_replay(
                [one.dataflow for one in todo],
                {one: left[one] for one in left if left[one]},
                save_watermark=self.request.save_watermark,
                respect_order=True,
                run_id=self.context.run.run_id,
                failed_before=before,
            )
        bad = [one for one in result.dataflows if is_bad(one)]
        for one in bad:
            record_failure(self.context, self.project.loaded[one.dataflow.dataflow_id], one)
        failed = {one.dataflow.dataflow_id: one.dataflow.label for one in bad}
        return self._ended(result.dataflows, recorder.problems), dict.fromkeys(failed, failed)

    def _undone(self, one: Loaded, windows: Sequence[Window]) -> list[Window]:
        done = earlier_chunks(self.context, one, [window.key for window in windows])
        return [window for window in windows if window.key not in done]

    def _open(self, todo: Sequence[Loaded], recorder: Callable[[Event], None]) -> DataCoolieDriver:
        flows = [one.dataflow for one in todo]
        return self.project.open(self.context, self.resource, flows, listeners=[recorder])

    def _ended(
        self, results: Sequence[DataflowResult], problems: Sequence[Exception]
    ) -> dg.Failure | None:
        if problems:
            raise problems[0]
        bad = [one for one in results if is_bad(one)]
        loaded = self.project.loaded
        self.recorded |= {loaded[one.dataflow.dataflow_id].key for one in results if one not in bad}
        return failure_of_many(bad, total=len(results)) if bad else None


@dataclass(frozen=True)
class _ChunkRecorders:
    """A listener that hands the chunks of each dataflow to its own recorder."""

    by_id: Mapping[str, ChunkRecorder]

    def __call__(self, event: Event) -> None:
        if isinstance(event, ChunkFinished):
            self.by_id[event.result.dataflow.dataflow_id](event)

    @property
    def problems(self) -> list[Exception]:
        """What could not be recorded."""
        return [one for recorder in self.by_id.values() for one in recorder.problems]


def _comes_again(context: dg.AssetExecutionContext, failure: dg.Failure) -> bool:
    """Say whether Dagster repeats the step by its own policy."""
    ops = context.op_execution_context
    policy = ops.job_def.get_retry_policy_for_handle(ops.op_handle)
    again = policy is not None and context.retry_number < policy.max_retries
    return again and failure.allow_retries
