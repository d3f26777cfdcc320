"""Values that are the same for all rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.moments import instant_literal
from datacoolie_core.engines.sql.kinds import INSTANT, MAX_PRECISION, WALL
from datacoolie_core.engines.sql.values import SqlError, Value

if TYPE_CHECKING:
    from sqlglot import exp

_INT_BITS = 31
_LONG_BITS = 63


def null() -> Value:
    """Return NULL."""
    return Value(pl.lit(None), pl.Null(), None)


def literal(node: exp.Literal) -> Value:
    """Return a text or a number as the metadata writes it."""
    written = node.name
    if node.is_string:
        return constant(written)
    if "e" in written.lower():
        return constant(float(written))
    return constant(Decimal(written) if "." in written else int(written))


def constant(value: Any) -> Value:
    """Return a value of Python's; its type is the smallest that Spark would give it.

    Raises:
        SqlError: A number with more digits than a type has.
    """
    if value is None:
        return null()
    if isinstance(value, bool):
        return Value(pl.lit(value), pl.Boolean(), value)
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float):
        return Value(pl.lit(value, dtype=pl.Float64), pl.Float64(), value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return Value(pl.lit(value, dtype=pl.Date), pl.Date(), value)
    return Value(pl.lit(value, dtype=pl.String), pl.String(), value)


def _whole(value: int) -> Value:
    size = value.bit_length() if value >= 0 else (-value - 1).bit_length()
    if size > _LONG_BITS:
        return _decimal(Decimal(value))
    dtype = pl.Int32() if size <= _INT_BITS else pl.Int64()
    return Value(pl.lit(value, dtype=dtype), dtype, value)


def _decimal(value: Decimal) -> Value:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > MAX_PRECISION:
        raise SqlError(f"the number {value} has more than {MAX_PRECISION} digits")
    dtype = pl.Decimal(precision, scale)
    return Value(pl.lit(value, dtype=dtype), dtype, value)


def _moment(value: datetime) -> Value:
    if value.tzinfo is None:
        wall = instant_literal(value.replace(tzinfo=UTC)).dt.replace_time_zone(None)
        return Value(wall, WALL, value)
    return Value(instant_literal(value.astimezone(UTC)), INSTANT, value)
