"""The state that a load leaves behind, and the commit info that carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacoolie_core.plan.windows import Window
from datacoolie_core.run.bounds import boundary_after_chunk
from datacoolie_core.state.record import FORMAT, Boundary, StateRecord
from datacoolie_core.state.values import encode, encode_watermark

if TYPE_CHECKING:
    from datacoolie_core.plan.windows import Scalar, Watermark
    from datacoolie_core.readers.batch import Observation
    from datacoolie_core.run.job import Job
    from datacoolie_core.run.results import RunKind


def next_state(
    job: Job,
    base: StateRecord,
    seen: Observation,
    *,
    track_boundary: bool,
    window: Window | None = None,
) -> StateRecord:
    """Return the state after a batch: its watermark and which rows at it are known.

    Args:
        job: The load, or one chunk of a replay.
        base: The state that the batch was read from.
        seen: What the reader saw of the whole batch.
        track_boundary: Whether the reader kept the hashes of the rows at the watermark.
        window: The chunk in values of its column; None if there was no column to look at.
    """
    dataflow = job.prepared.dataflow
    columns = dataflow.source.watermark_columns
    if job.window is None:
        return base.evolve(
            watermark={**base.watermark, **seen.candidate} if columns else {},
            boundary=seen.boundary if track_boundary else Boundary(),
            replace_next=False,
        )
    # bounds of a type that is not known say nothing about stored values
    chunk = window or Window(job.window.column, None, None)
    if not job.save_watermark or not columns:
        return base.evolve(boundary=boundary_after_chunk(dataflow, base, chunk))
    covered = base.covered_from
    if not base.watermark and job.window.lower is not None:
        covered = {job.window.column: job.window.lower}
    state = base.evolve(watermark=_merged(base.watermark, seen.candidate), covered_from=covered)
    after = boundary_after_chunk(dataflow, state, chunk)
    if not after.compare:
        after = Boundary(compare=True, ties_only=True)
    return state.evolve(boundary=after)


def _merged(stored: Watermark, candidate: Watermark) -> dict[str, Scalar]:
    """Return the higher value of each column: a replay never moves a watermark back (W6)."""
    merged = dict(stored)
    for column, value in candidate.items():
        if column not in merged or _below(merged[column], value):
            merged[column] = value
    return merged


def _below(left: Scalar, right: Scalar) -> bool:
    """Compare two values of one column; of two kinds, the newer kind counts."""
    try:
        return left < right  # type: ignore[operator] # pyright: ignore[reportOperatorIssue,reportUnknownVariableType]
    except TypeError:
        return True


def commit_info(
    job: Job, state: StateRecord, seen: Observation, *, run_kind: RunKind, rows_staged: int
) -> dict[str, Any]:
    """Return the ``datacoolie`` object of the commit (docs/reference/state.md, "Commit info")."""
    window = None
    if job.window is not None:
        window = {
            "column": job.window.column,
            "key": job.window.key,
            "lower": encode(job.window.lower),
            "upper": encode(job.window.upper),
        }
    covered = state.covered_from
    info = {
        "format": FORMAT,
        "run_id": state.run_id,
        "dataflow_id": state.dataflow_id,
        "sequence": state.sequence,
        "load_type": job.prepared.dataflow.destination.load_type,
        "run_kind": run_kind,
        "state_watermark": encode_watermark(state.watermark),
        "boundary": state.boundary.to_json(),
        "covered_from": None if covered is None else encode_watermark(covered),
        "window": window,
        "updated_at": state.updated_at,
        "rows_read": seen.rows_read,
        "rows_staged": rows_staged,
        "rows_null_watermark": seen.rows_null_watermark,
    }
    return {**info, "replace_next": True} if state.replace_next else info
