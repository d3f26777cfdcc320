"""The state that a load leaves behind, and the commit info that carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacoolie_core.plan.columns import DATE_FOLDER
from datacoolie_core.plan.tracking import dated, tracks_files
from datacoolie_core.plan.windows import Window
from datacoolie_core.run.bounds import appends, boundary_after_chunk
from datacoolie_core.state.record import FORMAT, Boundary, StateRecord
from datacoolie_core.state.values import encode, encode_watermark

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
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
            watermark={**(base.watermark if columns or dated(dataflow) else {}), **_highest(seen)},
            boundary=seen.boundary if track_boundary else _untracked(dataflow),
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


def _untracked(dataflow: Dataflow) -> Boundary:
    """Return the boundary where rows at the watermark were not looked at one by one."""
    files = tracks_files(dataflow) and appends(dataflow)
    # should files no longer be remembered, rows that tie are read again
    return Boundary(compare=True, ties_only=True) if files else Boundary()


def _highest(seen: Observation) -> dict[str, Scalar]:
    """Return the watermark that a batch leads to, the newest dated folder too."""
    folder = seen.tracked.folder if seen.tracked else None
    return seen.candidate if folder is None else {**seen.candidate, DATE_FOLDER: folder.isoformat()}


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
    info: dict[str, Any] = {
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
    if state.files is not None:
        info["files"] = dict(state.files)
    return {**info, "replace_next": True} if state.replace_next else info
