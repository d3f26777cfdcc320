"""Functions on numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.arithmetic import (
    arithmetic,
    divided,
    negative,
    quotient,
    remainder,
)
from datacoolie_core.engines.sql.branches import unified
from datacoolie_core.engines.sql.coerce import cast, checked_cast, to_double, to_number, to_type
from datacoolie_core.engines.sql.convert import converted
from datacoolie_core.engines.sql.kinds import as_decimal, decimal, kind_of, shown, signed
from datacoolie_core.engines.sql.literals import constant
from datacoolie_core.engines.sql.values import Call, Handler, SqlError, Value, int32, truth
from datacoolie_core.metadata.hint_types import parse_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Mode = Literal["half_to_even", "half_away_from_zero"]

_MOST_DIGITS = 18
_LONG = pl.Int64()


def _number(call: Call, index: int = 0) -> Value:
    value = to_number(call.value(index), call.scope)
    wanted = signed(value.dtype)
    return to_type(value, wanted, call.scope)


def _double(call: Call, index: int = 0) -> pl.Expr:
    return to_double(call.value(index), call.scope).expr


def _real(make: Callable[[pl.Expr], pl.Expr]) -> Handler:
    return lambda call: Value(make(_double(call)), pl.Float64())


def _abs(call: Call) -> Value:
    value = _number(call)
    return Value(value.expr.abs(), value.dtype)


def _rounded(mode: Mode) -> Handler:
    def handler(call: Call) -> Value:
        value = _number(call)
        digits = call.constant(1, int, "the digits") if len(call) > 1 else 0
        kind = kind_of(value.dtype)
        if kind == "float":
            return Value(_round_double(value.expr, digits, mode).cast(value.dtype), value.dtype)
        if kind == "int":
            return _round_whole(value, digits, mode)
        return _round_decimal(value, digits, mode)

    return handler


def _round_double(expr: pl.Expr, digits: int, mode: Mode) -> pl.Expr:
    """Round what the number shows, 2.675 and not 2.67499…, as Spark does."""
    plain = expr.cast(pl.Float64)
    if digits < 0:
        step = 10.0**-digits
        return (plain / step).round(0, mode=mode) * step
    exact = plain.cast(pl.String).cast(pl.Decimal(38, _MOST_DIGITS), strict=False)
    shown_digits = exact.round(min(digits, _MOST_DIGITS), mode=mode).cast(pl.Float64)
    return pl.coalesce(shown_digits, plain)


def _round_whole(value: Value, digits: int, mode: Mode) -> Value:
    if digits >= 0:
        return value
    step = 10**-digits
    if -digits > _MOST_DIGITS:
        return Value(value.expr * 0, value.dtype)
    wide = value.expr.cast(pl.Decimal(38, 0)) / pl.lit(Decimal(step), dtype=pl.Decimal(38, 1))
    rounded = wide.round(0, mode=mode).cast(pl.Decimal(38, 0)) * pl.lit(step, dtype=pl.Int64)
    return Value(checked_cast(rounded, value.dtype, value.root), value.dtype)


def _round_decimal(value: Value, digits: int, mode: Mode) -> Value:
    precision, scale = as_decimal(value.dtype)
    if digits < 0:
        raise SqlError("round: a decimal can't be rounded before its point", "Write a CAST first.")
    kept = min(digits, scale)
    wanted = decimal(precision - scale + kept + 1, kept)
    return Value(value.expr.round(kept, mode=mode).cast(wanted), wanted)


def _whole_near(make: Callable[[pl.Expr], pl.Expr]) -> Handler:
    def handler(call: Call) -> Value:
        value = _number(call)
        kind = kind_of(value.dtype)
        if kind == "int":
            return to_type(value, _LONG, call.scope)
        near = make(value.expr)
        if kind != "decimal":
            return Value(cast(Value(near, value.dtype), _LONG, call.scope), _LONG)
        precision, scale = as_decimal(value.dtype)
        wanted = decimal(precision - scale + 1, 0)
        return Value(near.cast(wanted), wanted)

    return handler


def _log(call: Call) -> Value:
    if len(call) == 1:
        return Value(_logarithm(_double(call)), pl.Float64())
    return Value(_logarithm(_double(call, 1)) / _logarithm(_double(call)), pl.Float64())


def _logarithm(expr: pl.Expr) -> pl.Expr:
    return pl.when(expr > 0).then(expr.log())


def _near_whole(expr: pl.Expr) -> pl.Expr:
    """Return a logarithm, the exact number where the power is one."""
    whole = expr.round(0)
    return pl.when((expr - whole).abs() < 1e-12).then(whole).otherwise(expr)


def _extreme(call: Call) -> Value:
    values = unified(call.values(), call.scope, call.name)
    expressions = [value.expr for value in values]
    greatest = call.name == "greatest"
    found = pl.max_horizontal(expressions) if greatest else pl.min_horizontal(expressions)
    if kind_of(values[0].dtype) == "float" and greatest:
        # NaN is above all numbers
        some_nan = pl.any_horizontal([one.is_nan().fill_null(value=False) for one in expressions])
        found = pl.when(some_nan).then(pl.lit(math.nan)).otherwise(found)
    return Value(found.cast(values[0].dtype), values[0].dtype)


def _isnan(call: Call) -> Value:
    return truth(_double(call).is_nan().fill_null(value=False))


def _nanvl(call: Call) -> Value:
    value, other = _double(call), _double(call, 1)
    return Value(pl.when(value.is_nan()).then(other).otherwise(value), pl.Float64())


def _bit_count(call: Call) -> Value:
    value = _number(call)
    if kind_of(value.dtype) != "int":
        raise SqlError(f"bit_count: a value of type {shown(value.dtype)} is no whole number")
    return int32(value.expr.cast(_LONG).bitwise_count_ones())


def _cast(call: Call) -> Value:
    return converted(call.value(0), parse_type(call.name), call.scope, strict=True)


def _two(apply: Callable[..., Value], **given: bool) -> Handler:
    return lambda call: apply(call.value(0), call.value(1), call.scope, **given)


_CASTS = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string"]

FUNCTIONS: dict[str, Handler] = {
    **dict.fromkeys(_CASTS, _cast),
    "abs": _abs,
    "sign": _real(lambda expr: expr.sign()),
    "negative": lambda call: negative(call.value(0), call.scope),
    "positive": lambda call: arithmetic("+", constant(0), call.value(0), call.scope),
    "round": _rounded("half_away_from_zero"),
    "bround": _rounded("half_to_even"),
    "floor": _whole_near(lambda expr: expr.floor()),
    "ceil": _whole_near(lambda expr: expr.ceil()),
    "mod": _two(remainder),
    "pmod": _two(remainder, positive=True),
    "div": _two(quotient),
    "try_divide": _two(divided, strict=False),
    "pow": lambda call: Value(_double(call).pow(_double(call, 1)), pl.Float64()),
    "sqrt": _real(lambda expr: expr.sqrt()),
    "cbrt": _real(lambda expr: expr.cbrt()),
    "exp": _real(lambda expr: expr.exp()),
    "ln": _real(_logarithm),
    "log": _log,
    "log10": _real(lambda expr: pl.when(expr > 0).then(_near_whole(expr.log(10)))),
    "log2": _real(lambda expr: pl.when(expr > 0).then(_near_whole(expr.log(2)))),
    "log1p": _real(lambda expr: pl.when(expr > -1).then(expr.log1p())),
    "sin": _real(lambda expr: expr.sin()),
    "cos": _real(lambda expr: expr.cos()),
    "tan": _real(lambda expr: expr.tan()),
    "cot": _real(lambda expr: expr.cot()),
    "asin": _real(lambda expr: expr.arcsin()),
    "acos": _real(lambda expr: expr.arccos()),
    "atan": _real(lambda expr: expr.arctan()),
    "atan2": lambda call: Value(pl.arctan2(_double(call), _double(call, 1)), pl.Float64()),
    "degrees": _real(lambda expr: expr.degrees()),
    "radians": _real(lambda expr: expr.radians()),
    "pi": lambda _call: constant(math.pi),
    "e": lambda _call: constant(math.e),
    "greatest": _extreme,
    "least": _extreme,
    "isnan": _isnan,
    "nanvl": _nanvl,
    "bit_count": _bit_count,
}
