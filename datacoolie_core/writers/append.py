"""``append``: every row of the batch is added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.writers import features, library, overlap
from datacoolie_core.writers.commit import Change, with_redo
from datacoolie_core.writers.load import (
    Counts,
    Load,
    Outcome,
    check_same,
    commit_info,
    grow,
    nothing,
    result_of,
    rows_of,
)
from datacoolie_core.writers.tables import live_files, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.writers.request import WriteResult


def load(job: Load) -> WriteResult:
    """Add the batch; columns that the table lacks are added to it, missing ones are null.

    The commit depends on nothing that was read, so that the library may retry it beside other
    appends.
    """
    if job.request.overlap is not None:
        return overlap.load(job, job.request.overlap)
    table = open_table(job.place)
    if table is not None:
        features.refuse(table, removing=False)
    aligned = job.align(table)
    aligned.check_complete()
    layout = job.layout(aligned.schema, table)
    files = job.stage(aligned, layout)
    counts = Counts(rows_inserted=sum(file.rows for file in files))
    decided = job.finish(counts.rows_inserted)
    if decided is None or not (counts.changes or decided.required):
        return nothing()
    change = Change(
        schema=aligned.schema,
        partition_columns=layout.partition_columns,
        added=files,
        blind=True,
        info=commit_info(job.request, decided, counts),
    )

    def attempt(table: DeltaTable | None) -> WriteResult:
        if table is not None:
            check_same(table, aligned, layout)
            if grow(table, aligned.schema):
                table = open_table(job.place)
        if table is not None and features.needs_library(table, removing=False):
            return library.append(job, table, change, counts)
        before = 0 if table is None else rows_of(table, live_files(table))
        version = job.commit(table, change)
        return result_of(job.place, Outcome(table, change, version, before), counts)

    return with_redo(job.place, table, attempt, job.sleep)
