"""Watermarks that people set, reset and bring along: the next load does what they meant."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from datacoolie_core import SqlStateStore
from datacoolie_core.cli.main import app, main
from datacoolie_core.errors import BusyError, WatermarkError
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "bronze/f", "id=3", "--type", "nonsense"), "nonsense"),
        (("set", "bronze/f", "id"), "column=value"),
        (("set", "bronze/f", "idd=3"), "Did you mean 'id'?"),
        (("set", "bronze/g", "id=3"), "Did you mean 'bronze/f'?"),
        (("reset", "bronze/g"), "Did you mean 'bronze/f'?"),
        (("set", "bronze/f", "id=3"), "--yes"),
    ],
)
def test_wrong_usage_is_exit_code_two_and_changes_nothing(call, command_line, arguments, told):
    code, told_there = command_line(*arguments)
    assert code == 2
    assert told in told_there
    (shown,) = json.loads(call("show", "--json"))["dataflows"]
    assert (shown["watermark"], shown["sequence"]) == ({"id": 5}, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("set", "bronze/f", "id=x", "--yes"), 1),
        (("import", "nothing here"), 3),
        (("import", "sqlite:///empty.db"), 1),
        (("show", "--state", "postgresql://me:hunter2@h:noport/db"), 1),
        (("set", "bronze/f", "id=3", "--yes", "--state", "sqlite://"), 3),
    ],
)
def test_other_failures_have_their_codes_and_show_no_secret(command_line, arguments, code):
    found, told = command_line(*arguments)
    assert found == code, told
    assert "hunter2" not in told


@pytest.fixture
def command_line(loaded, call, capfd, monkeypatch):
    """The command as a process calls it, with nobody there to answer."""
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(*arguments):
        command = [*arguments, "--project-dir", str(loaded.root), "-m", "metadata.json"]
        with pytest.raises(SystemExit) as ended:
            main(["watermark", *command])
        told = capfd.readouterr()
        return ended.value.code, told.out + told.err

    return run


def test_the_command_line_keeps_the_state_in_a_database(call, loaded):
    there = ("--state", "sqlite:///new/state.db")
    assert "id 3" in call("set", "bronze/f", "id=3", "--yes", *there)
    (shown,) = json.loads(call("show", "--json", *there))["dataflows"]
    assert (shown["watermark"], shown["agrees"]) == ({"id": 3}, True)
    (shown,) = json.loads(call("show", "--json"))["dataflows"]
    assert (shown["watermark"], shown["agrees"]) == ({"id": 3}, False)
    assert SqlStateStore(f"sqlite:///{loaded.root}/new/state.db").load("f").sequence == 2


@pytest.mark.parametrize("command", ["show", "set", "reset", "import"])
def test_each_command_has_help_with_an_example(command):
    done = CliRunner().invoke(app, ["watermark", command, "--help"])
    assert done.exit_code == 0
    assert f"Example: datacoolie watermark {command}" in done.stdout
