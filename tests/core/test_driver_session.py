"""The life of a driver: one operation at a time, an orderly end, and logs of all of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading

import polars as pl
import pytest

from datacoolie_core import (
    DataCoolieDriver,
    ExecutionLogger,
    LogConfig,
    SystemLogger,
    create_driver,
)
from datacoolie_core.errors import LifecycleError, MetadataError, SettingsError
from datacoolie_core.run.events import DataflowFinished, DataflowStarted, RunStarted
from datacoolie_core.run.logs.records import line


def frame(*ids):
    return pl.DataFrame({"id": list(ids)})


@pytest.fixture
def small(project):
    project.flow("good", table="good", group_number=1, execution_order=1)
    project.flow("bad", source_table="missing", table="bad", group_number=2)
    project.write("t", "x.parquet", frame(1, 2))
    return project


def records(root, kind):
    found = [path for path in root.rglob(f"{kind}_*.json") if "__run_date" in str(path)]
    return [json.loads(text) for path in found for text in path.read_text().splitlines()]


def logged(project, **arguments):
    return create_driver(
        project.metadata, project_dir=str(project.root), log_base_path="logs", **arguments
    )


def test_logs_lie_where_the_framework_writes_them(small):
    with logged(small) as driver:
        driver.run()
    logs = small.root / "logs"
    folders = sorted({str(path.relative_to(logs).parent) for path in logs.rglob("*.json")})
    kinds = [folder.split("/__run_date=")[0] for folder in folders]
    assert kinds == [
        "execution_logs/dataflow_run_log",
        "execution_logs/job_run_log",
        "system_logs",
    ]


def test_a_dataflow_record_has_the_frameworks_columns_and_what_happened(small):
    with logged(small, config=None) as driver:
        driver.run()
    rows = {one["dataflow_name"]: one for one in records(small.root, "dataflow")}
    good, bad = rows["good"], rows["bad"]
    assert len(good) == 69
    assert (good["log_schema_version"], good["_type"]) == (7, "dataflow_run_log")
    assert (good["status"], good["operation_type"]) == ("succeeded", "etl")
    assert (good["source_name"], good["destination_load_type"]) == ("in", "append")
    assert good["metrics"]["rows_read"] == good["metrics"]["rows_written"] == 2
    assert good["metrics"]["files_added"] == 1
    assert good["metrics"]["bytes_added"] > 0
    (attempt,) = good["attempts"]
    assert attempt["source"]["selection"]["mode"] == "all"
    assert "system" in attempt["transform"]["transformers_applied"]
    assert attempt["destination"]["operation_details"]["table_version"] == 0
    assert (bad["status"], "missing" in bad["message"]) == ("failed", True)
    assert bad["attempts"][0]["source"] is None


def test_the_watermark_before_and_after_is_in_the_record(project):
    project.flow("f", watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    with logged(project) as driver:
        driver.run()
        project.write("t", "b.parquet", frame(3))
        driver.run()
    first, second = records(project.root, "dataflow")
    assert first["read_request"]["watermark_start"] is None
    assert second["read_request"]["watermark_start"] == {"id": 2}
    assert second["read_request"]["watermark_start_operator"] == ">="
    marks = second["attempts"][0]["watermark"]
    assert (marks["loaded_watermark"], marks["saved_watermark"]) == ({"id": 2}, {"id": 3})


def test_row_counts_of_flat_files_are_logged(project):
    """W70."""
    document = project.document
    document["connections"][1] = {
        "name": "lake",
        "format": "csv",
        "configure": {"base_path": "lake"},
    }
    document["dataflows"] = [project.flow("f")]
    project.write("t", "a.parquet", frame(1, 2, 3))
    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("x", document)])
    with create_driver(scope, project_dir=str(project.root), log_base_path="logs") as driver:
        assert driver.run().succeeded == 1
    (row,) = records(project.root, "dataflow")
    assert row["metrics"]["rows_written"] == 3


def test_replays_and_maintenance_are_operations_of_their_own(project):
    from datacoolie_core import ReplayConfig

    project.flow("f", watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2, 3))
    with logged(project) as driver:
        driver.run_replay(driver.load_dataflows(), ReplayConfig(1, 4, {"step": 1}))
        driver.run_maintenance()
    replay, maintenance = records(project.root, "dataflow")
    assert (replay["operation_type"], len(replay["attempts"])) == ("replay", 3)
    assert maintenance["operation_type"] == "maintenance"
    (job,) = records(project.root, "job")
    assert job["operation_types"] == ["replay", "maintenance"]


def test_the_job_record_adds_up_and_names_failures_without_their_errors(small):
    with logged(small) as driver:
        driver.run()
        driver.run()
    (job,) = records(small.root, "job")
    assert len(job) == 45
    assert (job["status"], job["message"]) == ("failed", "bad [bad]; bad [bad]")
    assert (job["total_dataflows"], job["total_failed"], job["total_running"]) == (4, 2, 0)
    assert job["total_rows_written"] == 2 + small.table("good").height - 2
    assert (job["engine_name"], job["platform_name"]) == ("polars", "local")


def test_the_system_log_tells_the_session_in_order(small):
    with logged(small) as driver:
        driver.run()
    rows = records(small.root, "system")
    assert all(len(row) == 18 for row in rows)
    names = [row["event_name"] for row in rows if row["event_name"]]
    assert names[:2] == ["session.starting", "session.ready"]
    assert names[-1] == "session.finishing"
    assert names.index("operation.started") < names.index("dataflow.started")
    assert {"dataflow.finished", "operation.failed", "preparation.finished"} <= set(names)
    failed = [row for row in rows if row["level"] == "ERROR" and row["dataflow_id"] == "bad"]
    assert failed


def test_metadata_that_is_wrong_is_in_the_system_log_and_the_job_failed(small):
    (small.root / "metadata").mkdir()
    (small.root / "metadata" / "x.json").write_text('{"dataflows": [{"name": "x"}]}')
    with pytest.raises(MetadataError):
        create_driver("metadata", project_dir=str(small.root), log_base_path="logs")
    names = [row["event_name"] for row in records(small.root, "system")]
    assert "session.startup_failed" in names
    assert "session.ready" not in names
    (job,) = records(small.root, "job")
    assert (job["status"], "MetadataError" in job["message"]) == ("failed", True)


def test_records_during_initialization_are_captured(small):
    class Chatty:
        def initialize(self):
            import logging

            logging.getLogger("datacoolie_core.metadata").warning("half of it is odd")

        def load(self):
            return small.metadata

    with create_driver(
        metadata_provider=Chatty(), project_dir=str(small.root), log_base_path="logs"
    ):
        pass
    rows = records(small.root, "system")
    texts = [row["msg"] for row in rows]
    assert texts.index("half of it is odd") < texts.index("ready")


def test_no_secret_is_in_any_log(project, monkeypatch):
    monkeypatch.setenv("DC_LOG_KEY", "hunter2secret")
    document = project.document
    project.flow("f", source={"configure": {"read_options": {}, "api_token": "hunter2secret"}})
    document["connections"][0]["configure"]["password"] = "KEY"
    document["connections"][0]["secrets_ref"] = {"env:DC_LOG_": ["password"]}
    document["dataflows"] = project.flows
    project.write("t", "a.parquet", frame(1))
    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("x", document)])
    with create_driver(scope, project_dir=str(project.root), log_base_path="logs") as driver:
        assert driver.run().succeeded == 1
    files = list((project.root / "logs").rglob("*.json"))
    assert len(files) == 3
    assert all(b"hunter2" not in path.read_bytes() for path in files)


def test_a_hook_is_called_after_the_log_has_the_observation(small):
    seen = []

    def hook(event):
        if isinstance(event, DataflowFinished):
            seen.append(len(records(small.root, "dataflow")))
            raise RuntimeError("hook")

    with logged(small, listeners=[hook]) as driver:
        result = driver.run()
    assert seen == [1, 2]
    assert result.succeeded == 1


@pytest.mark.parametrize("persistence", ["snapshot", "batch"])
@pytest.mark.parametrize("storage", ["memory", "file"])
def test_logs_of_an_object_store_are_written_whole(small, persistence, storage, tmp_path):
    import fsspec

    root = f"memory://logs-{persistence}-{storage}-{tmp_path.name}"
    config = LogConfig(persistence=persistence, storage=storage, batch_bytes=500)
    with create_driver(
        small.metadata,
        project_dir=str(small.root),
        execution_logger=ExecutionLogger(root, config),
        system_logger=SystemLogger(root, config),
    ) as driver:
        driver.run()
    system = fsspec.filesystem("memory")
    files = system.find(root)
    rows = [json.loads(text) for name in files for text in system.cat(name).splitlines()]
    kinds = [row["_type"] for row in rows]
    assert kinds.count("dataflow_run_log") == 2
    assert kinds.count("job_run_log") == 1
    assert (len(files) > 3) == (persistence == "batch")


def test_records_beyond_the_buffer_are_counted_and_dropped(small, tmp_path):
    import fsspec

    root = f"memory://small-{tmp_path.name}"
    config = LogConfig(buffer_bytes=1, batch_bytes=1)
    logger = ExecutionLogger(root, config)
    with create_driver(
        small.metadata, project_dir=str(small.root), execution_logger=logger
    ) as driver:
        assert driver.run().succeeded == 1
    assert logger._dataflows.dropped_records == 2
    assert logger._dataflows.dropped_bytes > 0
    assert not fsspec.filesystem("memory").exists(root)


def test_a_log_that_cannot_be_written_changes_nothing(small):
    (small.root / "logs").write_text("a file where the folder should be")
    with logged(small) as driver:
        assert driver.run().succeeded == 1


def test_a_record_that_is_too_large_says_what_it_lost():
    config = LogConfig(record_bytes=400, diagnostic_bytes=50)
    record = {"a": 1, "message": "x" * 200, "attempts": ["y" * 1000]}
    found = json.loads(line(record, config))
    assert found["attempts"] is None
    assert found["message"] == "x" * 50
    assert len(found["diagnostic_issues"]) == 2


@pytest.mark.parametrize(
    "values",
    [{"log_level": "LOUD"}, {"storage": "tape"}, {"persistence": "never"}, {"record_bytes": 0}],
)
def test_log_settings_out_of_range_are_refused(values):
    with pytest.raises(SettingsError):
        LogConfig(**values)


def test_the_file_level_keeps_details_out(small):
    system = SystemLogger(str(small.root / "logs"), LogConfig(file_level="ERROR"))
    with create_driver(small.metadata, project_dir=str(small.root), system_logger=system) as driver:
        driver.run()
    assert {row["level"] for row in records(small.root, "system")} == {"ERROR"}


def test_a_logger_serves_one_driver(small):
    logger = ExecutionLogger(str(small.root / "logs"))
    with (
        create_driver(small.metadata, project_dir=str(small.root), execution_logger=logger),
        pytest.raises(LifecycleError, match="another driver"),
    ):
        create_driver(small.metadata, project_dir=str(small.root), execution_logger=logger)


def test_a_busy_driver_takes_no_second_operation_and_is_not_closed(small):
    refused = []

    def hook(event):
        if isinstance(event, RunStarted):
            for attempt in (driver.run, driver.close, driver.run_maintenance):
                try:
                    attempt()
                except LifecycleError as error:
                    refused.append(str(error))

    driver = logged(small, listeners=[hook])
    driver.run()
    assert len(refused) == 3
    driver.close()
    driver.close()
    with pytest.raises(LifecycleError, match="closed"):
        driver.run()


def test_admission_is_let_go_after_a_failure(small):
    with logged(small) as driver:
        for _ in range(2):
            with pytest.raises(Exception, match="nonsense"):
                driver.run(stages="nonsense")
        assert driver.run().succeeded == 1
    (job,) = records(small.root, "job")
    assert job["message"].count("nonsense") >= 2


class Provider:
    """A provider whose end goes wrong."""

    def __init__(self, scope, error):
        self.scope, self.error, self.closed = scope, error, 0

    def initialize(self):
        pass

    def load(self):
        return self.scope

    def close(self):
        self.closed += 1
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("gone"), KeyboardInterrupt()])
def test_a_provider_that_fails_to_close_is_told_after_all_were_closed(small, error):
    provider = Provider(small.metadata, error)
    driver = create_driver(
        metadata_provider=provider, project_dir=str(small.root), log_base_path="logs"
    )
    with pytest.raises(type(error)):
        driver.close()
    (job,) = records(small.root, "job")
    assert job["status"] == "failed"
    assert type(error).__name__ in job["message"]
    names = [row["event_name"] for row in records(small.root, "system")]
    assert names[-1] == "session.teardown_failed"


def test_the_error_of_the_block_comes_before_that_of_the_end(small):
    provider = Provider(small.metadata, RuntimeError("gone"))
    with (
        pytest.raises(ValueError, match="mine"),
        create_driver(metadata_provider=provider, project_dir=str(small.root)),
    ):
        raise ValueError("mine")
    assert provider.closed == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_marks_the_session_failed_and_reaches_the_caller(small, kind):
    """It strikes the scheduler; what runs is drained, and the logs are whole."""
    strike = threading.Event()

    class Plan:
        """Raises once the run has begun to plan."""

        steps = ()

        @property
        def order_groups(self):
            strike.set()
            raise kind

    driver = logged(small)
    with pytest.raises(kind):
        driver.run(Plan())
    driver.close()
    assert strike.is_set()
    (job,) = records(small.root, "job")
    assert (job["status"], kind.__name__ in job["message"]) == ("failed", True)


def test_ctrl_c_drains_what_runs_and_ends_with_130(tmp_path, project):
    """A real signal to a real process: the running dataflow ends, the waiting one is pending."""
    project.flow("first", table="first", group_number=1, execution_order=1)
    project.flow("then", table="then", group_number=1, execution_order=2)
    project.write("t", "x.parquet", frame(1, 2))
    (project.root / "metadata.json").write_text(json.dumps(project.document))
    script = tmp_path / "child.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            from datacoolie_core import DataCoolieDriver
            from datacoolie_core.run.events import PhaseReached

            def slow(event):
                if isinstance(event, PhaseReached) and event.phase == "reading":
                    print("reading", flush=True)
                    time.sleep(1.5)

            root = sys.argv[1]
            with DataCoolieDriver(
                "metadata.json", project_dir=root, log_base_path="logs", listeners=[slow]
            ) as driver:
                driver.run()
            """
        )
    )
    child = subprocess.Popen(
        [sys.executable, str(script), str(project.root)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline().strip() == "reading"
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode != 0
    assert project.ids("first") == [1, 2]
    assert not (project.root / "lake" / "then").exists()
    (job,) = records(project.root, "job")
    assert (job["status"], job["total_succeeded"], job["total_pending"]) == ("failed", 1, 1)


def test_a_started_dataflow_is_logged_before_it_ends(small):
    """What is written before a kill can be read: each line is on the disk at once."""
    seen = []

    def hook(event):
        if isinstance(event, DataflowStarted):
            seen.extend(row["event_name"] for row in records(small.root, "system"))

    with logged(small, listeners=[hook]) as driver:
        driver.run()
    assert "dataflow.started" in seen
    assert isinstance(driver, DataCoolieDriver)
