"""CASE, IF, COALESCE: the first of some values, all in one type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.coerce import to_truth, to_type
from datacoolie_core.engines.sql.compare import compared
from datacoolie_core.engines.sql.kinds import common_type, kind_of, shown
from datacoolie_core.engines.sql.literals import null
from datacoolie_core.engines.sql.values import Call, Handler, Scope, SqlError, Value, truth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot import exp

    Translate = Callable[[exp.Expr, Scope], Value]


def unified(values: Sequence[Value], scope: Scope, what: str) -> list[Value]:
    """Return the values that something may give, all in one type.

    A constant text beside dates or times is read as one.

    Raises:
        SqlError: They have no type in common.
    """
    common = common_type(value.dtype for value in values) or _time_beside_texts(values)
    if common is None:
        kinds = " and ".join(dict.fromkeys(shown(value.dtype) for value in values))
        raise SqlError(
            f"{what} gives {kinds}, which have no type in common",
            "Write a CAST around one of them.",
        )
    return [to_type(value, common, scope) for value in values]


def _time_beside_texts(values: Sequence[Value]) -> pl.DataType | None:
    found = common_type(value.dtype for value in values if not isinstance(value.constant, str))
    return found if found is not None and kind_of(found) in ("date", "instant", "wall") else None


def case(
    scope: Scope,
    translate: Translate,
    branches: Sequence[tuple[exp.Expr, exp.Expr]],
    default: exp.Expr | None,
    subject: exp.Expr | None = None,
) -> Value:
    """Return the value of the first branch whose condition holds; no other one is needed.

    Args:
        scope: Where it stands.
        translate: Gives what a part is worth.
        branches: Condition (or value of the subject) and result.
        default: What it is where none holds; None is NULL.
        subject: What the branches' values are compared with.
    """
    reached, holds, values = scope, list[pl.Expr](), list[Value]()
    whose = None if subject is None else translate(subject, scope)
    for condition, result in branches:
        given = translate(condition, reached)
        chosen = given if whose is None else compared("=", whose, given, reached)
        test = to_truth(chosen, reached).expr.fill_null(value=False)
        holds.append(test)
        values.append(translate(result, reached.under(test)))
        reached = reached.under(~test)
    values.append(null() if default is None else translate(default, reached))
    *results, other = unified(values, scope, "CASE")
    found = other.expr
    for test, result in zip(reversed(holds), reversed(results), strict=True):
        found = pl.when(test).then(result.expr).otherwise(found)
    return Value(found, other.dtype)


def _if(call: Call) -> Value:
    branch = [(call.nodes[0], call.nodes[1])]
    return case(call.scope, call.translate, branch, call.nodes[2])


def _coalesce(call: Call) -> Value:
    values, scope = list[Value](), call.scope
    for index in range(len(call)):
        value = call.value(index, scope)
        values.append(value)
        scope = scope.under(value.expr.is_null())
    known = unified(values, call.scope, call.name)
    if known[0].is_constant and known[0].constant is not None:
        return known[0]
    return Value(pl.coalesce(value.expr for value in known), known[0].dtype)


def _nvl2(call: Call) -> Value:
    given = call.value(0).expr.is_not_null()
    then = call.value(1, call.scope.under(given))
    other = call.value(2, call.scope.under(~given))
    one, two = unified([then, other], call.scope, call.name)
    return Value(pl.when(given).then(one.expr).otherwise(two.expr), one.dtype)


def _nullif(call: Call) -> Value:
    value = call.value(0)
    same = compared("=", value, call.value(1), call.scope).expr.fill_null(value=False)
    return Value(pl.when(~same).then(value.expr), value.dtype)


def _nullifzero(call: Call) -> Value:
    value = call.value(0)
    return Value(pl.when(value.expr != 0).then(value.expr), value.dtype)


def _zeroifnull(call: Call) -> Value:
    value = call.value(0)
    if kind_of(value.dtype) == "null":
        return Value(pl.lit(0, dtype=pl.Int32), pl.Int32(), 0)
    return Value(value.expr.fill_null(0).cast(value.dtype), value.dtype)


def _not(call: Call) -> Value:
    return truth(~to_truth(call.value(0), call.scope).expr)


FUNCTIONS: dict[str, Handler] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "nullifzero": _nullifzero,
    "zeroifnull": _zeroifnull,
    "if": _if,
    "isnull": lambda call: truth(call.value(0).expr.is_null()),
    "isnotnull": lambda call: truth(call.value(0).expr.is_not_null()),
    "equal_null": lambda call: compared("<=>", call.value(0), call.value(1), call.scope),
    "not": _not,
}
