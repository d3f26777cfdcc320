"""Spans of time: INTERVAL, and units by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from datacoolie_core.engines.sql.coerce import local, to_moment
from datacoolie_core.engines.sql.kinds import INSTANT, kind_of, shown
from datacoolie_core.engines.sql.values import Scope, SqlError, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SECOND = 1_000_000
_DATE = len("2024-01-01")
_MICROS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_UNITS = {
    **{name: name for name in (*_MICROS, *_DAYS, *_MONTHS)},
    **dict.fromkeys(("yy", "yyyy"), "year"),
    **dict.fromkeys(("mm", "mon"), "month"),
    **dict.fromkeys(("dd", "dayofyear"), "day"),
}


@dataclass(frozen=True)
class Span:
    """A span of time, signed; its parts are not converted into each other.

    Attributes:
        months: Calendar months.
        days: Calendar days.
        micros: Microseconds.
    """

    months: int = 0
    days: int = 0
    micros: int = 0

    def __add__(self, other: Span) -> Span:
        return Span(self.months + other.months, self.days + other.days, self.micros + other.micros)

    def __neg__(self) -> Span:
        return Span(-self.months, -self.days, -self.micros)


def unit_named(name: str) -> str:
    """Return the unit that a name means: ``MONTHS`` is ``month``.

    Raises:
        SqlError: None is called so.
    """
    lowered = name.lower()
    found = _UNITS.get(lowered) or _UNITS.get(lowered.removesuffix("s"))
    if found is None:
        raise SqlError(f"'{name}' is no unit of time", "Write year, month, day, hour, …")
    return found


def span(number: float, unit: str) -> Span:
    """Return a span of some units."""
    if unit in _MICROS:
        return Span(micros=round(number * _MICROS[unit]))
    if number != int(number):
        raise SqlError(f"there is no part of a {unit}: {number}")
    if unit in _DAYS:
        return Span(days=int(number) * _DAYS[unit])
    return Span(months=int(number) * _MONTHS[unit])


def span_of(node: exp.Expr) -> Span | None:
    """Return the span that an expression is, as INTERVAL 1 DAY; None if it is none.

    Raises:
        SqlError: Its number is no constant, or its text can't be read.
    """
    if isinstance(node, exp.Paren):
        return span_of(node.this)
    if isinstance(node, exp.Neg):
        inner = span_of(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Add):
        one, two = span_of(node.this), span_of(node.expression)
        return None if one is None or two is None else one + two
    return _interval(node) if isinstance(node, exp.Interval) else None


def _interval(node: exp.Interval) -> Span:
    number, unit = node.this, node.args.get("unit")
    negative = isinstance(number, exp.Neg)
    given = number.this if isinstance(number, exp.Neg) else number
    if not isinstance(given, exp.Literal):
        raise SqlError(
            "the number of an INTERVAL must be a constant",
            "Use date_add(date, days) or dateadd(unit, number, time).",
        )
    if unit is None:
        found = _from_text(given.name)
    elif isinstance(unit, exp.Var):
        found = span(_number(given.name), unit_named(unit.name))
    else:
        raise SqlError("INTERVAL … TO … can't be used", "Add two intervals.")
    return -found if negative else found


def _number(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise SqlError(f"'{written}' is no number of an INTERVAL") from None


def _from_text(written: str) -> Span:
    found = list(_PART.finditer(written))
    if not found or "".join(part.group() for part in found).strip() != written.strip():
        raise SqlError(f"'{written}' is no INTERVAL", "Write INTERVAL 1 DAY.")
    total = Span()
    for part in found:
        total = total + span(_number(part[1]), unit_named(part[2]))
    return total


def later(value: Value, by: Span, scope: Scope) -> Value:
    """Return a date or time a span later; a date stays one unless hours are added.

    Raises:
        SqlError: It is neither.
    """
    steps = [(by.months, "mo"), (by.days, "d"), (by.micros, "us")]

    def shifted(clock: pl.Expr) -> pl.Expr:
        for number, unit in steps:
            clock = clock.dt.offset_by(f"{number}{unit}") if number else clock
        return clock

    return moved(value, shifted, scope, keeps_dates=by.micros == 0)


def moved(
    value: Value, shift: Callable[[pl.Expr], pl.Expr], scope: Scope, *, keeps_dates: bool
) -> Value:
    """Return a date or time after something was done to its clock."""
    kind = kind_of(value.dtype)
    if kind == "date" and keeps_dates:
        return Value(shift(value.expr).cast(pl.Date), pl.Date())
    if kind == "wall":
        return Value(shift(value.expr), value.dtype)
    if kind not in ("text", "date", "instant", "null", "unknown"):
        raise SqlError(f"a value of type {shown(value.dtype)} is no date or time")
    if keeps_dates and isinstance(value.constant, str) and len(value.constant.strip()) <= _DATE:
        return moved(to_moment(value, "date", scope), shift, scope, keeps_dates=True)
    instant = to_moment(value, "instant", scope)
    zoned = instant.expr.dt.convert_time_zone(scope.zone)
    return Value(shift(zoned).dt.convert_time_zone("UTC"), INSTANT)


def time_of(value: Value, scope: Scope) -> Value:
    """Return a date or time as it is, and a text as an instant.

    Raises:
        SqlError: It is none.
    """
    kind = kind_of(value.dtype)
    if kind in ("date", "wall", "instant"):
        return value
    return to_moment(value, "instant", scope)


def clock_of(value: Value, scope: Scope) -> pl.Expr:
    """Return a date or time as the clock of the zone shows it, without a zone."""
    return local(time_of(value, scope), scope)
