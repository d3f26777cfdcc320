"""The FROM of a query: its tables and queries, joined, with a name for each column."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from datacoolie_core.engines.names import match
from datacoolie_core.engines.sql.query_scope import (
    BeyondUs,
    Origin,
    Rows,
    found_column,
    quoted,
)
from datacoolie_core.engines.sql.translate import translate
from datacoolie_core.engines.sql.values import Session, scope_of
from datacoolie_core.metadata.dialect.grammar import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

_LOGIC = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is,
)  # fmt: skip
_LEFT_ONLY = ("SEMI", "ANTI")


@dataclass(frozen=True)
class _Join:
    node: exp.Expr | None
    names: tuple[str, ...]
    frame: pl.LazyFrame

    @property
    def columns(self) -> list[str]:
        return list(self.frame.collect_schema())


def joined(
    select: exp.Expr,
    session: Session | None,
    source: Callable[[exp.Expr], tuple[tuple[str, ...], pl.LazyFrame]],
) -> Rows:
    """Return the rows of a FROM with its joins.

    Args:
        select: The query.
        session: The load's instant and zone.
        source: Gives the names and the rows of a table or a query in brackets.

    Raises:
        BeyondUs: A join of a form that is left to the engine.
    """
    start = select.args.get("from_")
    if start is None:
        frame = pl.LazyFrame({"__dc_row": [0]})
        return Rows(frame, (Origin((), frame, {}),), session)
    joins = [_Join(None, *source(start.this))]
    joins += [_Join(node, *source(node.this)) for node in select.args.get("joins") or ()]
    if len(joins) == 1:
        names, frame = joins[0].names, joins[0].frame
        columns = {name: name for name in frame.collect_schema()}
        return Rows(frame, (Origin(names, frame, columns),), session)
    origins = _origins(joins)
    return Rows(_run(joins, origins, session), origins, session)


def _origins(joins: list[_Join]) -> tuple[Origin, ...]:
    kept = [one for one in joins if one.node is None or one.node.args.get("kind") not in _LEFT_ONLY]
    counted = Counter(name.casefold() for one in kept for name in one.frame.collect_schema())
    found: list[Origin] = []
    for one in joins:
        if one not in kept:
            found.append(Origin((), one.frame, {}))
            continue
        prefix = one.names[-1] if one.names else f"query{len(found)}"
        shared = _shared(one)
        columns = {
            name: name if counted[name.casefold()] == 1 else f"{prefix}.{name}"
            for name in one.frame.collect_schema()
        }
        for name in shared:
            # one column for both sides, as USING has it
            left = next(o for o in found if match(name, o.columns))
            own = match(name, columns)
            if own is not None:
                columns[own] = left.columns[match(name, left.columns) or name]
        found.append(Origin(one.names, one.frame, columns))
    return tuple(found)


def _shared(one: _Join) -> list[str]:
    using: list[exp.Expr] = [] if one.node is None else one.node.args.get("using") or []
    if using and one.node is not None and one.node.args.get("side") not in (None, "", "LEFT"):
        raise BeyondUs("USING with a right or full join")
    return [name.name for name in using]


def _run(joins: list[_Join], origins: tuple[Origin, ...], session: Session | None) -> pl.LazyFrame:
    frames = {f"__dc_{number}": one.frame for number, one in enumerate(joins)}
    written: list[str] = []
    taken: set[str] = set()
    for number, origin in enumerate(origins):
        for name, shown in origin.columns.items():
            if shown not in taken:
                taken.add(shown)
                place = exp.Column(this=quoted(name), table=quoted(f"__dc_{number}"))
                written.append(exp.alias_(place, shown, quoted=True).sql())
    text = f"SELECT {', '.join(written)} FROM __dc_0"  # noqa: S608 - names are quoted
    for number, one in enumerate(joins):
        if one.node is not None:
            text += " " + _join(one.node, number, joins, frames, session)
    return pl.SQLContext(frames, eager=False).execute(text)


def _join(
    node: exp.Expr,
    number: int,
    joins: list[_Join],
    frames: dict[str, pl.LazyFrame],
    session: Session | None,
) -> str:
    if node.args.get("method") or node.args.get("match_condition"):
        raise BeyondUs("join")
    words = [str(node.args.get(word) or "") for word in ("side", "kind")]
    condition, using = node.args.get("on"), node.args.get("using")
    kind = " ".join(word for word in words if word)
    if using:
        names = ", ".join(quoted(name.name).sql() for name in using)
        return f"{kind} JOIN __dc_{number} USING ({names})"
    if condition is None:
        return f"CROSS JOIN __dc_{number}"
    reached = [
        Origin(one.names, one.frame, {name: f"__dc_{place}\0{name}" for name in one.columns})
        for place, one in enumerate(joins)
    ]
    on = _side(condition, reached[: number + 1], frames, session)
    return f"{kind} JOIN __dc_{number} ON {on.sql()}"


def _side(
    node: exp.Expr,
    origins: list[Origin],
    frames: dict[str, pl.LazyFrame],
    session: Session | None,
) -> exp.Expr:
    """Return a condition of a join in which what is ours is a column of one of the tables."""
    if isinstance(node, exp.Column):
        found = found_column(names_of(node), origins)
        if isinstance(found, exp.Column):
            table, name = found.name.split("\0")
            return exp.Column(this=quoted(name), table=quoted(table))
    elif isinstance(node, exp.Literal | exp.Null | exp.Boolean):
        return node
    elif isinstance(node, _LOGIC):
        changed = node.copy()
        for key in ("this", "expression"):
            part = node.args.get(key)
            if isinstance(part, exp.Expr):
                changed.set(key, _side(part, origins, frames, session))
        return changed
    return _made(node, origins, frames, session)


def _made(
    node: exp.Expr,
    origins: list[Origin],
    frames: dict[str, pl.LazyFrame],
    session: Session | None,
) -> exp.Expr:
    used: set[str] = set()

    def one(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        found = found_column(names_of(part), origins)
        inner = found.find(exp.Column)
        if inner is None:
            return found
        table, name = inner.name.split("\0")
        used.add(table)
        inner.set("this", quoted(name))
        return found

    changed = node.transform(one)
    if len(used) > 1:
        raise BeyondUs("a join condition over both tables")
    table = next(iter(used), "__dc_0")
    frame = frames[table]
    value = translate(changed, scope_of(frame.collect_schema(), session))
    name = f"__dc_on_{len(frame.collect_schema())}"
    frames[table] = frame.with_columns(value.expr.alias(name))
    return exp.Column(this=quoted(name), table=quoted(table))
