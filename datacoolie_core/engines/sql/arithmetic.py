"""+ - * / % and DIV: exact, or an error; the types are those of Spark."""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue, Trouble
from datacoolie_core.engines.dtypes import bits
from datacoolie_core.engines.sql.coerce import checked_cast, to_double, to_number
from datacoolie_core.engines.sql.convert import halves_up
from datacoolie_core.engines.sql.kinds import (
    MAX_PRECISION,
    as_decimal,
    common_number,
    decimal,
    kind_of,
    shown,
    signed,
)
from datacoolie_core.engines.sql.literals import constant
from datacoolie_core.engines.sql.values import Scope, SqlError, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST_SCALE = 6
_LONG = 64
_PLAIN: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_TOO_LARGE = "a result is too large for its type; CAST a side of it to a wider one"
_BY_ZERO = "division by zero; NULLIF(divisor, 0) gives null instead"


def arithmetic(sign: str, left: Value, right: Value, scope: Scope) -> Value:
    """Return ``left sign right`` for one of ``+ - *``.

    Raises:
        SqlError: One of them is no number.
    """
    one, two = _numbers(sign, left, right, scope)
    kinds = {kind_of(one.dtype), kind_of(two.dtype)}
    apply = _PLAIN[sign]
    if "unknown" in kinds:
        return Value(apply(one.expr, two.expr), pl.Unknown())
    if "float" in kinds:
        wanted = common_number([one.dtype, two.dtype])
        return Value(apply(_as(one, wanted), _as(two, wanted)), wanted)
    if kinds == {"int"}:
        return _whole(apply, one, two, scope)
    return _decimals(sign, one, two, scope)


def negative(value: Value, scope: Scope) -> Value:
    """Return a number with the other sign."""
    if isinstance(value.constant, int | float | Decimal) and not isinstance(value.constant, bool):
        return constant(-value.constant)
    if kind_of(value.dtype) in ("decimal", "float"):
        return Value(-value.expr, value.dtype)
    return arithmetic("-", constant(0), value, scope)


def divided(left: Value, right: Value, scope: Scope, *, strict: bool = True) -> Value:
    """Return ``left / right``: a decimal for decimals, else DOUBLE.

    Args:
        left: A number.
        right: A number.
        scope: The scope.
        strict: A divisor of 0 stops the load; else the quotient is null.

    Raises:
        SqlError: One of them is no number.
    """
    one, two = _numbers("/", left, right, scope)
    divisor = _divisor(one, two, scope, strict=strict)
    kinds = {kind_of(one.dtype), kind_of(two.dtype)}
    if "decimal" not in kinds or "float" in kinds:
        below = to_double(Value(divisor, two.dtype), scope).expr
        return Value(to_double(one, scope).expr / below, pl.Float64())
    (p1, s1), (p2, s2) = _size(one, two), _size(two, one)
    wanted = decimal(p1 - s1 + s2 + max(_LEAST_SCALE, s1 + p2 + 1), max(_LEAST_SCALE, s1 + p2 + 1))
    # one digit more than is wanted, so that the engine's own rounding has no say
    digits = min(wanted.scale + 1, MAX_PRECISION - p1 + s1)
    above = one.expr.cast(pl.Decimal(MAX_PRECISION, max(digits, s1)))
    below = divisor.cast(pl.Decimal(MAX_PRECISION, s2))
    found = halves_up(above / below, max(digits, s1, s2), wanted.scale)
    return Value(_fitted(found, wanted, one, two), wanted)


def remainder(left: Value, right: Value, scope: Scope, *, positive: bool = False) -> Value:
    """Return ``left % right``, which has the sign of ``left``; or the one that is not negative."""
    one, two = _numbers("%", left, right, scope)
    divisor = _divisor(one, two, scope)
    wanted = common_number([one.dtype, two.dtype])
    above, below = _as(one, wanted), divisor.cast(wanted)
    if wanted.is_integer() and bits(wanted) < _LONG:
        above, below = above.cast(pl.Int64), below.cast(pl.Int64)
    rest = above.abs() % below.abs()
    signed_rest = pl.when(above < 0).then(-rest).otherwise(rest)
    if positive:
        signed_rest = pl.when(signed_rest < 0).then(signed_rest + below).otherwise(signed_rest)
    if wanted.is_decimal():
        (p1, s1), (p2, s2) = _size(one, two), _size(two, one)
        wanted = decimal(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))
    return Value(signed_rest.cast(wanted), wanted)


def quotient(left: Value, right: Value, scope: Scope) -> Value:
    """Return ``left DIV right``: the whole part, as BIGINT."""
    one, two = _numbers("DIV", left, right, scope)
    divisor = _divisor(one, two, scope)
    wanted = common_number([one.dtype, two.dtype])
    if wanted.is_integer():
        wanted = pl.Int64()
    elif wanted.is_decimal():
        wanted = pl.Decimal(MAX_PRECISION, as_decimal(wanted)[1])
    above, below = _as(one, wanted), divisor.cast(wanted)
    whole = above.truncdiv(below) if wanted.is_integer() else _truncated(above, below)
    return Value(whole.cast(pl.Int64), pl.Int64())


def _truncated(above: pl.Expr, below: pl.Expr) -> pl.Expr:
    size = above.abs().floordiv(below.abs())
    return pl.when((above < 0) != (below < 0)).then(-size).otherwise(size)


def _numbers(sign: str, left: Value, right: Value, scope: Scope) -> tuple[Value, Value]:
    try:
        one, two = to_number(left, scope), to_number(right, scope)
    except SqlError as error:
        kinds = f"{shown(left.dtype)} {sign} {shown(right.dtype)}"
        raise SqlError(f"{kinds}: {error}") from error
    return _same_sign(one), _same_sign(two)


def _same_sign(value: Value) -> Value:
    wanted = signed(value.dtype)
    if wanted == value.dtype:
        return value
    return Value(value.expr.cast(wanted), wanted, value.constant)


def _as(value: Value, wanted: pl.DataType) -> pl.Expr:
    if wanted.is_float() and isinstance(value.constant, int | Decimal):
        return pl.lit(float(value.constant), dtype=wanted)
    return value.expr if value.dtype == wanted else value.expr.cast(wanted)


def _whole(
    apply: Callable[[pl.Expr, pl.Expr], pl.Expr], one: Value, two: Value, scope: Scope
) -> Value:
    wanted = common_number([one.dtype, two.dtype])
    # the engine lets whole numbers overflow; the cast back refuses what went beyond
    roomy = pl.Int64() if bits(wanted) < _LONG else pl.Int128()
    found = apply(scope.guarded(one.expr).cast(roomy), two.expr.cast(roomy))
    return Value(_fitted(found, wanted, one, two), wanted)


def _fitted(found: pl.Expr, wanted: pl.DataType, one: Value, two: Value) -> pl.Expr:
    column = two.root if one.is_constant else one.root
    return checked_cast(found, wanted, column, _TOO_LARGE)


def _size(value: Value, other: Value) -> tuple[int, int]:
    """Return precision and scale; a constant beside a decimal needs its own digits only."""
    if isinstance(value.constant, int) and kind_of(other.dtype) == "decimal":
        return len(str(abs(value.constant))), 0
    return as_decimal(value.dtype)


def _decimals(sign: str, one: Value, two: Value, scope: Scope) -> Value:
    (p1, s1), (p2, s2) = _size(one, two), _size(two, one)
    if sign == "*":
        exact, wanted = s1 + s2, decimal(p1 + p2 + 1, s1 + s2)
    else:
        exact = max(s1, s2)
        wanted = decimal(max(p1 - s1, p2 - s2) + exact + 1, exact)
    working = min(exact, MAX_PRECISION - max(p1 - s1, p2 - s2))
    above = scope.guarded(one.expr).cast(pl.Decimal(MAX_PRECISION, max(working, s1)))
    below = two.expr.cast(pl.Decimal(MAX_PRECISION, s2))
    found = halves_up(_PLAIN[sign](above, below), max(working, s1, s2), wanted.scale)
    return Value(_fitted(found, wanted, one, two), wanted)


def _divisor(one: Value, two: Value, scope: Scope, *, strict: bool = True) -> pl.Expr:
    """Return a divisor that is never 0: where it is, the load stops, or it is null."""
    if two.is_constant and two.constant:
        return two.expr
    if not strict:
        return pl.when(two.expr != 0).then(two.expr)
    column = two.root
    if kind_of(two.dtype) == "unknown":
        return two.expr

    def checked(series: pl.Series) -> pl.Series:
        if (series == 0).any():
            raise BadValue.of(Trouble(column, "0", "divisor", _BY_ZERO))
        return series

    needed = pl.when(one.expr.is_not_null()).then(scope.guarded(two.expr))
    return needed.map_batches(checked, return_dtype=two.dtype, is_elementwise=True)
