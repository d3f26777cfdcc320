"""``append``: every row of the batch is added."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from datacoolie_core.writers import features, library, overlap
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.rounds import Round, Work, open_load, run_rounds
from datacoolie_core.writers.tables import live_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.request import WriteResult
    from datacoolie_core.writers.staging import StagedFile


def load(job: Load) -> WriteResult:
    """Add the batch; columns that the table lacks are added to it, missing ones are null.

    The commit depends on nothing that was read, so that the library may retry it beside other
    appends.
    """
    if job.request.overlap is not None:
        return overlap.load(job, job.request.overlap)
    opened = open_load(job, removing=False)
    opened.aligned.check_complete()
    files = opened.stage()
    decided = job.finish(sum(file.rows for file in files))
    if decided is None:
        return nothing()
    return run_rounds(opened, decided, lambda current: _work(job, files, current))


def _work(job: Load, files: Sequence[StagedFile], current: Round) -> Work:
    table = current.table
    counts = Counts(rows_inserted=sum(file.rows for file in files))
    if table is None:
        return Work(counts, files, blind=True)
    if features.needs_library(table, removing=False):
        return Work(counts, files, through=partial(library.append, job))
    return Work(counts, files, blind=True, before=rows_of(table, live_files(table)))
