"""Functions that make, move and cut dates and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from datacoolie_core.engines.date_patterns import engine_pattern
from datacoolie_core.engines.sql.coerce import to_moment, to_text, to_whole
from datacoolie_core.engines.sql.convert import converted
from datacoolie_core.engines.sql.formats import formatted
from datacoolie_core.engines.sql.intervals import clock_of, moved, time_of, unit_named
from datacoolie_core.engines.sql.kinds import INSTANT, kind_of
from datacoolie_core.engines.sql.literals import constant
from datacoolie_core.engines.sql.values import Call, Handler, SqlError, Value, text
from datacoolie_core.metadata.hint_types import LogicalType

if TYPE_CHECKING:
    from datacoolie_core.engines.sql.values import Scope

_TRUNCATED = {
    "year": "1y", "quarter": "1q", "month": "1mo", "week": "1w", "day": "1d",
    "hour": "1h", "minute": "1m", "second": "1s", "millisecond": "1ms", "microsecond": "1us",
}  # fmt: skip
_OFFSETS = {
    "year": "y", "quarter": "q", "month": "mo", "week": "w", "day": "d",
    "hour": "h", "minute": "m", "second": "s", "millisecond": "ms", "microsecond": "us",
}  # fmt: skip
_DATES = frozenset(("year", "quarter", "month", "week", "day"))
_WEEKDAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")


def pattern_of(call: Call, index: int) -> str | None:
    """Return a pattern in the engine's form; None if the call has none.

    Raises:
        SqlError: It is no constant, or a letter of it has no meaning.
    """
    if len(call) <= index:
        return None
    try:
        return engine_pattern(call.constant(index, str, "the pattern"))
    except SqlError:
        raise
    except ValueError as error:
        raise SqlError(f"{call.name}: {error}") from error


def date_of(call: Call, index: int = 0) -> Value:
    """Return an argument as a date."""
    return to_moment(call.value(index), "date", call.scope)


def _days(call: Call, index: int) -> pl.Expr:
    return to_whole(call.value(index), call.scope).expr


def _parsed(kind: str, *, strict: bool = True) -> Handler:
    def handler(call: Call) -> Value:
        value, pattern = call.value(0), pattern_of(call, 1)
        if kind == "instant" and kind_of(value.dtype) in ("int", "decimal", "float"):
            return converted(value, LogicalType("timestamp"), call.scope, strict=strict)
        if pattern is not None and kind_of(value.dtype) not in ("text", "null"):
            value = to_text(value)
        if not strict and value.is_constant:
            value = Value(value.expr, value.dtype)
        return to_moment(value, kind, call.scope, pattern=pattern, strict=strict)

    return handler


def _date_format(call: Call) -> Value:
    moment = time_of(call.value(0), call.scope)
    zone = None if kind_of(moment.dtype) == "wall" else call.scope.zone
    pattern = call.constant(1, str, "the pattern")
    return text(formatted(clock_of(moment, call.scope), pattern, zone))


def _date_trunc(call: Call) -> Value:
    unit = unit_named(call.constant(0, str, "the unit"))
    value = time_of(call.value(1), call.scope)
    every = _TRUNCATED[unit]
    if kind_of(value.dtype) == "date":
        value = to_moment(value, "instant", call.scope)
    return moved(value, lambda clock: clock.dt.truncate(every), call.scope, keeps_dates=False)


def _trunc(call: Call) -> Value:
    unit = unit_named(call.constant(1, str, "the unit"))
    if unit not in _DATES:
        raise SqlError(f"trunc: a date has no {unit}", "Use date_trunc.")
    value = date_of(call)
    return Value(value.expr.dt.truncate(_TRUNCATED[unit]), pl.Date())


def _shifted_days(value: Value, days: pl.Expr) -> Value:
    moved_days = value.expr.cast(pl.Int32).cast(pl.Int64) + days
    return Value(moved_days.cast(pl.Int32).cast(pl.Date), pl.Date())


def date_plus(value: Value, days: Value, scope: Scope, *, minus: bool = False) -> Value:
    """Return a date some days later, or before."""
    number = to_whole(days, scope).expr
    return _shifted_days(to_moment(value, "date", scope), -number if minus else number)


def _date_add(call: Call) -> Value:
    return _shifted_days(date_of(call), _days(call, 1))


def _date_sub(call: Call) -> Value:
    return _shifted_days(date_of(call), -_days(call, 1))


def _unit_of(call: Call) -> str:
    node = call.nodes[0]
    if isinstance(node, exp.Column | exp.Literal | exp.Var):
        return unit_named(node.name)
    raise SqlError(f"{call.name}: the first argument must be a unit, such as MONTH")


def _dateadd(call: Call) -> Value:
    if len(call) == 2:
        return _date_add(call)
    unit, value = _unit_of(call), call.value(2)
    number = to_whole(call.value(1), call.scope)
    by = pl.format("{}" + _OFFSETS[unit], number.expr)
    return moved(
        value, lambda clock: clock.dt.offset_by(by), call.scope, keeps_dates=unit in _DATES
    )


def _add_months(call: Call) -> Value:
    by = pl.format("{}mo", _days(call, 1))
    return Value(date_of(call).expr.dt.offset_by(by), pl.Date())


def _last_day(call: Call) -> Value:
    return Value(date_of(call).expr.dt.month_end(), pl.Date())


def _next_day(call: Call) -> Value:
    wanted = call.constant(1, str, "the weekday").strip().lower()[:2]
    if wanted not in _WEEKDAYS:
        raise SqlError("next_day: the weekday is one of Mon, Tue, … Sun")
    value = date_of(call)
    own = value.expr.dt.weekday().cast(pl.Int64)
    ahead = (pl.lit(_WEEKDAYS.index(wanted) + 1, dtype=pl.Int64) - own + 6) % 7 + 1
    return _shifted_days(value, ahead)


def _make_date(call: Call) -> Value:
    year, month, day = (_days(call, index) for index in range(3))
    known = year.is_not_null() & month.is_not_null() & day.is_not_null()
    made = pl.date(year, month, day)
    return Value(pl.when(known).then(made), pl.Date())


def _zoned(call: Call) -> Value:
    """The clock of a zone as if it were UTC, or back again."""
    zone = call.constant(1, str, "the zone")
    value = time_of(call.value(0), call.scope)
    instant = to_moment(value, "instant", call.scope).expr
    try:
        if call.name == "from_utc_timestamp":
            clock = instant.dt.convert_time_zone(zone).dt.replace_time_zone("UTC")
        else:
            clock = instant.dt.replace_time_zone(zone).dt.convert_time_zone("UTC")
        pl.select(pl.lit(0).cast(INSTANT).dt.convert_time_zone(zone))
    except pl.exceptions.PolarsError as error:
        raise SqlError(f"{call.name}: there is no zone '{zone}'") from error
    if kind_of(value.dtype) == "wall":
        return Value(clock.dt.replace_time_zone(None), value.dtype)
    return Value(clock, INSTANT)


def current_date(scope: Scope) -> Value:
    """Return the day of the load, in the zone."""
    from zoneinfo import ZoneInfo

    return constant(scope.now.astimezone(ZoneInfo(scope.zone)).date())


FUNCTIONS: dict[str, Handler] = {
    "current_date": lambda call: current_date(call.scope),
    "current_timestamp": lambda call: constant(call.scope.now),
    "to_date": _parsed("date"),
    "try_to_date": _parsed("date", strict=False),
    "to_timestamp": _parsed("instant"),
    "try_to_timestamp": _parsed("instant", strict=False),
    "to_timestamp_ntz": _parsed("wall"),
    "strptime": _parsed("wall"),
    "date_format": _date_format,
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "date_add": _date_add,
    "date_sub": _date_sub,
    "dateadd": _dateadd,
    "add_months": _add_months,
    "last_day": _last_day,
    "next_day": _next_day,
    "make_date": _make_date,
    "from_utc_timestamp": _zoned,
    "to_utc_timestamp": _zoned,
}
