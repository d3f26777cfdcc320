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
    from datacoolie_dagster.quarantine import Broken
    from datacoolie_dagster.resources import DataCoolieResource


@dataclass(frozen=True)
class StageLoad:
    """What an incremental job is asked to load.

    Attributes:
        stage: The stage; None is the dataflows without one.
        dataflow_ids: Its active dataflows.
        patterns: Narrow them down: names, ``stage/name``, ids, with ``*``, ``?`` and ``+``.
        full_refresh: Read from the beginning and replace what is there.
    """

    stage: str | None
    dataflow_ids: Sequence[str]
    patterns: Sequence[str] = ()
    full_refresh: bool = False


def load_stage(
    context: dg.OpExecutionContext,
    project: Project,
    request: StageLoad,
    resource: DataCoolieResource,
) -> None:
    """Load what is new in some dataflows; record each as it ends.

    Args:
        context: The op's.
        project: The metadata and where it is run.
        request: What to load.
        resource: How loads go.

    Raises:
        Failure: Some failed; it names them.
    """
    recorder = LoadRecorder(context, project.loaded)
    everything = [project.loaded[one].dataflow for one in request.dataflow_ids]
    with (
        told_whole(),
        project.open(context, resource, everything, listeners=[recorder]) as driver,
    ):
        chosen, broken = _chosen(driver, project, request)
        recorder.driver = driver
        result = driver.run(
            dataflows=_without_done(context, project, chosen),
            full_refresh=request.full_refresh,
            run_id=context.run.run_id,
        )
    for one in result.dataflows:
        recorder.record(one)
    _raise_failed(result, broken)
    if recorder.problems:
        raise recorder.problems[0]


def _chosen(
    driver: DataCoolieDriver, project: Project, request: StageLoad
) -> tuple[list[Dataflow], list[Broken]]:
    """Return the dataflows to load, and those that can't be."""
    everything = [project.loaded[one].dataflow for one in request.dataflow_ids]
    broken = [one for one in project.broken if one.dataflow.stage == request.stage]
    if not request.patterns:
        return everything, broken
    meant = select(driver.graph, include=request.patterns)
    ids = {one.dataflow_id for one in (*meant.dataflows, *meant.invalid)}
    chosen = [one for one in everything if one.dataflow_id in ids]
    broken = [one for one in broken if one.dataflow.dataflow_id in ids]
    if not chosen and not broken:
        raise SelectionError(
            f"{', '.join(request.patterns)} selects nothing of this stage",
            place="select",
            remedy=f"It has {', '.join(one.label for one in everything[:10])}.",
        )
    return chosen, broken


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
        metadata = event_metadata(result, loaded.reads)
        event = materialization(loaded, result, metadata, inputs=inputs)
        self.context.log_event(event)


def _raise_failed(result: ExecutionResult, broken: Sequence[Broken]) -> None:
    """Raise a failure that names all that failed, unless all went well."""
    failed = [(one.dataflow, one.error) for one in result.dataflows if one.error is not None]
    pending = sum(one.status == "pending" for one in result.dataflows)
    if not failed and not pending and not broken:
        return
    flows = [*(one for one, _ in failed), *(one.dataflow for one in broken)]
    names = "; ".join(f"{one.label} [{one.dataflow_id}]" for one in flows)
    waiting = f" {pending} were not started." if pending else ""
    texts = [*(error.message for _, error in failed), *(one.problems for one in broken)]
    total = result.total + len(broken)
    raise dg.Failure(
        description=f"{len(flows)} of {total} dataflows failed: {names}.{waiting}",
        metadata={"errors": dg.MetadataValue.md("\n".join(f"- {text}" for text in texts))},
        allow_retries=any(error.retryable for _, error in failed),
    )
