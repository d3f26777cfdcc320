"""Which polars type each format of files keeps, and what fits into a column that is there.

=================  =========  ==============================  ==================  =================
polars             parquet    CSV                             JSON, JSON lines    Avro
=================  =========  ==============================  ==================  =================
integers           kept       digits                          digits              int, long; UInt64
                                                                                  as decimal(20,0)
Int128, UInt128    kept       digits                          digits              decimal(38,0)
floats             kept       shortest text                   number; NaN and     float, double
                                                              infinity refused
Decimal            kept       digits                          text with all       decimal
                                                              digits
Boolean            kept       true, false                     true, false         boolean
Date               kept       2026-01-31                      2026-01-31          date
Datetime, zone     kept       ISO 8601 with its offset        the same            timestamp-micros
Datetime           kept       ISO 8601                        ISO 8601, a space   local-timestamp-
                                                              for the T           micros
Time               kept       12:30:00.5                      12:30:00.5          time-micros
text, categories   text       text                            text                string
Binary             kept       refused                         refused             bytes
List, Array        kept       refused                         array               array
Struct             kept       refused                         object              record
Duration           kept       refused                         refused             refused
Null               kept       nothing                         null                null
Object             refused    refused                         refused             refused
=================  =========  ==============================  ==================  =================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

FileFormat = Literal["parquet", "csv", "json", "jsonl", "avro"]

_BITS: dict[type[pl.DataType], int] = {
    pl.Int8: 7,
    pl.Int16: 15,
    pl.Int32: 31,
    pl.Int64: 63,
    pl.Int128: 127,
    pl.UInt8: 8,
    pl.UInt16: 16,
    pl.UInt32: 32,
    pl.UInt64: 64,
    pl.UInt128: 128,
}
_DIGITS = {7: 3, 8: 3, 15: 5, 16: 5, 31: 10, 32: 10, 63: 19, 64: 20}
_UNITS = ("ms", "us", "ns")
_PLAIN = (pl.Float32, pl.Float64, pl.Decimal, pl.String, pl.Boolean, pl.Date, pl.Time, pl.Null)
_AVRO: dict[type[pl.DataType], pl.DataType] = {
    pl.Int8: pl.Int32(),
    pl.Int16: pl.Int32(),
    pl.UInt8: pl.Int32(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.UInt128: pl.Decimal(38, 0),
}
_HELP: dict[type[pl.DataType], str] = {
    pl.Duration: "cast it to a whole number of microseconds or seconds",
    pl.Binary: "write it as text (hex or base64), or use parquet",
    pl.List: "join it to one text, or use parquet or jsonl",
    pl.Array: "join it to one text, or use parquet or jsonl",
    pl.Struct: "take its fields as columns, or use parquet or jsonl",
}


def storable(dtype: pl.DataType, form: FileFormat) -> pl.DataType | None:
    """Return the type that a format keeps of a type, None if it would lose values.

    >>> storable(pl.Categorical(), "parquet"), storable(pl.UInt16(), "avro")
    (String, Int32)
    """
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if dtype.is_nested():
        return _nested(dtype, form)
    if isinstance(dtype, pl.Binary):
        return dtype if form in ("parquet", "avro") else None
    if isinstance(dtype, pl.Duration):
        return dtype if form == "parquet" else None
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", "UTC" if dtype.time_zone else None) if form == "avro" else dtype
    if isinstance(dtype, pl.Float16):
        return dtype if form == "parquet" else pl.Float32()
    if dtype.is_integer():
        return _AVRO.get(dtype.base_type(), dtype) if form == "avro" else dtype
    return dtype if isinstance(dtype, _PLAIN) else None


def _nested(dtype: pl.DataType, form: FileFormat) -> pl.DataType | None:
    if form == "csv":
        return None
    if isinstance(dtype, pl.Struct):
        fields = [(f.name, storable(cast("pl.DataType", f.dtype), form)) for f in dtype.fields]
        known = [pl.Field(name, kind) for name, kind in fields if kind is not None]
        return pl.Struct(known) if fields and len(known) == len(fields) else None
    inner = storable(cast("pl.DataType", cast("pl.List", dtype).inner), form)
    if inner is None:
        return None
    if form == "parquet" and isinstance(dtype, pl.Array):
        return pl.Array(inner, dtype.shape)
    return pl.List(inner)


def help_for(dtype: pl.DataType) -> str:
    """Return the change that makes a refused type storable."""
    return _HELP.get(dtype.base_type(), "cast it to text or drop it")


def united(batch: pl.DataType, there: pl.DataType) -> pl.DataType | None:
    """Return the type of a column that files and a batch share, None on conflict.

    It is the files' own type, apart from struct fields that only the batch has, and from columns
    of which the files hold no value yet.

    Args:
        batch: A type as :func:`storable` gives it.
        there: The column's type in the files.
    """
    if isinstance(there, pl.Null) or batch == there:
        return batch
    if isinstance(batch, pl.Null):
        return there
    if isinstance(batch, pl.List | pl.Array) and isinstance(there, pl.List):
        inner = united(cast("pl.DataType", batch.inner), cast("pl.DataType", there.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(batch, pl.Struct) and isinstance(there, pl.Struct):
        return _united_struct(batch, there)
    return there if _fits(batch, there) else None


def _united_struct(batch: pl.Struct, there: pl.Struct) -> pl.DataType | None:
    mine = {f.name: cast("pl.DataType", f.dtype) for f in batch.fields}
    fields: list[pl.Field] = []
    for known in there.fields:
        kind = cast("pl.DataType", known.dtype)
        both = united(mine.pop(known.name), kind) if known.name in mine else kind
        if both is None:
            return None
        fields.append(pl.Field(known.name, both))
    return pl.Struct([*fields, *(pl.Field(name, kind) for name, kind in mine.items())])


def _fits(batch: pl.DataType, there: pl.DataType) -> bool:
    if batch.base_type() in _BITS:
        return _integer_fits(batch, there)
    if isinstance(batch, pl.Float16 | pl.Float32):
        return isinstance(there, pl.Float64 | pl.Float32)
    if isinstance(batch, pl.Decimal) and isinstance(there, pl.Decimal):
        return _room(batch) <= _room(there) and batch.scale <= there.scale
    if isinstance(batch, pl.Datetime) and isinstance(there, pl.Datetime):
        zoned = (batch.time_zone is None) == (there.time_zone is None)
        return zoned and _UNITS.index(batch.time_unit) <= _UNITS.index(there.time_unit)
    return False


def _integer_fits(batch: pl.DataType, there: pl.DataType) -> bool:
    bits = _BITS[batch.base_type()]
    if there.base_type() in _BITS:
        signed_into_unsigned = batch.is_signed_integer() and there.is_unsigned_integer()
        return not signed_into_unsigned and bits <= _BITS[there.base_type()]
    if isinstance(there, pl.Decimal):
        return _DIGITS.get(bits, 39) <= _room(there)
    return isinstance(there, pl.Float64) and bits <= 64


def _room(dtype: pl.Decimal) -> int:
    return (dtype.precision or 38) - dtype.scale


def may_lose(source: pl.DataType, target: pl.DataType) -> bool:
    """Return whether a cast that is allowed by type must still be checked value by value."""
    if source == target:
        return False
    if isinstance(target, pl.Struct) and isinstance(source, pl.Struct):
        kinds = {f.name: cast("pl.DataType", f.dtype) for f in target.fields}
        return any(may_lose(cast("pl.DataType", f.dtype), kinds[f.name]) for f in source.fields)
    if isinstance(target, pl.List | pl.Array) and isinstance(source, pl.List | pl.Array):
        return may_lose(cast("pl.DataType", source.inner), cast("pl.DataType", target.inner))
    if isinstance(source, pl.Datetime) and isinstance(target, pl.Datetime):
        return _UNITS.index(source.time_unit) > _UNITS.index(target.time_unit)
    if isinstance(source, pl.Int128 | pl.UInt128):
        return True
    return source.is_integer() and isinstance(target, pl.Float64)


_PARAMETERS: dict[type[pl.DataType], Callable[[Any], list[Any]]] = {
    pl.Decimal: lambda one: [one.precision, one.scale],
    pl.Datetime: lambda one: [one.time_unit, one.time_zone],
    pl.Duration: lambda one: [one.time_unit],
    pl.List: lambda one: [type_to_json(one.inner)],
    pl.Array: lambda one: [type_to_json(one.inner), one.size],
    pl.Struct: lambda one: [[f.name, type_to_json(f.dtype)] for f in one.fields],
}


def type_to_json(dtype: pl.DataType) -> Any:
    """Return a type as JSON: its name, or a list of name and parameters.

    >>> type_to_json(pl.List(pl.Datetime("us", "UTC")))
    ['List', ['Datetime', 'us', 'UTC']]
    """
    name, parameters = dtype.base_type().__name__, _PARAMETERS.get(dtype.base_type())
    return name if parameters is None else [name, *parameters(dtype)]


def type_from_json(document: Any) -> pl.DataType:
    """Return the type that :func:`type_to_json` wrote."""
    if isinstance(document, str):
        return cast("pl.DataType", getattr(pl, document)())
    name, *rest = cast("list[Any]", document)
    if name == "Struct":
        return pl.Struct([pl.Field(field, type_from_json(kind)) for field, kind in rest])
    if name in ("List", "Array"):
        return cast("pl.DataType", getattr(pl, name)(type_from_json(rest[0]), *rest[1:]))
    return cast("pl.DataType", getattr(pl, name)(*rest))
