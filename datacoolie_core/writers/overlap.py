"""Appends that read again what the table may hold: only what it does not hold is added."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import features, library, stored
from datacoolie_core.writers.commit import Change, LostRaceError, check_fence, with_redo
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
from datacoolie_core.writers.ranges import Range, range_of
from datacoolie_core.writers.spill import ROW, Batch, consume
from datacoolie_core.writers.tables import live_files, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.writers.columns import Aligned
    from datacoolie_core.writers.request import Commit, Overlap, WriteResult
    from datacoolie_core.writers.staging import Layout

_NTH = "\0nth"


@dataclass(frozen=True)
class _Surplus:
    job: Load
    overlap: Overlap
    aligned: Aligned
    layout: Layout
    batch: Batch
    decided: Commit


def load(job: Load, overlap: Overlap) -> WriteResult:
    """Append the rows of the batch that the table does not hold as often.

    Rows are compared over all columns of the batch that are not system columns (``__``), null and
    NaN equal to themselves, each as often as it is there. It depends on what is stored, so that a commit of
    anybody else in between makes it read again.

    Args:
        job: The load.
        overlap: Which rows may be there already.
    """
    table = open_table(job.place)
    if table is not None:
        features.refuse(table, removing=False)
    aligned = job.align(table)
    aligned.check_complete()
    layout = job.layout(aligned.schema, table)
    _region(job, overlap, aligned.schema)
    with ExitStack() as stack:
        job.on_phase("staging")
        batch = consume(aligned, tuple(job.frame.collect_schema()), stack)
        aligned.check()
        job.on_phase("staged")
        decided = job.finish(batch.rows)
        if decided is None:
            return nothing()
        surplus = _Surplus(job, overlap, aligned, layout, batch, decided)
        return with_redo(job.place, table, lambda table: _attempt(surplus, table), job.sleep)


def _region(job: Load, overlap: Overlap, schema: pl.Schema) -> Range | None:
    if overlap.column is None:
        return None
    return range_of(
        overlap.column,
        schema,
        (overlap.lower, overlap.upper),
        upper_inclusive=overlap.upper_inclusive,
        zone=job.request.dataflow.transform.configure.timestamp_timezone,
    )


def _attempt(surplus: _Surplus, table: DeltaTable | None) -> WriteResult:
    job, batch = surplus.job, surplus.batch
    check_fence(table, job.request)
    if table is not None:
        check_same(table, surplus.aligned, surplus.layout)
        if grow(table, surplus.aligned.schema):
            table = open_table(job.place)
    known = None if table is None else _known(surplus, table)
    fresh = batch if known is None else batch.without(known)
    files = job.staging.write(fresh.content, surplus.layout)
    counts = Counts(rows_inserted=fresh.rows, rows_unchanged=batch.rows - fresh.rows)
    if not (counts.changes or surplus.decided.required):
        return nothing(counts)
    change = Change(
        schema=surplus.layout.schema,
        partition_columns=surplus.layout.partition_columns,
        added=files,
        info=commit_info(job.request, surplus.decided, counts),
    )
    if table is not None and features.needs_library(table, removing=False):
        return library.append(job, table, change, counts)
    before = 0 if table is None else rows_of(table, live_files(table))
    try:
        version = job.commit(table, change)
    except LostRaceError:
        job.staging.discard(files)
        raise
    return result_of(job.place, Outcome(table, change, version, before), counts)


def _known(surplus: _Surplus, table: DeltaTable) -> pl.Series:
    """Return the numbers of the batch's rows that the table holds already."""
    region = _region(surplus.job, surplus.overlap, surplus.aligned.schema)
    columns = [name for name in surplus.batch.present if not name.startswith("__")]
    files = live_files(table, () if region is None else [region.column])
    if region is None:
        rows = pl.lit(value=True)
    else:
        rows = region.rows
        files = [file for file in files if region.overlaps(file)]
    old = stored.scan_live(surplus.job.place, table, files, surplus.aligned.schema)
    numbered = pl.int_range(pl.len()).over(columns).alias(_NTH)
    there = old.filter(rows).select(columns)
    mine = surplus.batch.frame.filter(rows).select(*columns, ROW)
    there = there.join(mine, on=columns, how="semi", nulls_equal=True)
    met = mine.with_columns(numbered).join(
        there.with_columns(numbered), on=[*columns, _NTH], how="semi", nulls_equal=True
    )
    return met.select(ROW).collect(engine="streaming")[ROW]
