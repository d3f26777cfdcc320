"""= < > IN BETWEEN and their kin, over values of one type."""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.coerce import to_double, to_type, to_whole
from datacoolie_core.engines.sql.convert import converted
from datacoolie_core.engines.sql.kinds import common_type, kind_of, shown
from datacoolie_core.engines.sql.values import Scope, SqlError, Value, truth
from datacoolie_core.metadata.hint_types import LogicalType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EXACT_IN_DOUBLE = 1 << 53
_ORDERED = frozenset(
    ("null", "bool", "int", "decimal", "float", "text", "binary", "date", "instant", "wall")
) | {"time", "unknown"}
_SIGNS: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": lambda one, two: one.eq_missing(two),
    "<!>": lambda one, two: one.ne_missing(two),
}


def compared(sign: str, left: Value, right: Value, scope: Scope) -> Value:
    """Return a comparison; ``<=>`` takes two nulls for equal, ``<!>`` is its opposite.

    Raises:
        SqlError: The two can't be compared.
    """
    one, two = aligned([left, right], scope)
    if sign not in ("=", "!=", "<=>", "<!>") and kind_of(one.dtype) not in _ORDERED:
        raise SqlError(f"values of type {shown(one.dtype)} have no order")
    return truth(_SIGNS[sign](one.expr, two.expr))


def aligned(values: Sequence[Value], scope: Scope) -> list[Value]:
    """Return values to be compared, all in one type.

    A text beside a date, time or truth is read as one, and beside a number as a number.

    Raises:
        SqlError: They have no type in common.
    """
    common = common_type(value.dtype for value in values)
    if common is None:
        return _with_texts(values, scope)
    if kind_of(common) == "null":
        common = pl.Boolean()
    if _beside_constants(values, common):
        return list(values)
    return [to_type(value, common, scope) for value in values]


def _beside_constants(values: Sequence[Value], common: pl.DataType) -> bool:
    """Whether the engine compares a column with constants as it is, which statistics help."""
    exact = kind_of(common) in ("int", "decimal")
    return exact and sum(not value.is_constant for value in values) == 1


def _with_texts(values: Sequence[Value], scope: Scope) -> list[Value]:
    others = [value for value in values if kind_of(value.dtype) not in ("text", "null")]
    common = common_type(value.dtype for value in others)
    kind = None if common is None else kind_of(common)
    if kind in ("date", "instant", "wall"):
        return [to_type(value, _with_time(values, common), scope) for value in values]
    if kind == "bool":
        bools = LogicalType("bool")
        return [converted(value, bools, scope, strict=True) for value in values]
    if kind in ("int", "decimal", "float"):
        return [_number(value, others, scope) for value in values]
    kinds = " and ".join(dict.fromkeys(shown(value.dtype) for value in values))
    raise SqlError(f"{kinds} can't be compared", "Write a CAST around one of them.")


def _with_time(values: Sequence[Value], common: pl.DataType | None) -> pl.DataType:
    """Return the type for dates beside texts: a text with a time of day is not cut to a date."""
    texts = [value.constant for value in values if isinstance(value.constant, str)]
    timed = any(len(text.strip()) > len("2024-01-01") for text in texts)
    if common is None or (kind_of(common) == "date" and timed):
        return pl.Datetime("us", "UTC")
    return common


def _number(value: Value, others: Sequence[Value], scope: Scope) -> Value:
    small = all(
        isinstance(other.constant, int | Decimal) and abs(other.constant) < _EXACT_IN_DOUBLE
        for other in others
    )
    whole = all(kind_of(other.dtype) == "int" for other in others)
    if whole and not small:
        return to_whole(value, scope)
    return to_double(value, scope)


def among(value: Value, choices: Sequence[Value], scope: Scope) -> Value:
    """Return ``value IN (choices)``: null where it is none of them and one of them is null."""
    known = [choice for choice in choices if kind_of(choice.dtype) != "null"]
    if not known:
        return truth(pl.lit(None, dtype=pl.Boolean))
    first, *others = aligned([value, *known], scope)
    plain = [other.constant for other in others if type(other.constant) in (str, int)]
    if len(plain) == len(others) and first.dtype in (pl.String(), pl.Int32(), pl.Int64()):
        found = first.expr.is_in(plain)
    else:
        found = pl.any_horizontal([first.expr == other.expr for other in others])
    if len(known) < len(choices):
        found = pl.when(found).then(pl.lit(value=True))
    return truth(found)


def between(value: Value, low: Value, high: Value, scope: Scope) -> Value:
    """Return ``value BETWEEN low AND high``, both included."""
    above = compared(">=", value, low, scope)
    return truth(above.expr & compared("<=", value, high, scope).expr)
