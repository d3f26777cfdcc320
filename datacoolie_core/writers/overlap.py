"""Appends that read again what the table may hold: only what it does not hold is added."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.columns import FILE_PATH
from datacoolie_core.writers import features, library, stored
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.ranges import Range, range_of
from datacoolie_core.writers.rounds import Opened, Round, Work, open_load, run_rounds
from datacoolie_core.writers.spill import ROW, Batch
from datacoolie_core.writers.tables import live_files

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.writers.request import Overlap, WriteResult

_NTH = "\0nth"


@dataclass(frozen=True)
class _Surplus:
    opened: Opened
    overlap: Overlap
    batch: Batch


def load(job: Load, overlap: Overlap) -> WriteResult:
    """Append the rows of the batch that the table does not hold as often.

    Rows are compared over all columns of the batch that are not system columns (``__``), null and
    NaN equal to themselves, each as often as it is there. It depends on what is stored, so that a commit of
    anybody else in between makes it read again.

    Args:
        job: The load.
        overlap: Which rows may be there already.
    """
    opened = open_load(job, removing=False)
    opened.aligned.check_complete()
    _region(job, overlap, opened.aligned.schema)
    with ExitStack() as stack:
        batch = opened.consume(stack)
        decided = job.finish(batch.rows)
        if decided is None:
            return nothing()
        surplus = _Surplus(opened, overlap, batch)
        return run_rounds(opened, decided, lambda current: _work(surplus, current))


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


def _work(surplus: _Surplus, current: Round) -> Work:
    job, batch, table = surplus.opened.job, surplus.batch, current.table
    fresh = batch if table is None else batch.without(_known(surplus, table))
    counts = Counts(rows_inserted=fresh.rows, rows_unchanged=batch.rows - fresh.rows)
    files = job.staging.write(fresh.content, surplus.opened.layout)
    if table is None:
        return Work(counts, files, rewritten=files)
    if features.needs_library(table, removing=False):
        return Work(counts, files, rewritten=files, through=partial(library.append, job))
    return Work(counts, files, rewritten=files, before=rows_of(table, live_files(table)))


def compared(overlap: Overlap, batch: Batch, old: pl.LazyFrame) -> list[str]:
    """Return the columns by which rows of a batch and stored rows are told to be the same.

    Args:
        overlap: Says whether the rows of a file are compared with those of that file alone.
        batch: The batch.
        old: The stored rows. Where none comes from a file of the batch, the files were moved
            since, and their names say nothing.

    Raises:
        WriteError: Nothing in the destination says which file a row comes from.
    """
    columns = [name for name in batch.present if not name.startswith("__")]
    if not overlap.by_file:
        return columns
    if FILE_PATH not in batch.present:
        raise WriteError(
            f"files that are loaded are read again, and without the column {FILE_PATH} their"
            " rows can't be told from those of others",
            remedy=f"Keep {FILE_PATH} in the destination, or load it anew with --full-refresh.",
            code="no_file_path",
        )
    mine = batch.frame.select(FILE_PATH).unique()
    there = old.select(FILE_PATH).join(mine, on=FILE_PATH, how="semi").head(1)
    found = there.collect(engine="streaming").height
    return [*columns, FILE_PATH] if found else columns


def _known(surplus: _Surplus, table: DeltaTable) -> pl.Series:
    """Return the numbers of the batch's rows that the table holds already."""
    job, schema = surplus.opened.job, surplus.batch.schema
    region = _region(job, surplus.overlap, schema)
    files = live_files(table, () if region is None else [region.column])
    if region is None:
        rows = pl.lit(value=True)
    else:
        rows = region.rows
        files = [file for file in files if region.overlaps(file)]
    old = stored.scan_live(job.place, table, files, schema)
    columns = compared(surplus.overlap, surplus.batch, old)
    numbered = pl.int_range(pl.len()).over(columns).alias(_NTH)
    there = old.filter(rows).select(columns)
    mine = surplus.batch.frame.filter(rows).select(*columns, ROW)
    there = there.join(mine, on=columns, how="semi", nulls_equal=True)
    met = mine.with_columns(numbered).join(
        there.with_columns(numbered), on=[*columns, _NTH], how="semi", nulls_equal=True
    )
    return met.select(ROW).collect(engine="streaming")[ROW]
