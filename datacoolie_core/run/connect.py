"""``plan --connect``: whether sources and destinations answer, and whether their columns fit.

State, source and destination are looked at, nothing is written and no row is loaded.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import DataCoolieError, LoadError
from datacoolie_core.plan.describe import would_fail
from datacoolie_core.readers.functions import NOT_RUN
from datacoolie_core.readers.read import open_batch
from datacoolie_core.run.attempt import write_request
from datacoolie_core.run.failures import failure_of
from datacoolie_core.run.job import Job
from datacoolie_core.run.prepare import prepare
from datacoolie_core.run.saved_state import load_state
from datacoolie_core.state.reconcile import reconcile
from datacoolie_core.transforms.apply import apply
from datacoolie_core.transforms.explain import explain
from datacoolie_core.transforms.slots import TransformContext
from datacoolie_core.writers.destination import writer_for
from datacoolie_core.writers.fit import Fit, check_fit

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from datacoolie_core.plan.planner import Plan, Step
    from datacoolie_core.readers.batch import Batch
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.results import Failure

_NOT_THERE = ("missing_table", "missing_path")


@dataclass(frozen=True)
class Connected:
    """What one step's source and destination said.

    Attributes:
        error: Why the step would fail; None if it would start.
        notes: What is worth knowing, for people.
        fit: How the columns go together; None where that can't be told.
    """

    error: Failure | None = None
    notes: tuple[str, ...] = ()
    fit: Fit | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what ``plan --connect --json`` says of a step."""
        return {
            "fits": self.error is None,
            "error": None if self.error is None else self.error.message,
            "code": None if self.error is None else self.error.code,
            "notes": list(self.notes),
            "columns": None if self.fit is None else dict(self.fit.columns),
        }


def connect(plan: Plan, context: RunContext) -> dict[str, Connected]:
    """Return what the sources and destinations of a plan say, by dataflow id.

    Steps that are skipped, or that the plan knows to fail, are left out.

    Args:
        plan: Of a load or a replay.
        context: Of a run that never starts.
    """
    asked = [s for s in plan.steps if s.skip_reason is None and would_fail(s) is None]
    made = {step.dataflow.dataflow_id: step.dataflow.label for step in asked}

    def look(step: Step) -> tuple[str, Connected]:
        return step.dataflow.dataflow_id, _connected(step, context, made)

    with ThreadPoolExecutor(context.config.max_workers, thread_name_prefix="connect") as pool:
        return dict(pool.map(look, asked))


def _connected(step: Step, context: RunContext, made: Mapping[str, str]) -> Connected:
    flow = step.dataflow
    try:
        return _looked_at(step, context)
    except LoadError as error:
        makers = [made[e.upstream_id] for e in step.waits_for if e.origin == "lineage"]
        if error.code in _NOT_THERE and error.phase == "read" and makers:
            return Connected(notes=(f"its source is not there yet: {', '.join(makers)} makes it",))
        return Connected(failure_of(error, flow, context))
    except DataCoolieError as error:
        return Connected(failure_of(error, flow, context))


def _looked_at(step: Step, context: RunContext) -> Connected:
    prepared = prepare(step.dataflow, context)
    stored = load_state(context.store, prepared.dataflow.dataflow_id)
    destination = writer_for(prepared.dataflow.destination).inspect(
        prepared.uri, prepared.dataflow.dataflow_id, prepared.storage_options
    )
    baseline = reconcile(prepared.dataflow, stored, destination)
    job = Job(prepared, next(iter(step.windows), None), step.save_watermark)
    batch = open_batch(replace(job.bounds(baseline, context).request, peek=True))
    notes = [text for _, text in (*baseline.warnings, *batch.warnings)]
    try:
        if batch.empty:
            unknown = all(code != NOT_RUN for code, _ in batch.warnings)
            told = ("the source is empty: its columns are not known",) if unknown else ()
            return Connected(notes=(*notes, *told))
        transforms = TransformContext(
            run_id=context.run_id,
            now=context.now(),
            allowed=context.config.allowed_function_prefixes,
        )
        frame = _transformed(job, batch, transforms)
        notes += [text for _, text in transforms.warnings]
    finally:
        batch.close()
    bounds = job.bounds(baseline, context)
    request = write_request(job, baseline, bounds, batch, frame.collect_schema(), context.run_id)
    fit = check_fit(request, frame)
    told = (("new columns", fit.added), ("columns without values", fit.absent))
    remarks = (f"{what}: {', '.join(names)}" for what, names in told if names)
    return Connected(notes=(*notes, *remarks), fit=fit)


def _transformed(job: Job, batch: Batch, transforms: TransformContext) -> pl.LazyFrame:
    try:
        return apply(batch.frame, job.prepared.dataflow, transforms)[0]
    except DataCoolieError:
        raise
    except Exception as error:
        raise explain(error, batch, job.prepared.dataflow) from error
