"""Replays: the rows of a window go, the batch takes their place, in one commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import features, library, stored
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.ranges import Range, range_of
from datacoolie_core.writers.rounds import Round, Work, open_load, run_rounds
from datacoolie_core.writers.tables import LiveFile, live_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.request import WriteResult
    from datacoolie_core.writers.staging import StagedFile


def load(job: Load) -> WriteResult:
    """Replace the rows of the request's window by the batch; an empty batch just removes them.

    Files that lie wholly inside are dropped, files outside are not touched, the others are
    written anew without the rows of the window. Rows without a value belong to no window.

    Raises:
        WriteError: A row of the batch is outside the window: run again, it would be doubled.
    """
    opened = open_load(job, removing=True)
    opened.aligned.check_complete()
    window = _window(job, opened.aligned.schema)
    files = opened.stage()
    _check_inside(files, window)
    decided = job.finish(sum(file.rows for file in files))
    if decided is None:
        return nothing()
    return run_rounds(opened, decided, lambda current: _work(job, window, files, current))


def _window(job: Load, schema: pl.Schema) -> Range:
    asked = job.request.window
    if asked is None:
        raise WriteError("a replay needs a window", code="no_window")
    zone = job.request.dataflow.transform.configure.timestamp_timezone
    bounds = (asked.lower, asked.upper)
    return range_of(asked.column, schema, bounds, zone=zone, written_in=asked.zone)


def _check_inside(files: Sequence[StagedFile], window: Range) -> None:
    for file in files:
        bad = _outside(file, window)
        if bad is not None:
            raise WriteError(
                f"{bad} in column '{window.column}' is outside the window"
                f" from {window.lower} to {window.upper}",
                remedy="A transform moved rows out of the window that was read; bound the replay"
                " by a column that keeps its values (replay_filter).",
                code="outside_window",
            )


def _outside(file: StagedFile, window: Range) -> str | None:
    if window.column in file.partition:
        value = file.partition[window.column]
        return None if window.holds(value) else str(value)
    known = file.statistics
    if known.nulls.get(window.column):
        return "None"
    for bounds in (known.lowest, known.highest):
        value = bounds.get(window.column)
        # long text is cut in the footer, so that its bound says nothing here
        cut = isinstance(value, str) and len(value) > 60
        if value is not None and not cut and not window.holds(value):
            return str(value)
    return None


def _work(job: Load, window: Range, files: Sequence[StagedFile], current: Round) -> Work:
    table = current.table
    inserted = sum(file.rows for file in files)
    if table is None:
        return Work(Counts(rows_inserted=inserted), files)
    live = live_files(table, [window.column])
    near = [file for file in live if window.overlaps(file)]
    features.refuse_paths(near)
    if features.needs_library(table, removing=True):
        counts = Counts(rows_inserted=inserted, rows_deleted=_inside(job, window, current, table))
        return Work(counts, files, through=partial(library.replace_range, job, window=window))
    hit = _hit(job, window, near, current)
    removed = [file for file in near if window.covers(file) or job.place.path(file.path) in hit]
    cut = [file for file in removed if not window.covers(file)]
    staying = stored.scan(job.place, cut, current.layout.schema).filter(~window.rows)
    kept = job.staging.write(staying, current.layout) if cut else []
    return Work(
        Counts(rows_inserted=inserted, rows_deleted=sum(hit.values())),
        [*files, *kept],
        removed,
        rewritten=kept,
        before=rows_of(table, live),
    )


def _inside(job: Load, window: Range, current: Round, table: DeltaTable) -> int:
    rows = stored.scan_live(job.place, table, live_files(table), current.layout.schema)
    return rows.filter(window.rows).select(pl.len()).collect(engine="streaming").item()


def _hit(job: Load, window: Range, near: Sequence[LiveFile], current: Round) -> dict[str, int]:
    """Return the files with rows inside, and how many each; others are left alone."""
    path = "\0file"
    inside = (
        stored.scan(job.place, near, current.layout.schema, path_column=path)
        .filter(window.rows)
        .group_by(path)
        .len()
        .collect(engine="streaming")
    )
    return dict(inside.iter_rows())
