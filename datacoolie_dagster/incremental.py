"""What the op of a ``<stage>_incremental`` job does: one run of the core, told as it goes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core.errors import SelectionError
from datacoolie_core.plan.selection import select
from datacoolie_core.run.events import DataflowFinished, DataflowStarted
from datacoolie_dagster.project import resumed_runs
from datacoolie_dagster.provenance import input_tags
from datacoolie_dagster.recording import counter, materialization, record_failure, record_marks
from datacoolie_dagster.results import event_metadata
from datacoolie_dagster.steps import told_whole

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.results import DataflowResult, ExecutionResult
    from datacoolie_core.state.record import StateRecord
    from datacoolie_dagster.project import Loaded, Project
    from datacoolie_dagster.resources import DataCoolieResource


def load_stage(
    context: dg.OpExecutionContext,
    project: Project,
    dataflow_ids: Sequence[str],
    resource: DataCoolieResource,
    *,
    patterns: Sequence[str] = (),
    full_refresh: bool = False,
) -> None:
    """Load what is new in some dataflows; record each as it ends.

    Args:
        context: The op's.
        project: The metadata and where it is run.
        dataflow_ids: Those of the stage.
        resource: How loads go.
        patterns: Narrow them down: names, ``stage/name``, ids, with ``*``, ``?`` and ``+``.
        full_refresh: Read from the beginning and replace what is there.

    Raises:
        Failure: Some failed; it names them.
    """
    recorder = LoadRecorder(context, project.loaded)
    everything = [project.loaded[one].dataflow for one in dataflow_ids]
    with (
        told_whole(),
        project.open(context, resource, everything, listeners=[recorder]) as driver,
    ):
        chosen = _without_done(context, project, _chosen(driver, everything, patterns))
        recorder.driver = driver
        result = driver.run(dataflows=chosen, full_refresh=full_refresh, run_id=context.run.run_id)
    for one in result.dataflows:
        recorder.record(one)
    _raise_failed(result)
    if recorder.problems:
        raise recorder.problems[0]


def _chosen(
    driver: DataCoolieDriver, everything: Sequence[Dataflow], patterns: Sequence[str]
) -> list[Dataflow]:
    if not patterns:
        return list(everything)
    meant = {one.dataflow_id for one in select(driver.graph, include=patterns).dataflows}
    chosen = [one for one in everything if one.dataflow_id in meant]
    if not chosen:
        raise SelectionError(
            f"{', '.join(patterns)} selects nothing of this stage",
            place="select",
            remedy=f"It has {', '.join(one.label for one in everything[:10])}.",
        )
    return chosen


def _without_done(
    context: dg.OpExecutionContext, project: Project, chosen: Sequence[Dataflow]
) -> list[Dataflow]:
    """Return what this run, or one that it resumes, has not yet loaded."""
    done: set[dg.AssetKey] = set()
    for run_id in resumed_runs(context):
        done |= context.instance.get_asset_keys_for_run(
            run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        )
    return [one for one in chosen if project.loaded[one.dataflow_id].key not in done]


@dataclass
class LoadRecorder:
    """A listener that records each dataflow of a run as it ends.

    Attributes:
        context: The op's.
        loaded: The assets by dataflow id.
        driver: The one that runs; it knows the state before each load.
        problems: What went wrong while recording; a listener can't raise.
    """

    context: dg.OpExecutionContext
    loaded: Mapping[str, Loaded]
    driver: DataCoolieDriver | None = None
    problems: list[Exception] = field(default_factory=list[Exception])
    _before: dict[str, StateRecord | None] = field(default_factory=dict[str, "StateRecord | None"])
    _inputs: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    _recorded: set[str] = field(default_factory=set[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, event: Event) -> None:
        """Note state and inputs before a load, and record how it ended."""
        if isinstance(event, DataflowStarted) and self.driver is not None:
            dataflow_id = event.dataflow.dataflow_id
            self._before[dataflow_id] = self.driver.store.load(dataflow_id)
            loaded = self.loaded[dataflow_id]
            self._inputs[dataflow_id] = input_tags(self.context.instance, loaded)
        elif isinstance(event, DataflowFinished):
            self.record(event.result)

    def record(self, result: DataflowResult) -> None:
        """Record how a dataflow ended, once; what was never started has no event of its own."""
        with self._lock:
            if result.dataflow.dataflow_id in self._recorded:
                return
            self._recorded.add(result.dataflow.dataflow_id)
            try:
                self._record(result)
            except Exception as error:
                self.context.log.exception("%s was not recorded", result.dataflow.label)
                self.problems.append(error)

    def _record(self, result: DataflowResult) -> None:
        loaded = self.loaded[result.dataflow.dataflow_id]
        if result.error is not None or not result.attempts:
            # failed, or never started: it runs elsewhere, or an upstream failed
            record_failure(self.context, loaded, result)
            return
        before = self._before.get(result.dataflow.dataflow_id)
        inputs = self._inputs.get(result.dataflow.dataflow_id)
        count = counter(self.driver, loaded) if self.driver is not None else None
        record_marks(self.context, loaded, result, before, count=count, inputs=inputs)
        event = materialization(loaded, result, event_metadata(result), inputs=inputs)
        self.context.log_event(event)


def _raise_failed(result: ExecutionResult) -> None:
    """Raise a failure that names all that failed, unless all went well."""
    failed = [one for one in result.dataflows if one.error is not None]
    pending = [one for one in result.dataflows if one.status == "pending"]
    if not failed and not pending:
        return
    names = "; ".join(f"{one.dataflow.label} [{one.dataflow.dataflow_id}]" for one in failed)
    waiting = f" {len(pending)} were not started." if pending else ""
    lines = "\n".join(f"- {one.error.message}" for one in failed if one.error is not None)
    raise dg.Failure(
        description=f"{len(failed)} of {result.total} dataflows failed: {names}.{waiting}",
        metadata={"errors": dg.MetadataValue.md(lines)},
        allow_retries=any(one.error is not None and one.error.retryable for one in failed),
    )
