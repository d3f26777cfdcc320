"""``dc_hash_v1``: a hash over columns that is the same in every engine, version and language.

The bytes that are hashed: ``DCH1;``, then for each column in the order of the metadata its tag,
the length of its text in bytes, ``:``, the text in UTF-8, and ``;``. A null is its tag and ``N;``.

===  ==============  ==========================
tag  type            text
===  ==============  ==========================
S    text            as it is
I    whole number    decimal digits, ``-`` first
B    boolean         ``true`` or ``false``
D    date            ``2024-01-31``
===  ==============  ==========================

So the text ``ab``, the number -7 and a null date give ``DCH1;S2:ab;I2:-7;DN;``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core.engines.dtypes import is_one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "DCH1;"
_SEED = 42


def hash_tag(dtype: pl.DataType) -> str | None:
    """Return the tag of a type, None if values of it have no stable text.

    >>> hash_tag(pl.Int8()), hash_tag(pl.Float64())
    ('I', None)
    """
    if is_one_of(dtype, pl.String, pl.Categorical, pl.Enum):
        return "S"
    if dtype.is_integer():
        return "I"
    if dtype == pl.Boolean:
        return "B"
    return "D" if dtype == pl.Date else None


def hash_payload(columns: Mapping[str, pl.DataType]) -> pl.Expr:
    """Return the bytes that are hashed, as text.

    Args:
        columns: Name → type, in the order in which they are hashed; each type has a tag.
    """
    parts = [_part(name, dtype) for name, dtype in columns.items()]
    return pl.concat_str([pl.lit(_PREFIX), *parts])


def _part(name: str, dtype: pl.DataType) -> pl.Expr:
    column, tag = pl.col(name), hash_tag(dtype)
    text = column.dt.to_string("%Y-%m-%d") if tag == "D" else column.cast(pl.String)
    length = text.str.len_bytes().cast(pl.String)
    whole = pl.concat_str([pl.lit(tag), length, pl.lit(":"), text, pl.lit(";")])
    return whole.fill_null(pl.lit(f"{tag}N;"))


def stable_hash(
    columns: Mapping[str, pl.DataType], algorithm: Literal["sha256", "xxhash64"]
) -> tuple[pl.Expr, pl.DataType]:
    """Return the ``dc_hash_v1`` of some columns, and its type.

    Args:
        columns: As for :func:`hash_payload`.
        algorithm: ``sha256`` gives 64 hexadecimal digits; ``xxhash64`` a signed 64-bit integer, with
            the seed 42.
    """
    # imported here: it is a second engine plug-in to load, and few dataflows hash
    import polars_hash as hashing

    payload = hash_payload(columns)
    if algorithm == "sha256":
        return hashing.CryptographicHashingNameSpace(payload).sha2_256(), pl.String()
    unsigned = hashing.NonCryptographicHashingNameSpace(payload).xxhash64(seed=_SEED)
    return unsigned.reinterpret(signed=True), pl.Int64()
