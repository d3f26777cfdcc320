"""One load, until its state is settled: reconcile, attempt, and again when overtaken.

The order is the promise: the batch, the new watermark and the sequence reach the destination in
one commit; the store is written after it, and a run that finds the store behind adopts the commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacoolie_core.errors import WatermarkError
from datacoolie_core.run.attempt import attempt
from datacoolie_core.run.job import Job, Loaded
from datacoolie_core.run.quarantine import settle_newest
from datacoolie_core.run.recover import with_destination_maximum
from datacoolie_core.run.results import ROW_COUNTS, Notice
from datacoolie_core.run.saved_state import load_state, save_state
from datacoolie_core.state.reconcile import Baseline, reconcile
from datacoolie_core.writers.destination import writer_for
from datacoolie_core.writers.request import SupersededError

if TYPE_CHECKING:
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.state.destination import DestinationState
    from datacoolie_core.state.record import StateRecord

MAX_RESTARTS = 10


def load(job: Job, context: RunContext) -> Loaded:
    """Run one attempt, again from the top when another run of the dataflow got ahead.

    Raises:
        LoadError: When the attempt failed; nothing is half-written.
    """
    for restart in range(MAX_RESTARTS):
        baseline = baseline_of(job.prepared, context)
        if baseline.is_done_by(context.run_id, job.window):
            return _found_done(job, baseline, context)
        try:
            return attempt(job, baseline, context)
        except SupersededError:
            if restart + 1 == MAX_RESTARTS:
                raise
            context.info(job.prepared.original, "another run got ahead: reading its state again")
    raise AssertionError("unreachable")


def baseline_of(prepared: Prepared, context: RunContext) -> Baseline:
    """Return the state that a dataflow starts from, told by its store and its destination.

    Raises:
        WatermarkError: Neither can say it, or the destination was changed by others.
    """
    stored = load_state(context.store, prepared.dataflow.dataflow_id)
    destination = writer_for(prepared.dataflow.destination).inspect(
        prepared.uri, prepared.dataflow.dataflow_id, prepared.storage_options
    )
    baseline = _reconciled(prepared, stored, destination, context)
    if baseline.destination_maximum:
        baseline = with_destination_maximum(baseline, prepared)
    baseline = replace(baseline, pending=settle_newest(prepared, baseline, context))
    for _, text in baseline.warnings:
        context.warn(prepared.original, text)
    if baseline.recovered:
        mark = ", ".join(f"{k} {v}" for k, v in baseline.state.watermark.items()) or "none"
        context.info(prepared.original, f"state recovered from the destination: watermark {mark}")
    return baseline


def _reconciled(
    prepared: Prepared,
    stored: StateRecord | None,
    destination: DestinationState,
    context: RunContext,
) -> Baseline:
    try:
        return reconcile(prepared.dataflow, stored, destination, anew=context.full_refresh)
    except WatermarkError as error:
        error.place = error.place or prepared.uri
        raise


def _found_done(job: Job, baseline: Baseline, context: RunContext) -> Loaded:
    """The commit of this run (and chunk) is there already: only the state was missing."""
    save_state(context.store, baseline.state)
    info = baseline.own_commit or {}
    return Loaded(
        skipped=None,
        state=baseline.state.evolve(recovered=True),
        run_kind="replay" if job.window else info.get("run_kind", "incremental"),
        rows={name: info.get(name) for name in ROW_COUNTS},
        warnings=(Notice("recovered", "this load was committed before a failure: not repeated"),),
    )
