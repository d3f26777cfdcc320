"""Chunks of a replay: calendar snapping, zones, numbers, refusals."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from datacoolie_core.errors import SettingsError
from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.plan.windows import Window


def edges(*args: Any, **options: Any) -> list[Any]:
    """The bounds of all chunks, after a check that they touch."""
    windows = generate_chunks(*args, column="c", **options)
    assert all(one.upper == other.lower for one, other in pairwise(windows))
    return [windows[0].lower, *(window.upper for window in windows)]


def days(text: str) -> list[date]:
    return [date.fromisoformat(part) for part in text.split()]


WORKED_EXAMPLES = {
    "1 months": (
        ("2025-01-01", "2025-04-01", {"months": 1}),
        days("2025-01-01 2025-02-01 2025-03-01 2025-04-01"),
    ),
    "2 months, partial ends": (
        ("2025-01-15", "2025-04-10", {"months": 1}),
        days("2025-01-15 2025-02-01 2025-03-01 2025-04-01 2025-04-10"),
    ),
    "3 seven days": (
        ("2025-01-15", "2025-02-20", {"days": 7}),
        days("2025-01-15 2025-01-22 2025-01-29 2025-02-05 2025-02-12 2025-02-19 2025-02-20"),
    ),
    "4 weeks": (
        ("2025-01-15", "2025-02-20", {"weeks": 1}),
        days("2025-01-15 2025-01-20 2025-01-27 2025-02-03 2025-02-10 2025-02-17 2025-02-20"),
    ),
    "5 steps": ((7, 35, {"step": 10}), [7, 10, 20, 30, 35]),
    "6 steps below zero": ((-7, 12, {"step": 5}), [-7, -5, 0, 5, 10, 12]),
    "7 hours": (
        ("2025-01-01T06:30", "2025-01-02T01:00", {"hours": 6}),
        [
            datetime(2025, 1, 1, 6, 30, tzinfo=UTC),
            datetime(2025, 1, 1, 12, tzinfo=UTC),
            datetime(2025, 1, 1, 18, tzinfo=UTC),
            datetime(2025, 1, 2, 0, tzinfo=UTC),
            datetime(2025, 1, 2, 1, tzinfo=UTC),
        ],
    ),
    "8 quarters": (
        ("2025-02-10", "2025-12-01", {"months": 3}),
        days("2025-02-10 2025-04-01 2025-07-01 2025-10-01 2025-12-01"),
    ),
    "9 two years": (
        ("2024-05-05", "2028-02-01", {"years": 2}),
        days("2024-05-05 2025-01-01 2027-01-01 2028-02-01"),
    ),
    "10 five months": (
        ("2025-11-15", "2026-08-10", {"months": 5}),
        days("2025-11-15 2026-04-01 2026-08-10"),
    ),
    "11 a month and a day": (
        ("2025-01-31", "2025-05-01", {"months": 1, "days": 1}),
        days("2025-01-31 2025-02-02 2025-03-03 2025-04-04 2025-05-01"),
    ),
    "12 one chunk": ((3, 8, {"step": 10}), [3, 8]),
}


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_examples_come_out(example: str) -> None:
    (start, end, interval), expected = WORKED_EXAMPLES[example]
    assert edges(start, end, chunk_interval=interval) == expected


def test_boundaries_are_counted_from_the_anchor_and_never_drift() -> None:
    """A month and a day from January 1: boundary k is k months and k days later."""
    found = edges("2025-01-01", "2028-01-01", chunk_interval={"months": 1, "days": 1})
    # stepping from boundary to boundary would clamp at a month's end once and stay behind
    assert found[13] == date(2026, 2, 14)
    assert found[30] == date(2027, 7, 31)


def test_months_from_the_31st_snap_to_the_calendar() -> None:
    """Case pb-month-end-chunks."""
    found = edges("2019-12-31", "2020-05-01", chunk_interval={"months": 1})
    assert found == days("2019-12-31 2020-01-01 2020-02-01 2020-03-01 2020-04-01 2020-05-01")


def test_weeks_start_on_monday_across_new_year() -> None:
    """Case pb-iso-weeks."""
    windows = generate_chunks("2024-12-23", "2025-01-13", column="d", chunk_interval={"weeks": 1})
    assert [window.key for window in windows] == ["2024-12-23", "2024-12-30", "2025-01-06"]
    assert windows[1] == Window("d", date(2024, 12, 30), date(2025, 1, 6), "2024-12-30")


def test_a_month_of_new_york_starts_at_its_midnight() -> None:
    windows = generate_chunks(
        "2013-01-01",
        "2014-01-01",
        column="time_hour",
        chunk_interval={"months": 1},
        timezone="America/New_York",
    )
    assert [window.key for window in windows] == [f"2013-{month:02d}" for month in range(1, 13)]
    assert windows[0].lower == datetime(2013, 1, 1, 5, tzinfo=UTC)
    assert windows[0].upper == datetime(2013, 2, 1, 5, tzinfo=UTC)
    assert windows[3].lower == datetime(2013, 4, 1, 4, tzinfo=UTC)


def test_days_on_which_clocks_change_have_23_and_25_hours() -> None:
    """Case dst-daily-window-is-23-or-25-hours."""
    zone = {"chunk_interval": {"days": 1}, "timezone": "America/New_York"}
    spring = generate_chunks("2024-03-10", "2024-03-11", column="c", **zone)
    autumn = generate_chunks("2024-11-03", "2024-11-04", column="c", **zone)
    assert spring == (
        Window(
            "c",
            datetime(2024, 3, 10, 5, tzinfo=UTC),
            datetime(2024, 3, 11, 4, tzinfo=UTC),
            "2024-03-10",
        ),
    )
    assert autumn == (
        Window(
            "c",
            datetime(2024, 11, 3, 4, tzinfo=UTC),
            datetime(2024, 11, 4, 5, tzinfo=UTC),
            "2024-11-03",
        ),
    )


def test_a_day_without_midnight_starts_at_its_first_instant() -> None:
    """Case dst-midnight-does-not-exist."""
    windows = generate_chunks(
        "2018-11-03",
        "2018-11-06",
        column="c",
        chunk_interval={"days": 1},
        timezone="America/Sao_Paulo",
    )
    assert [window.key for window in windows] == ["2018-11-03", "2018-11-04", "2018-11-05"]
    assert windows[1].lower == datetime(2018, 11, 4, 3, tzinfo=UTC)
    assert windows[1].upper == datetime(2018, 11, 5, 2, tzinfo=UTC)


def test_a_gap_across_midnight_ends_the_day_before() -> None:
    """Toronto 1919: the clocks went from 23:30 to 0:30."""
    windows = generate_chunks(
        "1919-03-30",
        "1919-04-01",
        column="c",
        chunk_interval={"days": 1},
        timezone="America/Toronto",
    )
    assert windows[0].upper == datetime(1919, 3, 31, 4, 30, tzinfo=UTC)
    assert windows[1].lower == windows[0].upper


def test_a_day_that_a_zone_skipped_makes_no_empty_chunk() -> None:
    """Samoa had no 30 December 2011."""
    windows = generate_chunks(
        "2011-12-29", "2012-01-01", column="c", chunk_interval={"days": 1}, timezone="Pacific/Apia"
    )
    assert [window.key for window in windows] == ["2011-12-29", "2011-12-31"]
    assert windows[0].upper == windows[1].lower
    with pytest.raises(SettingsError, match="not before"):
        generate_chunks("2011-12-30", "2011-12-31", column="c", timezone="Pacific/Apia")


def test_midnight_that_comes_twice_is_the_first_one() -> None:
    """Havana: at 1:00 the clocks go back to 0:00."""
    (window,) = generate_chunks(
        "2024-11-03",
        "2024-11-04",
        column="c",
        chunk_interval={"days": 1},
        timezone="America/Havana",
    )
    assert window.lower == datetime(2024, 11, 3, 4, tzinfo=UTC)
    assert window.upper == datetime(2024, 11, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(("day", "hours"), [("2024-11-03", 25), ("2024-03-10", 23)])
def test_each_hour_of_a_changed_day_has_its_own_key(day: str, hours: int) -> None:
    """Case dst-hourly-keys-in-fall."""
    end = date.fromisoformat(day) + timedelta(days=1)
    windows = generate_chunks(
        f"{day}T00:00",
        f"{end}T00:00",
        column="c",
        chunk_interval={"hours": 1},
        timezone="America/New_York",
    )
    assert len({window.key for window in windows}) == hours
    assert {window.upper - window.lower for window in windows} == {timedelta(hours=1)}  # type: ignore[operator]
    again = [f"{window.lower:%Y-%m-%dT%H:%M}Z" for window in windows]
    assert [window.key for window in windows] == again


def test_a_start_in_the_second_of_two_equal_hours_stays_there() -> None:
    windows = generate_chunks(
        "2024-11-03T01:30-05:00",
        "2024-11-03T03:00-05:00",
        column="c",
        chunk_interval={"hours": 1},
        timezone="America/New_York",
    )
    assert [window.key for window in windows] == ["2024-11-03T06:00Z", "2024-11-03T07:00Z"]
    assert windows[0].lower == datetime(2024, 11, 3, 6, 30, tzinfo=UTC)


def test_zones_of_bounds_are_converted_never_dropped() -> None:
    """W9."""
    (window,) = generate_chunks("2025-01-01T00:00+09:00", "2025-01-01T03:00+09:00", column="c")
    assert window.lower == datetime(2024, 12, 31, 15, tzinfo=UTC)
    assert window.upper == datetime(2024, 12, 31, 18, tzinfo=UTC)


def test_naive_timestamps_are_wall_clock_times_of_the_zone_or_stay_naive() -> None:
    naive = ("2025-07-01T00:00", "2025-07-01T12:00")
    (placed,) = generate_chunks(*naive, column="c", timezone="Europe/Paris")
    assert placed.lower == datetime(2025, 6, 30, 22, tzinfo=UTC)
    (kept,) = generate_chunks(*naive, column="c", timezone=None)
    assert kept.lower == datetime(2025, 7, 1)
    assert kept.key == "2025-07-01T00:00_2025-07-01T12:00"


@pytest.mark.parametrize(
    ("local", "story"),
    [("2024-03-10T02:30", "does not exist"), ("2024-11-03T01:30", "comes twice")],
)
def test_a_written_time_that_clocks_skip_or_repeat_is_refused(local: str, story: str) -> None:
    with pytest.raises(SettingsError, match=f"{story} in America/New_York"):
        generate_chunks(local, "2024-12-01T00:00", column="c", timezone="America/New_York")


def test_an_open_end_ends_with_the_running_chunk() -> None:
    now = datetime(2025, 3, 15, 12, tzinfo=UTC)
    options = {"column": "c", "chunk_interval": {"months": 1}, "now": now}
    windows = generate_chunks("2025-01-01", None, **options)
    assert [window.key for window in windows] == ["2025-01", "2025-02", "2025-03"]
    assert windows[-1].upper == date(2025, 4, 1)
    assert generate_chunks("2025-03-16", None, **options) == ()


def test_an_open_end_runs_in_the_calendar_of_its_zone() -> None:
    """At 3:00 UTC on April 1 it is still March in New York."""
    now = datetime(2025, 4, 1, 3, tzinfo=UTC)
    options = {"column": "c", "chunk_interval": {"months": 1}, "now": now}
    here = generate_chunks("2025-03-01", None, timezone="America/New_York", **options)
    assert [window.key for window in here] == ["2025-03"]
    there = generate_chunks("2025-03-01", None, **options)
    assert [window.key for window in there] == ["2025-03", "2025-04"]


def test_an_open_end_in_one_piece_has_no_upper_bound() -> None:
    (window,) = generate_chunks("2025-01-01", None, column="c")
    assert window == Window("c", date(2025, 1, 1), None, "2025-01-01_open")


def test_decimals_and_floats_step_exactly() -> None:
    assert edges(Decimal("0.05"), Decimal("0.35"), step=Decimal("0.1")) == [
        Decimal("0.05"),
        Decimal("0.1"),
        Decimal("0.2"),
        Decimal("0.3"),
        Decimal("0.35"),
    ]
    assert edges(0.0, 0.5, step=0.1) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_keys_name_the_period_and_are_padded() -> None:
    def keys(*args: Any, **options: Any) -> list[str]:
        return [window.key for window in generate_chunks(*args, column="c", **options)]

    assert keys("2024-05-05", "2026-02-01", chunk_interval={"years": 1}) == ["2024", "2025", "2026"]
    assert keys("2025-01-15", "2025-01-22", chunk_interval={"weeks": 1}) == [
        "2025-01-13",
        "2025-01-20",
    ]
    assert keys(7, 120, step=50) == ["000", "050", "100"]
    assert keys("2025-01-01T06:30", "2025-01-01T07:10", chunk_interval={"minutes": 30}) == [
        "2025-01-01T06:30Z",
        "2025-01-01T07:00Z",
    ]
    assert keys("2025-01-01T06:30", "2025-01-01T07:00", chunk_interval={"hours": 1}, timezone=None)[
        0
    ] == ("2025-01-01T06:00")


REFUSED = {
    "days 0": (("2025-01-01", "2025-02-01"), {"chunk_interval": {"days": 0}}, "days is 0"),
    "text": (("2025-01-01", "2025-02-01"), {"chunk_interval": {"days": "1"}}, "days is '1'"),
    "true": (("2025-01-01", "2025-02-01"), {"chunk_interval": {"days": True}}, "days is True"),
    "unit": (("2025-01-01", "2025-02-01"), {"chunk_interval": {"day": 1}}, "Did you mean 'days'"),
    "empty": (("2025-01-01", "2025-02-01"), {"chunk_interval": {}}, "empty"),
    "hours of dates": (
        ("2025-01-01", "2025-02-01"),
        {"chunk_interval": {"hours": 6}},
        "dates and chunk_interval has hours",
    ),
    "days of numbers": ((1, 5), {"chunk_interval": {"days": 1}}, "Use a step"),
    "step of dates": (("2025-01-01", "2025-02-01"), {"step": 5}, "dates and the interval is a st"),
    "step and units": ((1, 5), {"chunk_interval": {"step": 1, "days": 1}}, "beside"),
    "both": ((1, 5), {"chunk_interval": {"step": 1}, "step": 1}, "Keep one"),
    "step 0": ((1, 5), {"step": 0}, "step is 0"),
    "step true": ((1, 5), {"step": True}, "step is True"),
    "float step": ((1, 5), {"step": 0.5}, "step is a float"),
    "mixed kinds": (("2025-01-01", "2025-01-02T00:00"), {}, "start is a date and end is a timest"),
    "mixed numbers": ((1, 2.5), {}, "start is a int and end is a float"),
    "mixed zones": (("2025-01-01T00:00Z", "2025-01-02T00:00"), {}, "one of start and end"),
    "bool": ((True, 5), {}, "start is True"),
    "nan": ((float("nan"), 5.0), {}, "finite"),
    "no date": (("january", "2025-01-01"), {}, "'january' is no date"),
    "too fine": (("2025-01-01T00:00:00.0000001", "2025-01-02T00:00"), {}, "finer than"),
    "order": (("2025-02-01", "2025-01-01"), {}, "not before"),
    "empty range": ((5, 5), {"step": 1}, "not before"),
    "zone": (("2025-01-01", "2025-02-01"), {"timezone": "Mars/Olympus"}, "no time zone"),
    "too many": (("2000-01-01T00:00", "2025-01-01T00:00"), {"chunk_interval": {"minutes": 1}}, "r"),
    "open numbers": ((1, None), {"step": 1}, "need an end"),
    "open without now": (("2025-01-01", None), {"chunk_interval": {"days": 1}}, "current time"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_with_a_remedy(case: str) -> None:
    bounds, options, words = REFUSED[case]
    with pytest.raises(SettingsError, match=words) as caught:
        generate_chunks(*bounds, column="c", **options)
    assert caught.value.remedy


def test_seven_digits_that_end_in_zeros_are_fine() -> None:
    (window,) = generate_chunks("2025-01-01T00:00:00.1000000", "2025-01-02T00:00", column="c")
    assert window.lower == datetime(2025, 1, 1, 0, 0, 0, 100_000, tzinfo=UTC)
