"""``merge_upsert``: rows whose key is stored are updated, the others are added."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import features, library_merge, overwrite, stored
from datacoolie_core.writers.candidates import KeyValues, candidates, key_values
from datacoolie_core.writers.commit import Change, LostRaceError, check_fence, with_redo
from datacoolie_core.writers.keys import check_columns, one_row_per_key
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
from datacoolie_core.writers.matching import FILE, Rules, counts_of, decide
from datacoolie_core.writers.rewrite import rewrite
from datacoolie_core.writers.spill import Batch, consume
from datacoolie_core.writers.tables import LiveFile, live_files, open_table, table_schema

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.writers.columns import Aligned
    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.staging import Layout


@dataclass(frozen=True)
class _Merge:
    """A consumed batch and all that each try needs of it.

    Attributes:
        job: The load.
        rules: Keys, order, deletes.
        aligned: The columns.
        layout: Of new files.
        batch: One row for each key.
        values: The key values, to find files by.
        decided: What the pipeline wants to commit.
        older: Rows of the batch that gave way to newer ones of their key.
    """

    job: Load
    rules: Rules
    aligned: Aligned
    layout: Layout
    batch: Batch
    values: list[KeyValues]
    decided: Commit
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
    table = open_table(job.place)
    kept = None if replacing else table
    rules = _rules(job, None if kept is None else table_schema(kept))
    if table is not None:
        features.refuse(table, removing=True)
    aligned = job.align(kept)
    layout = (job.new_layout if replacing else job.layout)(aligned.schema, table)
    _check_condition(rules, aligned.schema)
    with ExitStack() as stack:
        job.on_phase("staging")
        present = tuple(job.frame.collect_schema())
        everything = consume(aligned, present, stack)
        aligned.check()
        batch = one_row_per_key(everything, rules.keys, rules.order)
        job.on_phase("staged")
        decided = job.finish(everything.rows)
        if decided is None:
            return nothing()
        if replacing:
            files = job.staging.write(_to_insert(batch, rules), layout)
            return overwrite.replace_all(job, table, layout, files, decided)
        values = key_values(batch.frame, rules.keys)
        older = everything.rows - batch.rows
        merge = _Merge(job, rules, aligned, layout, batch, values, decided, older)
        return with_redo(job.place, table, lambda table: _attempt(merge, table), job.sleep)


def _rules(job: Load, table: pl.Schema | None) -> Rules:
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
    try:
        condition = None if text is None else pl.sql_expr(text)
    except pl.exceptions.PolarsError as error:
        raise _bad_condition(text, error) from error
    return Rules(destination.merge_keys, job.request.order_columns, condition)


def _check_condition(rules: Rules, schema: pl.Schema) -> None:
    if rules.delete_when is None:
        return
    try:
        kind = pl.LazyFrame(schema=schema).select(rules.delete_when).collect_schema().dtypes()[0]
    except pl.exceptions.PolarsError as error:
        raise _bad_condition(str(rules.delete_when), error) from error
    if kind != pl.Boolean:
        raise _bad_condition(str(rules.delete_when), f"it gives {kind}, not true or false")


def _bad_condition(text: str | None, error: object) -> WriteError:
    return WriteError(
        f"delete_when can't be used: {str(error).splitlines()[0]}",
        place=f"delete_when: {text}",
        remedy="Write a condition over the columns as they are after name cleaning.",
        code="bad_delete_when",
    )


def _to_insert(batch: Batch, rules: Rules) -> pl.LazyFrame:
    if rules.delete_when is None:
        return batch.content
    return batch.frame.filter(~rules.delete_when.fill_null(value=False)).select(list(batch.schema))


def _attempt(merge: _Merge, table: DeltaTable | None) -> WriteResult:
    check_fence(table, merge.job.request)
    if table is None:
        return _create(merge)
    check_same(table, merge.aligned, merge.layout)
    if grow(table, merge.aligned.schema):
        table = open_table(merge.job.place)
        if table is None:
            raise LostRaceError("the table is gone")
    files = live_files(table, merge.rules.keys)
    near = candidates(files, merge.values)
    features.refuse_paths(near)
    if features.needs_library(table, removing=True):
        source = library_merge.Source(merge.batch, merge.rules, merge.older)
        return library_merge.merge(merge.job, table, source, merge.decided)
    return _copy_on_write(merge, table, files, near)


def _create(merge: _Merge) -> WriteResult:
    files = merge.job.staging.write(_to_insert(merge.batch, merge.rules), merge.layout)
    inserted = sum(file.rows for file in files)
    counts = Counts(
        rows_inserted=inserted,
        rows_unchanged=merge.batch.rows - inserted,
        rows_stale=merge.older,
    )
    if not (counts.changes or merge.decided.required):
        return nothing(counts)
    change = Change(
        schema=merge.layout.schema,
        partition_columns=merge.layout.partition_columns,
        added=files,
        info=commit_info(merge.job.request, merge.decided, counts),
    )
    return _committed(merge, None, change, counts, 0)


def _copy_on_write(
    merge: _Merge, table: DeltaTable, files: list[LiveFile], near: list[LiveFile]
) -> WriteResult:
    place = merge.job.place
    schema = table_schema(table)
    near = _narrowed(merge, near, schema)
    old = stored.scan(place, near, schema, path_column=FILE)
    verdicts = decide(merge.batch, old, schema, merge.rules)
    counts = counts_of(merge.batch, verdicts, merge.older)
    if not (counts.changes or merge.decided.required):
        return nothing(counts)
    if counts.rows_inserted:
        merge.aligned.check_complete()
    paths = set(verdicts.pairs[FILE])
    touched = [file for file in near if place.path(file.path) in paths]
    added = rewrite(merge.job, merge.layout, merge.batch, verdicts, touched, merge.rules.keys)
    change = Change(
        schema=schema,
        added=added,
        removed=touched,
        info=commit_info(merge.job.request, merge.decided, counts),
    )
    return _committed(merge, table, change, counts, rows_of(table, files))


def _narrowed(merge: _Merge, near: list[LiveFile], schema: pl.Schema) -> list[LiveFile]:
    """Drop files that hold none of the keys, by a look at their key columns.

    It pays only where the batch is so small that most files can't hold any of it.
    """
    if len(near) < 2 or merge.batch.rows > 2 * len(near):
        return near
    keys = list(merge.rules.keys)
    old = stored.scan(merge.job.place, near, schema, path_column=FILE).select(*keys, FILE)
    met = (
        old.join(merge.batch.frame.select(keys), on=keys, how="semi", nulls_equal=True)
        .select(pl.col(FILE).unique())
        .collect(engine="streaming")
    )
    paths = set(met[FILE])
    return [file for file in near if merge.job.place.path(file.path) in paths]


def _committed(
    merge: _Merge, table: DeltaTable | None, change: Change, counts: Counts, before: int | None
) -> WriteResult:
    try:
        version = merge.job.commit(table, change)
    except LostRaceError:
        merge.job.staging.discard(change.added)
        raise
    return result_of(merge.job.place, Outcome(table, change, version, before), counts)
