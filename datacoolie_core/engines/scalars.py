"""Values that metadata gives, as values of a column's type."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression
from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.metadata.hint_types import LogicalType

if TYPE_CHECKING:
    from datacoolie_core.metadata.hint_type_names import Kind

Scalar = str | int | float | bool
_REFUSALS = (ArithmeticError, TypeError, ValueError, pl.exceptions.PolarsError)


def scalar_literal(value: Scalar, dtype: pl.DataType) -> pl.Expr:
    """Return a value as a literal of a column's type.

    Text stays text: only a column of dates, times or decimals reads its values from text. A column
    of text takes numbers as they are written. A column that is all null takes the value's own type.

    Args:
        value: As the metadata has it.
        dtype: The column's type.

    Raises:
        ValueError: The type has no such value.
    """
    if dtype == pl.Null:
        return pl.lit(value)
    if dtype == pl.String:
        return pl.lit(_text(value), dtype=pl.String)
    if dtype == pl.Boolean:
        if not isinstance(value, bool):
            raise ValueError(_said(value, dtype))
        return pl.lit(value)
    try:
        return pl.lit(_typed(value, dtype), dtype=dtype)
    except _REFUSALS:
        raise ValueError(_said(value, dtype)) from None


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _said(value: Scalar, dtype: pl.DataType) -> str:
    return f"{value!r} is no value of type {dtype}"


def _typed(value: Scalar, dtype: pl.DataType) -> object:
    if isinstance(value, bool):
        raise TypeError
    if dtype.is_decimal():
        return _decimal(Decimal(str(value)), dtype)
    if dtype.is_numeric() and not isinstance(value, str):
        return _number(value, dtype)
    if dtype.is_temporal() and isinstance(value, str):
        return _moment(value, dtype)
    raise TypeError


def _number(value: float, dtype: pl.DataType) -> float:
    whole = int(value) if dtype.is_integer() else value
    if whole != value:
        raise TypeError
    return pl.Series([whole], dtype=dtype, strict=True).item()


def _decimal(value: Decimal, dtype: pl.DataType) -> Decimal:
    # from text, which the engine refuses where it would panic over a number
    if pl.Series([f"{value:f}"]).cast(dtype).item() != value:
        raise TypeError
    return value


def _moment(text: str, dtype: pl.DataType) -> object:
    if is_one_of(dtype, pl.Duration):
        raise TypeError
    kind: Kind = "time" if dtype == pl.Time else "date"
    if isinstance(dtype, pl.Datetime):
        kind = "timestamp" if dtype.time_zone else "timestamp_ntz"
    read = cast_expression(Cast("value", LogicalType(kind)), pl.String())
    return pl.DataFrame({"value": [text]}).select(read.cast(dtype)).item()
