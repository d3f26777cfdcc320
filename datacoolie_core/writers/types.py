"""Which polars type is stored as which Delta type, and what fits into a table's column.

========================  ==========================================================
polars                    Delta
========================  ==========================================================
Int8 … Int64, Float32/64  byte, short, integer, long, float, double
UInt8, UInt16, UInt32     the next wider signed type
UInt64                    decimal(20,0)
Int128, UInt128           decimal(38,0); a value that does not fit is an error
Float16                   float
Decimal(p, s)             decimal(p, s)
Categorical, Enum         string
Datetime with a zone      timestamp (UTC, microseconds)
Datetime without a zone   timestamp_ntz, microseconds; this raises the table's protocol to 3/7
Datetime in nanoseconds   microseconds if every value keeps its meaning, else an error
Null (no value at all)    the table's type; string in a new table or a new column
Array                     array
Time, Duration, Object    refused, all columns at once, each with a cast that helps
========================  ==========================================================

Into an existing column goes its own type and what it can hold without loss: a narrower integer
or float, whole numbers in a double that are exact there, decimals that are exact there, whatever
the digits of their type, whole numbers in a decimal wide enough. Everything else is a conflict: text
never becomes a number, a date never becomes a timestamp, a timestamp never gains or loses its zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    Unite = Callable[[pl.DataType, pl.DataType], pl.DataType | None]

_DIGITS: dict[type[pl.DataType], int] = {pl.Int8: 3, pl.Int16: 5, pl.Int32: 10, pl.Int64: 19}
_INTEGERS = tuple(_DIGITS)
_STORED: dict[type[pl.DataType], pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.UInt128: pl.Decimal(38, 0),
    pl.Float16: pl.Float32(),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
}
_PLAIN = (
    *_INTEGERS,
    pl.Float32,
    pl.Float64,
    pl.Decimal,
    pl.String,
    pl.Binary,
    pl.Boolean,
    pl.Date,
    pl.Null,
)
_HELP: dict[type[pl.DataType], str] = {
    pl.Time: "cast it to text (`CAST(x AS VARCHAR)`), or to a timestamp with its date",
    pl.Duration: "cast it to a whole number of microseconds or seconds",
}


def stored_type(dtype: pl.DataType) -> pl.DataType | None:
    """Return the polars type under which Delta stores a type, None if it has none.

    ``Null`` stays: what it becomes depends on the table.

    >>> stored_type(pl.UInt16()), stored_type(pl.Time())
    (Int32, None)
    """
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", "UTC" if dtype.time_zone else None)
    if isinstance(dtype, pl.List | pl.Array):
        inner = stored_type(cast("pl.DataType", dtype.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(dtype, pl.Struct):
        fields = [(f.name, stored_type(cast("pl.DataType", f.dtype))) for f in dtype.fields]
        known = [pl.Field(name, kind) for name, kind in fields if kind is not None]
        return pl.Struct(known) if fields and len(known) == len(fields) else None
    if dtype.base_type() in _STORED:
        return _STORED[dtype.base_type()]
    return dtype if isinstance(dtype, _PLAIN) else None


def help_for(dtype: pl.DataType) -> str:
    """Return the cast that makes a refused type storable."""
    return _HELP.get(dtype.base_type(), "cast it to text or drop it")


def without_null(dtype: pl.DataType) -> pl.DataType:
    """Return a stored type in which string stands for *no value seen*, at any depth."""
    if isinstance(dtype, pl.Null):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(without_null(cast("pl.DataType", dtype.inner)))
    if isinstance(dtype, pl.Struct):
        return pl.Struct(
            [pl.Field(f.name, without_null(cast("pl.DataType", f.dtype))) for f in dtype.fields]
        )
    return dtype


def united(stored: pl.DataType, table: pl.DataType) -> pl.DataType | None:
    """Return the type of a column that holds a table's values and a batch's, None on conflict.

    It is the table's own type, apart from struct fields that only the batch has: these are added.

    Args:
        stored: A type as :func:`stored_type` gives it.
        table: The column's type in the table.
    """
    if isinstance(stored, pl.Null):
        return table
    if isinstance(stored, pl.List) and isinstance(table, pl.List):
        inner = united(cast("pl.DataType", stored.inner), cast("pl.DataType", table.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(stored, pl.Struct) and isinstance(table, pl.Struct):
        return _united_struct(stored, table)
    return table if _fits(stored, table) else None


def _united_struct(stored: pl.Struct, table: pl.Struct) -> pl.DataType | None:
    mine = {f.name: cast("pl.DataType", f.dtype) for f in stored.fields}
    fields: list[pl.Field] = []
    for field in table.fields:
        kind = cast("pl.DataType", field.dtype)
        both = united(mine.pop(field.name), kind) if field.name in mine else kind
        if both is None:
            return None
        fields.append(pl.Field(field.name, both))
    fields.extend(pl.Field(name, without_null(kind)) for name, kind in mine.items())
    return pl.Struct(fields)


def conflict(
    name: str, batch: pl.DataType, there: pl.DataType, unite: Unite
) -> tuple[str, pl.DataType, pl.DataType]:
    """Return the innermost part of a column whose types do not go together: path, both types.

    Args:
        name: The column.
        batch: Its type in the batch.
        there: Its type in the destination.
        unite: Gives the type that holds the values of both, None if there is none.
    """
    if isinstance(batch, pl.List) and isinstance(there, pl.List):
        inner = (cast("pl.DataType", batch.inner), cast("pl.DataType", there.inner))
        return conflict(f"{name}.element", *inner, unite)
    if isinstance(batch, pl.Struct) and isinstance(there, pl.Struct):
        known = {field.name: cast("pl.DataType", field.dtype) for field in there.fields}
        for field in batch.fields:
            own = cast("pl.DataType", field.dtype)
            if field.name in known and unite(own, known[field.name]) is None:
                return conflict(f"{name}.{field.name}", own, known[field.name], unite)
    return name, batch, there


def _fits(stored: pl.DataType, table: pl.DataType) -> bool:
    if stored == table:
        return True
    if isinstance(stored, _INTEGERS):
        return _integer_fits(_DIGITS[stored.base_type()], table)
    if isinstance(stored, pl.Float32):
        return isinstance(table, pl.Float64)
    return isinstance(stored, pl.Decimal) and isinstance(table, pl.Decimal)


def _integer_fits(digits: int, table: pl.DataType) -> bool:
    if isinstance(table, _INTEGERS):
        return digits <= _DIGITS[table.base_type()]
    if isinstance(table, pl.Decimal):
        return digits <= _decimal_room(table)
    return isinstance(table, pl.Float64)


def _decimal_room(dtype: pl.Decimal) -> int:
    return (dtype.precision or 38) - dtype.scale


def may_lose(source: pl.DataType, target: pl.DataType) -> bool:
    """Return whether a cast that is allowed by type must still be checked value by value."""
    if isinstance(source, pl.Datetime):
        return source.time_unit == "ns"
    if isinstance(source, pl.Decimal) and isinstance(target, pl.Decimal):
        narrower = _decimal_room(target) < _decimal_room(source)
        return narrower or target.scale < source.scale
    if isinstance(source, pl.Int64 | pl.UInt32) and isinstance(target, pl.Float64):
        return True
    if isinstance(source, pl.Int128 | pl.UInt128):
        return True
    if isinstance(source, pl.List | pl.Array) and isinstance(target, pl.List):
        return may_lose(cast("pl.DataType", source.inner), cast("pl.DataType", target.inner))
    if isinstance(source, pl.Struct) and isinstance(target, pl.Struct):
        kinds = {f.name: cast("pl.DataType", f.dtype) for f in target.fields}
        return any(may_lose(cast("pl.DataType", f.dtype), kinds[f.name]) for f in source.fields)
    return False


def delta_name(dtype: pl.DataType) -> str:
    """Return the name that Delta gives a stored type, for messages and results.

    >>> delta_name(pl.Int64()), delta_name(pl.List(pl.Datetime("us", "UTC")))
    ('long', 'array<timestamp>')
    """
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision or 38},{dtype.scale})"
    if isinstance(dtype, pl.Datetime):
        return "timestamp" if dtype.time_zone else "timestamp_ntz"
    if isinstance(dtype, pl.List):
        return f"array<{delta_name(cast('pl.DataType', dtype.inner))}>"
    if isinstance(dtype, pl.Struct):
        inner = (f"{f.name}:{delta_name(cast('pl.DataType', f.dtype))}" for f in dtype.fields)
        return f"struct<{','.join(inner)}>"
    names: dict[type[pl.DataType], str] = {
        pl.Int8: "byte",
        pl.Int16: "short",
        pl.Int32: "integer",
        pl.Int64: "long",
        pl.Float32: "float",
        pl.Float64: "double",
    }
    return names.get(dtype.base_type(), str(dtype).lower().partition("(")[0])
