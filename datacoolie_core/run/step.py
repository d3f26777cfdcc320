"""One step of a plan: skip it, say what it would do, load what is new, or replay its chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import DataCoolieError
from datacoolie_core.plan.describe import describe_window
from datacoolie_core.run.failures import failure_of
from datacoolie_core.run.pipeline import replay_dataflow, run_dataflow
from datacoolie_core.run.prepare import check_preparation
from datacoolie_core.run.results import DataflowResult, Failure

if TYPE_CHECKING:
    from datacoolie_core.plan.planner import Mode, Step
    from datacoolie_core.run.context import RunContext

DRY_RUN = "dry run"


def run_step(
    step: Step,
    context: RunContext,
    stale_upstream: tuple[str, ...],
    *,
    mode: Mode,
    dry_run: bool = False,
) -> DataflowResult:
    """Carry out one step of a plan; never raises for a failure of its dataflow.

    The plan says what is meant; state, SQL and secrets are read again here.

    Args:
        step: Of the plan.
        context: The run.
        stale_upstream: Ids of upstream dataflows that failed in this run.
        mode: The plan's.
        dry_run: Only check what preparation checks: no state, reader, writer or secret is opened.
    """
    flow = step.dataflow
    if step.skip_reason is not None:
        return DataflowResult(flow, "skipped", reason=step.skip_reason)
    if mode == "replay" and step.refusal is not None:
        text = f"dataflow '{flow.label}', replay: {step.refusal}."
        failure = Failure("prepare", "replay_refused", text)
        return DataflowResult(flow, "failed", run_kind="replay", error=failure)
    if dry_run:
        return _rehearsed(step, context, mode)
    if mode == "replay":
        return replay_dataflow(
            flow,
            step.windows,
            context,
            save_watermark=step.save_watermark,
            stale_upstream=stale_upstream,
        )
    return run_dataflow(flow, context, stale_upstream=stale_upstream)


def _rehearsed(step: Step, context: RunContext, mode: Mode) -> DataflowResult:
    """Return what a step would read, as a rule, or why its preparation would fail."""
    flow = step.dataflow
    try:
        check_preparation(flow, context)
    except DataCoolieError as error:
        return DataflowResult(flow, "failed", error=failure_of(error, flow, context))
    window = describe_window(step)
    reason = f"{DRY_RUN}: {window}" if window else DRY_RUN
    if mode == "load":
        return DataflowResult(flow, "skipped", reason=reason)
    chunks = tuple(
        DataflowResult(flow, "skipped", reason=DRY_RUN, run_kind="replay", window=window)
        for window in step.windows
    )
    return DataflowResult(flow, "skipped", reason=reason, run_kind="replay", chunks=chunks)
