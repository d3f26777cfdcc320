"""``merge_overwrite``: the rows of the batch's keys, or of a window, are replaced by the batch."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import features, library, library_merge, overwrite, stored
from datacoolie_core.writers.candidates import KeyValues, candidates, key_values
from datacoolie_core.writers.keys import check_columns
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.region import Region, asked_region, reaching
from datacoolie_core.writers.replacing import compare, replace_keys
from datacoolie_core.writers.rounds import Opened, Round, Work, open_load, run_rounds
from datacoolie_core.writers.tables import LiveFile, live_files, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.request import WriteResult
    from datacoolie_core.writers.spill import Batch


@dataclass(frozen=True)
class _Replacement:
    """A consumed batch and all that each round needs of it.

    Attributes:
        opened: The load.
        keys: Null equals null.
        batch: All its rows, several of a key too.
        values: The key values, to find files by.
        region: What is replaced; None replaces the rows of the batch's keys, wherever they are.
    """

    opened: Opened
    keys: tuple[str, ...]
    batch: Batch
    values: list[KeyValues]
    region: Region | None


def load(job: Load) -> WriteResult:
    """Put the batch's rows in the place of those with the same keys, or of those of a window.

    A key has as many rows afterwards as the batch has. In a window, rows of keys that the batch
    lacks go, and rows outside stay, whatever their key. A key whose rows are stored already, each
    as often, is left alone. ``__created_at`` keeps the earliest that was stored of the key.

    Raises:
        WriteError: A row of the batch is outside the window.
    """
    anew = job.request.mode == "replace_all" and not _replay_filter(job)
    opened = open_load(job, removing=True, anew=anew)
    keys = job.request.dataflow.destination.merge_keys
    known = None if anew or opened.seen is None else table_schema(opened.seen)
    check_columns(keys, job.frame.collect_schema(), known)
    if anew:
        files = opened.stage()
        decided = job.finish(sum(file.rows for file in files))
        return nothing() if decided is None else overwrite.replace_all(opened, files, decided)
    opened.aligned.check_complete()
    region = _region(job, opened.aligned.schema)
    with ExitStack() as stack:
        batch = opened.consume(stack)
        if region is not None:
            region = reaching(region, batch.frame) if job.request.reread else region
            region.check(batch.frame)
        decided = job.finish(batch.rows)
        if decided is None:
            return nothing()
        new = _Replacement(opened, keys, batch, key_values(batch.frame, keys), region)
        return run_rounds(opened, decided, partial(_work, new))


def _replay_filter(job: Load) -> str | None:
    return job.request.dataflow.destination.configure.datacoolie.replay_filter


def _region(job: Load, schema: pl.Schema) -> Region | None:
    if job.request.mode == "load":
        return None
    return asked_region(job.request, schema)


def _work(new: _Replacement, current: Round) -> Work:
    job, table = new.opened.job, current.table
    new = replace(new, batch=new.batch.widened(current.layout.schema))
    if table is None:
        files = job.staging.write(new.batch.content, current.layout)
        return Work(Counts(rows_inserted=new.batch.rows), files, rewritten=files)
    columns = new.keys if new.region is None else new.region.columns
    live = live_files(table, columns)
    near = _near(new, live)
    features.refuse_paths(near)
    if features.needs_library(table, removing=True):
        return _through_library(new, current, table)
    old = stored.scan(job.place, near, current.layout.schema, path_column=FILE)
    difference = compare(_concerned(new, old), new.batch, new.keys)
    before = rows_of(table, live)
    if not difference.counts.changes:
        return Work(difference.counts, before=before)
    touched = [file for file in near if job.place.path(file.path) in difference.files]
    added = replace_keys(job, current.layout, new.batch, difference, touched, new.region)
    return Work(difference.counts, added, touched, rewritten=added, before=before)


def _near(new: _Replacement, live: Sequence[LiveFile]) -> list[LiveFile]:
    if new.region is None:
        return candidates(live, new.values)
    return [file for file in live if new.region.overlaps(file)]


def _concerned(new: _Replacement, old: pl.LazyFrame) -> pl.LazyFrame:
    """Return the stored rows that the batch is to replace."""
    if new.region is not None:
        return old.filter(new.region.rows)
    mine = new.batch.frame.select(new.keys)
    return old.join(mine, on=list(new.keys), how="semi", nulls_equal=True)


def _through_library(new: _Replacement, current: Round, table: DeltaTable) -> Work:
    job, schema = new.opened.job, current.layout.schema
    rows = stored.scan_live(job.place, table, live_files(table), schema)
    old = _concerned(new, rows.with_columns(pl.lit("").alias(FILE)))
    ignored = library.absent_generated(job, table)
    difference = compare(old, new.batch, new.keys, ignored)
    if not difference.counts.changes:
        return Work(difference.counts)
    if new.region is None:
        return library_merge.replacing(job, table, new.batch, difference)
    # the library replaces all of a region, so that what stays the same is written again
    files = job.staging.write(difference.content(new.batch, old), current.layout)
    through = partial(library.replace_region, job, region=new.region)
    return Work(difference.counts, files, rewritten=files, through=through)
