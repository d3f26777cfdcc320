"""Laws of chunks, for any range: they tile it, and each boundary is counted from the anchor."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings, strategies as st

from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.plan.windows import Window


def edges(*args: Any, **options: Any) -> list[Any]:
    """The bounds of all chunks, after a check that they touch."""
    windows = generate_chunks(*args, column="c", **options)
    assert all(one.upper == other.lower for one, other in pairwise(windows))
    return [windows[0].lower, *(window.upper for window in windows)]


def _check_tiling(windows: tuple[Window, ...], start: Any, end: Any) -> None:
    assert windows[0].lower == start
    assert windows[-1].upper == end
    for window in windows:
        assert window.lower < window.upper  # type: ignore[operator]
        assert re.fullmatch(r"[0-9A-Za-z:_-]+", window.key)
    for one, other in pairwise(windows):
        assert one.upper == other.lower
    keys = [window.key for window in windows]
    assert len(set(keys)) == len(keys)
    if not keys[0].startswith("-"):
        assert sorted(keys) == keys


calendar_units = st.dictionaries(
    st.sampled_from(["years", "months", "weeks", "days"]), st.integers(1, 40), min_size=1
)
all_units = st.dictionaries(
    st.sampled_from(["months", "weeks", "days", "hours", "minutes"]),
    st.integers(1, 40),
    min_size=1,
)
ZONES = [
    "America/New_York",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Havana",
    "Europe/Dublin",
    "Asia/Kathmandu",
    "UTC",
]


@given(st.dates(), st.integers(1, 5000), calendar_units)
@settings(max_examples=150, deadline=None)
def test_chunks_of_dates_tile_their_range(start: date, length: int, units: dict[str, int]) -> None:
    end = date.fromordinal(min(start.toordinal() + length, date.max.toordinal()))
    if start == end:
        return
    windows = generate_chunks(start, end, column="c", chunk_interval=units)
    _check_tiling(windows, start, end)


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)),
    st.integers(1, 200_000),
    all_units,
    st.sampled_from(ZONES),
)
@settings(max_examples=150, deadline=None)
def test_chunks_of_timestamps_tile_their_range_in_any_zone(
    naive: datetime, minutes: int, units: dict[str, int], zone: str
) -> None:
    start = naive.replace(tzinfo=UTC)
    end = start + timedelta(minutes=minutes)
    if set(units) == {"minutes"} and minutes / units["minutes"] > 2000:
        return
    windows = generate_chunks(start, end, column="c", chunk_interval=units, timezone=zone)
    _check_tiling(windows, start, end)


@given(
    st.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(2037, 1, 1)),
    st.sampled_from(ZONES),
)
@settings(max_examples=100, deadline=None)
def test_inner_daily_chunks_hold_one_local_day(naive: datetime, zone: str) -> None:
    start = naive.replace(tzinfo=UTC)
    windows = generate_chunks(
        start, start + timedelta(days=20), column="c", chunk_interval={"days": 1}, timezone=zone
    )
    for window in windows[1:-1]:
        lower, upper = window.lower, window.upper
        assert isinstance(lower, datetime)
        assert isinstance(upper, datetime)
        last = (upper - timedelta(microseconds=1)).astimezone(ZoneInfo(zone))
        assert lower.astimezone(ZoneInfo(zone)).date().isoformat() == window.key
        assert last.date().isoformat() == window.key


@given(
    st.integers(-(10**40), 10**40),
    st.integers(1, 10**20),
    st.integers(1, 10**20),
)
@settings(max_examples=100, deadline=None)
def test_chunks_of_numbers_tile_their_range(start: int, length: int, step: int) -> None:
    if length // step > 2000:
        return
    windows = generate_chunks(start, start + length, column="c", step=step)
    _check_tiling(windows, start, start + length)
    assert all(window.lower % step == 0 for window in windows[1:])  # type: ignore[operator]


@given(st.decimals(-1000, 1000, places=3), st.decimals("0.1", 50, places=2))
@settings(max_examples=50, deadline=None)
def test_chunks_of_decimals_tile_their_range(start: Decimal, step: Decimal) -> None:
    _check_tiling(generate_chunks(start, start + 20, column="c", step=step), start, start + 20)


def _months_later(day: date, months: int) -> date:
    """Calendar arithmetic by hand: a day that the month lacks becomes its last."""
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


@given(
    st.dates(date(1999, 1, 1), date(2030, 1, 1)),
    st.integers(1, 30),
    st.integers(0, 3),
    st.integers(0, 45),
)
@settings(max_examples=100, deadline=None)
def test_every_boundary_is_the_anchor_and_a_whole_number_of_intervals(
    start: date, months: int, weeks: int, more_days: int
) -> None:
    """Month ends and leap days: counted by hand, with no step from the boundary before."""
    units = {"months": months, "weeks": weeks, "days": more_days}
    units = {unit: size for unit, size in units.items() if size}
    end = start + timedelta(days=4000)
    inner = edges(start, end, chunk_interval=units)[1:-1]
    anchor = date(start.year, (start.month - 1) // months * months + 1, 1)
    expected = []
    for index in range(5000):
        boundary = _months_later(anchor, months * index)
        boundary += timedelta(days=(7 * weeks + more_days) * index)
        if boundary >= end:
            break
        expected.append(boundary)
    assert inner == [boundary for boundary in expected if boundary > start]


@given(st.dates(date(1990, 1, 1), date(2040, 1, 1)), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_weeks_start_on_monday_like_those_of_iso(start: date, weeks: int) -> None:
    """pb-iso-weeks."""
    inner = edges(start, start + timedelta(days=400), chunk_interval={"weeks": weeks})[1:-1]
    assert {day.isocalendar().weekday for day in inner} == {1}
    monday = date.fromisocalendar(*start.isocalendar()[:2], 1)
    assert all((day - monday).days % (7 * weeks) == 0 for day in inner)


@given(st.integers(2016, 2032), st.sampled_from(["years", "months", "weeks", "days"]))
@settings(max_examples=40, deadline=None)
def test_the_last_days_of_february_are_in_one_chunk_each(year: int, unit: str) -> None:
    start, end = date(year, 2, 27), date(year, 3, 2)
    windows = generate_chunks(start, end, column="c", chunk_interval={unit: 1})
    day = start
    while day < end:
        assert sum(w.lower <= day < w.upper for w in windows) == 1  # type: ignore[operator]
        day += timedelta(days=1)


@given(
    st.datetimes(datetime(2023, 1, 1), datetime(2025, 12, 31)),
    st.sampled_from(["hours", "minutes"]),
    st.integers(1, 50),
)
@settings(max_examples=60, deadline=None)
def test_hours_and_minutes_are_as_long_on_every_day(naive: datetime, unit: str, size: int) -> None:
    """In a zone whose clocks change: durations, first snapped to a multiple in the day or hour."""
    start = naive.replace(tzinfo=UTC)
    inner = edges(
        start,
        start + timedelta(**{unit: size * 9}),
        chunk_interval={unit: size},
        timezone="America/New_York",
    )[1:-1]
    assert {b - a for a, b in pairwise(inner)} == {timedelta(**{unit: size})}
    assert 8 <= len(inner) <= 9


@given(
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
    st.sampled_from([0.1, 0.25, 0.3, 7.0, 1e-3]),
)
@settings(max_examples=60, deadline=None)
def test_chunks_of_floats_tile_their_range(start: float, step: float) -> None:
    end = start + step * 20
    if not start < end:
        return
    windows = generate_chunks(start, end, column="c", step=step)
    _check_tiling(windows, start, end)
    assert len(windows) <= 22


def test_a_chunk_of_a_zone_is_worth_the_same_by_name_and_by_instants() -> None:
    """A range written in a zone, and the same range written as instants, have the same chunks."""
    options: dict[str, Any] = {
        "column": "c",
        "chunk_interval": {"days": 1},
        "timezone": "America/New_York",
    }
    named = generate_chunks("2024-11-01", "2024-11-06", **options)
    meant = generate_chunks("2024-11-01T04:00Z", "2024-11-06T05:00Z", **options)
    assert named == meant
    assert (named[0].zone, meant[0].zone) == ("America/New_York", None)
