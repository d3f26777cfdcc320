"""The lowest and highest values of a file's columns, so that a replay knows which files to open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.state.values import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONGEST = 60
"""Characters of a text that a manifest keeps."""


@dataclass(frozen=True)
class Bounds:
    """What is known of a column in one file.

    Attributes:
        low: The lowest value; None if it is not known, or if there is no value.
        high: The highest.
        nulls: Rows without a value, NaN included.
    """

    low: Any
    high: Any
    nulls: int

    def joined(self, other: Bounds) -> Bounds:
        """Return the bounds of two parts of a file."""
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        return Bounds(min(lows, default=None), max(highs, default=None), self.nulls + other.nulls)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; bounds that it can't hold are left out."""
        if any(map(_unsayable, (self.low, self.high))):
            return {"low": None, "high": None, "nulls": self.nulls}
        return {"low": encode(self.low), "high": encode(self.high), "nulls": self.nulls}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Bounds:
        """Return the bounds that :meth:`to_json` wrote."""
        return Bounds(decode(document["low"]), decode(document["high"]), document["nulls"])


def _unsayable(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, str) and len(value) > _LONGEST


def bounded(schema: pl.Schema, columns: Iterable[str]) -> list[str]:
    """Return the columns whose bounds are kept: those of numbers, dates, timestamps and texts."""
    return [name for name in dict.fromkeys(columns) if name in schema and _ordered(schema[name])]


def _ordered(dtype: pl.DataType) -> bool:
    # Python has no nanoseconds: a bound would be cut
    if isinstance(dtype, pl.Datetime):
        return dtype.time_unit != "ns"
    return dtype.is_numeric() or isinstance(dtype, pl.Date | pl.String)


def observe(rows: pl.LazyFrame | pl.DataFrame, columns: Iterable[str]) -> dict[str, Bounds]:
    """Return the bounds of some columns."""
    names = list(columns)
    if not names:
        return {}
    lazy = rows.lazy()
    schema = lazy.collect_schema()
    wanted: list[pl.Expr] = []
    for number, name in enumerate(names):
        value = pl.col(name)
        real = value.fill_nan(None) if schema[name].is_float() else value
        wanted += [
            real.min().alias(f"{number}low"),
            real.max().alias(f"{number}high"),
            real.null_count().alias(f"{number}nulls"),
        ]
    found = lazy.select(wanted).collect(engine="streaming").row(0)
    return {name: Bounds(*found[3 * at : 3 * at + 3]) for at, name in enumerate(names)}
