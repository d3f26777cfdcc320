"""Watermarks of the DataCoolie framework, taken over with nothing lost and nothing doubled."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime

import polars as pl
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from datacoolie_core.cli.main import app
from datacoolie_core.errors import WatermarkError
from datacoolie_core.run.import_watermarks import watermark_files, watermark_rows


def frame(*ids):
    return pl.DataFrame({"id": list(ids)})


@pytest.fixture
def loaded(project):
    """An append of ids 1 to 5, loaded once."""
    project.flow("f", stage="bronze", watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2, 3, 4, 5))
    project.run_one()
    return project


def flow_of(driver):
    (flow,) = driver.metadata.dataflows
    return flow


def framework_file(project, folder, text):
    path = project.root / "old" / folder / "watermark_value.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def take_over(project, **options):
    with project.driver() as driver:
        found = list(watermark_files(str(project.root / "old")))
        return driver.watermarks.take_over(found, driver.metadata.dataflows, **options)


def test_a_file_is_found_by_its_id_whatever_the_name_was(project):
    """W32: a renamed dataflow keeps its state."""
    project.flow("renamed", dataflow_id="id-1", watermark=["id"])
    framework_file(project, "bronze_old_name_id-1", '{"id": 2}')
    (done,) = take_over(project)
    assert (done.outcome, done.watermark) == ("imported", {"id": 2})


def test_the_first_load_goes_on_in_a_table_that_the_framework_wrote(project):
    """Ties with the watermark are met, not doubled and not lost."""
    write_deltalake(project.path(), frame(1, 2, 3).to_arrow())
    project.flow("f", watermark=["id"])
    framework_file(project, "f_f", '{"id": 3}')
    project.write("t", "a.parquet", frame(1, 2, 3, 3, 4))
    take_over(project)
    project.run_one()
    assert project.ids() == [1, 2, 3, 3, 4]
    project.write("t", "b.parquet", frame(4, 5))
    project.run_one()
    assert project.ids() == [1, 2, 3, 3, 4, 4, 5]


def test_tagged_values_keep_their_type(project):
    project.flow("f", watermark=["ts"])
    framework_file(project, "f", '{"TS": {"__datetime__": "2025-01-09T00:00:00+00:00"}}')
    (done,) = take_over(project)
    assert done.watermark == {"ts": datetime(2025, 1, 9, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("folder", "text", "outcome"),
    [
        ("x_f", "null", "empty"),
        ("x_f", "  ", "empty"),
        ("x_f", "{}", "empty"),
        ("x_f", "{", "unreadable"),
        ("x_f", '{"id": {"__nonsense__": 1}}', "unreadable"),
        ("x_unknown", '{"id": 1}', "unknown dataflow"),
        ("x_f", '{"other": 1}', "empty"),
        ("x_f", '{"id": 4, "__date_folder_partition__": "2025-01-01"}', "kept"),
    ],
)
def test_each_watermark_says_what_became_of_it(loaded, folder, text, outcome):
    framework_file(loaded, folder, text)
    (done,) = take_over(loaded)
    assert done.outcome == outcome
    assert "old" in done.place


def test_a_lower_one_is_taken_over_only_by_force(loaded):
    framework_file(loaded, "x_f", '{"id": 2}')
    assert take_over(loaded)[0].outcome == "kept"
    assert take_over(loaded, dry_run=True, force=True)[0].outcome == "would import"
    assert take_over(loaded, force=True)[0].watermark == {"id": 2}


def test_without_force_each_column_only_rises(project):
    project.flow("f", watermark=["a", "b"])
    with project.driver() as driver:
        driver.watermarks.set(flow_of(driver), {"a": 5, "b": 5})
    framework_file(project, "x_f", '{"a": 9, "b": 1}')
    assert take_over(project)[0].watermark == {"a": 9, "b": 5}
    assert take_over(project)[0].outcome == "kept"
    assert take_over(project, force=True)[0].watermark == {"a": 9, "b": 1}


def test_one_of_another_kind_is_taken_over_only_by_force(loaded):
    framework_file(loaded, "x_f", '{"id": "9"}')
    assert take_over(loaded)[0].outcome == "kept"


def test_an_import_does_not_undo_a_reset(loaded):
    with loaded.driver() as driver:
        driver.watermarks.reset(flow_of(driver))
    framework_file(loaded, "x_f", '{"id": 9}')
    assert take_over(loaded)[0].outcome == "kept"
    assert take_over(loaded, force=True)[0].outcome == "imported"


def test_an_unreadable_file_does_not_stop_the_others(loaded):
    framework_file(loaded, "a_f", "").write_bytes(b"\xff\xfe{")
    framework_file(loaded, "b_f", '{"id": 9}')
    outcomes = {one.place.split("/")[-2]: one.outcome for one in take_over(loaded)}
    assert outcomes == {"a_f": "unreadable", "b_f": "imported"}


def test_a_running_dataflow_is_reported_and_does_not_stop_the_others(loaded):
    loaded.flow("g", watermark=["id"], table="g")
    framework_file(loaded, "x_f", '{"id": 9}')
    framework_file(loaded, "x_g", '{"id": 9}')
    with loaded.driver() as driver, driver._work.locks.dataflow("f"):
        found = list(watermark_files(str(loaded.root / "old")))
        done = driver.watermarks.take_over(found, driver.metadata.dataflows)
    assert {one.dataflow.name: one.outcome for one in done} == {"f": "failed", "g": "imported"}


def test_the_frameworks_table_is_read(project):
    project.flow("f", watermark=["id"])
    path = project.root / "framework.db"
    with sqlite3.connect(path) as link:
        link.execute(
            "CREATE TABLE dc_framework_watermarks (watermark_id, dataflow_id, current_value,"
            " previous_value, job_id, dataflow_run_id, updated_at)"
        )
        link.execute(
            "INSERT INTO dc_framework_watermarks VALUES (1, 'f', '{\"id\": 9}', 0, 0, 0, 0)"
        )
    with project.driver() as driver:
        (done,) = driver.watermarks.take_over(
            list(watermark_rows(f"sqlite:///{path}")), driver.metadata.dataflows
        )
    assert (done.outcome, done.watermark) == ("imported", {"id": 9})


def test_a_database_without_the_table_is_an_error_that_says_so(tmp_path):
    with pytest.raises(WatermarkError, match="dc_framework_watermarks"):
        list(watermark_rows(f"sqlite:///{tmp_path}/empty.db"))


def test_import_by_the_command_line(loaded):
    (loaded.root / "metadata.json").write_text(json.dumps(loaded.document))

    def call(*arguments):
        command = [*arguments, "--project-dir", str(loaded.root), "-m", "metadata.json"]
        done = CliRunner().invoke(app, ["watermark", "import", *command])
        assert done.exit_code == 0, done.output
        return done.stdout

    framework_file(loaded, "x_f", '{"id": 9}')
    done = json.loads(call("old", "--dry-run", "--json"))["watermarks"]
    assert [one["outcome"] for one in done] == ["would import"]
    assert "imported" in call("old")
    with sqlite3.connect(loaded.root / "old.db") as link:
        link.execute("CREATE TABLE dc_framework_watermarks (dataflow_id, current_value)")
        link.execute("INSERT INTO dc_framework_watermarks VALUES ('f', '{\"id\": 11}')")
    assert "imported" in call("sqlite:///old.db"), "relative to the project root"
