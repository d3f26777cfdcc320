"""Merge through delta-rs's own MERGE: for tables whose features need it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.commit import Change, commit_properties
from datacoolie_core.writers.library import absent_generated, quoted, run
from datacoolie_core.writers.matching import FILE, Rules, Verdicts, counts_of, decide
from datacoolie_core.writers.rewrite import changed_rows, new_rows
from datacoolie_core.writers.rounds import Work
from datacoolie_core.writers.spill import ROW, Batch
from datacoolie_core.writers.stored import scan_live
from datacoolie_core.writers.tables import live_files, table_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.load import Counts, Load
    from datacoolie_core.writers.replacing import Difference
    from datacoolie_core.writers.request import WriteResult

_DOES = "__datacoolie_action"


def work(job: Load, table: DeltaTable, batch: Batch, rules: Rules, older: int) -> Work:
    """Return the work of a merge; what happens to each row is decided here, the library applies it.

    Args:
        job: The load.
        table: Has all columns of the batch already.
        batch: One row for each key.
        rules: Keys, order, deletes.
        older: Rows that gave way to newer ones inside the batch.

    Raises:
        WriteError: A column's name holds a backtick, which the library's MERGE can't take.
    """
    schema = table_schema(table)
    refuse_backticks(schema)
    old = scan_live(job.place, table, live_files(table), schema)
    old = old.with_columns(pl.lit("").alias(FILE))
    verdicts = decide(batch, old, schema, rules)
    counts = counts_of(batch, verdicts, older)
    # MERGE changes each of several stored rows of a key and keeps them
    counts = replace(counts, rows_deleted=verdicts.count("delete"))
    if not counts.changes:
        # MERGE makes no commit for nothing
        return Work(counts)
    left_out = absent_generated(job, table)
    rows = _rows(batch, verdicts).drop(left_out)

    def through(table: DeltaTable, change: Change, counts: Counts) -> WriteResult:
        submit = partial(_merge, job, table, rows, rules, change.info)
        return run(job, table, change, counts, submit)

    return Work(counts, through=through)


def refuse_backticks(schema: pl.Schema) -> None:
    """Raise if a column's name can't be told to the library's MERGE."""
    for name in schema:
        if "`" in name:
            raise WriteError(
                f"column '{name}' has a backtick in its name, and this table's features need the"
                " library's MERGE, which can't take it",
                remedy="Rename the column (transform.rename_columns).",
                code="unsupported_column_name",
            )


def replacing(job: Load, table: DeltaTable, batch: Batch, difference: Difference) -> Work:
    """Return the work of replacing all rows of some keys.

    One row for each key that is stored matches and deletes; the rows that come match nothing.

    Args:
        job: The load.
        table: Has all columns of the batch already.
        batch: What comes.
        difference: Which keys change.

    Raises:
        WriteError: A column's name holds a backtick, which the library's MERGE can't take.
    """
    schema = table_schema(table)
    refuse_backticks(schema)
    keys = difference.keys
    left_out = absent_generated(job, table)
    columns = [name for name in schema if name not in left_out]
    coming = difference.coming(batch).select(*columns, pl.lit("insert").alias(_DOES))
    going = difference.changed.lazy().filter(pl.col(FILE).is_not_null())
    going = going.select(*keys, pl.lit("delete").alias(_DOES))
    rows = pl.concat([coming, going], how="diagonal").collect(engine="streaming")

    def submit(info: Mapping[str, Any]) -> None:
        merger = table.merge(
            cast("Any", rows),
            predicate=f"s.{_DOES} = 'delete' AND {_predicate(rows, keys)}",
            source_alias="s",
            target_alias="t",
            commit_properties=commit_properties(job.request, info, blind=False),
        )
        (
            merger.when_matched_delete()
            .when_not_matched_insert_all(predicate=f"s.{_DOES} = 'insert'", except_cols=[_DOES])
            .execute()
        )

    def through(table: DeltaTable, change: Change, counts: Counts) -> WriteResult:
        return run(job, table, change, counts, lambda: submit(change.info))

    return Work(difference.counts, through=through)


def _rows(batch: Batch, verdicts: Verdicts) -> pl.DataFrame:
    order = list(batch.schema)
    goes = verdicts.pairs.lazy().select(pl.col(ROW).unique())
    updates = changed_rows(batch, verdicts)
    deletes = batch.frame.join(goes, on=ROW, how="semi").join(updates, on=ROW, how="anti")
    parts = {"update": updates, "delete": deletes, "insert": new_rows(batch, verdicts)}
    marked = [frame.select(*order, pl.lit(action).alias(_DOES)) for action, frame in parts.items()]
    return pl.concat(marked, how="vertical").collect(engine="streaming")


def _merge(
    job: Load, table: DeltaTable, rows: pl.DataFrame, rules: Rules, info: Mapping[str, Any]
) -> None:
    merger = table.merge(
        cast("Any", rows),
        predicate=_predicate(rows, rules.keys),
        source_alias="s",
        target_alias="t",
        commit_properties=commit_properties(job.request, info, blind=False),
    )
    (
        merger.when_matched_delete(predicate=f"s.{_DOES} = 'delete'")
        .when_matched_update_all(predicate=f"s.{_DOES} = 'update'", except_cols=[_DOES])
        .when_not_matched_insert_all(predicate=f"s.{_DOES} = 'insert'", except_cols=[_DOES])
        .execute()
    )


def _predicate(rows: pl.DataFrame, keys: Sequence[str]) -> str:
    parts: list[str] = []
    for key in keys:
        name = quoted(key)
        # plain equality plans as a hash join, so null-safe only where there is a null
        sign = "IS NOT DISTINCT FROM" if rows[key].null_count() else "="
        # without parentheses the library reads IS NOT DISTINCT FROM as far as the next AND goes
        parts.append(f"(t.{name} {sign} s.{name})")
        if isinstance(rows[key].dtype, pl.Int8 | pl.Int16 | pl.Int32 | pl.Int64) and sign == "=":
            low, high = rows[key].min(), rows[key].max()
            if low is not None:
                # literals prune files, joined columns do not
                parts.append(f"t.{name} >= {low} AND t.{name} <= {high}")
    return " AND ".join(parts)
