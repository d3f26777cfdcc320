"""Watermarks that people set, reset and bring along: the next load does what they meant."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from datacoolie_core import SqlStateStore
from datacoolie_core.cli.main import app
from datacoolie_core.errors import BusyError, WatermarkError
from datacoolie_core.run.import_watermarks import watermark_files, watermark_rows
from datacoolie_core.state.stores import FileStateStore


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


def stores(project):
    return {
        "file": FileStateStore(str(project.root / ".datacoolie" / "state")),
        "sql": SqlStateStore(f"sqlite:///{project.root}/state.db"),
    }


@pytest.mark.parametrize("kind", ["file", "sql"])
def test_a_watermark_that_is_set_lower_reads_again_and_doubles_nothing(project, kind):
    project.flow("f", watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2, 3, 4, 5))
    state = stores(project)[kind]
    with project.driver(state=state) as driver:
        driver.run()
        driver.watermarks.set(flow_of(driver), {"id": 2})
        project.write("t", "late.parquet", frame(3, 3))
        (result,) = driver.run().dataflows
    assert result.rows["rows_inserted"] == 2
    assert project.ids() == [1, 2, 3, 3, 3, 4, 5]
    assert state.load("f").watermark == {"id": 5}


def test_a_watermark_that_is_set_higher_skips_rows(loaded):
    with loaded.driver() as driver:
        driver.watermarks.set(flow_of(driver), {"id": 100})
    loaded.write("t", "b.parquet", frame(50, 150))
    loaded.run_one()
    assert loaded.ids() == [1, 2, 3, 4, 5, 150]


def test_setting_is_an_empty_commit_so_that_any_store_agrees(loaded):
    before = DeltaTable(loaded.path()).version()
    with loaded.driver() as driver:
        record = driver.watermarks.set(flow_of(driver), {"id": 3})
    table = DeltaTable(loaded.path())
    assert table.version() == before + 1
    assert table.transaction_version("f") == record.sequence == 2
    (loaded.root / ".datacoolie" / "state" / "f.json").unlink()
    with loaded.driver() as driver:
        shown = driver.watermarks.show(flow_of(driver))
    assert (shown.effective.watermark, shown.agrees) == ({"id": 3}, False)
    loaded.run_one()
    assert loaded.ids() == [1, 2, 3, 4, 5]


def test_before_the_first_load_the_state_alone_holds_it(project):
    project.flow("f", watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2, 3))
    with project.driver() as driver:
        driver.watermarks.set(flow_of(driver), {"id": 2})
        assert not (project.root / "lake").exists()
        driver.run()
    assert project.ids() == [2, 3]


@pytest.mark.parametrize("keep_rows", [False, True])
def test_after_a_reset_an_append_replaces_what_is_there_or_adds(loaded, keep_rows):
    with loaded.driver() as driver:
        driver.watermarks.reset(flow_of(driver), keep_rows=keep_rows)
        assert driver.watermarks.show(flow_of(driver)).effective.watermark == {}
    assert loaded.ids() == [1, 2, 3, 4, 5], "a reset itself takes no row"
    loaded.run_one()
    expected = [1, 2, 3, 4, 5] * (2 if keep_rows else 1)
    assert loaded.ids() == sorted(expected)
    loaded.write("t", "b.parquet", frame(6))
    loaded.run_one()
    assert loaded.ids() == sorted([*expected, 6]), "only the next load replaces"


def test_a_reset_of_a_merge_reads_all_again_and_keeps_other_rows(project):
    project.flow("f", watermark=["id"], load_type="merge_upsert", merge_keys=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    write_deltalake(project.path(), frame(99).to_arrow(), mode="append", schema_mode="merge")
    with project.driver() as driver:
        driver.watermarks.reset(flow_of(driver))
    project.run_one()
    assert project.ids() == [1, 2, 99]


def test_a_reset_that_would_take_the_rows_of_others_is_refused(loaded):
    loaded.flow("other", source_table="u")
    with loaded.driver() as driver:
        flow = driver.graph.by_id["f"]
        with pytest.raises(WatermarkError, match="keep-rows"):
            driver.watermarks.reset(flow)
        driver.watermarks.reset(flow, keep_rows=True)


def test_a_running_dataflow_is_not_touched(loaded):
    with loaded.driver() as driver:
        flow = flow_of(driver)
        with driver._work.locks.dataflow("f"), pytest.raises(BusyError):
            driver.watermarks.set(flow, {"id": 1})


def test_a_column_that_is_no_watermark_is_refused_with_those_that_are(loaded):
    with loaded.driver() as driver, pytest.raises(WatermarkError, match="id"):
        driver.watermarks.set(flow_of(driver), {"nonsense": 1})


@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_flat_files_take_a_watermark_too(project, format_):
    document = {**project.document}
    document["connections"][1] = {
        "name": "lake",
        "format": format_,
        "configure": {"base_path": "lake"},
    }
    project.flow("f", watermark=["id"])
    document["dataflows"] = project.flows
    from datacoolie_core import create_driver
    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("x", document)])

    def rows():
        files = (project.root / "lake" / "o").glob(f"*.{format_}")
        read = pl.read_csv if format_ == "csv" else pl.read_parquet
        return sorted(one for file in files for one in read(file)["id"].to_list())

    project.write("t", "a.parquet", frame(1, 2, 3))
    with create_driver(scope, project_dir=str(project.root)) as driver:
        driver.run()
        driver.watermarks.set(flow_of(driver), {"id": 1})
        project.write("t", "b.parquet", frame(4))
        assert driver.run().failed == 0
        assert rows() == [1, 2, 3, 4]
        driver.watermarks.reset(flow_of(driver))
        assert driver.run().failed == 0
    assert rows() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", None, 7),
        ("2.5", "float", 2.5),
        ("2025-01-31T05:00:00+05:00", "timestamp", datetime(2025, 1, 31, tzinfo=UTC)),
        ("x", "text", "x"),
    ],
)
def test_values_take_the_type_of_their_column_or_the_one_that_is_named(loaded, text, kind, value):
    with loaded.driver() as driver:
        found = driver.watermarks.parse(text, "id", flow_of(driver), kind)
    assert (found, type(found)) == (value, type(value))


def test_a_value_of_another_type_is_refused(loaded):
    with loaded.driver() as driver, pytest.raises(WatermarkError, match="no int"):
        driver.watermarks.parse("yesterday", "id", flow_of(driver))


def test_a_type_that_nothing_says_has_to_be_named(project):
    project.flow("f", watermark=["id"])
    with project.driver() as driver:
        with pytest.raises(WatermarkError, match="--type"):
            driver.watermarks.parse("1", "id", flow_of(driver))
        assert driver.watermarks.parse("1", "id", flow_of(driver), "int") == 1


# --- the framework's watermarks


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


# --- the command line


@pytest.fixture
def call(loaded):
    (loaded.root / "metadata.json").write_text(json.dumps(loaded.document))

    def run(*arguments, code=0, answer=None):
        command = [*arguments, "--project-dir", str(loaded.root), "-m", "metadata.json"]
        done = CliRunner().invoke(app, ["watermark", *command], input=answer)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.stdout

    return run


def test_show_set_show_and_reset(call, loaded):
    (before,) = json.loads(call("show", "--json"))["dataflows"]
    assert (before["watermark"], before["sequence"], before["agrees"]) == ({"id": 5}, 1, True)
    assert "bronze/f" in call("show")
    assert "id 3" in call("set", "bronze/f", "id=3", "--yes")
    (after,) = json.loads(call("show", "--json"))["dataflows"]
    assert (after["watermark"], after["sequence"]) == ({"id": 3}, 2)
    document = json.loads(call("reset", "f", "--yes", "--json"))
    assert (document["watermark"], document["replace_next"]) == ({}, True)


def test_a_question_is_asked_and_no_means_no(call):
    call("set", "bronze/f", "id=3", answer="n\n", code=2)
    (shown,) = json.loads(call("show", "--json"))["dataflows"]
    assert shown["watermark"] == {"id": 5}
    call("set", "bronze/f", "id=3", answer="y\n")


def test_import_by_the_command_line(call, loaded):
    framework_file(loaded, "x_f", '{"id": 9}')
    done = json.loads(call("import", "old", "--dry-run", "--json"))["watermarks"]
    assert [one["outcome"] for one in done] == ["would import"]
    assert "imported" in call("import", "old")


@pytest.mark.parametrize("command", ["show", "set", "reset", "import"])
def test_each_command_has_help_with_an_example(command):
    done = CliRunner().invoke(app, ["watermark", command, "--help"])
    assert done.exit_code == 0
    assert f"Example: datacoolie watermark {command}" in done.stdout
