"""What the step of a group does: one run of the core's driver, each dataflow recorded as it ends.

The step raises only after all its dataflows have ended. What depends on a good one still runs, what
depends on a failed one follows ``on_upstream_failure`` (docs/dagster.md, "Granularity").
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core import clock
from datacoolie_core.run.events import ChunkFinished, DataflowStarted
from datacoolie_dagster.load_recorder import LoadRecorder
from datacoolie_dagster.partitions import running_window, windows_for
from datacoolie_dagster.pools import slots_for
from datacoolie_dagster.project import asked_partitions, recorded_keys, resumed_runs
from datacoolie_dagster.provenance import NewestInputs
from datacoolie_dagster.recording import ChunkRecorder, counter, earlier_chunks, record_failure
from datacoolie_dagster.silent_output import is_known, silent_output
from datacoolie_dagster.steps import failure_of_many, is_bad, told_whole
from datacoolie_dagster.turns import Turn, waits_among

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
        step.failed_before = Turn(context, project, selected).failed_before()
        asked = asked_partitions(context, selected[0])
        if asked:
            step.replay(asked)
        else:
            step.load()
    bad = list(step.bad.values())
    failure = failure_of_many(bad, total=len(selected)) if bad else None
    if failure is not None and _comes_again(context, failure):
        # downstream must not start before the next try
        raise failure
    awaited, silent = _awaited_outputs(context), is_known()
    for one in selected:
        name = context.assets_def.get_output_name_for_asset_key(one.key)
        if name in awaited and (silent or one.dataflow.dataflow_id not in step.bad):
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
    failed_before: FailedBefore = field(default_factory=dict[str, Mapping[str, str]])
    bad: dict[str, DataflowResult] = field(default_factory=dict[str, "DataflowResult"])

    def load(self) -> None:
        """Load what is new in the dataflows that this run has not loaded yet."""
        done = recorded_keys(self.context, resumed_runs(self.context))
        todo = [one for one in self.members if one.key not in done]
        if len(todo) < len(self.members):
            self.context.log.info("%d dataflows are loaded already", len(self.members) - len(todo))
        self._incremental(todo)

    def _incremental(self, todo: Sequence[Loaded], own: Mapping[str, str] | None = None) -> None:
        if not todo:
            return
        recorder = LoadRecorder(self.context, {_id(one): one for one in todo}, own=own or {})
        with self._open(todo, recorder) as driver:
            recorder.driver = driver
            result = driver.run(
                dataflows=[one.dataflow for one in todo],
                full_refresh=self.request.full_refresh,
                run_id=self.context.run.run_id,
                failed_before=self.failed_before,
            )
            for one in result.dataflows:
                recorder.record(one)
        self._note(result.dataflows, recorder.problems)

    def replay(self, keys: Sequence[str]) -> None:
        """Replay the partitions of all dataflows, in order; then load the running one up to now."""
        now = clock.utc_now()
        windows = {_id(one): windows_for(one.dataflow, keys, now) for one in self.members}
        running = {} if self.request.reload else dict(_running(self.members, windows))
        self._chunks(
            {
                one: [window for window in cut if window.key != running.get(one)]
                for one, cut in windows.items()
            }
        )
        left = [one for one in self.members if _id(one) in running and _id(one) not in self.bad]
        self.failed_before = {**self.failed_before, **self._failed_here(left)}
        self._incremental(left, running)

    def _chunks(self, windows: Mapping[str, Sequence[Window]]) -> None:
        left = {_id(one): self._undone(one, windows[_id(one)]) for one in self.members}
        todo = [one for one in self.members if left[_id(one)]]
        if not todo:
            return
        recorder = _ChunkRecorders(
            {_id(one): ChunkRecorder(self.context, one) for one in todo},
            NewestInputs(self.context.instance, todo),
        )
        with self._open(todo, recorder) as driver:
            for one in todo:
                recorder.by_id[_id(one)].count = counter(driver, one)
            result = driver.run_replay(
                [one.dataflow for one in todo],
                {one: cut for one, cut in left.items() if cut},
                save_watermark=self.request.save_watermark,
                respect_order=True,
                run_id=self.context.run.run_id,
                failed_before=self.failed_before,
            )
        self._note(result.dataflows, recorder.problems)
        for identifier, one in self.bad.items():
            record_failure(self.context, self.project.loaded[identifier], one)

    def _undone(self, one: Loaded, windows: Sequence[Window]) -> list[Window]:
        done = earlier_chunks(self.context, one, [window.key for window in windows])
        return [window for window in windows if window.key not in done]

    def _failed_here(self, left: Sequence[Loaded]) -> dict[str, dict[str, str]]:
        """Return what failed in this step already, for each dataflow that waits for it."""
        members = {_id(one) for one in self.members}
        waiting = {_id(one) for one in left}
        waits = waits_among(self.project.graph, members, waiting, set(self.bad))
        return {
            one: {up: self.bad[up].dataflow.label for up in upstream}
            for one, upstream in waits.items()
            if upstream
        }

    @contextmanager
    def _open(
        self, todo: Sequence[Loaded], recorder: Callable[[Event], None]
    ) -> Generator[DataCoolieDriver]:
        flows = [one.dataflow for one in todo]
        step = str(self.context.op_execution_context.op_handle)
        with (
            slots_for(self.context.instance, self.context.run.run_id, step, flows) as slots,
            self.project.open(
                self.context, self.resource, flows, listeners=[slots, recorder]
            ) as driver,
        ):
            yield driver

    def _note(self, results: Sequence[DataflowResult], problems: Sequence[Exception]) -> None:
        if problems:
            raise problems[0]
        self.bad.update({one.dataflow.dataflow_id: one for one in results if is_bad(one)})


def _id(loaded: Loaded) -> str:
    return loaded.dataflow.dataflow_id


def _running(
    members: Sequence[Loaded], windows: Mapping[str, Sequence[Window]]
) -> Iterator[tuple[str, str]]:
    """Yield dataflow id and the key of the asked partition that means up to now."""
    for one in members:
        running = running_window(one.dataflow, windows[_id(one)])
        if running is not None:
            yield _id(one), running.key


@dataclass(frozen=True)
class _ChunkRecorders:
    """A listener that hands the chunks of each dataflow to its own recorder."""

    by_id: Mapping[str, ChunkRecorder]
    inputs: NewestInputs

    def __call__(self, event: Event) -> None:
        if isinstance(event, DataflowStarted):
            recorder = self.by_id[event.dataflow.dataflow_id]
            recorder.inputs = self.inputs.tags(recorder.loaded)
        elif isinstance(event, ChunkFinished):
            recorder = self.by_id[event.result.dataflow.dataflow_id]
            recorder(event)
            self.inputs.has_changed(recorder.loaded.key)

    @property
    def problems(self) -> list[Exception]:
        """What could not be recorded."""
        return [one for recorder in self.by_id.values() for one in recorder.problems]


def _awaited_outputs(context: dg.AssetExecutionContext) -> set[str]:
    """Return the outputs that other steps of this run wait for; each output costs its time."""
    ops = context.op_execution_context
    own = str(ops.op_handle)
    return {
        one.output
        for inputs in ops.job_def.dependencies.values()
        for given in inputs.values()
        for one in given.get_node_dependencies()
        if one.node == own
    }


def _comes_again(context: dg.AssetExecutionContext, failure: dg.Failure) -> bool:
    """Say whether Dagster repeats the step by its own policy."""
    ops = context.op_execution_context
    policy = ops.job_def.get_retry_policy_for_handle(ops.op_handle)
    again = policy is not None and context.retry_number < policy.max_retries
    return again and failure.allow_retries
