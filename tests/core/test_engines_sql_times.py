"""Dates, times and zones in the SQL of the metadata."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.polars_sql import typed_expression
from tests.core.evaluated import INSTANT, NOW, kind, value

# Dates and zones


def test_the_instant_of_the_load_is_one_and_in_utc():
    assert value("current_timestamp") == value("now()") == [NOW]
    assert kind("current_timestamp()") == INSTANT
    assert value("current_date") == [date(2024, 3, 31)]
    assert value("current_date()", zone="Europe/Berlin") == [date(2024, 4, 1)]


def test_without_a_load_it_is_this_instant():
    found = pl.select(typed_expression("current_timestamp", {}, place="p")[0]).item()
    assert abs(datetime.now(UTC) - found) < timedelta(minutes=1)


def test_a_timestamp_without_a_zone_stays_one_and_is_the_zones_beside_an_instant():
    """W9."""
    frame = pl.DataFrame(
        {"t": [datetime(2024, 7, 1, 12)], "i": [datetime(2024, 7, 1, 10, tzinfo=UTC)]}
    )
    assert value("t + INTERVAL 1 DAY", frame) == [datetime(2024, 7, 2, 12)]
    assert value("date_trunc('day', t)", frame) == [datetime(2024, 7, 1)]
    assert value("t = i", frame) == [False]
    assert value("t = i", frame, zone="Europe/Berlin") == [True]
    assert value("CAST(t AS TIMESTAMP)", frame, zone="Europe/Berlin") == [
        datetime(2024, 7, 1, 10, tzinfo=UTC)
    ]
    assert value("t = TIMESTAMP '2024-07-01 12:00:00'", frame, zone="Europe/Berlin") == [True]


def test_instants_of_other_zones_are_instants():
    zoned = pl.Series([datetime(2024, 7, 1, 10, tzinfo=UTC)]).dt.convert_time_zone("Asia/Tokyo")
    frame = pl.DataFrame({"t": zoned})
    assert value("t >= '2024-07-01T10:00:00Z' AND hour(t) = 10", frame) == [True]


def test_hours_that_repeat_are_cut_to_two_different_hours():
    """dst-repeated-hour."""
    frame = pl.DataFrame({"t": [datetime(2022, 11, 6, hour, 30, tzinfo=UTC) for hour in (6, 7)]})
    found = value("date_trunc('hour', t)", frame, zone="America/Chicago")
    assert found == [datetime(2022, 11, 6, hour, tzinfo=UTC) for hour in (6, 7)]
    assert value("hour(t)", frame, zone="America/Chicago") == [1, 1]


def test_a_day_is_that_of_the_zone():
    frame = pl.DataFrame({"t": [datetime(2024, 11, 4, 4, 30, tzinfo=UTC)]})
    assert value("to_date(t)", frame, zone="America/New_York") == [date(2024, 11, 3)]
    assert value("date_trunc('day', t)", frame, zone="America/New_York") == [
        datetime(2024, 11, 3, 4, tzinfo=UTC)
    ]
    # 25 hours long
    assert value("t + INTERVAL 1 DAY", frame, zone="America/New_York") == [
        datetime(2024, 11, 5, 4, 30, tzinfo=UTC)
    ]


def test_a_local_time_that_does_not_exist_stops_the_load():
    """dst-gap-local-time."""
    frame = pl.DataFrame({"s": ["2011-03-13 02:55:00"]})
    with pytest.raises(BadValue, match="does not exist in America/New_York"):
        value("CAST(s AS TIMESTAMP)", frame, zone="America/New_York")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("to_date('05.01.2024', 'dd.MM.yyyy')", date(2024, 1, 5)),
        ("to_date('2024-01-05T23:00:00')", date(2024, 1, 5)),
        ("to_timestamp('05/01/2024 10:11', 'dd/MM/yyyy HH:mm')", datetime(2024, 1, 5, 10, 11, tzinfo=UTC)),
        ("to_timestamp('2024-01-05T10:00:00+02:00')", datetime(2024, 1, 5, 8, tzinfo=UTC)),
        ("EXTRACT(YEAR FROM '2024-01-05')", 2024),
        ("datediff(MONTH, DATE '2024-01-31', DATE '2024-03-30')", 1),
        ("timestampdiff(HOUR, TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02 01:59:00')", 25),
        ("dateadd(QUARTER, 1, DATE '2024-01-31')", date(2024, 4, 30)),
        ("DATE '2024-03-31' - INTERVAL 1 MONTH", date(2024, 2, 29)),
        ("INTERVAL '1 month 2 days' + DATE '2024-01-30'", date(2024, 3, 2)),
        ("TIMESTAMP '2024-01-01' + INTERVAL '1' DAY + INTERVAL 30 MINUTES", datetime(2024, 1, 2, 0, 30, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_dates_are_made_moved_and_measured(written, expected):
    assert value(written) == [expected]
