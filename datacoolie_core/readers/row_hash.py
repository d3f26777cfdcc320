"""The hash by which a row is recognised: 128 bit, over typed values, the same for ever.

Format ``DCR1``, written down in docs/reference/state.md. A row's bytes are the tag ``DCR1``, then for
each column, sorted by name: ``N`` for null, else a letter for the kind of value, the length of its
content in bytes as text, ``:`` and the content:

- ``B``: ``0`` or ``1``; ``I``: an integer as text, also dates (days), times of day (nanoseconds),
  timestamps and durations (in the column's unit); ``D``: a decimal as text with all its digits
- ``F``: a float as 8 bytes, big endian, or ``nan``; ``S``: text as UTF-8; ``X``: bytes
- ``L``: a list's elements in these forms; ``M``: a struct's fields in these forms, sorted by name

The hash is BLAKE2b with a digest of 16 bytes, in URL-safe base64 without padding. System columns
(``__*``) take no part. Types are not part of it: the fingerprint of the schema goes with it. Which
value is hashed, the one that was read or the one that a hint makes of it, says ``typed_rows``.
"""

from __future__ import annotations

import math
import struct
from base64 import urlsafe_b64encode
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.dtypes import instance, is_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

FORMAT = b"DCR1"
_NULL = b"N"


def hashed_columns(schema: Mapping[str, pl.DataType]) -> list[str]:
    """Return the columns that take part in a row's hash, in hash order."""
    return sorted(name for name in schema if not name.startswith("__"))


def fingerprint(schema: Mapping[str, pl.DataType]) -> str:
    """Return a short text that changes when a column or a type of the source does."""
    lines = [f"{name}\0{type_name(schema[name])}" for name in hashed_columns(schema)]
    return _digest(FORMAT + "\n".join(lines).encode())


def row_hashes(frame: pl.DataFrame) -> list[str]:
    """Return the hash of each row.

    >>> row_hashes(pl.DataFrame({"id": [1], "name": ["Anna"]}))
    ['5TsyMylELLUgisUww2IHKg']
    """
    if not frame.height:
        return []
    columns = [_encoded(frame[name]) for name in hashed_columns(frame.schema)]
    rows: Iterable[tuple[bytes, ...]] = zip(*columns, strict=True)
    return [_digest(FORMAT + b"".join(row)) for row in rows]


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(blake2b(content, digest_size=16).digest()).decode().rstrip("=")


def type_name(dtype: pl.DataType) -> str:
    """Return a type's name in the fingerprint, which does not depend on the engine's version."""
    match dtype:
        case pl.Decimal():
            return f"decimal({dtype.precision},{dtype.scale})"
        case pl.Datetime():
            return f"datetime({dtype.time_unit},{dtype.time_zone or ''})"
        case pl.Duration():
            return f"duration({dtype.time_unit})"
        case pl.List():
            return f"list({type_name(instance(dtype.inner))})"
        case pl.Array():
            return f"array({type_name(instance(dtype.inner))},{dtype.size})"
        case pl.Struct():
            inner = (f"{field.name}:{type_name(instance(field.dtype))}" for field in dtype.fields)
            return f"struct({','.join(inner)})"
        case pl.Categorical() | pl.Enum() | pl.String():
            return "string"
        case _:
            return str(dtype.base_type()).lower()


def _encoded(series: pl.Series) -> list[bytes]:
    """Return each value's bytes: its letter, its length and its content, or ``N``."""
    dtype = series.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return _lists(series)
    if isinstance(dtype, pl.Struct):
        return _structs(series, sorted(field.name for field in dtype.fields))
    return [_part(*_leaf(value)) for value in _leaves(series)]


def _leaves(series: pl.Series) -> list[Any]:
    """Return plain Python values that hide nothing: times as numbers, categories as text."""
    if is_one_of(series.dtype, pl.Categorical, pl.Enum):
        return series.cast(pl.String).to_list()
    if series.dtype.is_temporal():
        return series.to_physical().to_list()
    return series.to_list()


def _lists(series: pl.Series) -> list[bytes]:
    plain = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
    lengths = plain.list.len().to_list()
    filled = plain.filter(plain.list.len() > 0)
    inner = iter(_encoded(filled.explode()) if len(filled) else ())
    return [
        _NULL if length is None else _part(b"L", b"".join(next(inner) for _ in range(length)))
        for length in lengths
    ]


def _structs(series: pl.Series, names: list[str]) -> list[bytes]:
    fields = zip(*(_encoded(series.struct.field(name)) for name in names), strict=True)
    missing = series.is_null().to_list()
    rows: Iterable[tuple[bytes, ...]] = fields if names else (() for _ in missing)
    return [
        _NULL if null else _part(b"M", b"".join(row))
        for null, row in zip(missing, rows, strict=True)
    ]


def _part(letter: bytes, content: bytes) -> bytes:
    if letter == _NULL:
        return _NULL
    return letter + str(len(content)).encode() + b":" + content


def _leaf(value: Any) -> tuple[bytes, bytes]:
    for kind, letter, content in _KINDS:
        if isinstance(value, kind):
            return letter, content(value)
    raise TypeError(f"a value of type {type(value).__name__} can't be hashed")


def _float(value: float) -> bytes:
    # 0.0 and -0.0 are equal, so they are one value; so are all NaN
    return b"nan" if math.isnan(value) else struct.pack(">d", value + 0.0)


# a bool is an int too, so it comes first
_KINDS: tuple[tuple[type, bytes, Callable[[Any], bytes]], ...] = (
    (type(None), _NULL, lambda _: b""),
    (bool, b"B", lambda value: b"1" if value else b"0"),
    (int, b"I", lambda value: str(value).encode()),
    (float, b"F", _float),
    (str, b"S", lambda value: value.encode()),
    (Decimal, b"D", lambda value: format(value, "f").encode()),
    (bytes, b"X", lambda value: value),
)
