"""One attempt of one load: read → transform → write → save."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.errors import LoadError, WriteError
from datacoolie_core.plan.columns import destination_column
from datacoolie_core.plan.scd2 import closes_missing
from datacoolie_core.plan.tracking import tracks_files
from datacoolie_core.readers.read import open_batch
from datacoolie_core.run.bounds import (
    Bounds,
    appends,
    destination_window,
    overlap_with,
    replaces,
)
from datacoolie_core.run.disk import disk_trouble
from datacoolie_core.run.file_memory import covers, forget, remember
from datacoolie_core.run.job import Job, Loaded
from datacoolie_core.run.names import named_as_written
from datacoolie_core.run.next_state import commit_info, next_state
from datacoolie_core.run.notices import notices
from datacoolie_core.run.quarantine import (
    NOTHING,
    Kept,
    bad_notices,
    keep,
    nulled,
    refuse_incomplete,
    settle_commit,
)
from datacoolie_core.run.reread import named
from datacoolie_core.run.saved_state import save_state
from datacoolie_core.run.selected import selected
from datacoolie_core.state.record import StateRecord
from datacoolie_core.transforms.apply import apply
from datacoolie_core.transforms.explain import explain
from datacoolie_core.transforms.quarantine import bad_rows_of
from datacoolie_core.transforms.slots import TransformContext
from datacoolie_core.writers.destination import writer_for
from datacoolie_core.writers.request import (
    Commit,
    WriteRequest,
    WriteResult,
)

if TYPE_CHECKING:
    from datetime import datetime

    import polars as pl

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.readers.batch import Batch
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.state.reconcile import Baseline
    from datacoolie_core.transforms.quarantine import BadRows

NOTHING_NEW = "no new rows"
KNOWN = "only known rows"


def attempt(job: Job, baseline: Baseline, context: RunContext) -> Loaded:
    """Run one attempt from where the baseline stands.

    Raises:
        LoadError: When it failed; nothing is half-written.
    """
    prepared, dataflow = job.prepared, job.prepared.original
    bounds = job.bounds(baseline, context)
    context.phase(dataflow, "reading", job.window)
    batch, bad = open_batch(bounds.request), bad_rows_of(prepared.dataflow)
    try:
        running = _Attempt(job, baseline, bounds, batch, context, bad)
        written, applied = _transformed(running)
    except LoadError:
        raise
    except Exception as error:
        trouble = disk_trouble(error, prepared.uri)
        raise trouble or explain(error, batch, prepared.dataflow) from error
    finally:
        batch.close()
        if bad is not None:
            bad.close()
    return _conclude(running, written, applied)


@dataclass
class _Attempt:
    """One attempt's parts; ``state`` is the new state once the batch has been consumed."""

    job: Job
    baseline: Baseline
    bounds: Bounds
    batch: Batch
    context: RunContext
    bad: BadRows | None = None
    kept: Kept = NOTHING
    state: StateRecord | None = None
    skipped: str | None = None
    told: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def finish(self, rows_staged: int) -> Commit | None:
        """Decide, knowing every row of the batch, what to commit (or that nothing is to do)."""
        seen = self.batch.observation
        job, baseline = self.job, self.baseline
        dataflow = job.prepared.dataflow
        old = baseline.state
        fresh = self.bounds.mode == "replace_all"
        fences = baseline.pending and not replaces(dataflow)
        if seen.rows_read == 0 and not (self.empty_counts() or fences):
            self.skipped = self.why_empty()
            return None
        refuse_incomplete(dataflow, self.bad)
        base = StateRecord(dataflow.dataflow_id) if fresh else old
        self.state = next_state(
            job,
            base,
            seen,
            track_boundary=self.bounds.request.track_boundary,
            window=self.batch.window,
        ).evolve(
            sequence=baseline.sequence,
            run_id=self.context.run_id,
            updated_at=self.context.now().isoformat(),
        )
        self._remember_files(old)
        moved = dict(self.state.watermark) != dict(old.watermark) or (
            (self.state.boundary, self.state.files) != (old.boundary, old.files)
        )
        always = job.window is not None or fresh or replaces(dataflow)
        info = commit_info(
            job, self.state, seen, run_kind=self.bounds.run_kind, rows_staged=rows_staged
        )
        self.kept = keep(job, baseline, self.bounds, self.bad, self.context, rows_staged)
        if self.kept.nothing_else:
            self.skipped = KNOWN
            return None
        required = always or moved or fences or self.kept.new > 0
        return Commit({**info, **self.kept.info}, required=required)

    def _remember_files(self, old: StateRecord) -> None:
        """Put the files of the batch into the new state, where whole files are remembered."""
        tracked = self.batch.observation.tracked
        if self.state is None or self.job.window is not None:
            return
        if tracked is None or tracked.known is None:
            # a list that nobody keeps up is wrong when it is next looked at
            self.state = self.state.evolve(files=None)
            return
        same = tracked.known == self.bounds.request.known_files
        if same and covers(self.job.prepared.dataflow, old):
            self.state = self.state.evolve(files=old.files)
            return
        files = remember(self.job.prepared, tracked.known, self.baseline.sequence)
        self.state = self.state.evolve(files=files)

    def empty_counts(self) -> bool:
        """Say whether a source without rows is still something to write down."""
        if self.bounds.mode != "load" or self.job.window is not None:
            return True
        dataflow = self.job.prepared.dataflow
        empties = dataflow.destination.configure.datacoolie.empty_source == "overwrite"
        whole = replaces(dataflow) or closes_missing(dataflow)
        bounded = bool(dataflow.source.watermark_columns) or tracks_files(dataflow)
        return whole and empties and not bounded

    def why_empty(self) -> str:
        """Return the reason of a load that is skipped."""
        seen = self.batch.observation
        if seen.rows_known:
            return KNOWN
        if seen.rows_null_watermark:
            return "only rows without a watermark"
        request = self.bounds.request
        return NOTHING_NEW if request.stored or request.known_files else "the source has no rows"


def _transformed(attempt: _Attempt) -> tuple[WriteResult, tuple[str, ...]]:
    if attempt.batch.empty:
        return _write_nothing(attempt), ()
    context = attempt.context
    now = attempt.bounds.request.now or context.now()
    transforms = TransformContext(
        run_id=context.run_id,
        now=now,
        allowed=context.config.allowed_function_prefixes,
        bad_rows=attempt.bad,
    )
    frame, applied = apply(attempt.batch.frame, attempt.job.prepared.dataflow, transforms)
    attempt.told = transforms.warnings
    return _write(attempt, frame, now), applied


def _write_nothing(attempt: _Attempt) -> WriteResult:
    """Write a batch that has not even columns: no file was there."""
    prepared = attempt.job.prepared
    nothing = writer_for(prepared.dataflow.destination).no_rows(
        prepared.uri, prepared.storage_options
    )
    if nothing is None or not attempt.empty_counts():
        attempt.skipped = attempt.why_empty()
        return WriteResult(committed=False)
    return _write(attempt, nothing, attempt.context.now())


def _write(attempt: _Attempt, frame: pl.LazyFrame, now: datetime) -> WriteResult:
    job, context = attempt.job, attempt.context
    prepared = job.prepared
    request = write_request(
        job,
        attempt.baseline,
        attempt.bounds,
        attempt.batch,
        frame.collect_schema(),
        context.run_id,
    )
    with context.locks.destination(prepared.uri):
        return writer_for(prepared.dataflow.destination).write(
            replace(request, now=now),
            frame,
            attempt.finish,
            lambda phase: context.phase(prepared.original, phase, job.window),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        )


def write_request(
    job: Job, baseline: Baseline, bounds: Bounds, batch: Batch, schema: pl.Schema, run_id: str
) -> WriteRequest:
    """Return what the writer is asked for.

    Args:
        job: The load.
        baseline: Where it starts.
        bounds: What was read.
        batch: As it was opened.
        schema: The batch's columns, after all transforms.
        run_id: The run.
    """
    prepared, dataflow = job.prepared, job.prepared.dataflow
    names = schema.names()
    return WriteRequest(
        dataflow=named_as_written(dataflow, names),
        uri=prepared.uri,
        sequence=baseline.sequence,
        run_id=run_id,
        storage_options=prepared.storage_options,
        expected_sequence=baseline.expected_sequence,
        mode=bounds.mode,
        window=_destination_window(job, bounds, batch, names),
        reread=None if bounds.reread is None else named(bounds.reread, names),
        overlap=overlap_with(dataflow, bounds, schema, batch.observation),
        order_columns=_order_columns(dataflow),
        complete=bounds.complete,
    )


def _destination_window(job: Job, bounds: Bounds, batch: Batch, names: list[str]) -> Window | None:
    chunk = batch.window or job.window
    if chunk is None or bounds.mode != "replace_window":
        return None
    found = destination_window(job.prepared.dataflow, chunk)
    return replace(found, column=match(found.column, names) or found.column)


def _order_columns(dataflow: Dataflow) -> tuple[str, ...]:
    """Columns that say which of two rows of a key is newer, by their destination names."""
    named = dataflow.transform.latest_data_columns or dataflow.source.watermark_columns
    found = (destination_column(dataflow, column) for column in named)
    return tuple(column for column in found if column is not None)


def _conclude(attempt: _Attempt, written: WriteResult, applied: tuple[str, ...]) -> Loaded:
    job, context, baseline = attempt.job, attempt.context, attempt.baseline
    seen, dataflow = attempt.batch.observation, job.prepared.original
    skipped = attempt.skipped
    if written.committed:
        if attempt.state is None:
            raise WriteError("a commit without a decision", dataflow=dataflow.dataflow_id)
        state = attempt.state.evolve(table_id=written.table_id, table_version=written.table_version)
        forget(job.prepared, state.files, state.sequence)
        settle_commit(job, state, attempt.kept, context)
        context.phase(dataflow, "saving", job.window)
        save_state(context.store, state)
        context.phase(dataflow, "saved", job.window)
        if _only_boundary(attempt, written):
            skipped = KNOWN
    else:
        skipped = skipped or _why_unwritten(attempt)
        state = baseline.state
        if baseline.recovered:
            save_state(context.store, state)
    rows: dict[str, int | None] = {
        "rows_read": seen.rows_read,
        "rows_written": written.rows_written,
        "rows_inserted": written.rows_inserted,
        "rows_updated": written.rows_updated,
        "rows_deleted": written.rows_deleted,
        "rows_unchanged": written.rows_unchanged,
        "rows_stale": written.rows_stale,
        "rows_rejected": 0 if attempt.bad is None else attempt.bad.rows,
        "rows_nulled": 0 if attempt.bad is None else nulled(attempt.bad),
        "rows_null_watermark": seen.rows_null_watermark,
    }
    return Loaded(
        skipped=skipped,
        state=state.evolve(recovered=baseline.recovered),
        run_kind=attempt.bounds.run_kind,
        rows=rows,
        write=written,
        source_action={**attempt.batch.source_action, "transforms": list(applied)},
        selected=replace(
            selected(job, attempt.bounds, baseline, candidate=seen.candidate, now=context.now()),
            transforms=applied,
        ),
        warnings=notices(
            [
                *baseline.warnings,
                *attempt.batch.warnings,
                *attempt.told,
                *written.warnings,
                *bad_notices(attempt.bad, attempt.kept, job),
            ],
            seen,
            attempt.bounds.request,
            context.now(),
        ),
        bad_values={} if attempt.bad is None else attempt.bad.bad_values,
        bad_sample=() if attempt.bad is None else tuple(attempt.bad.sample),
    )


def _why_unwritten(attempt: _Attempt) -> str | None:
    """Return why nothing was to be written; None where that the rows are there was found out."""
    if not attempt.batch.observation.rows_read:
        return attempt.why_empty()
    request = attempt.bounds.request
    only_ties = bool(request.stored) and dict(request.lower) == dict(request.stored)
    return KNOWN if only_ties or appends(attempt.job.prepared.dataflow) else None


def _only_boundary(attempt: _Attempt, written: WriteResult) -> bool:
    """Say whether the commit holds no row and no progress, only which rows are known."""
    if attempt.job.window is not None or attempt.bounds.mode != "load":
        return False
    state = attempt.state
    still = state is not None and dict(state.watermark) == dict(attempt.baseline.state.watermark)
    changed = written.rows_written or written.rows_deleted
    quiet = not changed and not attempt.kept.new
    return still and quiet and not replaces(attempt.job.prepared.dataflow)
