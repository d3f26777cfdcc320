"""``<stage>_incremental``: loads what is new, marks the months that it covered, shows failures."""

from datetime import UTC, datetime

import dagster as dg
import pytest
import time_machine

from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_dagster import coverage

DAYS = ("2024-01-10", "2024-02-10", "2024-03-10")


@pytest.fixture
def stage(lake):
    """A partitioned and an unpartitioned dataflow of one stage; April has no rows yet."""
    lake.events_flow()
    lake.flow("names")
    lake.events_csv(*DAYS)
    lake.csv("names", "1,ana", header="id,name")
    return lake


def test_one_click_loads_the_stage_and_marks_the_months_up_to_the_watermark(stage):
    assert stage.incremental().success
    assert stage.ids("raw/events") == [1, 2, 3]
    assert stage.marked("raw/events") == ["2024-01", "2024-02", None]
    assert stage.marked("raw/names") == [None]
    events = [stage.values(event) for event in stage.events("raw/events")]
    assert {e["datacoolie/watermark"]["sequence"] for e in events} == {1}
    assert [e.get("dagster/partition_row_count") for e in events] == [1, 1, None]
    assert [e.get("datacoolie/rows_written") for e in events] == [None, None, 3]


def test_months_are_marked_when_missing_or_touched(stage):
    stage.incremental()
    stage.events_csv(*DAYS, "2024-04-10")
    stage.incremental()
    assert stage.marked("raw/events")[3:] == ["2024-03", None]
    assert stage.statuses("raw/events") == {
        "2024-01": "materialized",
        "2024-02": "materialized",
        "2024-03": "materialized",
        "2024-04": "missing",
    }


def test_a_run_without_news_marks_what_was_wiped_and_nothing_else(stage):
    stage.incremental()
    stage.incremental()
    assert stage.marked("raw/events")[3:] == [None]
    stage.instance.wipe_assets([dg.AssetKey(["raw", "events"])])
    stage.incremental()
    assert stage.marked("raw/events") == ["2024-01", "2024-02", None]
    assert stage.newest("raw/events")["datacoolie/status"] == "skipped"


def test_new_rows_always_reach_some_partition_so_that_automation_sees_them(stage):
    """A closed range whose newest month is not complete: the last complete one is told again."""
    stage.incremental()
    stage.events_csv(*DAYS, "2024-03-20")
    stage.incremental()
    assert stage.marked("raw/events")[3:] == ["2024-02", None]


def test_the_running_month_of_an_open_range_is_marked_too(lake):
    lake.events_flow({"start": "2024-01-01", "chunk_interval": {"months": 1}})
    lake.events_csv(*DAYS)
    with time_machine.travel(datetime(2024, 3, 25, tzinfo=UTC)):
        assert lake.incremental().success
        assert lake.statuses("raw/events") == dict.fromkeys(
            ["2024-01", "2024-02", "2024-03"], "materialized"
        )


def test_at_most_so_many_partitions_a_run_are_marked_the_newest_first(stage, monkeypatch):
    monkeypatch.setattr(coverage, "MOST_MARKS", 1)
    stage.incremental()
    assert stage.marked("raw/events") == ["2024-02", None]
    stage.incremental()
    assert stage.marked("raw/events")[2:] == ["2024-01", None]


def test_months_before_the_covered_range_are_not_marked(stage):
    config = {"ops": {"raw__events": {"config": {"save_watermark": True}}}}
    stage.materialize("raw/events", partitions="2024-02", run_config=config)
    stage.instance.wipe_assets([dg.AssetKey(["raw", "events"])])
    stage.incremental()
    assert stage.statuses("raw/events")["2024-01"] == "missing"
    assert stage.statuses("raw/events")["2024-02"] == "materialized"


def test_the_launchpad_selects_dataflows_and_refreshes_them(stage):
    assert stage.incremental(select=["names"]).success
    assert stage.events("raw/events") == []
    stage.incremental()
    stage.csv("events", "9,2024-01-01T00:00:00Z")
    assert stage.incremental(select=["raw/eve*"], full_refresh=True).success
    assert stage.ids("raw/events") == [9]
    assert len(stage.events("raw/names")) == 2


def test_a_selection_that_finds_nothing_says_what_there_is(stage):
    failure = stage.failure(stage.incremental(select=["evnets"]))
    assert "no dataflow 'evnets'" in failure.description
    assert "Did you mean 'events'?" in failure.description


def test_failed_dataflows_are_named_and_show_on_their_assets(stage):
    stage.flow("gone")
    run = stage.incremental()
    assert not run.success
    head, text = stage.failure(run).description.splitlines()
    assert head == "1 of 3 dataflows failed: raw/gone [raw/gone]."
    assert "there is no such file or folder. Check base_path" in text
    assert "landing/gone.csv" in stage.values(stage.failure(run))["errors"]
    (seen,) = stage.observations("raw/gone")
    assert stage.values(seen)["datacoolie/status"] == "failed"
    assert stage.values(seen)["datacoolie/error_phase"] == "read"
    assert "landing/gone.csv" in seen.description
    assert stage.events("raw/gone") == []
    assert stage.marked("raw/events") == ["2024-01", "2024-02", None]


def test_what_was_not_started_is_told_and_not_recorded(lake):
    lake.arguments["run_config"] = DataCoolieRunConfig(on_upstream_failure="block")
    lake.flow("gone")
    lake.flow("copy", source={"connection_name": "raw", "table": "gone"})
    run = lake.incremental()
    assert not run.success
    (seen,) = lake.observations("raw/copy")
    assert "upstream failed: raw/gone" in seen.description
    assert lake.events("raw/copy") == []


def test_a_repeated_op_loads_only_what_is_missing(stage, monkeypatch):
    from datacoolie_core.errors import ReadError
    from datacoolie_core.run import pipeline

    real, tried = pipeline.load, []

    def load(job, context):
        name = job.prepared.dataflow.name
        tried.append(name)
        if name == "names" and tried.count("names") == 1:
            raise ReadError("the source is away", retryable=True)
        return real(job, context)

    monkeypatch.setattr(pipeline, "load", load)
    job = stage.definitions.resolve_job_def("raw_incremental")
    op = job.graph.node_defs[0].with_retry_policy(dg.RetryPolicy(max_retries=1))

    @dg.job(resource_defs=dict(job.resource_defs))
    def again():
        op()

    run = again.execute_in_process(instance=stage.instance, raise_on_error=False)
    assert run.success
    assert sorted(tried) == ["events", "names", "names"]


def test_a_stage_of_two_kinds_of_partitions_has_a_job_for_each(lake):
    months = {"start": "2024-01-01", "end": "2024-05-01", "chunk_interval": {"months": 1}}
    days = {"start": "2024-01-01", "end": "2024-02-01", "chunk_interval": {"days": 1}}
    for name, replay in {"a": months, "b": months, "c": days}.items():
        lake.flow(name, options={"replay": replay}, source={"watermark_columns": ["at"]})
    lake.flow("d")
    jobs = {
        job.name: {
            key.path[-1]
            for key in lake.definitions.resolve_job_def(job.name).asset_layer.selected_asset_keys
        }
        for job in lake.definitions.jobs
        if not job.name.endswith("_incremental")
    }
    assert jobs == {"raw": {"a", "b", "d"}, "raw_daily": {"c"}}


def test_dataflows_without_a_stage_have_jobs_too(lake):
    lake.flow("a", stage=None, dataflow_id="a", destination={"connection_name": "raw"})
    lake.csv("a", "1,2")
    assert {job.name for job in lake.definitions.jobs} == {"default", "default_incremental"}
    assert lake.execute("default_incremental").success
    assert lake.marked("a") == [None]


def test_a_busy_dataflow_is_left_alone(stage):
    from datacoolie_core.run.locks import Locks

    with Locks(str(stage.root)).dataflow("raw/events"):
        assert stage.incremental().success
    assert stage.events("raw/events") == []
    (seen,) = stage.observations("raw/events")
    assert "already running" in seen.description
