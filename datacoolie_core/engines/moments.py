"""Dates and times from text and from each other, with their zones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue, part_of_the_column
from datacoolie_core.engines.date_patterns import bare_fraction, has_time, has_zone
from datacoolie_core.engines.uniform_moments import uniform_moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.plan.windows import Scalar

Convert = Callable[[pl.Series], pl.Series]

_DATE = "%F"
_LOCAL = ("%FT%T%.f", "%F %T%.f", "%FT%H:%M", "%F %H:%M", _DATE)
_ZONED = ("%FT%T%.f%#z", "%F %T%.f%#z", "%FT%H:%M%#z", "%F %H:%M%#z", "%+")
_TIME = ("%T%.f", "%H:%M")
_FINER = r"\.\d{6}0*[1-9]"
_TOO_FINE = "it is finer than a microsecond, which is cut only where the hint has a format"
_WALL = pl.Datetime("us")
_INSTANT = pl.Datetime("us", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(column: str, pattern: str | None, zone: str | None) -> Convert:
    """Return what makes UTC instants of a column's texts, dates or timestamps.

    Args:
        column: Its name, for messages.
        pattern: The ``%`` pattern of its texts; None is ISO 8601.
        zone: The zone of values that have none; None is UTC.
    """

    def convert(series: pl.Series) -> pl.Series:
        if series.dtype == pl.String:
            formats = (pattern,) if pattern else (*_LOCAL, *_ZONED)
            return _parsed(column, series, formats, "timestamp", zone)
        if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone:
            return series.dt.convert_time_zone("UTC").cast(_INSTANT)
        return localized(column, series.cast(_WALL), zone)

    return convert


def wall_clock_of(column: str, pattern: str | None, zone: str | None) -> Convert:
    """Return what makes timestamps without a zone of a column's texts, dates or timestamps.

    An instant is shown as the clock of ``zone`` (or UTC) showed it.
    """

    def convert(series: pl.Series) -> pl.Series:
        if series.dtype == pl.String:
            formats = (pattern,) if pattern else _LOCAL
            return _parsed(column, series, formats, "timestamp_ntz", None)
        if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone:
            return _clock(series, zone)
        return series.cast(_WALL)

    return convert


def date_of(column: str, pattern: str | None, zone: str | None) -> Convert:
    """Return what makes dates of a column's texts or timestamps."""

    def convert(series: pl.Series) -> pl.Series:
        if series.dtype == pl.String:
            formats = (pattern,) if pattern else (_DATE, *_LOCAL[:-1])
            return _parsed(column, series, formats, "date", None).cast(pl.Date)
        if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone:
            return _clock(series, zone).cast(pl.Date)
        return series.cast(pl.Date)

    return convert


def time_of(column: str, pattern: str | None, _zone: str | None) -> Convert:
    """Return what makes times of day of a column's texts or timestamps."""

    def convert(series: pl.Series) -> pl.Series:
        if series.dtype != pl.String:
            return series.cast(pl.Time)
        result = pl.Series(series.name, [None] * len(series), dtype=pl.Time)
        for form in (pattern,) if pattern else _TIME:
            texts, plain = _with_point(series, form)
            result = result.fill_null(texts.str.to_time(plain, strict=False))
        BadValue.check(column, series, result.is_null(), "time")
        return result

    return convert


def _clock(series: pl.Series, zone: str | None) -> pl.Series:
    return series.dt.convert_time_zone(zone or "UTC").dt.replace_time_zone(None).cast(_WALL)


def localized(column: str, series: pl.Series, zone: str | None) -> pl.Series:
    """Return wall clock times of a zone as UTC instants.

    Raises:
        BadValue: A time does not exist there, or exists twice.
    """
    if zone in (None, "UTC"):
        return series.dt.replace_time_zone("UTC")
    for failing, reason in (
        ("non_existent", f"this time does not exist in {zone}"),
        ("ambiguous", f"this time exists twice in {zone}"),
    ):
        softened: dict[str, str] = {"ambiguous": "null", "non_existent": "null"}
        if failing == "non_existent":
            softened["ambiguous"] = "earliest"
        result = series.dt.replace_time_zone(zone, **softened)  # pyright: ignore[reportArgumentType]
        BadValue.check(column, series, result.is_null(), f"time in {zone}", reason)
    return result.dt.convert_time_zone("UTC")  # pyright: ignore[reportPossiblyUnboundVariable]


def _parsed(
    column: str, series: pl.Series, formats: Sequence[str], target: str, zone: str | None
) -> pl.Series:
    """Return texts as timestamps: instants for ``timestamp``, else wall clock times."""
    instants = target == "timestamp"
    alike = uniform_moments(series) if len(formats) > 1 else None
    if alike is not None and instants == (alike.dtype != _WALL):
        return alike
    dtype = _INSTANT if instants else _WALL
    result = pl.Series(series.name, [None], dtype=dtype).new_from_index(0, len(series))
    missing = series.is_not_null()
    for form in _likeliest_first(series, formats):
        if not missing.any():
            break
        part = _moments(series.filter(missing), form)
        if instants and part.dtype == _WALL:
            with part_of_the_column(missing):
                part = localized(column, part, zone)
        elif not instants and part.dtype != _WALL:
            part = part.dt.replace_time_zone(None)
        result = part if len(part) == len(series) else result.scatter(missing.arg_true(), part)
        missing = series.is_not_null() & result.is_null()
    BadValue.check(column, series, missing, target, _how(formats))
    if len(formats) > 1 and target != "date":
        # a pattern of one's own says how many digits there are, and so agrees to cut them
        finer = series.str.contains(_FINER)
        BadValue.check(column, series, finer, target, _TOO_FINE)
    return result


def _how(formats: Sequence[str]) -> str:
    return f"expected {formats[0]}" if len(formats) == 1 else "expected ISO 8601"


def _with_point(series: pl.Series, form: str) -> tuple[pl.Series, str]:
    """Return texts and a pattern whose fraction of a second has a point before it."""
    bare = bare_fraction(form)
    if bare is None:
        return series, form
    return series.str.replace(bare[0], "${1}.${2}"), bare[1]


def _moments(series: pl.Series, form: str) -> pl.Series:
    series, form = _with_point(series, form)
    if not has_time(form):
        return series.str.to_date(form, strict=False).cast(_WALL)
    if has_zone(form):
        return series.str.to_datetime(form, time_unit="us", strict=False).cast(_INSTANT)
    return series.str.to_datetime(form, time_unit="us", strict=False)


def _likeliest_first(series: pl.Series, formats: Sequence[str]) -> list[str]:
    """Return the formats with the one that fits the first value in front: one pass, mostly."""
    head = series.drop_nulls().head(1)
    ordered = sorted(formats, key=lambda form: len(head) > 0 and _moments(head, form)[0] is None)
    return list(ordered)


def moment_of(bound: Scalar) -> date | None:
    """Return a bound as a date or timestamp: as it is, or from ISO text; None if it is neither."""
    if isinstance(bound, date):
        return bound
    if not isinstance(bound, str):
        return None
    try:
        if len(bound) > len("2013-01-01"):
            return datetime.fromisoformat(bound)
        return date.fromisoformat(bound)
    except ValueError:
        return None


def instant_literal(moment: datetime) -> pl.Expr:
    """Return an aware timestamp as a UTC literal.

    It is the integer that the engine stores: a literal of a Python timestamp runs a query of its
    own when it is made, which small loads notice.
    """
    since = moment - _EPOCH
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return pl.lit(microseconds, dtype=pl.Int64).cast(_INSTANT)
