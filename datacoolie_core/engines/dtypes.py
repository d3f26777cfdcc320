"""Questions about the engine's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from polars.datatypes import DataTypeClass


def instance(dtype: pl.DataType | DataTypeClass | type[pl.DataType]) -> pl.DataType:
    """Return a type as an instance; inside nested types the engine gives classes too.

    >>> instance(pl.Int64)
    Int64
    """
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def is_one_of(dtype: pl.DataType, *kinds: type[pl.DataType]) -> bool:
    """Return whether a type is of one of some kinds, whatever its parameters.

    >>> is_one_of(pl.Datetime("us"), pl.Date, pl.Datetime)
    True
    """
    return isinstance(dtype, kinds)


def bits(dtype: pl.DataType) -> int:
    """Return the size of an integer or float type.

    >>> bits(pl.UInt16())
    16
    """
    return int("".join(letter for letter in str(dtype) if letter.isdigit()))
