"""Queries over tables: the engine joins and groups, every expression is ours.

A query is taken apart from the inside out. Joins, aggregates and windows are run by the engine's
own SQL over plain columns; what those columns are made of, and what is made of them, is built as
everywhere else (`translate`), so that a function means the same in a query and in a column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from datacoolie_core.engines.sql.query_joins import joined
from datacoolie_core.engines.sql.query_outputs import outputs
from datacoolie_core.engines.sql.query_scope import (
    BeyondUs,
    Rows,
    by_engine,
    column,
    is_ours,
    quoted,
)
from datacoolie_core.engines.sql.values import Session, SqlError
from datacoolie_core.metadata.dialect.grammar import Dialect, DialectError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

_BASE = "__dc_base"
_LEFT, _RIGHT = "__dc_left", "__dc_right"
_UNKNOWN_PARTS = (
    "laterals", "pivots", "qualify", "windows", "cluster", "distribute", "sort", "match", "into",
    "connect", "prewhere", "sample",
)  # fmt: skip


@dataclass(frozen=True)
class _Reading:
    """What the names in a query stand for.

    Attributes:
        table: Gives the rows of a table by its name, parts joined by dots.
        session: The load's instant and zone.
        known: The queries of WITH, by their names in lower case.
    """

    table: Callable[[str], pl.LazyFrame]
    session: Session | None
    known: Mapping[str, pl.LazyFrame]


def query_frame(
    written: str, table: Callable[[str], pl.LazyFrame], session: Session | None = None
) -> pl.LazyFrame | None:
    """Return the rows of a query, None if it is left to the engine's own SQL.

    That is so where nothing but columns is selected, joined and grouped, and for forms and
    functions that only the engine may know.

    Args:
        written: The query.
        table: Gives the rows of a table by its name, parts joined by dots.
        session: The load's instant and zone; None is this instant, and UTC.

    Raises:
        SqlError: A function or column of the query is used wrongly.
    """
    try:
        tree = sqlglot.parse_one(written.strip().rstrip(";"), read=Dialect)
        # every node is looked at: one that only the engine may know decides
        ours = [is_ours(node) for node in tree.walk()]
        if not isinstance(tree, exp.Query) or not any(ours):
            return None
        return _query(tree, _Reading(table, session, {}))
    except (SqlglotError, RecursionError, BeyondUs):
        return None
    except DialectError as error:
        raise SqlError(str(error), code="sql_error") from error


def _query(node: exp.Expr, reading: _Reading) -> pl.LazyFrame:
    reading = _with_queries(node, reading)
    if isinstance(node, exp.Subquery):
        return _bounded(_query(node.this, reading), node)
    if isinstance(node, exp.SetOperation):
        return _together(node, reading)
    if isinstance(node, exp.Select):
        return _selected(node, reading)
    raise BeyondUs(type(node).__name__)


def _with_queries(node: exp.Expr, reading: _Reading) -> _Reading:
    found = node.args.get("with_")
    if found is None:
        return reading
    if found.args.get("recursive"):
        raise BeyondUs("WITH RECURSIVE")
    for one in found.expressions:
        if one.args["alias"].args.get("columns"):
            raise BeyondUs("WITH name (columns)")
        rows = _query(one.this, reading)
        reading = replace(reading, known={**reading.known, one.alias.casefold(): rows})
    return reading


def _bounded(frame: pl.LazyFrame, node: exp.Expr) -> pl.LazyFrame:
    """Return the rows of a query in brackets that is ordered or limited as a whole."""
    kept = {key: node.args[key] for key in ("order", "limit", "offset") if node.args.get(key)}
    if not kept:
        return frame
    if any(is_ours(part) for value in kept.values() for part in value.walk()):
        raise BeyondUs("ORDER BY an expression of a whole query")
    query = exp.select("*").from_(_BASE)
    for key, value in kept.items():
        query.set(key, value.copy())
    return by_engine(query, {_BASE: frame})


def _together(node: exp.SetOperation, reading: _Reading) -> pl.LazyFrame:
    frames = {_LEFT: _query(node.this, reading), _RIGHT: _query(node.expression, reading)}
    changed = node.copy()
    changed.set("with_", None)
    changed.set("this", exp.select("*").from_(_LEFT))
    changed.set("expression", exp.select("*").from_(_RIGHT))
    if any(is_ours(part) for part in changed.walk()):
        raise BeyondUs("ORDER BY an expression of a whole query")
    return by_engine(changed, frames)


def _selected(node: exp.Select, reading: _Reading) -> pl.LazyFrame:
    if any(node.args.get(part) for part in _UNKNOWN_PARTS):
        raise BeyondUs("SELECT")
    rows = joined(node, reading.session, lambda source: _source(source, reading))
    where = node.args.get("where")
    if where is not None:
        rows = _filtered(rows, where.this, reading)
    return outputs(node, rows)


def _source(node: exp.Expr, reading: _Reading) -> tuple[tuple[str, ...], pl.LazyFrame]:
    alias = node.alias
    if isinstance(node, exp.Subquery):
        return ((alias,) if alias else ()), _query(node, reading)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise BeyondUs(type(node).__name__)
    if any(node.args.get(part) for part in ("pivots", "joins", "laterals", "sample", "version")):
        raise BeyondUs("FROM")
    parts = tuple(part.name for part in node.parts)
    known = reading.known.get(parts[0].casefold()) if len(parts) == 1 else None
    frame = reading.table(".".join(parts)) if known is None else known
    return ((alias,) if alias else parts), frame


def _filtered(rows: Rows, condition: exp.Expr, reading: _Reading) -> Rows:
    """Return the rows of a WHERE; the parts of it with a query inside are the engine's."""
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    for part in parts:
        if part.find(exp.Query) is None:
            frame = rows.frame.filter(rows.truth(rows.resolved(part)))
        else:
            frame = _by_query(rows, part, reading)
        rows = Rows(frame, rows.origins, rows.session)
    return rows


def _by_query(rows: Rows, part: exp.Expr, reading: _Reading) -> pl.LazyFrame:
    frames: dict[str, pl.LazyFrame] = {_BASE: rows.frame}

    def one(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            name = f"__dc_query_{len(frames)}"
            try:
                frames[name] = _query(node, reading)
            except SqlError as error:
                # a column of the outer query, perhaps: the engine may know what to do
                raise BeyondUs(str(error)) from error
            return exp.select("*").from_(quoted(name)).subquery()
        return node

    changed = rows.resolved(part.transform(one))
    if any(is_ours(node) for node in changed.walk()):
        raise BeyondUs("an expression beside a query")
    kept = [column(name) for name in rows.frame.collect_schema()]
    return by_engine(exp.select(*kept).from_(_BASE).where(changed), frames)
