"""Cutting a range into chunks: the windows of a replay, the partitions of Dagster.

The first boundary snaps to the calendar (or to a multiple of the step); boundary k is that anchor
plus k intervals, so nothing drifts. The first and the last chunk may be partial. Chunks are
half-open, touch exactly and are never empty.

Zones: with a ``timezone``, timestamps without an offset are its wall-clock times, calendar
boundaries are its midnights, and the windows come back as aware UTC timestamps. Plain dates stay
dates in UTC; in any other zone they become instants too, since a day of that zone is meant.
``timezone=None`` leaves naive timestamps naive. Years, months, weeks and days are calendar units:
a day lasts 23 or 25 hours when clocks change, and starts at its first instant where midnight is
skipped or comes twice. Hours and minutes are durations.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import islice
from typing import TYPE_CHECKING

from datacoolie_core.plan.boundaries import calendar_boundaries, plain, step_boundaries
from datacoolie_core.plan.bounds import Bound, Step, check_pair, parse_bound, refuse
from datacoolie_core.plan.intervals import Interval, parse_interval
from datacoolie_core.plan.localtime import find_zone, first_instant, instant_of
from datacoolie_core.plan.windows import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from zoneinfo import ZoneInfo

    from datacoolie_core.errors import SettingsError
    from datacoolie_core.plan.boundaries import Boundary

MAX_CHUNKS = 100_000
"""More chunks than this are a mistake in the interval."""


def generate_chunks(
    start: str | Bound,
    end: str | Bound | None,
    *,
    column: str,
    chunk_interval: Mapping[str, int] | None = None,
    step: Step | None = None,
    timezone: str | None = "UTC",
    now: datetime | None = None,
) -> tuple[Window, ...]:
    """Cut ``[start, end)`` into windows.

    >>> [w.key for w in generate_chunks("2025-01-15", "2025-03-10", column="d",
    ...                                 chunk_interval={"months": 1})]
    ['2025-01', '2025-02', '2025-03']

    Args:
        start: Inclusive: a date, a timestamp, a number, or ISO text.
        end: Exclusive, of the same kind. None is an open end: the last chunk is the whole one
            that holds ``now``; a start after ``now`` gives no chunk.
        column: The source column that the windows bound.
        chunk_interval: ``years, months, weeks, days, hours, minutes``, or ``step`` alone.
        step: The width of a chunk of numbers.
        timezone: An IANA name; None keeps naive timestamps naive.
        now: The current instant, aware; needed for an open end in chunks.

    Returns:
        The windows in order, with unique keys of ``[0-9A-Za-z:_-]`` that name the period: they
        sort as text too, but for negative numbers. Without interval and step: one window.

    Raises:
        SettingsError: The range or its interval makes no sense.
    """
    try:
        first = parse_bound(start, "start")
        last = None if end is None else parse_bound(end, "end")
        if last is not None:
            check_pair(first, last)
        interval = parse_interval(chunk_interval, step, first)
        zone = None if timezone is None else find_zone(timezone)
        placed = _placed(first, zone)
        stop = None if last is None else _placed(last, zone)
        if stop is not None:
            check_pair(placed, stop)
        if interval is None:
            cut = (_one_piece(placed, stop, column),)
        else:
            if last is None:
                stop = _end_of_running(placed, interval, zone, now)
            if stop is None:
                return ()
            cut = _padded(_cut(placed, stop, _boundaries(placed, interval, zone), column))
        return tuple(replace(window, zone=_written_in(first, zone)) for window in cut)
    except OverflowError as error:
        raise refuse("a bound lies outside the years 1 to 9999 in UTC", "Move it in.") from error


def _written_in(bound: Bound, zone: ZoneInfo | None) -> str | None:
    """Return whose clocks showed a bound as it was written, None if it has an offset."""
    offset = isinstance(bound, datetime) and bound.tzinfo is not None
    return None if zone is None or offset or not isinstance(bound, date) else zone.key


def _placed(bound: Bound, zone: ZoneInfo | None) -> Bound:
    if isinstance(bound, datetime):
        if bound.tzinfo is not None:
            return bound.astimezone(UTC)
        return bound if zone is None else instant_of(bound, zone)
    if isinstance(bound, date) and zone is not None and zone.key != "UTC":
        return first_instant(datetime(bound.year, bound.month, bound.day), zone)  # noqa: DTZ001
    return bound


def _boundaries(first: Bound, interval: Interval, zone: ZoneInfo | None) -> Iterator[Boundary]:
    if isinstance(first, date):
        return calendar_boundaries(first, interval, zone)
    assert interval.step is not None
    return step_boundaries(first, interval.step)


def _one_piece(first: Bound, last: Bound | None, column: str) -> Window:
    return Window(column, first, last, f"{plain(first)}_{'open' if last is None else plain(last)}")


def _end_of_running(
    first: Bound, interval: Interval, zone: ZoneInfo | None, now: datetime | None
) -> Bound | None:
    if not isinstance(first, date):
        raise refuse("chunks of numbers need an end", "Set end.")
    if now is None:
        raise refuse("an open end needs the current time", "Pass now.")
    current = _now_like(first, now, zone)
    if current < first:
        return None
    for bound, _ in islice(_boundaries(first, interval, zone), MAX_CHUNKS + 1):
        if _before(current, bound):
            return bound
    raise _too_many()


def _now_like(first: date, now: datetime, zone: ZoneInfo | None) -> date:
    if not isinstance(first, datetime):
        return now.astimezone(zone or UTC).date()
    if first.tzinfo is None:
        return now.astimezone(UTC).replace(tzinfo=None)
    return now.astimezone(UTC)


def _cut(
    first: Bound, last: Bound, boundaries: Iterable[Boundary], column: str
) -> tuple[Window, ...]:
    windows: list[Window] = []
    lower, key = first, ""
    for boundary, name in boundaries:
        if not _before(lower, boundary):
            # the anchor, or a day that its zone skipped: the later period owns the place
            key = name
            continue
        if not _before(boundary, last):
            break
        windows.append(Window(column, lower, boundary, key))
        if len(windows) >= MAX_CHUNKS:
            raise _too_many()
        lower, key = boundary, name
    return (*windows, Window(column, lower, last, key))


def _too_many() -> SettingsError:
    return refuse(f"it has more than {MAX_CHUNKS:,} chunks", "Choose a larger interval.")


def _before(one: Bound, other: Bound) -> bool:
    # both are of one kind, since they come from one range
    return bool(one < other)  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]


def _padded(windows: tuple[Window, ...]) -> tuple[Window, ...]:
    if isinstance(windows[0].lower, date):
        return windows
    parts = [window.key.partition("_") for window in windows]
    width = max(len(whole) for whole, _, _ in parts)
    return tuple(
        replace(window, key=f"{whole.zfill(width)}{point}{rest}")
        for window, (whole, point, rest) in zip(windows, parts, strict=True)
    )
