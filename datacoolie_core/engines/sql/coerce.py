"""A value in the type that its place needs, where SQL converts without being told."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue, noting
from datacoolie_core.engines.moments import date_of, instant_of, wall_clock_of
from datacoolie_core.engines.sql.kinds import INSTANT, WALL, kind_of, shown
from datacoolie_core.engines.sql.literals import constant, null
from datacoolie_core.engines.sql.render import rendered
from datacoolie_core.engines.sql.values import Scope, SqlError, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.engines.moments import Convert

_MAKERS: dict[str, Callable[..., Convert]] = {
    "date": date_of,
    "instant": instant_of,
    "wall": wall_clock_of,
}
_TYPES: dict[str, pl.DataType] = {"date": pl.Date(), "instant": INSTANT, "wall": WALL}


def to_text(value: Value) -> Value:
    """Return a value as text, in the form that Spark gives it.

    Raises:
        SqlError: It is a list or struct.
    """
    if value.is_constant and value.constant is None:
        return Value(value.expr.cast(pl.String), pl.String(), None)
    if isinstance(value.constant, str):
        return value
    return Value(rendered(value.expr, value.dtype), pl.String())


def to_moment(
    value: Value,
    kind: str,
    scope: Scope,
    *,
    pattern: str | None = None,
    strict: bool = True,
) -> Value:
    """Return a value as a ``date``, an ``instant`` or a ``wall`` clock time.

    Args:
        value: A text, date or timestamp.
        kind: What to make of it.
        scope: The zone is that of values without one.
        pattern: The ``%`` pattern of a text; None is ISO 8601.
        strict: A text that is none stops the load; else it becomes null.

    Raises:
        SqlError: The value is of another type, or a constant that can't be converted.
    """
    own, target = kind_of(value.dtype), _TYPES[kind]
    if own in ("null", "unknown"):
        return Value(value.expr.cast(target), target)
    if own not in ("text", "date", "instant", "wall"):
        raise SqlError(f"a value of type {shown(value.dtype)} is no {shown(target)}")
    if own == kind and value.dtype == target:
        return value
    convert = _MAKERS[kind](value.root, pattern, scope.zone)
    if not strict:
        convert = tolerant(convert)
    if value.is_constant:
        return _constant_moment(value, convert, target)
    plain = _plain_moment(value, kind, own, scope)
    if plain is not None:
        return Value(plain, target)
    texts = value.expr.cast(pl.String) if own == "text" else value.expr
    made = scope.guarded(texts).map_batches(convert, return_dtype=target, is_elementwise=True)
    return Value(made, target)


def tolerant(convert: Convert) -> Convert:
    """Return a conversion that makes null of what it would refuse."""

    def converted(series: pl.Series) -> pl.Series:
        with noting(len(series)):
            return convert(series)

    return converted


def _constant_moment(value: Value, convert: Convert, target: pl.DataType) -> Value:
    given = pl.select(value.expr.alias("literal")).to_series()
    try:
        found = convert(given)[0]
    except ValueError as error:
        trouble = BadValue.trouble(error)
        why = f": {trouble.reason}" if trouble and trouble.reason else ""
        raise SqlError(f"{value.constant!r} is no {shown(target)}{why}") from error
    return constant(found) if found is not None else Value(null().expr.cast(target), target, None)


def _plain_moment(value: Value, kind: str, own: str, scope: Scope) -> pl.Expr | None:
    """Return a conversion that can't fail, as the engine does it; None if there is none."""
    if own == "text" or (own != "instant" and kind == "instant" and scope.zone != "UTC"):
        return None
    clock = local(value, scope)
    if kind == "instant":
        whole = value.expr.dt.convert_time_zone("UTC") if own == "instant" else None
        return value.expr.cast(WALL).dt.replace_time_zone("UTC") if whole is None else whole
    return clock.cast(pl.Date if kind == "date" else WALL)


def local(value: Value, scope: Scope) -> pl.Expr:
    """Return a date or timestamp as the clock of the zone shows it."""
    if kind_of(value.dtype) != "instant":
        return value.expr
    return value.expr.dt.convert_time_zone(scope.zone).dt.replace_time_zone(None)


def cast(value: Value, wanted: pl.DataType, scope: Scope, *, strict: bool = True) -> pl.Expr:
    """Return a value in another type that may not hold it.

    Args:
        value: A text or number.
        wanted: The type.
        scope: Rows that don't need the value can't make it fail.
        strict: What the type can't hold stops the load; else it becomes null.
    """
    guarded = scope.guarded(value.expr)
    if not strict:
        return guarded.cast(wanted, strict=False)
    return checked_cast(guarded, wanted, value.root)


def checked_cast(
    expr: pl.Expr, wanted: pl.DataType, column: str, reason: str | None = None
) -> pl.Expr:
    """Return a cast that names column and value where the engine would name its own variables.

    Args:
        expr: What is cast.
        wanted: The type.
        column: The column that it is made of.
        reason: Why a value may be refused, if there is more to say.
    """

    def converted(series: pl.Series) -> pl.Series:
        found = series.cast(wanted, strict=False)
        if found.null_count() != series.null_count():
            BadValue.check(column, series, found.is_null(), shown(wanted), reason)
        return found

    return expr.map_batches(converted, return_dtype=wanted, is_elementwise=True)


def to_double(value: Value, scope: Scope, *, strict: bool = True) -> Value:
    """Return a value as DOUBLE; a text must be a number.

    Raises:
        SqlError: It is of a type that no number can be made of.
    """
    return Value(_double(value, scope, strict=strict), pl.Float64())


def _double(value: Value, scope: Scope, *, strict: bool) -> pl.Expr:
    kind = kind_of(value.dtype)
    if isinstance(value.constant, int | Decimal) and not isinstance(value.constant, bool):
        return pl.lit(float(value.constant), dtype=pl.Float64)
    if kind == "text":
        stripped = value.expr.cast(pl.String).str.strip_chars()
        return cast(Value(stripped, pl.String()), pl.Float64(), scope, strict=strict)
    if kind in ("int", "decimal", "float", "null", "unknown"):
        return value.expr.cast(pl.Float64)
    raise SqlError(f"a value of type {shown(value.dtype)} is no number")


def to_number(value: Value, scope: Scope) -> Value:
    """Return a number as it is, and a text as DOUBLE.

    Raises:
        SqlError: It is neither.
    """
    kind = kind_of(value.dtype)
    if kind in ("int", "decimal", "float", "unknown"):
        return value
    if kind == "null":
        return Value(value.expr.cast(pl.Int32), pl.Int32(), None)
    return to_double(value, scope)


def to_whole(value: Value, scope: Scope) -> Value:
    """Return a whole number as BIGINT; other numbers must be whole.

    Raises:
        SqlError: It is no number.
    """
    if isinstance(value.constant, int) and not isinstance(value.constant, bool):
        return Value(pl.lit(value.constant, dtype=pl.Int64), pl.Int64(), value.constant)
    kind = kind_of(value.dtype)
    if kind not in ("int", "null", "unknown", "text"):
        raise SqlError(f"a value of type {shown(value.dtype)} is no whole number")
    if kind != "text":
        return Value(value.expr.cast(pl.Int64), pl.Int64())
    stripped = Value(value.expr.cast(pl.String).str.strip_chars(), pl.String())
    return Value(cast(stripped, pl.Int64(), scope), pl.Int64())


def to_truth(value: Value, scope: Scope) -> Value:
    """Return a condition.

    Raises:
        SqlError: The value is neither true nor false.
    """
    if kind_of(value.dtype) in ("bool", "unknown"):
        return value
    if kind_of(value.dtype) == "null":
        return Value(value.expr.cast(pl.Boolean), pl.Boolean(), None)
    del scope
    raise SqlError(
        f"a value of type {shown(value.dtype)} stands where a condition is needed",
        "Write a condition, such as amount > 0.",
    )


def to_type(value: Value, wanted: pl.DataType, scope: Scope) -> Value:
    """Return a value in a type that it goes with (`common_type`)."""
    if value.dtype == wanted or kind_of(wanted) in ("unknown", "null"):
        return value
    kind = kind_of(wanted)
    if kind in ("date", "instant", "wall"):
        made = to_moment(value, kind, scope)
        return made if made.dtype == wanted else Value(made.expr.cast(wanted), wanted)
    if kind == "text":
        return to_text(value)
    if kind == "float" and isinstance(value.constant, int | Decimal):
        return Value(pl.lit(float(value.constant), dtype=wanted), wanted)
    return Value(value.expr.cast(wanted), wanted, value.constant)
