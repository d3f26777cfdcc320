"""Cells as columns: whole numbers, dates, times of the day, words that stand for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXACT = 2.0**53
_FIRST_DAY = pl.datetime(1900, 1, 1)
_MILLISECONDS = {"hour": 3_600_000, "minute": 60_000, "second": 1000}


def refined(values: pl.Series) -> pl.Series:
    """Return a column of cells in the type that its values have.

    A cell's number is always a double, its date always a moment: whole numbers become integers,
    moments that are all midnights dates, times without a day and durations texts, since tables have
    no such type.
    """
    if values.null_count() == len(values):
        return values.cast(pl.Null)
    if values.dtype.is_float():
        return _whole(values)
    if isinstance(values.dtype, pl.Datetime):
        return _moments(values)
    if values.dtype.base_type() is pl.Duration:
        return _clock(values.cast(pl.Duration("ms")).cast(pl.Int64))
    return values


def _whole(values: pl.Series) -> pl.Series:
    found = values.drop_nulls()
    if ((found == found.round(0)) & (found.abs() <= _EXACT)).all():
        return values.cast(pl.Int64)
    return values


def _moments(values: pl.Series) -> pl.Series:
    frame = values.to_frame()
    moment = pl.col(values.name)
    if frame.select((moment < _FIRST_DAY).all()).item():
        since = moment.cast(pl.Datetime("ms")).dt.time().cast(pl.Int64) // 1_000_000
        return _clock(frame.select(since.alias(values.name)).to_series())
    if frame.select((moment == moment.dt.truncate("1d")).all()).item():
        return values.cast(pl.Date)
    return values.cast(pl.Datetime("us"))


def _clock(milliseconds: pl.Series) -> pl.Series:
    """Return durations as text, such as ``10:30:00``."""
    value = pl.col(milliseconds.name)
    size = value.abs()
    parts = [
        size // _MILLISECONDS["hour"],
        size // _MILLISECONDS["minute"] % 60,
        size // _MILLISECONDS["second"] % 60,
    ]
    rest = size % _MILLISECONDS["second"]
    digits = [part.cast(pl.String).str.zfill(2) for part in parts]
    fraction = (
        pl.when(rest > 0)
        .then(pl.format(".{}", rest.cast(pl.String).str.zfill(3)))
        .otherwise(pl.lit(""))
    )
    sign = pl.when(value < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    text = pl.format("{}{}:{}:{}{}", sign, *digits, fraction)
    frame = milliseconds.to_frame()
    return frame.select(
        pl.when(value.is_not_null()).then(text).alias(milliseconds.name)
    ).to_series()


def without_words(values: pl.Series, words: Sequence[str]) -> pl.Series:
    """Return texts with null for words that stand for nothing."""
    if values.dtype != pl.String or not words:
        return values
    return values.set(values.is_in(list(words)), None)


def same_texts(texts: pl.Series, typed: pl.Series) -> bool:
    """Return whether typed cells are just the texts that were read of them.

    Args:
        texts: Cells as text, some of them left out as words for nothing.
        typed: The same cells in another type; null where a cell has another.
    """
    if not (texts.is_null() == typed.is_null()).all():
        return False
    if typed.dtype.is_float():
        return texts.cast(pl.Float64, strict=False).equals(typed.rename(texts.name)) and (
            not texts.str.contains(r"^[+-]?0\d|^\+|[eE]|\s").any()
        )
    if isinstance(typed.dtype, pl.Datetime):
        shown = typed.dt.strftime("%Y-%m-%d %H:%M:%S%.3f").str.strip_suffix(".000")
        return texts.str.strip_suffix(".000").equals(shown.rename(texts.name))
    return texts.equals(typed.cast(pl.String).rename(texts.name))
