"""Casts that go on after a bad value: it becomes null, and its reason can be asked for.

As long as nothing is bad they do what the exact casts do, at the same speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue, Noted, noting, reason_of
from datacoolie_core.engines.casts import (
    Cast,
    cast_expression,
    conversion,
    engine_type,
    named,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def lenient_cast(cast: Cast, own: pl.DataType) -> pl.Expr:
    """Return the expression that gives a column its type, with null for every bad value.

    Args:
        cast: What is wanted.
        own: The type that the column has.

    Raises:
        ValueError: There is no way from the one type to the other, or the pattern has no meaning.
    """
    column, wanted = pl.col(cast.column), engine_type(cast.target)
    convert = None if own in (wanted, pl.Null) else conversion(cast, own, wanted)
    if convert is None:
        return column.cast(wanted, strict=False)
    checked = convert

    def converted(series: pl.Series) -> pl.Series:
        try:
            return checked(series).cast(wanted)
        except (BadValue, pl.exceptions.PolarsError):
            return _tolerated(checked, series, wanted)[0]

    return column.map_batches(converted, return_dtype=wanted, is_elementwise=True)


def cast_unless_bad(cast: Cast, own: pl.DataType, judge: Cast) -> pl.Expr:
    """Return the expression that gives a column its type, with null where another cast has null.

    Args:
        cast: What is wanted; a value that it alone can't convert raises.
        own: The type that the column has.
        judge: Another cast of the column: what it can't convert becomes null.

    Raises:
        ValueError: There is no way from the one type to the other, or a pattern has no meaning.
    """
    if cast.target == judge.target:
        return lenient_cast(cast, own)
    exact, wanted = cast_expression(cast, own), engine_type(cast.target)

    def converted(series: pl.Series) -> pl.Series:
        frame = pl.DataFrame([series.alias(cast.column)])
        bad = frame.select(is_bad(judge, own)).to_series()
        good = frame.select(pl.when(~bad).then(pl.col(cast.column))) if bad.any() else frame
        return good.select(exact).to_series()

    column = pl.col(cast.column)
    return column.map_batches(converted, return_dtype=wanted, is_elementwise=True)


def is_bad(cast: Cast, own: pl.DataType) -> pl.Expr:
    """Return whether a value can't become what is wanted; a null can."""
    return pl.col(cast.column).is_not_null() & lenient_cast(cast, own).is_null()


def reasons(cast: Cast, values: pl.Series) -> pl.Series:
    """Return why each of some bad values is bad, as text.

    Args:
        cast: What was wanted.
        values: All of them bad.
    """
    wanted = engine_type(cast.target)
    usual = reason_of(named(cast.target))
    told = pl.Series([usual], dtype=pl.String).new_from_index(0, len(values))
    convert = conversion(cast, values.dtype, wanted)
    if convert is None or not len(values):
        return told
    noted = _tolerated(convert, values, wanted)[1]
    for bad, why in reversed(noted.found):
        told = pl.Series([why], dtype=pl.String).new_from_index(0, len(values)).zip_with(bad, told)
    return told


def _tolerated(
    convert: Callable[[pl.Series], pl.Series], series: pl.Series, wanted: pl.DataType
) -> tuple[pl.Series, Noted]:
    nothing = pl.Series(series.name, [None], dtype=wanted).new_from_index(0, len(series))
    try:
        with noting(len(series)) as noted:
            result = convert(series).cast(wanted, strict=False)
    except pl.exceptions.PolarsError:
        # the engine itself refuses a value, and does not say which: look at ever smaller parts
        return _by_halves(convert, series, wanted, nothing)
    for bad, _ in noted.found:
        result = nothing.zip_with(bad, result)
    return result, noted


def _by_halves(
    convert: Callable[[pl.Series], pl.Series],
    series: pl.Series,
    wanted: pl.DataType,
    nothing: pl.Series,
) -> tuple[pl.Series, Noted]:
    if len(series) <= 1:
        return nothing, Noted(len(series))
    middle = len(series) // 2
    noted = Noted(len(series))
    results: list[pl.Series] = []
    for start, part in ((0, series[:middle]), (middle, series[middle:])):
        result, found = _tolerated(convert, part, wanted)
        results.append(result)
        noted.places = pl.int_range(start, start + len(part), eager=True)
        for bad, why in found.found:
            noted.add(bad, why)
    noted.places = None
    return pl.concat(results), noted
