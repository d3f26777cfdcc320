"""The engine's types as SQL sees them, and the type that several of them have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core.engines.dtypes import bits, is_one_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal[
    "null", "bool", "int", "decimal", "float", "text", "binary", "date", "instant", "wall", "time",
    "list", "struct", "unknown", "other",
]  # fmt: skip
MAX_PRECISION = 38
_LEAST_SCALE = 6
INSTANT = pl.Datetime("us", "UTC")
WALL = pl.Datetime("us")
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20, 128: 38}

_SIMPLE: tuple[tuple[type[pl.DataType], Kind], ...] = (
    (pl.Null, "null"),
    (pl.Boolean, "bool"),
    (pl.Decimal, "decimal"),
    (pl.String, "text"),
    (pl.Categorical, "text"),
    (pl.Enum, "text"),
    (pl.Binary, "binary"),
    (pl.Date, "date"),
    (pl.Time, "time"),
    (pl.List, "list"),
    (pl.Array, "list"),
    (pl.Struct, "struct"),
    (pl.Unknown, "unknown"),
)


def kind_of(dtype: pl.DataType) -> Kind:
    """Return what SQL makes of a type.

    >>> kind_of(pl.Int8()), kind_of(pl.Datetime("ns", "UTC")), kind_of(pl.Datetime("us"))
    ('int', 'instant', 'wall')
    """
    if isinstance(dtype, pl.Datetime):
        return "wall" if dtype.time_zone is None else "instant"
    if dtype.is_integer():
        return "int"
    if dtype.is_float():
        return "float"
    for known, kind in _SIMPLE:
        if is_one_of(dtype, known):
            return kind
    return "other"


def shown(dtype: pl.DataType) -> str:
    """Return how messages call a type.

    >>> shown(pl.Decimal(10, 2)), shown(pl.Datetime("us", "UTC")), shown(pl.Int32())
    ('decimal(10,2)', 'timestamp', 'int32')
    """
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision},{dtype.scale})"
    names = {"instant": "timestamp", "wall": "timestamp_ntz", "text": "string"}
    return names.get(kind_of(dtype), str(dtype).lower())


def signed(dtype: pl.DataType) -> pl.DataType:
    """Return the type that arithmetic gives an integer: the next one with a sign."""
    if not dtype.is_unsigned_integer():
        return dtype
    wider: dict[int, pl.DataType] = {8: pl.Int16(), 16: pl.Int32(), 32: pl.Int64()}
    return wider.get(bits(dtype), pl.Decimal(20, 0))


def as_decimal(dtype: pl.DataType) -> tuple[int, int]:
    """Return the precision and scale that hold every value of a whole number or decimal type."""
    if isinstance(dtype, pl.Decimal):
        return dtype.precision or MAX_PRECISION, dtype.scale
    plain = signed(dtype)
    return as_decimal(plain) if isinstance(plain, pl.Decimal) else (_DIGITS[bits(plain)], 0)


def decimal(precision: int, scale: int) -> pl.Decimal:
    """Return a decimal type of at most 38 digits, as Spark shortens it: the scale gives way.

    >>> decimal(45, 20), decimal(12, 2)
    (Decimal(precision=38, scale=13), Decimal(precision=12, scale=2))
    """
    if precision <= MAX_PRECISION:
        return pl.Decimal(precision, scale)
    whole = precision - scale
    kept = max(MAX_PRECISION - whole, min(scale, _LEAST_SCALE))
    return pl.Decimal(MAX_PRECISION, kept)


def common_number(types: Iterable[pl.DataType]) -> pl.DataType:
    """Return the type that holds values of several number types.

    >>> common_number([pl.Int32(), pl.Decimal(5, 2)]), common_number([pl.Int8(), pl.Int64()])
    (Decimal(precision=12, scale=2), Int64)
    """
    given = [signed(dtype) for dtype in types]
    if any(dtype.is_float() for dtype in given):
        single = all(is_one_of(dtype, pl.Float32) for dtype in given)
        return pl.Float32() if single else pl.Float64()
    if not any(dtype.is_decimal() for dtype in given):
        return max(given, key=bits)
    sizes = [as_decimal(dtype) for dtype in given]
    scale = max(scale for _, scale in sizes)
    return decimal(max(precision - own for precision, own in sizes) + scale, scale)


_MOMENTS = ("date", "wall", "instant")


def common_type(types: Iterable[pl.DataType]) -> pl.DataType | None:
    """Return the type that several values have in common; None if they have none.

    A date goes with timestamps, a timestamp without a zone with instants, numbers with numbers.
    """
    given = [dtype for dtype in types if not is_one_of(dtype, pl.Null)]
    if not given:
        return pl.Null()
    if all(dtype == given[0] for dtype in given):
        return given[0]
    kinds = {kind_of(dtype) for dtype in given}
    if "unknown" in kinds:
        return pl.Unknown()
    if kinds <= {"int", "decimal", "float"}:
        return common_number(given)
    if kinds <= set(_MOMENTS):
        fine = any(isinstance(dtype, pl.Datetime) and dtype.time_unit == "ns" for dtype in given)
        return pl.Datetime("ns" if fine else "us", "UTC" if "instant" in kinds else None)
    return pl.String() if kinds == {"text"} else None
