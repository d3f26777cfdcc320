"""What a SELECT gives: groups, windows, columns, their order and number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlglot import exp

from datacoolie_core.engines.sql.coerce import checked_cast
from datacoolie_core.engines.sql.kinds import kind_of
from datacoolie_core.engines.sql.query_scope import (
    BeyondUs,
    Rows,
    by_engine,
    column,
)
from datacoolie_core.engines.sql.values import SqlError
from datacoolie_core.metadata.dialect.catalogue import AGGREGATES

if TYPE_CHECKING:
    from collections.abc import Callable

_BASE = "__dc_base"
_RENAMED = {"collect_list": "array_agg", "mean": "avg"}


@dataclass
class _Select:
    """A SELECT on its way to rows.

    Attributes:
        rows: What it selects from.
        names: Its columns.
        values: What each is made of, over the columns of the rows.
        having: The condition on groups.
        order: What the rows are ordered by, with what is said about it.
    """

    rows: Rows
    names: list[str]
    values: list[exp.Expr]
    having: exp.Expr | None
    order: list[tuple[exp.Expr, exp.Expr]]

    def changed(self, change: Callable[[exp.Expr], exp.Expr]) -> None:
        """Change every expression."""
        self.values = [change(one) for one in self.values]
        self.having = None if self.having is None else change(self.having)
        self.order = [(change(one), said) for one, said in self.order]


def outputs(node: exp.Select, rows: Rows) -> pl.LazyFrame:
    """Return the rows that a SELECT gives, once its FROM and WHERE are done.

    Raises:
        SqlError: An expression of it has no meaning.
        BeyondUs: It is of a form that is left to the engine.
    """
    select = _read(node, rows)
    _group(node, select)
    _windows(select)
    frame = select.rows.frame
    if select.having is not None:
        frame = frame.filter(select.rows.truth(select.having))
    values = [select.rows.value(one).expr for one in select.values]
    made = [value.alias(name) for value, name in zip(values, select.names, strict=True)]
    if node.args.get("distinct"):
        return _cut(_distinct(node, select, frame.select(made)), node)
    if select.order:
        keys = [select.rows.value(one).expr for one, _ in select.order]
        frame = frame.sort(keys, **_directions(select))
    return _cut(_alone(frame, made, node), node)


def _alone(frame: pl.LazyFrame, made: list[pl.Expr], node: exp.Select) -> pl.LazyFrame:
    """Return the columns of a SELECT; one of constants alone has a row for each row of its FROM."""
    if node.args.get("from_") is None or any(one.meta.root_names() for one in made):
        return frame.select(made)
    return frame.with_columns(made).select(one.meta.output_name() for one in made)


def _read(node: exp.Select, rows: Rows) -> _Select:
    names: list[str] = []
    values: list[exp.Expr] = []
    for one in node.expressions:
        star = one if isinstance(one, exp.Star) else one.this
        if isinstance(star, exp.Star) and isinstance(one, exp.Star | exp.Column):
            if any(star.args.values()):
                raise BeyondUs("* EXCEPT")
            qualifier = one.args["table"].name if one.args.get("table") else None
            for shown, name in rows.starred(qualifier):
                names.append(shown)
                values.append(column(name))
            continue
        inner = one.this if isinstance(one, exp.Alias) else one
        names.append(one.alias or one.output_name or one.sql(dialect="spark").lower())
        values.append(rows.resolved(inner))
    having = node.args.get("having")
    select = _Select(rows, names, values, None, [])
    select.having = None if having is None else _over(having.this, select)
    ordered: list[exp.Expr] = node.args["order"].expressions if node.args.get("order") else []
    select.order = [(_over(one.this, select), one) for one in ordered]
    return select


def _over(node: exp.Expr, select: _Select) -> exp.Expr:
    """Return an expression that may name a column of the SELECT, or its number."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return _numbered(node, select)
    folded = [name.casefold() for name in select.names]

    def one(part: exp.Expr) -> exp.Expr:
        plain = isinstance(part, exp.Column) and len(part.parts) == 1
        if plain and part.name.casefold() in folded:
            return exp.paren(select.values[folded.index(part.name.casefold())].copy())
        return select.rows.resolved(part) if isinstance(part, exp.Column) else part

    return node.transform(one)


def _numbered(node: exp.Expr, select: _Select) -> exp.Expr:
    number = int(node.name)
    if not 1 <= number <= len(select.values):
        raise SqlError(f"the query has no column number {number}")
    return select.values[number - 1]


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES


def _aggregates(node: exp.Expr) -> list[exp.Expr]:
    """Return the aggregates of an expression, those of windows aside."""
    if isinstance(node, exp.Window):
        inside = [
            node.this.expressions,
            node.args.get("partition_by") or [],
            [node.args.get("order")],
        ]
        return [found for many in inside for one in many if one for found in _aggregates(one)]
    if isinstance(node, exp.Filter):
        raise BeyondUs("FILTER")
    if _is_aggregate(node):
        return [node]
    return [found for child in node.iter_expressions() for found in _aggregates(child)]


def _group(node: exp.Select, select: _Select) -> None:
    """Replace keys and aggregates by columns of the grouped rows."""
    grouping = node.args.get("group")
    parts = [
        *select.values,
        *([select.having] if select.having else []),
        *(o for o, _ in select.order),
    ]
    aggregates = {one.sql(): one for part in parts for one in _aggregates(part)}
    if grouping is None and not aggregates:
        return
    if grouping is not None and any(
        grouping.args.get(k) for k in ("cube", "rollup", "grouping_sets", "all")
    ):
        raise BeyondUs("GROUP BY")
    given: list[exp.Expr] = grouping.expressions if grouping else []
    keys = [_over(one, select) for one in given]
    named = {one.unnest().sql(): f"__dc_key_{number}" for number, one in enumerate(keys)}
    rows = select.rows.with_columns(
        {f"__dc_key_{n}": select.rows.value(one).expr for n, one in enumerate(keys)}
    )
    counted = {text: f"__dc_agg_{number}" for number, text in enumerate(aggregates)}
    calls: list[exp.Expr] = []
    for text, one in aggregates.items():
        rows, call = _plain_call(one, rows, counted[text])
        calls.append(exp.alias_(call, counted[text], quoted=True))
    chosen = [column(name) for name in named.values()]
    query = exp.select(*chosen, *calls).from_(_BASE)
    frame = by_engine(query.group_by(*chosen) if chosen else query, {_BASE: rows.frame})
    select.rows = _fitted(Rows(frame, (), rows.session))
    select.changed(lambda part: _replaced(part, {**named, **counted}))


def _fitted(rows: Rows) -> Rows:
    """Return the rows with sums of whole numbers as BIGINT; one that is none stops the load."""
    large = [n for n, dtype in rows.frame.collect_schema().items() if dtype == pl.Int128]
    reason = "a sum is too large; CAST what is summed to DECIMAL(38,0)"
    return rows.with_columns(
        {name: checked_cast(pl.col(name), pl.Int64(), name, reason) for name in large}
    )


def _plain_call(call: exp.Expr, rows: Rows, name: str) -> tuple[Rows, exp.Expr]:
    """Return an aggregate or window function over plain columns, and the rows that have them."""
    changed, made = call.copy(), dict[str, pl.Expr]()

    def plain(one: exp.Expr) -> exp.Expr:
        if isinstance(one, exp.Star | exp.Literal):
            return one
        if isinstance(one, exp.Distinct):
            one.set("expressions", [plain(inner) for inner in one.expressions])
            return one
        value = rows.value(one)
        # the engine's own sum overflows in silence
        roomy = call.name.lower() == "sum" and kind_of(value.dtype) == "int"
        made[f"{name}_{len(made)}"] = value.expr.cast(pl.Int128) if roomy else value.expr
        return column(f"{name}_{len(made) - 1}")

    changed.set("expressions", [plain(one) for one in changed.expressions])
    lowered = call.name.lower()
    changed.set("this", _RENAMED.get(lowered, lowered))
    return rows.with_columns(made), changed


def _replaced(node: exp.Expr, columns: dict[str, str]) -> exp.Expr:
    if node.unnest().sql() in columns:
        return column(columns[node.unnest().sql()])

    def one(part: exp.Expr) -> exp.Expr:
        name = columns.get(part.sql())
        return part if name is None else column(name)

    return node.transform(one)


def _windows(select: _Select) -> None:
    """Replace windows by columns that the engine computes."""
    parts = [*select.values, *(one for one, _ in select.order)]
    windows = {one.sql(): one for part in parts for one in part.find_all(exp.Window)}
    if not windows:
        return
    rows, calls, names = select.rows, list[exp.Expr](), dict[str, str]()
    for number, (text, one) in enumerate(windows.items()):
        names[text] = f"__dc_window_{number}"
        rows, call = _plain_window(one, rows, names[text])
        calls.append(exp.alias_(call, names[text], quoted=True))
    frame = by_engine(exp.select("*", *calls).from_(_BASE), {_BASE: rows.frame})
    select.rows = _fitted(Rows(frame, rows.origins, rows.session))
    select.changed(lambda part: _replaced(part, names))


def _plain_window(window: exp.Expr, rows: Rows, name: str) -> tuple[Rows, exp.Expr]:
    if not isinstance(window.this, exp.Anonymous):
        raise BeyondUs("OVER")
    rows, call = _plain_call(window.this, rows, name)
    changed, made = window.copy(), dict[str, pl.Expr]()
    changed.set("this", call)

    def plain(one: exp.Expr) -> exp.Expr:
        key = f"{name}_by_{len(made)}"
        made[key] = rows.value(one).expr
        return column(key)

    given: list[exp.Expr] = window.args.get("partition_by") or []
    changed.set("partition_by", [plain(one) for one in given])
    order = changed.args.get("order")
    ordered: list[exp.Expr] = order.expressions if order else []
    for one in ordered:
        one.set("this", plain(one.this))
    return rows.with_columns(made), changed


def _directions(select: _Select) -> dict[str, Any]:
    said = [one for _, one in select.order]
    return {
        "descending": [bool(one.args.get("desc")) for one in said],
        "nulls_last": [not one.args.get("nulls_first") for one in said],
        "maintain_order": True,
    }


def _distinct(node: exp.Select, select: _Select, frame: pl.LazyFrame) -> pl.LazyFrame:
    if node.args["distinct"].args.get("on"):
        raise BeyondUs("DISTINCT ON")
    unique = frame.unique(maintain_order=False)
    if not select.order:
        return unique
    texts = [one.sql() for one in select.values]
    wanted = [one.unnest().sql() for one, _ in select.order]
    if not all(one in texts for one in wanted):
        raise SqlError("ORDER BY of a SELECT DISTINCT may only name its columns")
    keys = [select.names[texts.index(one)] for one in wanted]
    return unique.sort(keys, **_directions(select))


def _cut(frame: pl.LazyFrame, node: exp.Select) -> pl.LazyFrame:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return frame
    return frame.slice(_count(offset) or 0, _count(limit))


def _count(node: exp.Expr | None) -> int | None:
    if node is None:
        return None
    given = node.args.get("expression")
    if not isinstance(given, exp.Literal) or given.is_string:
        raise BeyondUs("LIMIT")
    return int(given.name)
