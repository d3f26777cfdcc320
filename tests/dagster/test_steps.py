"""One asset, one step: what it records, how it fails, who retries."""

from datetime import UTC, datetime

import dagster as dg
import pytest
import time_machine

from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_core.state.stores import FileStateStore


def test_a_load_is_recorded_with_all_its_figures(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01", "2024-01-02")
    with time_machine.travel(datetime(2024, 1, 3, 12, tzinfo=UTC)):
        run = lake.materialize("raw/events")
    assert run.success
    found = lake.newest("raw/events")
    assert found["datacoolie/status"] == "succeeded"
    assert found["datacoolie/run_kind"] == "full"
    assert found["datacoolie/sequence"] == 1
    assert found["datacoolie/attempts"] == 1
    assert found["datacoolie/boundary_rows"] == 1
    assert found["datacoolie/watermark_value"] == datetime(2024, 1, 2, 12, tzinfo=UTC).timestamp()
    assert found["datacoolie/lag_seconds"] == pytest.approx(86_400, abs=60)
    assert found["datacoolie/rows_read"] == found["datacoolie/rows_inserted"] == 2
    assert found["datacoolie/duration_seconds"] > 0
    assert found["dagster/row_count"] == 2
    assert found["dagster/uri"].endswith("/lake/raw/events")
    columns = {one.name: one.type for one in found["dagster/column_schema"].columns}
    assert columns["id"] == "integer"
    assert "__dataflow_run_id" in columns
    state = found["datacoolie/watermark"]
    assert state["watermark"] == {"at": {"__datetime__": "2024-01-02T12:00:00+00:00"}}
    assert state["run_id"] == run.run_id
    assert state["format"] == 1


def test_numbers_can_be_plotted_and_dates_are_timestamps(lake):
    lake.flow(
        "numbers",
        source={"watermark_columns": ["n"]},
        destination={"load_type": "append"},
        transform={"schema_hints": [{"column_name": "n", "data_type": "bigint"}]},
    )
    lake.csv("numbers", "7", "12", header="n")
    lake.materialize("raw/numbers")
    metadata = lake.events("raw/numbers")[-1].metadata
    assert metadata["datacoolie/watermark_value"] == dg.IntMetadataValue(12)
    assert "datacoolie/lag_seconds" not in metadata


def test_a_load_without_new_rows_is_recorded_and_what_follows_runs(lake):
    """sling and dbt users: a load of nothing must neither fail nor stop what is downstream."""
    lake.events_flow(replay=None)
    lake.flow("copy", stage="raw", source={"connection_name": "raw", "table": "events"})
    lake.events_csv("2024-01-01")
    lake.materialize("raw/events", "raw/copy")
    run = lake.materialize("raw/events", "raw/copy")
    assert run.success
    found = lake.newest("raw/events")
    assert found["datacoolie/status"] == "skipped"
    assert found["datacoolie/reason"] == "only known rows"
    assert found["datacoolie/rows_written"] == 0
    assert found["datacoolie/watermark_value"]
    assert len(lake.events("raw/copy")) == 2


def test_the_data_version_changes_with_the_rows_alone(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01")
    lake.materialize("raw/events")
    lake.materialize("raw/events")
    lake.events_csv("2024-01-01", "2024-01-02")
    lake.materialize("raw/events")
    one, same, other = (event.tags["dagster/data_version"] for event in lake.events("raw/events"))
    assert one == same != other


def test_full_refresh_is_a_switch_of_the_run(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01", "2024-01-02")
    lake.materialize("raw/events")
    lake.csv("events", "9,2023-12-31T12:00:00Z")
    config = {"ops": {"raw__events": {"config": {"full_refresh": True}}}}
    assert lake.materialize("raw/events", run_config=config).success
    assert lake.ids("raw/events") == [9]
    assert lake.newest("raw/events")["datacoolie/run_kind"] == "full_refresh"


def test_a_failure_says_whole_what_is_wrong_where_and_what_to_do(lake):
    lake.flow("missing")
    run = lake.materialize("raw/missing")
    assert not run.success
    failure = lake.failure(run)
    assert "dataflow 'raw/missing', read" in failure.description
    assert "landing/missing.csv" in failure.description
    found = lake.values(failure)
    assert found["dataflow"] == "raw/missing"
    assert found["phase"] == "read"
    assert found["code"]
    assert found["remedy"] in failure.description
    assert lake.events("raw/missing") == []


@pytest.mark.parametrize(("source", "key"), [("env:", "LANDING_TOKEN"), ("LANDING_", "TOKEN")])
def test_a_missing_secret_names_its_variable_and_env_can_give_it(lake, monkeypatch, source, key):
    lake.connections[0]["configure"]["token"] = key
    lake.connections[0]["secrets_ref"] = {source: ["token"]}
    monkeypatch.delenv("LANDING_TOKEN", raising=False)
    lake.flow("a")
    lake.csv("a", "1,2")
    failure = lake.failure(lake.materialize("raw/a"))
    assert "LANDING_TOKEN" in failure.description
    assert lake.values(failure)["phase"] == "prepare"
    lake.arguments["env"] = {"LANDING_TOKEN": "s3cret"}
    assert lake.materialize("raw/a").success
    assert "s3cret" not in repr(lake.events("raw/a"))


def test_a_dataflow_that_runs_elsewhere_is_a_failure_with_a_remedy(lake):
    from datacoolie_core.run.locks import Locks

    lake.flow("a")
    lake.csv("a", "1,2")
    with Locks(str(lake.root)).dataflow("raw/a"):
        failure = lake.failure(lake.materialize("raw/a"))
    assert "already running" in failure.description
    assert "Wait for that run, or end it" in failure.description
    assert lake.events("raw/a") == []


def test_log_lines_of_the_core_are_in_the_runs_log(lake):
    lake.flow("a")
    lake.csv("a", "1,2")
    run = lake.materialize("raw/a")
    logs = [one.user_message for one in lake.instance.all_logs(run.run_id)]
    assert "raw/a: started" in logs
    assert any(one.startswith("raw/a: succeeded (1 read") for one in logs)


def test_state_can_be_files_in_place_of_metadata(lake):
    lake.arguments["state"] = "state"
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01")
    lake.materialize("raw/events")
    lake.instance.wipe_assets([dg.AssetKey(["raw", "events"])])
    lake.materialize("raw/events")
    assert FileStateStore(str(lake.root / "state")).load("raw/events").sequence == 1
    assert lake.newest("raw/events")["datacoolie/recovered"] is False


def test_a_store_of_ones_own_is_used(lake):
    store = FileStateStore(str(lake.root / "mine"))
    lake.arguments["state"] = store
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01")
    lake.materialize("raw/events")
    assert store.load("raw/events").sequence == 1


# --- retries --------------------------------------------------------------------------------


def flaky(lake, monkeypatch, failures):
    """Let the source break in a way that time cures, and return the attempts."""
    from datacoolie_core.errors import ReadError
    from datacoolie_core.run import pipeline

    attempts, real = [], pipeline.load

    def load(job, context):
        attempts.append(job.prepared.dataflow.dataflow_id)
        if len(attempts) <= failures:
            raise ReadError("the source is away", remedy="Try again.", retryable=True)
        return real(job, context)

    monkeypatch.setattr(pipeline, "load", load)
    lake.flow("a")
    lake.csv("a", "1,2")
    return attempts


def test_the_core_retries_by_its_own_settings(lake, monkeypatch):
    attempts = flaky(lake, monkeypatch, 2)
    lake.arguments["run_config"] = DataCoolieRunConfig(retry_count=2, retry_delay=0)
    assert lake.materialize("raw/a").success
    assert len(attempts) == 3
    assert lake.newest("raw/a")["datacoolie/attempts"] == 3


def with_retries(lake, policy):
    """Return the stage's job with a retry policy of the user's on every step."""
    definitions = lake.definitions
    assets = [one for one in definitions.assets if isinstance(one, dg.AssetsDefinition)]
    return dg.Definitions(
        assets=definitions.assets,
        resources=definitions.resources,
        jobs=[dg.define_asset_job("user", selection=assets, op_retry_policy=policy)],
    ).resolve_job_def("user")


def test_retries_of_dagster_and_of_the_core_add_up_and_do_not_multiply(lake, monkeypatch):
    attempts = flaky(lake, monkeypatch, 99)
    lake.arguments["run_config"] = DataCoolieRunConfig(retry_count=2, retry_delay=0)
    job = with_retries(lake, dg.RetryPolicy(max_retries=3))
    assert not job.execute_in_process(instance=lake.instance, raise_on_error=False).success
    assert len(attempts) == (1 + 2) + 3


def test_a_retried_run_tries_once(lake, monkeypatch):
    attempts = flaky(lake, monkeypatch, 99)
    lake.arguments["run_config"] = DataCoolieRunConfig(retry_count=2, retry_delay=0)
    lake.materialize("raw/a", tags={"dagster/retry_number": "1"})
    assert len(attempts) == 1


def test_dagster_does_not_repeat_what_time_can_not_cure(lake):
    lake.flow("missing")
    job = with_retries(lake, dg.RetryPolicy(max_retries=3))
    run = job.execute_in_process(instance=lake.instance, raise_on_error=False)
    restarted = [e for e in run.all_events if e.event_type_value == "STEP_RESTARTED"]
    assert not run.success
    assert restarted == []
