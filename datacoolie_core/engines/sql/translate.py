"""The walk over the tree of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from datacoolie_core.engines.dtypes import instance
from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.engines.sql import branches, lists, parts, times
from datacoolie_core.engines.sql.arithmetic import (
    arithmetic,
    divided,
    negative,
    quotient,
    remainder,
)
from datacoolie_core.engines.sql.coerce import to_text, to_truth, to_whole
from datacoolie_core.engines.sql.compare import among, between, compared
from datacoolie_core.engines.sql.convert import converted
from datacoolie_core.engines.sql.intervals import later, span_of
from datacoolie_core.engines.sql.kinds import kind_of
from datacoolie_core.engines.sql.library import FUNCTIONS
from datacoolie_core.engines.sql.literals import constant, literal, null
from datacoolie_core.engines.sql.regex import like, matches
from datacoolie_core.engines.sql.values import (
    Call,
    Scope,
    SqlError,
    Value,
    quoted_text,
    text as text_value,
    truth,
)
from datacoolie_core.metadata.dialect.catalogue import functions
from datacoolie_core.metadata.dialect.grammar import names_of
from datacoolie_core.metadata.dialect.type_names import type_of

if TYPE_CHECKING:
    from collections.abc import Callable


def translate(node: exp.Expr, scope: Scope) -> Value:
    """Return what a node of a tree is worth.

    Raises:
        SqlError: It has no meaning over the columns of the scope.
    """
    handler = _NODES.get(type(node))
    if handler is None:
        raise SqlError(f"{type(node).__name__.upper()} is not part of this SQL")
    return handler(node, scope)


def _call(node: exp.Expr, scope: Scope) -> Value:
    return _called(node.name.lower(), node.expressions, scope)


def _called(name: str, nodes: list[exp.Expr], scope: Scope) -> Value:
    known = functions()[name]
    return FUNCTIONS[known.name](Call(known.name, nodes, scope, translate))


def _column(node: exp.Expr, scope: Scope) -> Value:
    first, *fields = names_of(node)
    name = match(first, scope.schema)
    if name is None:
        meant = remedy_for(first, scope.schema)
        if node.this.args.get("quoted"):
            meant = f"{meant} A text stands in single quotes: '{first}'."
        raise SqlError(f"there is no column '{first}'", meant, "missing_column")
    value = Value(pl.col(name), instance(scope.schema[name]))
    for one in fields:
        value = lists.field(value, one)
    return value


def _dot(node: exp.Expr, scope: Scope) -> Value:
    return lists.field(translate(node.this, scope), node.expression.name)


def _bracket(node: exp.Expr, scope: Scope) -> Value:
    value, index = translate(node.this, scope), translate(node.expressions[0], scope)
    if isinstance(index.constant, str):
        return lists.field(value, index.constant)
    place = to_whole(index, scope).expr
    return lists.element(Value(scope.guarded(value.expr), value.dtype), place, beyond_is_null=False)


def _and(node: exp.Expr, scope: Scope) -> Value:
    left = to_truth(translate(node.this, scope), scope).expr
    # what the left side rules out is not asked any further, so it can't fail there either
    needed = scope.under(left.fill_null(value=True))
    return truth(left & to_truth(translate(node.expression, needed), scope).expr)


def _or(node: exp.Expr, scope: Scope) -> Value:
    left = to_truth(translate(node.this, scope), scope).expr
    needed = scope.under(~left.fill_null(value=False))
    return truth(left | to_truth(translate(node.expression, needed), scope).expr)


def _not(node: exp.Expr, scope: Scope) -> Value:
    return truth(~to_truth(translate(node.this, scope), scope).expr)


def _plus(node: exp.Expr, scope: Scope) -> Value:
    """+ and -: of numbers, of a time and a span, of a date and days."""
    minus = isinstance(node, exp.Sub)
    by = span_of(node.expression)
    if by is not None:
        return later(translate(node.this, scope), -by if minus else by, scope)
    first = None if minus else span_of(node.this)
    if first is not None:
        return later(translate(node.expression, scope), first, scope)
    left, right = translate(node.this, scope), translate(node.expression, scope)
    kinds = (kind_of(left.dtype), kind_of(right.dtype))
    if kinds == ("date", "int"):
        return times.date_plus(left, right, scope, minus=minus)
    if kinds == ("int", "date") and not minus:
        return times.date_plus(right, left, scope)
    if minus and set(kinds) <= {"date", "wall", "instant"}:
        raise SqlError(
            "two dates or times can't be subtracted",
            "Use datediff(end, start), or datediff(unit, start, end).",
        )
    return arithmetic("-" if minus else "+", left, right, scope)


def _two(apply: Callable[[Value, Value, Scope], Value]) -> Callable[[exp.Expr, Scope], Value]:
    return lambda node, scope: apply(
        translate(node.this, scope), translate(node.expression, scope), scope
    )


def _sign(sign: str) -> Callable[[exp.Expr, Scope], Value]:
    return _two(lambda left, right, scope: compared(sign, left, right, scope))


def _is(node: exp.Expr, scope: Scope) -> Value:
    value, what = translate(node.this, scope), node.expression
    if isinstance(what, exp.Null):
        return truth(value.expr.is_null())
    if isinstance(what, exp.Boolean):
        return truth(to_truth(value, scope).expr.eq_missing(pl.lit(bool(what.this))))
    raise SqlError("IS is followed by NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")


def _in(node: exp.Expr, scope: Scope) -> Value:
    choices = [translate(one, scope) for one in node.expressions]
    return among(translate(node.this, scope), choices, scope)


def _between(node: exp.Expr, scope: Scope) -> Value:
    low, high = translate(node.args["low"], scope), translate(node.args["high"], scope)
    return between(translate(node.this, scope), low, high, scope)


def _like(node: exp.Expr, scope: Scope, escape: str = "\\") -> Value:
    value, ignore_case = to_text(translate(node.this, scope)), isinstance(node, exp.ILike)
    wanted = node.expression
    several = isinstance(wanted, exp.Any | exp.All)
    given = _unwrapped(wanted.this) if several else [wanted]
    found = [
        like(value.expr, _constant_text(one, scope, "LIKE"), ignore_case=ignore_case, escape=escape)
        for one in given
    ]
    every = isinstance(wanted, exp.All)
    holds = found[0].expr
    for one in found[1:]:
        holds = holds & one.expr if every else holds | one.expr
    return truth(~holds if node.args.get("negate") else holds)


def _unwrapped(node: exp.Expr) -> list[exp.Expr]:
    inside: list[exp.Expr] = node.expressions
    return inside if isinstance(node, exp.Tuple) else [node.unnest()]


def _escape(node: exp.Expr, scope: Scope) -> Value:
    return _like(node.this, scope, node.expression.name)


def _constant_text(node: exp.Expr, scope: Scope, what: str) -> str:
    quoted = quoted_text(node, scope)
    if quoted is not None:
        return quoted
    value = translate(node, scope)
    if not isinstance(value.constant, str):
        raise SqlError(f"the pattern of {what} must be a constant text")
    return value.constant


def _regex(node: exp.Expr, scope: Scope) -> Value:
    value = to_text(translate(node.this, scope))
    found = matches(value.expr, _constant_text(node.expression, scope, "RLIKE"))
    return truth(~found.expr) if node.args.get("negate") else found


def _case(node: exp.Expr, scope: Scope) -> Value:
    pairs = [(one.this, one.args["true"]) for one in node.args["ifs"]]
    return branches.case(scope, translate, pairs, node.args.get("default"), node.this)


def _if(node: exp.Expr, scope: Scope) -> Value:
    pair = [(node.this, node.args["true"])]
    return branches.case(scope, translate, pair, node.args.get("false"))


def _cast(node: exp.Expr, scope: Scope) -> Value:
    strict = not isinstance(node, exp.TryCast)
    return converted(translate(node.this, scope), type_of(node.args["to"]), scope, strict=strict)


def _pipes(node: exp.Expr, scope: Scope) -> Value:
    return _called("concat", [node.this, node.expression], scope)


def _concat(node: exp.Expr, scope: Scope) -> Value:
    """Texts that stand side by side are one."""
    return constant("".join(_constant_text(one, scope, "a text") for one in node.expressions))


def _trim(node: exp.Expr, scope: Scope) -> Value:
    value = to_text(translate(node.this, scope)).expr
    what = node.expression
    characters = " " if what is None else _constant_text(what, scope, "TRIM")
    side = (node.args.get("position") or "BOTH").upper()
    strips = {
        "BOTH": value.str.strip_chars,
        "LEADING": value.str.strip_chars_start,
        "TRAILING": value.str.strip_chars_end,
    }
    return text_value(strips[side](characters))


def _substring(node: exp.Expr, scope: Scope) -> Value:
    length = node.args.get("length")
    given = [node.this, node.args["start"], *([] if length is None else [length])]
    return _called("substring", given, scope)


def _position(node: exp.Expr, scope: Scope) -> Value:
    given = [node.args["substr"], node.this]
    start = node.args.get("position")
    return _called("locate", [*given, *([] if start is None else [start])], scope)


def _extract(node: exp.Expr, scope: Scope) -> Value:
    return parts.field_of(node.this.name, translate(node.expression, scope), scope)


_NODES: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Value]] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Literal: lambda node, _scope: literal(node),  # pyright: ignore[reportArgumentType]
    exp.Boolean: lambda node, _scope: constant(bool(node.this)),
    exp.Null: lambda _node, _scope: null(),
    exp.Paren: lambda node, scope: translate(node.this, scope),
    exp.Anonymous: _call,
    exp.CurrentDate: lambda _node, scope: times.current_date(scope),
    exp.CurrentTimestamp: lambda _node, scope: constant(scope.now),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Add: _plus,
    exp.Sub: _plus,
    exp.Mul: _two(lambda left, right, scope: arithmetic("*", left, right, scope)),
    exp.Div: _two(divided),
    exp.IntDiv: _two(quotient),
    exp.Mod: _two(remainder),
    exp.Neg: lambda node, scope: negative(translate(node.this, scope), scope),
    exp.EQ: _sign("="),
    exp.NEQ: _sign("!="),
    exp.LT: _sign("<"),
    exp.LTE: _sign("<="),
    exp.GT: _sign(">"),
    exp.GTE: _sign(">="),
    exp.NullSafeEQ: _sign("<=>"),
    exp.NullSafeNEQ: _sign("<!>"),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.RegexpLike: _regex,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: lambda node, scope: _called("array", node.expressions, scope),
    exp.DPipe: _pipes,
    exp.Concat: _concat,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Extract: _extract,
}
"""What each kind of node becomes."""
