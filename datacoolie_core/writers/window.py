"""The rows of a region go, the batch takes their place, in one commit: replays, one's own rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import features, library, stored
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.region import Region, asked_region, outside
from datacoolie_core.writers.rounds import Opened, Round, Work, open_load, run_rounds
from datacoolie_core.writers.tables import LiveFile, live_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.ranges import Range
    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.staging import StagedFile


def load(job: Load) -> WriteResult:
    """Replace the rows of the request's window by the batch; an empty batch just removes them.

    With ``replay_filter`` only rows that meet it go, also where the request wants all rows
    replaced; the table's columns stay then. Rows without a value belong to no window.

    Raises:
        WriteError: A row of the batch is outside the window or breaks the ``replay_filter``: run
            again, it would be doubled.
    """
    opened = open_load(job, removing=True)
    opened.aligned.check_complete()
    region = asked_region(job.request, opened.aligned.schema)
    files = opened.stage()
    check_staged(opened, region, files)
    decided = job.finish(sum(file.rows for file in files))
    return nothing() if decided is None else replace_region(opened, region, files, decided)


def replace_region(
    opened: Opened, region: Region, files: Sequence[StagedFile], decided: Commit
) -> WriteResult:
    """Put staged files in the place of the rows of a region.

    Files that lie wholly inside are dropped, files outside are not touched, the others are
    written anew without the rows of the region.

    Args:
        opened: The load.
        region: Holds every row of the files.
        files: Already staged.
        decided: What the pipeline wants to commit.
    """
    return run_rounds(opened, decided, partial(_work, opened.job, region, files))


def check_staged(opened: Opened, region: Region, files: Sequence[StagedFile]) -> None:
    """Raise if a staged row is outside a region.

    Raises:
        WriteError: Names the column and a value.
    """
    for one in region.ranges if len(region.ranges) == 1 else ():
        for file in files:
            bad = _outside(file, one)
            if bad is not None:
                raise outside(
                    f"{bad} in column '{one.column}' is outside the window"
                    f" from {one.lower} to {one.upper}"
                )
    if region.own is not None:
        region.check(library.staged_frame(opened.job.place, files, opened.layout.schema))


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


def _work(job: Load, region: Region, files: Sequence[StagedFile], current: Round) -> Work:
    table = current.table
    inserted = sum(file.rows for file in files)
    if table is None:
        return Work(Counts(rows_inserted=inserted), files)
    live = live_files(table, region.columns)
    near = [file for file in live if region.overlaps(file)]
    features.refuse_paths(near)
    if features.needs_library(table, removing=True):
        counts = Counts(rows_inserted=inserted, rows_deleted=_inside(job, region, current, table))
        return Work(counts, files, through=partial(library.replace_region, job, region=region))
    hit = _hit(job, region, near, current)
    removed = [file for file in near if region.covers(file) or job.place.path(file.path) in hit]
    cut = [file for file in removed if not region.covers(file)]
    staying = stored.scan(job.place, cut, current.layout.schema).filter(~region.rows)
    kept = job.staging.write(staying, current.layout) if cut else []
    return Work(
        Counts(rows_inserted=inserted, rows_deleted=sum(hit.values())),
        [*files, *kept],
        removed,
        rewritten=kept,
        before=rows_of(table, live),
    )


def _inside(job: Load, region: Region, current: Round, table: DeltaTable) -> int:
    rows = stored.scan_live(job.place, table, live_files(table), current.layout.schema)
    return rows.filter(region.rows).select(pl.len()).collect(engine="streaming").item()


def _hit(job: Load, region: Region, near: Sequence[LiveFile], current: Round) -> dict[str, int]:
    """Return the files with rows inside, and how many each; others are left alone."""
    path = "\0file"
    inside = (
        stored.scan(job.place, near, current.layout.schema, path_column=path)
        .filter(region.rows)
        .group_by(path)
        .len()
        .collect(engine="streaming")
    )
    return dict(inside.iter_rows())
