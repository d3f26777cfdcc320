"""Functions that look at dates and times: their fields, and how far they are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.coerce import cast, to_moment, to_whole
from datacoolie_core.engines.sql.formats import formatted
from datacoolie_core.engines.sql.intervals import clock_of, unit_named
from datacoolie_core.engines.sql.kinds import INSTANT, kind_of
from datacoolie_core.engines.sql.literals import constant
from datacoolie_core.engines.sql.times import date_of, pattern_of
from datacoolie_core.engines.sql.values import Call, Handler, Scope, SqlError, Value, int32, text

if TYPE_CHECKING:
    from collections.abc import Callable

_SECOND = 1_000_000
_MILLI = 1_000
_SIZES = {"second": _SECOND, "minute": 60 * _SECOND, "hour": 3600 * _SECOND}
_DAY = 86_400 * _SECOND
_SECONDS = pl.Decimal(8, 6)


def _micros(clock: pl.Expr) -> pl.Expr:
    return clock.cast(pl.Datetime("us")).cast(pl.Int64)


def _precise_second(clock: pl.Expr) -> pl.Expr:
    within = _micros(clock) % (60 * _SECOND)
    exact = within.cast(pl.Decimal(38, 6)) / pl.lit(_SECOND)
    return exact.cast(_SECONDS)


_FIELDS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": lambda clock: clock.dt.year(),
    "yearofweek": lambda clock: clock.dt.iso_year(),
    "quarter": lambda clock: clock.dt.quarter(),
    "month": lambda clock: clock.dt.month(),
    "week": lambda clock: clock.dt.week(),
    "day": lambda clock: clock.dt.day(),
    "dayofweek": lambda clock: clock.dt.weekday() % 7 + 1,
    "dayofweek_iso": lambda clock: clock.dt.weekday(),
    "weekday": lambda clock: clock.dt.weekday() - 1,
    "dayofyear": lambda clock: clock.dt.ordinal_day(),
    "hour": lambda clock: clock.cast(pl.Datetime("us")).dt.hour(),
    "minute": lambda clock: clock.cast(pl.Datetime("us")).dt.minute(),
    "second": lambda clock: clock.cast(pl.Datetime("us")).dt.second(),
}
_ALIASES = {
    **dict.fromkeys(("y", "years", "yr", "yrs"), "year"),
    "isoyear": "yearofweek",
    "qtr": "quarter",
    **dict.fromkeys(("mon", "mons", "months"), "month"),
    **dict.fromkeys(("w", "weeks", "isoweek"), "week"),
    **dict.fromkeys(("d", "days"), "day"),
    "dow": "dayofweek",
    **dict.fromkeys(("dow_iso", "isodow"), "dayofweek_iso"),
    "doy": "dayofyear",
    **dict.fromkeys(("h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("s", "sec", "seconds", "secs"), "second"),
}


def field_of(name: str, value: Value, scope: Scope) -> Value:
    """Return a field of a date or time, as EXTRACT does.

    Raises:
        SqlError: There is no such field.
    """
    lowered = _ALIASES.get(name.lower(), name.lower())
    clock = clock_of(value, scope)
    if lowered == "second":
        return Value(_precise_second(clock), _SECONDS)
    if lowered == "epoch":
        return _epoch(value, scope, _SECOND)
    if lowered not in _FIELDS:
        raise SqlError(f"'{name}' is no field of a date or time", f"Write one of {_listed()}.")
    return int32(_FIELDS[lowered](clock))


def _listed() -> str:
    return ", ".join(name.upper() for name in _FIELDS)


def _field(name: str) -> Handler:
    return lambda call: int32(_FIELDS[name](clock_of(call.value(0), call.scope)))


def _date_part(call: Call) -> Value:
    return field_of(call.constant(0, str, "the field"), call.value(1), call.scope)


def _named(pattern: str) -> Handler:
    return lambda call: text(formatted(clock_of(call.value(0), call.scope), pattern, None))


def _datediff(call: Call) -> Value:
    if len(call) == 2:
        end, start = date_of(call), date_of(call, 1)
        return int32(end.expr.cast(pl.Int32) - start.expr.cast(pl.Int32))
    unit = unit_named(call.nodes[0].name)
    start, end = (clock_of(call.value(index), call.scope) for index in (1, 2))
    if unit in ("year", "quarter", "month"):
        whole = _whole_months(start, end).truncdiv({"year": 12, "quarter": 3, "month": 1}[unit])
        return Value(whole.cast(pl.Int64), pl.Int64())
    size = {"day": _DAY, "week": 7 * _DAY, "millisecond": _MILLI, "microsecond": 1}
    apart = _micros(end) - _micros(start)
    return Value(apart.truncdiv({**size, **_SIZES}[unit]), pl.Int64())


def _months(clock: pl.Expr) -> pl.Expr:
    return clock.dt.year().cast(pl.Int64) * 12 + clock.dt.month().cast(pl.Int64)


def _within_month(clock: pl.Expr) -> pl.Expr:
    return _micros(clock) - _micros(clock.dt.truncate("1mo"))


def _whole_months(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    months = _months(end) - _months(start)
    rest = _within_month(end) - _within_month(start)
    return (
        pl.when((months > 0) & (rest < 0))
        .then(months - 1)
        .when((months < 0) & (rest > 0))
        .then(months + 1)
        .otherwise(months)
    )


def _months_between(call: Call) -> Value:
    end, start = (clock_of(call.value(index), call.scope) for index in (0, 1))
    rounds = len(call) < 3 or call.value(2).constant is True
    months = (_months(end) - _months(start)).cast(pl.Float64)
    both_last = (end.cast(pl.Date) == end.cast(pl.Date).dt.month_end()) & (
        start.cast(pl.Date) == start.cast(pl.Date).dt.month_end()
    )
    same_day = end.dt.day() == start.dt.day()
    after, before = (_within_month(clock).floordiv(_SECOND) for clock in (end, start))
    exact = months + (after - before).cast(pl.Float64) / (31 * 86_400)
    whole = pl.when(same_day | both_last).then(months).otherwise(exact)
    return Value(whole.round(8) if rounds else whole, pl.Float64())


def _epoch(value: Value, scope: Scope, size: int) -> Value:
    instant = to_moment(value, "instant", scope).expr.cast(INSTANT).cast(pl.Int64)
    return Value(instant.floordiv(size), pl.Int64())


def _unix_timestamp(call: Call) -> Value:
    if not len(call):
        return constant(int(call.scope.now.timestamp()))
    value = to_moment(call.value(0), "instant", call.scope, pattern=pattern_of(call, 1))
    return _epoch(value, call.scope, _SECOND)


def _unix(size: int) -> Handler:
    return lambda call: _epoch(call.value(0), call.scope, size)


def _instant(size: int) -> Handler:
    def handler(call: Call) -> Value:
        value = call.value(0)
        if size == _SECOND and kind_of(value.dtype) in ("decimal", "float"):
            micros = value.expr.cast(pl.Decimal(38, 6)) * size
        else:
            micros = to_whole(value, call.scope).expr.cast(pl.Int128) * size
        fitted = cast(Value(micros, value.dtype), pl.Int64(), call.scope)
        return Value(fitted.cast(INSTANT), INSTANT)

    return handler


def _from_unixtime(call: Call) -> Value:
    pattern = call.constant(1, str, "the pattern") if len(call) > 1 else "yyyy-MM-dd HH:mm:ss"
    instant = _instant(_SECOND)(call)
    return text(formatted(clock_of(instant, call.scope), pattern, call.scope.zone))


def _unix_date(call: Call) -> Value:
    return int32(date_of(call).expr)


def _from_unix_date(call: Call) -> Value:
    days = to_whole(call.value(0), call.scope).expr
    return Value(days.cast(pl.Int32).cast(pl.Date), pl.Date())


FUNCTIONS: dict[str, Handler] = {
    **{name: _field(name) for name in ("year", "quarter", "month", "day", "dayofweek", "weekday")},
    **{name: _field(name) for name in ("dayofyear", "hour", "minute", "second")},
    "weekofyear": _field("week"),
    "monthname": _named("MMM"),
    "dayname": _named("EEE"),
    "date_part": _date_part,
    "datediff": _datediff,
    "months_between": _months_between,
    "unix_timestamp": _unix_timestamp,
    "from_unixtime": _from_unixtime,
    "timestamp_seconds": _instant(_SECOND),
    "timestamp_millis": _instant(_MILLI),
    "timestamp_micros": _instant(1),
    "unix_seconds": _unix(_SECOND),
    "unix_millis": _unix(_MILLI),
    "unix_micros": _unix(1),
    "unix_date": _unix_date,
    "date_from_unix_date": _from_unix_date,
}
