"""Rules of ``configure.datacoolie.replay``: bounds and chunks that make sense together."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.times import is_timezone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacoolie_core.metadata.options import ReplayOptions

_DATE_UNITS = ("years", "months", "weeks", "days")
_UNITS = (*_DATE_UNITS, "hours", "minutes")
_FIELD = "configure.datacoolie.replay"
Bound = int | date | datetime


def check_replay(replay: ReplayOptions, watermark_columns: tuple[str, ...]) -> Iterator[Finding]:
    """Yield what is wrong with the replay of one dataflow."""
    if not is_timezone(replay.timezone):
        message = f"unknown timezone '{replay.timezone}'; write one such as Europe/Berlin"
        yield Finding(f"{_FIELD}.timezone", message)
    if replay.chunk_column is None and not watermark_columns:
        message = "needs chunk_column, since the source has no watermark_columns"
        yield Finding(_FIELD, message)
    start, end = _parsed(replay.start), _parsed(replay.end)
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, str):
            message = f"'{value}' is no date, timestamp or whole number; write 2025-01-31"
            yield Finding(f"{_FIELD}.{name}", message)
    if isinstance(start, str):
        return
    yield from _check_interval(replay, start)
    if not isinstance(end, str) and end is not None:
        yield from _check_order(start, end)


def _parsed(value: str | int | None) -> Bound | str | None:
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
    except ValueError:
        return text


def _check_order(start: Bound | None, end: Bound) -> Iterator[Finding]:
    if type(start) is not type(end):
        message = "start and end must be of one kind: both dates, both timestamps or both numbers"
        yield Finding(f"{_FIELD}.end", message)
    elif _mixed(start, end):
        message = "one of start and end has an offset and the other has none"
        yield Finding(f"{_FIELD}.end", message)
    elif not start < end:  # pyright: ignore[reportOperatorIssue, reportOptionalOperand]
        yield Finding(f"{_FIELD}.end", f"end {end} is not after start {start}; end is exclusive")


def _mixed(start: Bound | None, end: Bound) -> bool:
    if not (isinstance(start, datetime) and isinstance(end, datetime)):
        return False
    return (start.tzinfo is None) != (end.tzinfo is None)


def _check_interval(replay: ReplayOptions, start: Bound | None) -> Iterator[Finding]:
    interval = dict(replay.chunk_interval or {})
    field = f"{_FIELD}.chunk_interval"
    step = interval.pop("step", replay.step)
    if replay.chunk_interval is not None and not replay.chunk_interval:
        yield Finding(field, f"has no unit; give some of {', '.join(_UNITS)}")
    if step is not None and (interval or (replay.step is not None and replay.step != step)):
        yield Finding(field, "give units or a step, not both")
    if step is not None and step < 1:
        yield Finding(f"{_FIELD}.step", f"must be at least 1, got {step}")
    yield from _check_units(interval, field)
    yield from _check_fit(interval, step, start, field)


def _check_units(interval: Mapping[str, int], field: str) -> Iterator[Finding]:
    for unit, amount in interval.items():
        if unit not in _UNITS:
            message = f"unknown unit '{unit}'; the units are {', '.join(_UNITS)}"
            yield Finding(f"{field}.{unit}", message, nearest(unit, _UNITS))
        elif amount < 1:
            yield Finding(f"{field}.{unit}", f"must be at least 1, got {amount}")


def _check_fit(
    interval: Mapping[str, int], step: int | None, start: Bound | None, field: str
) -> Iterator[Finding]:
    if isinstance(start, int):
        if interval:
            yield Finding(field, "start is a number: give a step, not units of time")
    elif step is not None:
        yield Finding(f"{_FIELD}.step", "start is a date or timestamp: give chunk_interval")
    elif not isinstance(start, datetime) and {"hours", "minutes"} & interval.keys():
        message = "hours and minutes need timestamps as bounds, such as 2025-01-31T00:00:00"
        yield Finding(field, message)
