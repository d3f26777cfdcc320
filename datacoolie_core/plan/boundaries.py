"""Where chunks may end: anchor plus k intervals, for k = 0, 1, 2 …, each with its key.

The anchor is the last boundary at or before the start. A key names the period that starts at its
boundary, so that it stays the same when the range begins or ends inside that period.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import count
from math import floor
from typing import TYPE_CHECKING

from dateutil.relativedelta import relativedelta

from datacoolie_core.plan.intervals import CALENDAR_UNITS, Interval
from datacoolie_core.plan.localtime import first_instant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from datacoolie_core.plan.bounds import Bound, Step

Boundary = tuple["Bound", str]


def calendar_boundaries(
    start: date, interval: Interval, zone: ZoneInfo | None
) -> Iterator[Boundary]:
    """Yield the boundaries of dates or timestamps, without end but for the year 9999.

    Args:
        start: A date, a naive timestamp, or an aware one in UTC.
        interval: Calendar units, hours and minutes.
        zone: Whose calendar; None is UTC.
    """
    anchor = _snapped(_wall(start, zone), interval)
    for index in count():
        try:
            nominal = anchor + _calendar(interval, index)
            boundary = _at(nominal, start, zone) + interval.duration * index
        except (OverflowError, ValueError):
            return
        yield boundary, _calendar_key(nominal, boundary, interval)


def _wall(start: date, zone: ZoneInfo | None) -> datetime:
    if not isinstance(start, datetime):
        return datetime(start.year, start.month, start.day)  # noqa: DTZ001 - a wall-clock time
    if start.tzinfo is None:
        return start.replace(fold=0)
    return start.astimezone(zone or UTC).replace(tzinfo=None, fold=0)


def _at(nominal: datetime, start: date, zone: ZoneInfo | None) -> date:
    if not isinstance(start, datetime):
        return nominal.date()
    if start.tzinfo is None:
        return nominal
    return nominal.replace(tzinfo=UTC) if zone is None else first_instant(nominal, zone)


def _calendar(interval: Interval, index: int) -> relativedelta:
    units = {unit: interval.units.get(unit, 0) * index for unit in CALENDAR_UNITS}
    return relativedelta(
        years=units["years"], months=units["months"], weeks=units["weeks"], days=units["days"]
    )


def _snapped(wall: datetime, interval: Interval) -> datetime:
    unit = interval.coarsest
    size = interval.units[unit]
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "years":
        return midnight.replace(year=(wall.year - 1) // size * size + 1, month=1, day=1)
    if unit == "months":
        return midnight.replace(month=(wall.month - 1) // size * size + 1, day=1)
    if unit == "weeks":
        return midnight - timedelta(days=wall.weekday())
    if unit == "days":
        return midnight
    if unit == "hours":
        return midnight.replace(hour=wall.hour // size * size)
    return midnight.replace(hour=wall.hour, minute=wall.minute // size * size)


def _calendar_key(nominal: datetime, boundary: date, interval: Interval) -> str:
    unit = interval.finest
    if unit == "years":
        return f"{nominal.year:04d}"
    if unit == "months":
        return f"{nominal.year:04d}-{nominal.month:02d}"
    if unit in CALENDAR_UNITS:
        return nominal.date().isoformat()
    return plain(boundary)


def step_boundaries(start: Step, step: Step) -> Iterator[Boundary]:
    """Yield the multiples of a step from the last one at or below a number on, without end."""
    width = _exact(step)
    for index in count(floor(_exact(start) / width)):
        boundary = _like(start, index, step, width)
        yield boundary, plain(boundary)


def _exact(number: Step) -> Fraction:
    # a float means the decimal number that is written, not its binary neighbour
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _like(start: Step, index: int, step: Step, width: Fraction) -> Step:
    if isinstance(start, Decimal):
        with localcontext() as exact:
            exact.prec = 1000
            return index * Decimal(step)
    if isinstance(start, float):
        return float(index * width)
    return index * int(step)


def plain(bound: Bound) -> str:
    """Return a bound in the characters that a key may have: ``[0-9A-Za-z:_-]``.

    An aware timestamp is written in UTC, so that the hour that comes twice has two names.
    """
    if isinstance(bound, datetime):
        fine = "minutes" if bound.second == bound.microsecond == 0 else "auto"
        text = bound.replace(tzinfo=None).isoformat(timespec=fine)
        return _allowed(text if bound.tzinfo is None else f"{text}Z")
    if isinstance(bound, date):
        return bound.isoformat()
    return _allowed(repr(bound) if isinstance(bound, int) else f"{Decimal(str(bound)):f}")


def _allowed(text: str) -> str:
    return text.replace("+", "").replace(".", "_")
