"""Partitions: chunks in turn, each recorded as it is durable, resumed where they stopped."""

from datetime import UTC, datetime

import dagster as dg
import polars as pl
import pytest
import time_machine

DAYS = ("2024-01-10", "2024-01-20", "2024-02-10", "2024-03-10", "2024-04-10")
ALL = ("2024-01", "2024-04")
BROKEN_MARCH = ("1,2024-01-10T12:00:00Z", "3,2024-02-10T12:00:00Z", "x,2024-03-10T12:00:00Z")


@pytest.fixture
def months(lake):
    lake.events_flow()
    lake.events_csv(*DAYS)
    return lake


def test_a_backfill_loads_every_month_in_one_run(months):
    run = months.materialize("raw/events", partitions=ALL)
    assert run.success
    assert months.ids("raw/events") == [1, 2, 3, 4, 5]
    assert set(months.statuses("raw/events").values()) == {"materialized"}
    newest = {event.partition: months.values(event) for event in months.events("raw/events")}
    counts = {key: found["dagster/partition_row_count"] for key, found in newest.items()}
    assert counts == {"2024-01": 2, "2024-02": 1, "2024-03": 1, "2024-04": 1}
    assert [found["datacoolie/sequence"] for found in newest.values()] == [1, 2, 3, 4]
    assert newest["2024-02"]["datacoolie/window"] == "2024-02-01 <= at < 2024-03-01"
    assert {found["datacoolie/run_kind"] for found in newest.values()} == {"replay"}


def test_a_month_is_recorded_as_soon_as_it_is_durable(months, monkeypatch):
    from datacoolie_core.run import pipeline

    real, seen = pipeline.load, []

    def load(job, context):
        seen.append((job.window.key, months.marked("raw/events")))
        return real(job, context)

    monkeypatch.setattr(pipeline, "load", load)
    months.materialize("raw/events", partitions=ALL)
    assert seen == [
        ("2024-01", []),
        ("2024-02", ["2024-01"]),
        ("2024-03", ["2024-01", "2024-02"]),
        ("2024-04", ["2024-01", "2024-02", "2024-03"]),
    ]


def test_the_first_failed_month_stops_and_a_second_backfill_goes_on(months):
    months.csv("events", *BROKEN_MARCH, "4,2024-04-10T12:00:00Z")
    run = months.materialize("raw/events", partitions=ALL)
    assert not run.success
    assert "'x'" in months.failure(run).description
    assert months.statuses("raw/events") == {
        "2024-01": "materialized",
        "2024-02": "materialized",
        "2024-03": "failed",
        "2024-04": "failed",
    }
    assert months.ids("raw/events") == [1, 3]
    months.events_csv(*DAYS)
    assert months.materialize("raw/events", partitions=("2024-03", "2024-04")).success
    assert set(months.statuses("raw/events").values()) == {"materialized"}
    assert months.ids("raw/events") == [1, 3, 4, 5]


def test_a_repeated_step_does_only_what_is_missing(months, monkeypatch):
    from datacoolie_core.errors import ReadError
    from datacoolie_core.run import pipeline

    real, tried = pipeline.load, []

    def load(job, context):
        tried.append(job.window.key)
        if tried.count("2024-03") == 1 and job.window.key == "2024-03":
            raise ReadError("the source is away", retryable=True)
        return real(job, context)

    monkeypatch.setattr(pipeline, "load", load)
    definitions = months.definitions
    job = dg.Definitions(
        assets=definitions.assets,
        resources=definitions.resources,
        jobs=[
            dg.define_asset_job(
                "user", selection=["raw/events"], op_retry_policy=dg.RetryPolicy(max_retries=1)
            )
        ],
    ).resolve_job_def("user")
    tags = {
        "dagster/asset_partition_range_start": ALL[0],
        "dagster/asset_partition_range_end": ALL[1],
    }
    assert job.execute_in_process(instance=months.instance, tags=tags).success
    assert tried == ["2024-01", "2024-02", "2024-03", "2024-03", "2024-04"]
    assert set(months.statuses("raw/events").values()) == {"materialized"}
    counted = {one.partition: months.values(one) for one in months.events("raw/events")}
    assert counted["2024-01"]["dagster/partition_row_count"] == 2


def test_what_is_downstream_in_the_same_run_runs(months):
    months.flow("copy", source={"connection_name": "raw", "table": "events"})
    assert months.materialize("raw/events", "raw/copy", partitions=ALL).success
    assert months.rows("raw/copy").height == 5


def test_a_month_without_rows_is_green_and_empties_what_was_there(months):
    """pb-skipped-partition-status, pb-empty-chunk-must-clear-partition."""
    months.materialize("raw/events", partitions=ALL)
    months.events_csv(*DAYS[:2])
    run = months.materialize("raw/events", partitions=("2024-02", "2024-03"))
    assert run.success
    assert months.ids("raw/events") == [1, 2, 5]
    assert months.newest("raw/events")["dagster/partition_row_count"] == 0
    assert set(months.statuses("raw/events").values()) == {"materialized"}


def test_a_replay_leaves_the_watermark_where_it_is_unless_asked(months):
    months.materialize("raw/events", partitions="2024-02")
    assert months.newest("raw/events")["datacoolie/watermark"]["watermark"] == {}
    config = {"ops": {"raw__events": {"config": {"save_watermark": True}}}}
    months.materialize("raw/events", partitions="2024-02", run_config=config)
    saved = months.newest("raw/events")["datacoolie/watermark"]
    assert saved["watermark"] == {"at": {"__datetime__": "2024-02-10T12:00:00+00:00"}}
    assert saved["covered_from"] == {"at": {"__date__": "2024-02-01"}}


def test_months_first_and_the_incremental_load_after_double_nothing(months):
    months.materialize("raw/events", partitions=ALL)
    months.events_csv(*DAYS, "2024-04-20")
    assert months.incremental().success
    assert months.ids("raw/events") == [1, 2, 3, 4, 5, 6]


def test_integer_chunks_are_partitions(lake):
    lake.flow(
        "numbers",
        options={"replay": {"start": 0, "end": 25, "step": 10}},
        source={"watermark_columns": ["n"]},
        destination={"load_type": "append"},
        transform={"schema_hints": [{"column_name": "n", "data_type": "int"}]},
    )
    lake.csv("numbers", *map(str, range(25)), header="n")
    assert lake.materialize("raw/numbers", partitions=("00", "20")).success
    found = {one.partition: lake.values(one) for one in lake.events("raw/numbers")}
    counts = {key: entries["dagster/partition_row_count"] for key, entries in found.items()}
    assert counts == {"00": 10, "10": 10, "20": 5}
    # whichever event is the newest one has the newest state
    assert {entries["datacoolie/watermark"]["sequence"] for entries in found.values()} == {3}
    assert lake.rows("raw/numbers")["n"].sort().to_list() == list(range(25))


def test_a_merge_is_replayed_month_by_month(months):
    months.events_flow(destination={"load_type": "merge_upsert", "merge_keys": ["id"]})
    assert months.materialize("raw/events", partitions=ALL).success
    assert months.materialize("raw/events", partitions=ALL).success
    assert months.ids("raw/events") == [1, 2, 3, 4, 5]
    assert months.newest("raw/events")["dagster/partition_row_count"] == 1


OPEN = {"start": "2024-01-01", "chunk_interval": {"months": 1}}
MARCH = datetime(2024, 3, 25, tzinfo=UTC)


@pytest.fixture
def running(lake):
    """An open range; March is the running month."""
    lake.events_flow(OPEN)
    lake.events_csv("2024-01-10", "2024-02-10", "2024-03-10")
    with time_machine.travel(MARCH):
        yield lake


def test_the_running_month_means_up_to_now(running):
    assert running.materialize("raw/events", partitions="2024-03").success
    assert running.ids("raw/events") == [1, 2, 3]
    assert running.marked("raw/events") == ["2024-01", "2024-02", "2024-03"]
    newest = running.newest("raw/events")
    assert newest["datacoolie/run_kind"] == "full"
    assert newest["datacoolie/rows_written"] == 3
    running.events_csv("2024-01-10", "2024-02-10", "2024-03-10", "2024-03-20")
    running.materialize("raw/events", partitions="2024-03")
    assert running.newest("raw/events")["datacoolie/run_kind"] == "incremental"
    assert running.ids("raw/events") == [1, 2, 3, 4]


def test_the_running_month_can_be_loaded_again_alone(running):
    config = {"ops": {"raw__events": {"config": {"mode": "replay"}}}}
    running.materialize("raw/events", partitions="2024-03", run_config=config)
    assert running.ids("raw/events") == [3]
    assert running.newest("raw/events")["datacoolie/run_kind"] == "replay"


def test_a_range_up_to_the_running_month_replays_the_others_first(running):
    run = running.materialize("raw/events", partitions=("2024-02", "2024-03"))
    assert run.success
    assert running.ids("raw/events") == [1, 2, 3]
    assert running.statuses("raw/events")["2024-02"] == "materialized"
    assert pl.Series(running.marked("raw/events")).is_in(["2024-01", "2024-02", "2024-03"]).all()


def test_without_a_partition_a_run_loads_what_is_new_and_marks_the_months(running):
    assert running.materialize("raw/events").success
    assert running.marked("raw/events") == ["2024-01", "2024-02", "2024-03", None]


def test_a_failed_load_without_a_partition_shows_on_the_asset(running):
    running.csv("events", *BROKEN_MARCH)
    assert not running.materialize("raw/events").success
    (seen,) = running.observations("raw/events")
    assert running.values(seen)["datacoolie/status"] == "failed"
    assert "'x'" in seen.description
