"""Keep history through delta-rs's own MERGE: for tables whose features need it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.scd2 import VALID_FROM
from datacoolie_core.writers.commit import Change, commit_properties
from datacoolie_core.writers.library import absent_generated, quoted, run
from datacoolie_core.writers.library_merge import refuse_backticks
from datacoolie_core.writers.rounds import Work
from datacoolie_core.writers.scd2_chain import BASE, BASE_FROM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable

    from datacoolie_core.writers.load import Counts, Load
    from datacoolie_core.writers.request import WriteResult
    from datacoolie_core.writers.scd2_rewrite import History

_DOES = "__datacoolie_action"
_FROM = "__datacoolie_from"


def work(job: Load, table: DeltaTable, history: History, schema: pl.Schema, counts: Counts) -> Work:
    """Return the work of a load; what happens to each row is decided, the library applies it.

    Args:
        job: The load.
        table: Has all columns of the batch already.
        history: What goes and what comes.
        schema: The table's columns.
        counts: What that is in rows.

    Raises:
        WriteError: A column's name or a stored history that the library's MERGE can't take.
    """
    refuse_backticks(schema)
    if not counts.changes:
        # MERGE makes no commit for nothing
        return Work(counts)
    _refuse_twins(history)
    rows = _rows(history, schema).drop(absent_generated(job, table))

    def through(table: DeltaTable, change: Change, counts: Counts) -> WriteResult:
        submit = partial(_merge, job, table, rows, history.keys, change.info)
        return run(job, table, change, counts, submit)

    return Work(counts, through=through)


def _refuse_twins(history: History) -> None:
    names = [*history.keys, VALID_FROM]
    twins = history.going.select(names).filter(pl.struct(names).is_duplicated())
    if twins.height:
        raise WriteError(
            f"the table holds several versions of one key and instant, such as {twins.row(0)!r},"
            " and this table's features need the library's MERGE, which can't tell them apart",
            remedy="Delete all but one of them.",
            code="broken_history",
        )


def _rows(history: History, schema: pl.Schema) -> pl.DataFrame:
    order = list(schema)
    names = [*history.keys, VALID_FROM]
    based = pl.col(BASE).is_not_null()
    updates = history.coming.filter(based).with_columns(pl.col(BASE_FROM).alias(_FROM))
    inserts = pl.concat(
        [
            history.coming.lazy().filter(~based).select(order),
            history.fresh.select(order),
        ]
    )
    again = updates.select(*history.keys, pl.col(_FROM).alias(VALID_FROM))
    deletes = history.going.join(again, on=names, how="anti", nulls_equal=True)
    parts = [
        updates.lazy().select(*order, _FROM, pl.lit("update").alias(_DOES)),
        inserts.with_columns(pl.col(VALID_FROM).alias(_FROM), pl.lit("insert").alias(_DOES)),
        deletes.lazy().select(
            *(pl.col(n) if n in names else pl.lit(None, dtype=schema[n]).alias(n) for n in order),
            pl.col(VALID_FROM).alias(_FROM),
            pl.lit("delete").alias(_DOES),
        ),
    ]
    return pl.concat(parts, how="vertical").collect(engine="streaming")


def _merge(
    job: Load,
    table: DeltaTable,
    rows: pl.DataFrame,
    keys: tuple[str, ...],
    info: Mapping[str, Any],
) -> None:
    pairs = [*((key, key) for key in keys), (VALID_FROM, _FROM)]
    # without parentheses the library reads IS NOT DISTINCT FROM as far as the next AND goes
    same = [f"(t.{quoted(old)} {_sign(rows, new)} s.{quoted(new)})" for old, new in pairs]
    merger = table.merge(
        cast("Any", rows),
        predicate=" AND ".join([*same, f"s.{_DOES} <> 'insert'"]),
        source_alias="s",
        target_alias="t",
        commit_properties=commit_properties(job.request, info, blind=False),
    )
    ours = [_DOES, _FROM]
    (
        merger.when_matched_delete(predicate=f"s.{_DOES} = 'delete'")
        .when_matched_update_all(predicate=f"s.{_DOES} = 'update'", except_cols=ours)
        .when_not_matched_insert_all(predicate=f"s.{_DOES} = 'insert'", except_cols=ours)
        .execute()
    )


def _sign(rows: pl.DataFrame, column: str) -> str:
    # plain equality plans as a hash join, so null-safe only where there is a null
    return "IS NOT DISTINCT FROM" if rows[column].null_count() else "="
