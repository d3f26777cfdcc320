"""Replay chunks as partitions: the same windows on both sides, whatever the interval."""

from datetime import UTC, date, datetime, timedelta

import dagster as dg
import pytest
import time_machine
from hypothesis import given, settings, strategies as st

from datacoolie_core.errors import SettingsError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_dagster.partitions import (
    interval_name,
    mapping_between,
    partitions_of,
    replay_windows,
    windows_for,
)


def flow(**replay):
    ends = [
        {"name": "in", "format": "csv", "configure": {"base_path": "in"}},
        {"name": "out", "format": "delta", "configure": {"base_path": "out"}},
    ]
    made = {
        "name": "f",
        "source": {"connection_name": "in", "table": "f", "watermark_columns": ["at"]},
        "destination": {"connection_name": "out", "table": "f"},
        "configure": {"datacoolie": {"replay": replay}},
    }
    return metadata_from_documents([("x", {"connections": ends, "dataflows": [made]})]).dataflows[0]


def keys_and_kind(dataflow):
    partitions = partitions_of(dataflow)
    return list(partitions.get_partition_keys()), type(partitions)


TIME, FIXED = dg.TimeWindowPartitionsDefinition, dg.StaticPartitionsDefinition


@pytest.mark.parametrize(
    ("replay", "kind", "keys"),
    [
        (
            {
                "start": "2013-01-01",
                "end": "2013-04-01",
                "chunk_interval": {"months": 1},
                "timezone": "America/New_York",
            },
            TIME,
            ["2013-01", "2013-02", "2013-03"],
        ),
        (
            {"start": "2024-01-01", "end": "2025-01-01", "chunk_interval": {"months": 3}},
            TIME,
            ["2024-01", "2024-04", "2024-07", "2024-10"],
        ),
        (  # a cron restarts each January
            {"start": "2024-01-01", "end": "2025-07-01", "chunk_interval": {"months": 5}},
            FIXED,
            None,
        ),
        (  # partial first and last chunk
            {"start": "2025-01-15", "end": "2025-04-10", "chunk_interval": {"months": 1}},
            FIXED,
            ["2025-01", "2025-02", "2025-03", "2025-04"],
        ),
        (
            {"start": "2020-01-01", "end": "2023-01-01", "chunk_interval": {"years": 1}},
            TIME,
            ["2020", "2021", "2022"],
        ),
        (
            {"start": "2024-02-27", "end": "2024-03-02", "chunk_interval": {"days": 1}},
            TIME,
            ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"],
        ),
        (
            {"start": "2024-12-23", "end": "2025-01-13", "chunk_interval": {"weeks": 1}},
            TIME,
            ["2024-12-23", "2024-12-30", "2025-01-06"],
        ),  # pb-iso-weeks
        ({"start": "2024-01-01", "end": "2024-01-29", "chunk_interval": {"days": 7}}, TIME, None),
        ({"start": "2024-01-01", "end": "2024-01-29", "chunk_interval": {"days": 3}}, FIXED, None),
        ({"start": "2024-01-01", "end": "2024-02-26", "chunk_interval": {"weeks": 2}}, FIXED, None),
        (
            {
                "start": "2024-01-01T00:00:00",
                "end": "2024-01-02T00:00:00",
                "chunk_interval": {"hours": 6},
            },
            TIME,
            None,
        ),
        (
            {
                "start": "2024-01-01T00:00:00",
                "end": "2024-01-03T00:00:00",
                "chunk_interval": {"hours": 5},
            },
            FIXED,
            None,
        ),
        (
            {
                "start": "2024-01-01T00:00:00",
                "end": "2024-01-01T01:00:00",
                "chunk_interval": {"minutes": 15},
            },
            TIME,
            None,
        ),
        (
            {"start": "2019-12-31", "end": "2020-05-01", "chunk_interval": {"months": 1}},
            FIXED,
            None,
        ),  # pb-month-end-chunks
        (
            {"start": 0, "end": 2500, "step": 1000, "chunk_column": "id"},
            FIXED,
            ["0000", "1000", "2000"],
        ),
        ({"start": "2024-01-01", "end": "2024-03-01"}, FIXED, ["2024-01-01_2024-03-01"]),
        (
            {
                "start": "2024-01-01",
                "end": "2024-03-01",
                "chunk_interval": {"months": 1, "days": 3},
            },
            FIXED,
            None,
        ),
    ],
)
def test_partitions_are_the_cores_chunks(replay, kind, keys):
    dataflow = flow(**replay)
    found, its_kind = keys_and_kind(dataflow)
    assert found == [window.key for window in replay_windows(dataflow)]
    assert its_kind is kind
    if keys is not None:
        assert found == keys


UNITS = st.sampled_from(["years", "months", "weeks", "days", "hours", "minutes"])
ZONES = st.sampled_from(["UTC", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu"])


@settings(max_examples=120, deadline=None)
@given(
    start=st.datetimes(datetime(2017, 6, 1), datetime(2019, 6, 1)),
    length=st.integers(1, 40),
    unit=UNITS,
    size=st.integers(1, 13),
    zone=ZONES,
    whole=st.booleans(),
)
def test_any_interval_gives_the_same_windows_on_both_sides(start, length, unit, size, zone, whole):
    """dst-daily-window-is-23-or-25-hours, dst-hourly-keys-in-fall, dst-midnight-does-not-exist."""
    width = {"hours": timedelta(hours=size), "minutes": timedelta(minutes=size)}
    days = {"years": 366, "months": 31, "weeks": 7, "days": 1}
    step = width.get(unit) or timedelta(days=days[unit] * size)
    start = start.replace(microsecond=0, second=0, **({"hour": 0, "minute": 0} if whole else {}))
    end = start + step * min(length, 6 if unit == "years" else length)
    dataflow = flow(
        start=start.isoformat(),
        end=end.isoformat(),
        chunk_interval={unit: size},
        timezone=zone,
    )
    try:
        windows = replay_windows(dataflow)
    except SettingsError:
        return  # a start that the zone's clocks never show
    partitions = partitions_of(dataflow)
    assert list(partitions.get_partition_keys()) == [window.key for window in windows]
    if isinstance(partitions, TIME):
        for window in windows:
            theirs = partitions.time_window_for_partition_key(window.key)
            assert (theirs.start, theirs.end) == (window.lower, window.upper)


def test_an_open_range_grows_with_the_clock():
    dataflow = flow(start="2024-01-01", chunk_interval={"months": 1})
    with time_machine.travel(datetime(2024, 3, 15, tzinfo=UTC), tick=False):
        keys, kind = keys_and_kind(dataflow)
        partitions = partitions_of(dataflow)
    assert (keys, kind) == (["2024-01", "2024-02", "2024-03"], TIME)
    later = datetime(2024, 5, 1, tzinfo=UTC)
    assert partitions.get_partition_keys(current_time=later)[-1] == "2024-05"


def test_an_open_range_whose_cron_drifts_later_is_a_list_of_keys():
    """Five months from January are what a cron says, until the year ends."""
    dataflow = flow(start="2024-01-01", chunk_interval={"months": 5})
    with time_machine.travel(datetime(2024, 7, 15, tzinfo=UTC), tick=False):
        assert keys_and_kind(dataflow)[1] is FIXED


def test_months_that_are_still_to_come_are_partitions_too():
    dataflow = flow(start="2024-01-01", end="2024-07-01", chunk_interval={"months": 1})
    with time_machine.travel(datetime(2024, 3, 15, tzinfo=UTC), tick=False):
        keys, kind = keys_and_kind(dataflow)
    assert kind is TIME
    assert keys == [f"2024-0{month}" for month in range(1, 7)]


def test_a_range_that_has_not_begun_has_no_partitions():
    dataflow = flow(start="2024-06-01", chunk_interval={"months": 1})
    with time_machine.travel(datetime(2024, 3, 15, tzinfo=UTC), tick=False):
        assert keys_and_kind(dataflow)[0] == []


def test_windows_come_from_the_core_and_in_its_order():
    dataflow = flow(start="2024-01-01", end="2024-04-01", chunk_interval={"months": 1})
    windows = windows_for(dataflow, ["2024-03", "2024-01"])
    assert [(w.key, w.lower, w.upper) for w in windows] == [
        ("2024-01", date(2024, 1, 1), date(2024, 2, 1)),
        ("2024-03", date(2024, 3, 1), date(2024, 4, 1)),
    ]


def test_a_partition_that_the_range_does_not_have_is_named():
    dataflow = flow(start="2024-01-01", end="2024-04-01", chunk_interval={"months": 1})
    with pytest.raises(SettingsError, match="no partition 2024-09"):
        windows_for(dataflow, ["2024-09"])


def test_the_same_chunks_depend_on_each_other_and_others_on_the_whole_table():
    months = partitions_of(flow(start="2024-01-01", end="2024-04-01", chunk_interval={"months": 1}))
    days = partitions_of(flow(start="2024-01-01", end="2024-04-01", chunk_interval={"days": 1}))
    numbers = partitions_of(flow(start=0, end=30, step=10, chunk_column="id"))
    assert isinstance(mapping_between(months, months), dg.TimeWindowPartitionMapping)
    assert isinstance(mapping_between(numbers, numbers), dg.IdentityPartitionMapping)
    assert isinstance(mapping_between(months, days), dg.AllPartitionMapping)
    assert isinstance(mapping_between(numbers, months), dg.AllPartitionMapping)
    assert isinstance(mapping_between(months, None), dg.AllPartitionMapping)
    assert mapping_between(None, months) is None


def test_intervals_have_names_for_jobs():
    assert interval_name(flow(start="2024-01-01", chunk_interval={"months": 1})) == "monthly"
    assert interval_name(flow(start="2024-01-01", chunk_interval={"months": 2})) == "months_2"
    assert interval_name(flow(start=0, end=9, step=3, chunk_column="id")) == "step_3"
    assert interval_name(flow(start="2024-01-01", end="2024-02-01")) == "once"
