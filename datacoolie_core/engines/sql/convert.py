"""CAST and TRY_CAST: by the rules of Spark's ANSI mode."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.casts import engine_type
from datacoolie_core.engines.sql.coerce import cast, local, to_double, to_moment, to_text, tolerant
from datacoolie_core.engines.sql.kinds import INSTANT, MAX_PRECISION, as_decimal, kind_of, shown
from datacoolie_core.engines.sql.render import moment, rendered
from datacoolie_core.engines.sql.values import Scope, SqlError, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.metadata.hint_types import LogicalType

YES = ("true", "t", "yes", "y", "1")
NO = ("false", "f", "no", "n", "0")
_GUARD_DIGITS = 10
_SECOND = 1_000_000
_MOMENTS = {"date": "date", "timestamp": "instant", "timestamp_ntz": "wall"}


def converted(value: Value, target: LogicalType, scope: Scope, *, strict: bool) -> Value:
    """Return a value in another type.

    Args:
        value: The value.
        target: The type.
        scope: Rows that don't need the value can't make it fail; and the zone.
        strict: What can't be converted stops the load (CAST); else it becomes null (TRY_CAST).

    Raises:
        SqlError: There is no way from one type to the other.
    """
    wanted = engine_type(target)
    kind = kind_of(value.dtype)
    if kind in ("null", "unknown"):
        constant_null = None if kind == "null" else value.constant
        return Value(value.expr.cast(wanted, strict=strict), wanted, constant_null)
    if value.dtype == wanted:
        return value
    if target.kind in _MOMENTS:
        return _moment(value, _MOMENTS[target.kind], scope, strict=strict)
    way = _WAYS.get(kind_of(wanted))
    expr = None if way is None else way(value, wanted, scope, strict)
    if expr is None:
        raise SqlError(f"a value of type {shown(value.dtype)} can't become {shown(wanted)}")
    return _folded(value, Value(expr, wanted))


def _folded(before: Value, after: Value) -> Value:
    """Return the cast of a constant number as a constant, so that it may stand for an argument."""
    exact = isinstance(before.constant, int | Decimal) and after.dtype.is_integer()
    if not exact or isinstance(before.constant, bool):
        return after
    return Value(after.expr, after.dtype, int(before.constant))


def _moment(value: Value, kind: str, scope: Scope, *, strict: bool) -> Value:
    if kind == "instant" and kind_of(value.dtype) in ("int", "decimal", "float"):
        micros = Value(value.expr.cast(pl.Decimal(38, 6)) * _SECOND, pl.Decimal(38, 6))
        return Value(cast(micros, pl.Int64(), scope, strict=strict).cast(INSTANT), INSTANT)
    return to_moment(value, kind, scope, strict=strict)


def _to_text(value: Value, _wanted: pl.DataType, scope: Scope, strict: bool) -> pl.Expr:
    del strict
    kind = kind_of(value.dtype)
    if kind == "instant":
        return moment(local(value, scope))
    return to_text(value).expr if value.is_constant else rendered(value.expr, value.dtype)


def _to_binary(value: Value, wanted: pl.DataType, _scope: Scope, _strict: bool) -> pl.Expr | None:
    return value.expr.cast(pl.String).cast(wanted) if kind_of(value.dtype) == "text" else None


def _to_truth(value: Value, _wanted: pl.DataType, scope: Scope, strict: bool) -> pl.Expr | None:
    kind = kind_of(value.dtype)
    if kind in ("int", "decimal", "float"):
        return value.expr != 0
    if kind != "text":
        return None
    column = value.root

    def truth(series: pl.Series) -> pl.Series:
        texts = series.cast(pl.String).str.strip_chars().str.to_lowercase()
        yes, no = texts.is_in(YES), texts.is_in(NO)
        BadValue.check(column, series, ~(yes | no), "bool")
        known = pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(yes))
        return yes.zip_with(yes | no, known)

    guarded, convert = scope.guarded(value.expr), truth if strict else tolerant(truth)
    return guarded.map_batches(convert, return_dtype=pl.Boolean, is_elementwise=True)


def _to_int(value: Value, wanted: pl.DataType, scope: Scope, strict: bool) -> pl.Expr | None:
    kind = kind_of(value.dtype)
    given = value.expr
    if kind == "text":
        given = given.cast(pl.String).str.strip_chars()
    elif kind == "instant":
        given = given.cast(INSTANT).cast(pl.Int64).floordiv(_SECOND)
    elif kind == "decimal":
        given = given.cast(pl.Decimal(38, as_decimal(value.dtype)[1])).truncate()
    elif kind == "bool":
        return given.cast(wanted)
    elif kind not in ("int", "float"):
        return None
    return cast(Value(given, value.dtype), wanted, scope, strict=strict)


def _to_float(value: Value, wanted: pl.DataType, scope: Scope, strict: bool) -> pl.Expr | None:
    kind = kind_of(value.dtype)
    if kind == "bool":
        return value.expr.cast(wanted)
    if kind == "instant":
        return (value.expr.cast(INSTANT).cast(pl.Int64) / _SECOND).cast(wanted)
    if kind not in ("text", "int", "decimal", "float"):
        return None
    return to_double(value, scope, strict=strict).expr.cast(wanted)


def _to_decimal(value: Value, wanted: pl.DataType, scope: Scope, strict: bool) -> pl.Expr | None:
    kind = kind_of(value.dtype)
    if kind not in ("text", "int", "decimal", "float", "bool"):
        return None
    precision, scale = as_decimal(wanted)
    if kind in ("bool", "int"):
        given = value.expr.cast(pl.Int64)
    elif kind == "decimal":
        given = halves_up(value.expr, as_decimal(value.dtype)[1], scale)
    else:
        # the engine reads a decimal from text with its halves going to even, so more digits first
        digits = min(scale + _GUARD_DIGITS, MAX_PRECISION - precision + scale)
        texts = Value(value.expr.cast(pl.String).str.strip_chars(), pl.String())
        fine = cast(texts, pl.Decimal(MAX_PRECISION, digits), scope, strict=strict)
        given = halves_up(fine, digits, scale)
    return cast(Value(given, wanted), wanted, scope, strict=strict)


def halves_up(expr: pl.Expr, own: int, scale: int) -> pl.Expr:
    """Return a decimal with fewer digits after the point, its halves rounded away from zero.

    Args:
        expr: The decimal.
        own: How many digits it has.
        scale: How many it shall have.
    """
    return expr if own <= scale else expr.round(scale, mode="half_away_from_zero")


_WAYS: dict[str, Callable[[Value, pl.DataType, Scope, bool], pl.Expr | None]] = {
    "text": _to_text,
    "binary": _to_binary,
    "bool": _to_truth,
    "int": _to_int,
    "float": _to_float,
    "decimal": _to_decimal,
}
