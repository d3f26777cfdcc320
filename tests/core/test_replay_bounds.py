"""Bounds of a replay and the columns that they meet: right rows, or a clear refusal."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core import ReplayConfig

TEXTS = ["2025-01-01 10:00:00", "2025-01-01 23:00:00", "2025-01-02 00:00:00"]
NAIVE = [datetime(2025, 1, 1, 10), datetime(2025, 1, 1, 23), datetime(2025, 1, 2)]
DAY = ReplayConfig("2025-01-01T00:00:00", "2025-01-02T00:00:00")


def replay(project, config):
    with project.driver() as driver:
        (result,) = driver.run_replay(driver.metadata.dataflows, config).dataflows
    return result


def ids(project):
    return sorted(int(one) for one in project.ids())


def given_column(project, values, column="ts", **flow):
    project.flow(watermark=[column], **flow)
    frame = pl.DataFrame({"id": [1, 2, 3], column: values})
    project.write("t", f"a.{project.source_format}", frame)


def loads_twice(project, config, wanted):
    """The same rows come out of a first and a second replay, and then of a normal run."""
    for _ in range(2):
        result = replay(project, config)
        assert result.status == "succeeded", result.error.message
        assert ids(project) == wanted
    project.run_one()
    assert ids(project) == [1, 2, 3]
    assert project.run_one().status == "skipped"


@pytest.mark.parametrize("hint", [None, "timestamp", "timestamp_ntz"])
def test_timestamps_in_text_are_compared_as_timestamps(project, hint):
    """W7: a blank sorts before the T of ISO text."""
    project.source_format = "csv"
    hints = [{"column_name": "ts", "data_type": hint}] if hint else []
    given_column(project, TEXTS, transform={"schema_hints": hints})
    loads_twice(project, DAY, [1, 2])


def test_numbers_in_text_are_compared_as_numbers(project):
    """W1 in a replay: '10' sorts before '9'."""
    project.source_format = "csv"
    given_column(project, [2, 9, 10], "n")
    loads_twice(project, ReplayConfig(1, 10, step=3), [1, 2])


def test_text_that_is_no_number_stops_a_replay_by_numbers(project):
    project.source_format = "csv"
    given_column(project, ["a", "b", "c"], "n")
    result = replay(project, ReplayConfig(1, 10))
    assert (result.status, result.error.code) == ("failed", "untyped_watermark")


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("start", "end"), [("2025-01-01T00:00", "2025-01-02T00:00"), ("2025-01-01", "2025-01-02")]
)
def test_bounds_without_an_offset_meet_values_without_a_zone(project, start, end, timezone):
    given_column(project, NAIVE)
    loads_twice(project, ReplayConfig(start, end, {"days": 1}, timezone=timezone), [1, 2])


def test_bounds_with_an_offset_are_refused_for_values_without_a_zone(project):
    """W9."""
    given_column(project, NAIVE)
    config = ReplayConfig("2025-01-01T00:00:00+09:00", "2025-01-01T03:00:00+09:00")
    result = replay(project, config)
    assert (result.status, result.error.code) == ("failed", "zone_unknown")
    assert "timestamp_timezone" in result.error.remedy


def test_bounds_with_an_offset_are_converted_where_a_zone_is_declared(project):
    """W9: 00:00 in Tokyo is 15:00 of the day before in UTC; the values are Tokyo's."""
    given_column(project, NAIVE, transform={"configure": {"timestamp_timezone": "Asia/Tokyo"}})
    config = ReplayConfig("2024-12-31T15:00:00+00:00", "2025-01-01T15:00:00+00:00")
    loads_twice(project, config, [1, 2])


def test_bounds_of_another_zone_meet_instants(project):
    given_column(project, pl.Series(NAIVE).dt.replace_time_zone("UTC"))
    config = ReplayConfig("2025-01-01T19:00:00+09:00", "2025-01-02T09:00:00+09:00")
    loads_twice(project, config, [1, 2])


@pytest.mark.parametrize(
    ("values", "config", "told"),
    [
        (NAIVE, ReplayConfig(1, 5, step=1), "bound 1 (int)"),
        ([1, 2, 3], ReplayConfig("2025-01-01", "2025-01-02"), "bound 2025-01-01 (date)"),
        ([True, False, True], ReplayConfig(0, 1), "Boolean"),
        (["x", "y", "z"], ReplayConfig(0, 1), "type of values"),
    ],
)
def test_bounds_of_another_type_are_refused(project, values, config, told):
    """W10: never a silent nothing."""
    given_column(project, values, "c")
    result = replay(project, config)
    assert result.status == "failed"
    assert told in result.error.message
    assert not (project.root / "lake").exists()


@pytest.mark.parametrize("timezone", ["UTC", "America/New_York"])
def test_days_meet_dates_in_any_zone(project, timezone):
    given_column(project, [date(2025, 1, 1), date(2025, 1, 1), date(2025, 1, 2)])
    config = ReplayConfig("2025-01-01", "2025-01-02", {"days": 1}, timezone=timezone)
    loads_twice(project, config, [1, 2])


def test_chunks_that_end_inside_a_day_are_refused_for_dates(project):
    given_column(project, [date(2025, 1, 1), date(2025, 1, 1), date(2025, 1, 2)])
    result = replay(project, ReplayConfig("2025-01-01T00:00", "2025-01-02T00:00", {"hours": 6}))
    assert (result.status, result.error.code) == ("failed", "bound_type")
    assert not (project.root / "lake").exists()


@pytest.mark.parametrize(
    ("dtype", "config", "wanted"),
    [
        (pl.Int8, ReplayConfig(0, 1000, step=500), [1, 2, 3]),
        (pl.UInt64, ReplayConfig(-5, 2, step=500), [1]),
        (pl.Int64, ReplayConfig(-(10**30), 10**30), [1, 2, 3]),
        (pl.Int64, ReplayConfig(Decimal("0.5"), Decimal("2.5")), [1, 2]),
        (pl.Int64, ReplayConfig(1.5, 2.5), [2]),
        (pl.Float64, ReplayConfig(0, 3), [1, 2]),
        (pl.Float32, ReplayConfig(0.1, 2.5, step=0.1), [1, 2]),
        (pl.Decimal(10, 2), ReplayConfig(Decimal("1.01"), 3 * Decimal(1)), [2]),
    ],
)
def test_numbers_of_every_type_meet_bounds_that_lie_outside_it(project, dtype, config, wanted):
    given_column(project, pl.Series([1, 2, 3]).cast(dtype), "n")
    loads_twice(project, config, wanted)


def test_a_single_precision_value_at_a_bound_belongs_to_one_chunk(project):
    """0.7 in single precision is less than 0.7: rows and files must agree on its side."""
    given_column(project, pl.Series([0.5, 0.7, 0.9], dtype=pl.Float32), "n")
    project.run_one()
    replay(project, ReplayConfig(0.5, 0.7))
    assert ids(project) == [1, 2, 3]
    replay(project, ReplayConfig(0.7, 0.9))
    assert ids(project) == [1, 2, 3]


def test_a_chunk_column_that_is_not_there_is_named(project):
    given_column(project, NAIVE)
    result = replay(project, ReplayConfig(1, 2, chunk_column="nope"))
    assert (result.status, result.error.code) == ("failed", "missing_column")
    assert "chunk column of the replay: the source has no column 'nope'" in result.error.message


@pytest.mark.parametrize("mode", ["none", "lower", "snake"])
def test_the_chunk_column_is_followed_through_rename_and_cleaning(project, mode):
    given_column(
        project,
        NAIVE,
        "Event Time",
        transform={
            "rename_columns": {"Event Time": "HappenedAt"},
            "configure": {"column_name_mode": mode},
        },
    )
    loads_twice(project, DAY, [1, 2])


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    values=st.lists(
        st.datetimes(datetime(2024, 11, 2, 12), datetime(2024, 11, 3, 23)), min_size=1, max_size=8
    ),
    hours=st.integers(3, 11),
    zone=st.sampled_from(["UTC", "America/New_York"]),
)
def test_every_row_of_the_range_comes_once_whatever_the_clocks_do(new_project, values, hours, zone):
    """Values without a zone, in chunks of hours across a change of clocks."""
    project = new_project()
    project.flow(watermark=["ts"])
    rows = pl.DataFrame({"id": range(len(values)), "ts": values})
    project.write("t", "a.parquet", rows)
    config = ReplayConfig("2024-11-02T12:00", "2024-11-04T00:00", {"hours": hours}, timezone=zone)
    for _ in range(2):
        assert replay(project, config).status == "succeeded"
        assert project.ids() == list(range(len(values)))
