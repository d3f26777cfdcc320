"""Numbers as the lower end of the bucket that they lie in."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from datacoolie_core.engines.dtypes import bits

_EXACT_INTEGERS = 2.0**53
"""From here on a float has no digits after the point."""
_FEW_ULPS = 1e-15


def bucket(column: pl.Expr, dtype: pl.DataType, size: float) -> pl.Expr:
    """Return the largest multiple of a size that is not above the value, in the column's type.

    -5 is in the bucket that begins at -10. Whole numbers and decimals are exact; a float that lies
    on a multiple, but for the rounding of floats, begins that bucket. A bucket that begins below
    the least value of the type is called by that value.

    Args:
        column: The numbers.
        dtype: Their type.
        size: How wide a bucket is, more than 0.

    Raises:
        ValueError: The type is no number, or can't hold multiples of the size.
    """
    if dtype == pl.Null:
        return column
    step = Decimal(str(size))
    if dtype.is_integer():
        if step != int(step):
            raise ValueError(f"the column is {dtype}, so bucket_size must be whole, not {size}")
        wide, width = column.cast(pl.Int128), pl.lit(int(step), dtype=pl.Int128)
        return _fitted(column, wide - wide % width, dtype, _least_integer(dtype))
    if isinstance(dtype, pl.Decimal):
        if step != round(step, dtype.scale):
            raise ValueError(f"the column is {dtype}, bucket_size {size} has more digits")
        width = pl.lit(step, dtype=pl.Decimal(38, dtype.scale))
        least = Decimal((1, (9,) * (dtype.precision or 38), -dtype.scale))
        return _fitted(column, column - column % width, dtype, pl.lit(least, dtype=dtype))
    if not dtype.is_float():
        raise ValueError(f"it groups numbers, the column is {dtype}")
    return _float_bucket(column.cast(pl.Float64), float(size), step).cast(dtype)


def _least_integer(dtype: pl.DataType) -> pl.Expr:
    value = 0 if dtype.is_unsigned_integer() else -(2 ** (bits(dtype) - 1))
    return pl.lit(value, dtype=dtype)


def _fitted(column: pl.Expr, value: pl.Expr, dtype: pl.DataType, least: pl.Expr) -> pl.Expr:
    fits = value.cast(dtype, strict=False)
    return pl.when(column.is_not_null() & fits.is_null()).then(least).otherwise(fits)


def _float_bucket(column: pl.Expr, size: float, step: Decimal) -> pl.Expr:
    ratio = column / size
    near = ratio.round(0)
    on_it = (ratio - near).abs() <= ratio.abs() * _FEW_ULPS
    whole = pl.when(on_it).then(near).otherwise(ratio.floor())
    exponent = step.normalize().as_tuple().exponent
    digits = max(0, -exponent) if isinstance(exponent, int) else 0
    finer = ratio.abs() >= _EXACT_INTEGERS
    return pl.when(finer).then(column).otherwise((whole * size).round(digits))
