"""One attempt of one load: reconcile → read → transform → write → save.

The order is the promise: the batch, the new watermark and the sequence reach the destination in
one commit; the store is written after it, and a run that finds the store behind adopts the commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import LoadError, WriteError
from datacoolie_core.plan.columns import destination_column
from datacoolie_core.readers.read import open_batch
from datacoolie_core.run.bounds import (
    Bounds,
    bound_chunk,
    bound_load,
    boundary_after_chunk,
    destination_window,
    overlap_with,
    replaces,
)
from datacoolie_core.run.disk import disk_trouble
from datacoolie_core.run.names import named_as_written
from datacoolie_core.run.notices import notices
from datacoolie_core.run.recover import with_destination_maximum
from datacoolie_core.run.results import ROW_COUNTS, Notice, RunKind
from datacoolie_core.run.saved_state import load_state, save_state
from datacoolie_core.state.reconcile import Baseline, reconcile
from datacoolie_core.state.record import FORMAT, Boundary, StateRecord
from datacoolie_core.state.values import encode, encode_watermark
from datacoolie_core.transforms.apply import apply
from datacoolie_core.transforms.explain import explain
from datacoolie_core.transforms.slots import TransformContext
from datacoolie_core.writers import delta
from datacoolie_core.writers.request import (
    Commit,
    SupersededError,
    WriteRequest,
    WriteResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.readers.batch import Batch
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.prepare import Prepared

MAX_RESTARTS = 10
NOTHING_NEW = "no new rows"
KNOWN = "only known rows"


@dataclass(frozen=True)
class Loaded:
    """What one attempt did.

    Attributes:
        skipped: Why there was nothing to do; None when something was committed.
        state: The state now.
        run_kind: What bounded the read.
        rows: Row counts by name.
        write: What the writer did; None when the load was found done already.
        source_action: What was read.
        warnings: For the user.
    """

    skipped: str | None
    state: StateRecord
    run_kind: RunKind
    rows: Mapping[str, int | None]
    write: WriteResult | None = None
    source_action: Mapping[str, Any] | None = None
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Job:
    """What one attempt has to do: a normal load, or one chunk of a replay.

    Attributes:
        prepared: The dataflow.
        window: The chunk, None for a normal load.
        save_watermark: A replay's chunk moves the watermark too.
    """

    prepared: Prepared
    window: Window | None = None
    save_watermark: bool = False

    def bounds(self, baseline: Baseline, context: RunContext) -> Bounds:
        """Return what to read from this baseline."""
        if self.window is not None:
            return bound_chunk(self.prepared, self.window, context)
        return bound_load(self.prepared, baseline, context)


def load(job: Job, context: RunContext) -> Loaded:
    """Run one attempt, again from the top when another run of the dataflow got ahead.

    Raises:
        LoadError: When the attempt failed; nothing is half-written.
    """
    for restart in range(MAX_RESTARTS):
        baseline = _baseline(job, context)
        key = job.window.key if job.window else None
        if baseline.is_done_by(context.run_id, key):
            return _found_done(job, baseline, context)
        try:
            return _attempt(job, baseline, context)
        except SupersededError:
            if restart + 1 == MAX_RESTARTS:
                raise
            context.info(job.prepared.original, "another run got ahead: reading its state again")
    raise AssertionError("unreachable")


def _baseline(job: Job, context: RunContext) -> Baseline:
    prepared = job.prepared
    stored = load_state(context.store, prepared.dataflow.dataflow_id)
    destination = delta.inspect(
        prepared.uri, prepared.dataflow.dataflow_id, prepared.storage_options
    )
    baseline = reconcile(prepared.dataflow, stored, destination)
    if baseline.destination_maximum:
        baseline = with_destination_maximum(baseline, prepared)
    for _, text in baseline.warnings:
        context.warn(prepared.original, text)
    if baseline.recovered:
        mark = ", ".join(f"{k} {v}" for k, v in baseline.state.watermark.items()) or "none"
        context.info(prepared.original, f"state recovered from the destination: watermark {mark}")
    return baseline


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


def _attempt(job: Job, baseline: Baseline, context: RunContext) -> Loaded:
    prepared, dataflow = job.prepared, job.prepared.original
    bounds = job.bounds(baseline, context)
    context.phase(dataflow, "reading", job.window)
    batch = open_batch(bounds.request)
    try:
        attempt = _Attempt(job, baseline, bounds, batch, context)
        written, applied = _transformed(attempt)
    except LoadError:
        raise
    except Exception as error:
        trouble = disk_trouble(error, prepared.uri)
        raise trouble or explain(error, batch, prepared.dataflow) from error
    finally:
        batch.close()
    return _conclude(attempt, written, applied)


@dataclass
class _Attempt:
    """One attempt's parts; ``state`` is the new state once the batch has been consumed."""

    job: Job
    baseline: Baseline
    bounds: Bounds
    batch: Batch
    context: RunContext
    state: StateRecord | None = None
    skipped: str | None = None

    def finish(self, rows_staged: int) -> Commit | None:
        """Decide, knowing every row of the batch, what to commit (or that nothing is to do)."""
        seen = self.batch.observation
        job, baseline = self.job, self.baseline
        dataflow = job.prepared.dataflow
        old = baseline.state
        fresh = self.bounds.mode == "replace_all"
        if seen.rows_read == 0 and not self.empty_counts():
            self.skipped = self.why_empty()
            return None
        base = StateRecord(dataflow.dataflow_id) if fresh else old
        self.state = self._next_state(base).evolve(
            sequence=baseline.sequence,
            run_id=self.context.run_id,
            updated_at=self.context.now().isoformat(),
        )
        moved = dict(self.state.watermark) != dict(old.watermark) or (
            self.state.boundary != old.boundary
        )
        always = job.window is not None or fresh or replaces(dataflow)
        return Commit(self._info(rows_staged), required=always or moved)

    def empty_counts(self) -> bool:
        """Say whether a source without rows is still something to write down."""
        if self.job.window is not None or self.bounds.mode == "replace_all":
            return True
        dataflow = self.job.prepared.dataflow
        empties = dataflow.destination.configure.datacoolie.empty_source == "overwrite"
        return replaces(dataflow) and empties and not dataflow.source.watermark_columns

    def why_empty(self) -> str:
        """Return the reason of a load that is skipped."""
        seen = self.batch.observation
        if seen.rows_known:
            return KNOWN
        if seen.rows_null_watermark:
            return "only rows without a watermark"
        return NOTHING_NEW if self.bounds.request.stored else "the source has no rows"

    def _next_state(self, base: StateRecord) -> StateRecord:
        seen, job = self.batch.observation, self.job
        dataflow = job.prepared.dataflow
        columns = dataflow.source.watermark_columns
        if job.window is None:
            return base.evolve(
                watermark={**base.watermark, **seen.candidate} if columns else {},
                boundary=seen.boundary if self.bounds.request.track_boundary else Boundary(),
            )
        if not job.save_watermark or not columns:
            return base.evolve(boundary=boundary_after_chunk(dataflow, base, job.window))
        merged = {**base.watermark}
        for column, value in seen.candidate.items():
            if column not in merged or merged[column] < value:  # type: ignore[operator] # pyright: ignore[reportOperatorIssue]
                merged[column] = value
        covered = base.covered_from
        if not base.watermark and job.window.lower is not None:
            covered = {job.window.column: job.window.lower}
        state = base.evolve(watermark=merged, covered_from=covered)
        after = boundary_after_chunk(dataflow, state, job.window)
        if not after.compare:
            after = Boundary(compare=True, ties_only=True)
        return state.evolve(boundary=after)

    def _info(self, rows_staged: int) -> dict[str, Any]:
        seen, job = self.batch.observation, self.job
        assert self.state is not None
        window = None
        if job.window is not None:
            window = {
                "column": job.window.column,
                "key": job.window.key,
                "lower": encode(job.window.lower),
                "upper": encode(job.window.upper),
            }
        covered = self.state.covered_from
        return {
            "format": FORMAT,
            "run_id": self.context.run_id,
            "dataflow_id": self.state.dataflow_id,
            "sequence": self.state.sequence,
            "load_type": job.prepared.dataflow.destination.load_type,
            "run_kind": self.bounds.run_kind,
            "state_watermark": encode_watermark(self.state.watermark),
            "boundary": self.state.boundary.to_json(),
            "covered_from": None if covered is None else encode_watermark(covered),
            "window": window,
            "updated_at": self.state.updated_at,
            "rows_read": seen.rows_read,
            "rows_staged": rows_staged,
            "rows_null_watermark": seen.rows_null_watermark,
        }


def _transformed(attempt: _Attempt) -> tuple[WriteResult, tuple[str, ...]]:
    if attempt.batch.empty:
        return _write_nothing(attempt), ()
    context = attempt.context
    transforms = TransformContext(run_id=context.run_id, now=context.now())
    frame, applied = apply(attempt.batch.frame, attempt.job.prepared.dataflow, transforms)
    return _write(attempt, frame), applied


def _write_nothing(attempt: _Attempt) -> WriteResult:
    """Write a batch that has not even columns: no file was there."""
    prepared = attempt.job.prepared
    nothing = delta.no_rows(prepared.uri, prepared.storage_options)
    if nothing is None or not attempt.empty_counts():
        attempt.skipped = attempt.why_empty()
        return WriteResult(committed=False)
    return _write(attempt, nothing)


def _write(attempt: _Attempt, frame: pl.LazyFrame) -> WriteResult:
    job, context, baseline = attempt.job, attempt.context, attempt.baseline
    prepared, dataflow = job.prepared, job.prepared.dataflow
    schema = frame.collect_schema()
    request = WriteRequest(
        dataflow=named_as_written(dataflow, schema.names()),
        uri=prepared.uri,
        sequence=baseline.sequence,
        run_id=context.run_id,
        storage_options=prepared.storage_options,
        expected_sequence=baseline.expected_sequence,
        mode=attempt.bounds.mode,
        window=destination_window(dataflow, job.window)
        if job.window is not None and attempt.bounds.mode == "replace_window"
        else None,
        overlap=overlap_with(
            dataflow, attempt.bounds, schema, usable=attempt.batch.observation.boundary_usable
        ),
        order_columns=_order_columns(dataflow),
    )
    with context.locks.destination(prepared.uri):
        return delta.write(
            request,
            frame,
            attempt.finish,
            lambda phase: context.phase(prepared.original, phase, job.window),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        )


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
        context.phase(dataflow, "saving", job.window)
        save_state(context.store, state)
        context.phase(dataflow, "saved", job.window)
        if _only_boundary(attempt, written):
            skipped = KNOWN
    else:
        skipped = skipped or KNOWN
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
        "rows_rejected": 0,
        "rows_null_watermark": seen.rows_null_watermark,
    }
    return Loaded(
        skipped=skipped,
        state=state.evolve(recovered=baseline.recovered),
        run_kind=attempt.bounds.run_kind,
        rows=rows,
        write=written,
        source_action={**attempt.batch.source_action, "transforms": list(applied)},
        warnings=notices(
            [*baseline.warnings, *attempt.batch.warnings, *written.warnings],
            seen,
            attempt.bounds.request,
            context.now(),
        ),
    )


def _only_boundary(attempt: _Attempt, written: WriteResult) -> bool:
    """Say whether the commit holds no row and no progress, only which rows are known."""
    if attempt.job.window is not None or attempt.bounds.mode != "load":
        return False
    state = attempt.state
    still = state is not None and dict(state.watermark) == dict(attempt.baseline.state.watermark)
    changed = written.rows_written or written.rows_deleted
    return still and not changed and not replaces(attempt.job.prepared.dataflow)
