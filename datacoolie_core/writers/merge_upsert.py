"""``merge_upsert``: rows whose key is stored are updated, the others are added."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import features, library_merge, overwrite, stored, window
from datacoolie_core.writers.candidates import KeyValues, candidates, key_values
from datacoolie_core.writers.conditions import condition_of
from datacoolie_core.writers.keys import check_columns, one_row_per_key
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.matching import FILE, Rules, counts_of, decide
from datacoolie_core.writers.region import asked_region
from datacoolie_core.writers.rewrite import rewrite
from datacoolie_core.writers.rounds import Opened, Round, Work, open_load, run_rounds
from datacoolie_core.writers.sweep import finish, sweep
from datacoolie_core.writers.tables import LiveFile, live_files, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.spill import Batch
    from datacoolie_core.writers.staging import StagedFile


@dataclass(frozen=True)
class _Merge:
    """A consumed batch and all that each round needs of it.

    Attributes:
        opened: The load.
        rules: Keys, order, deletes.
        batch: One row for each key.
        values: The key values, to find files by.
        older: Rows of the batch that gave way to newer ones of their key.
    """

    opened: Opened
    rules: Rules
    batch: Batch
    values: list[KeyValues]
    older: int


def load(job: Load) -> WriteResult:
    """Merge the batch by ``merge_keys``.

    Keys are compared null-safe and with their types. Partition columns are no keys unless
    ``merge_keys`` names them, and prune only then: a row whose key moved to another partition is
    found where it was. Rows that are the same in every column but ``__`` ones are left alone, and
    a row that is older than the stored one by the order columns is not applied. Columns that the
    batch lacks keep their stored values; ``__created_at`` keeps its first.
    """
    replacing = job.request.mode == "replace_all"
    anew = replacing and not job.request.dataflow.destination.configure.datacoolie.replay_filter
    opened = open_load(job, removing=True, anew=anew)
    kept = None if anew or opened.seen is None else table_schema(opened.seen)
    rules = _rules(job, kept, opened.aligned.schema)
    with ExitStack() as stack:
        everything = opened.consume(stack)
        batch = one_row_per_key(everything, rules.keys, rules.order)
        decided = job.finish(everything.rows)
        if decided is None:
            return nothing()
        if replacing:
            files = job.staging.write(_to_insert(batch, rules), opened.layout)
            return _replace(opened, files, decided, anew=anew)
        values = key_values(batch.frame, rules.keys)
        merge = _Merge(opened, rules, batch, values, everything.rows - batch.rows)
        return run_rounds(opened, decided, lambda current: _work(merge, current))


def _replace(
    opened: Opened, files: Sequence[StagedFile], decided: Commit, *, anew: bool
) -> WriteResult:
    if anew:
        return overwrite.replace_all(opened, files, decided)
    region = asked_region(opened.job.request, opened.aligned.schema)
    window.check_staged(opened, region, files)
    opened.aligned.check_complete()
    return window.replace_region(opened, region, files, decided)


def _rules(job: Load, table: pl.Schema | None, schema: pl.Schema) -> Rules:
    destination = job.request.dataflow.destination
    source = job.frame.collect_schema()
    check_columns(destination.merge_keys, source, table)
    for name in job.request.order_columns:
        if name not in source:
            raise WriteError(
                f"order column '{name}' is not a column of the batch",
                remedy="Correct transform.latest_data_columns; names are as they are after name"
                " cleaning.",
                code="missing_column",
            )
    text = destination.configure.datacoolie.delete_when
    flow, now = job.request.dataflow, job.request.now
    holds = (
        None
        if text is None
        else condition_of(text, schema, field="delete_when", dataflow=flow, now=now).holds
    )
    return Rules(destination.merge_keys, job.request.order_columns, holds)


def _to_insert(batch: Batch, rules: Rules) -> pl.LazyFrame:
    if rules.delete_when is None:
        return batch.content
    return batch.frame.filter(~rules.delete_when.fill_null(value=False)).select(list(batch.schema))


def _work(merge: _Merge, current: Round) -> Work:
    table = current.table
    if table is None:
        return _create(merge)
    merge = replace(merge, batch=merge.batch.widened(current.layout.schema))
    files = live_files(table, merge.rules.keys)
    near = candidates(files, merge.values)
    features.refuse_paths(near)
    if features.needs_library(table, removing=True):
        return library_merge.work(merge.opened.job, table, merge.batch, merge.rules, merge.older)
    return _copy_on_write(merge, current, near, rows_of(table, files))


def _create(merge: _Merge) -> Work:
    job = merge.opened.job
    files = job.staging.write(_to_insert(merge.batch, merge.rules), merge.opened.layout)
    inserted = sum(file.rows for file in files)
    counts = Counts(
        rows_inserted=inserted,
        rows_unchanged=merge.batch.rows - inserted,
        rows_stale=merge.older,
    )
    return Work(counts, files, rewritten=files)


def _copy_on_write(merge: _Merge, current: Round, near: list[LiveFile], before: int | None) -> Work:
    job, schema = merge.opened.job, current.layout.schema
    near = _narrowed(merge, near, schema)
    swept = sweep(job, current.layout, merge.batch, near, merge.rules)
    if swept is None:
        return _in_two_passes(merge, current, near, before)
    counts = counts_of(merge.batch, swept.verdicts, merge.older)
    if not counts.changes:
        return Work(counts, before=before)
    if counts.rows_inserted:
        merge.opened.aligned.check_complete()
    added = finish(job, current.layout, merge.batch, swept)
    return Work(counts, added, swept.touched, rewritten=added, before=before)


def _in_two_passes(merge: _Merge, current: Round, near: list[LiveFile], before: int | None) -> Work:
    """Decide over all files first: a key that is stored more than once lies in several of them."""
    job, schema = merge.opened.job, current.layout.schema
    old = stored.scan(job.place, near, schema, path_column=FILE)
    verdicts = decide(merge.batch, old, schema, merge.rules)
    counts = counts_of(merge.batch, verdicts, merge.older)
    if not counts.changes:
        return Work(counts, before=before)
    if counts.rows_inserted:
        merge.opened.aligned.check_complete()
    paths = set(verdicts.pairs[FILE])
    touched = [file for file in near if job.place.path(file.path) in paths]
    added = rewrite(job, current.layout, merge.batch, verdicts, touched, merge.rules.keys)
    return Work(counts, added, touched, rewritten=added, before=before)


def _narrowed(merge: _Merge, near: list[LiveFile], schema: pl.Schema) -> list[LiveFile]:
    """Drop files that hold none of the keys, by a look at their key columns.

    It pays only where the batch is so small that most files can't hold any of it.
    """
    if len(near) < 2 or merge.batch.rows > 2 * len(near):
        return near
    keys = list(merge.rules.keys)
    old = stored.scan(merge.opened.job.place, near, schema, path_column=FILE).select(*keys, FILE)
    met = (
        old.join(merge.batch.frame.select(keys), on=keys, how="semi", nulls_equal=True)
        .select(pl.col(FILE).unique())
        .collect(engine="streaming")
    )
    paths = set(met[FILE])
    return [file for file in near if merge.opened.job.place.path(file.path) in paths]
