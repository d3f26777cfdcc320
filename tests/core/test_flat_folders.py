"""What else lies in a folder: files of users, dated folders, other destinations, what was left."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
import time_machine

from datacoolie_core.errors import MetadataError, WriteError
from datacoolie_core.metadata.models import Connection, Destination
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers.destination import writer_for
from datacoolie_core.writers.flat.staging import Staging, drop_left_behind
from datacoolie_core.writers.request import Overlap
from tests.core.flat_files import FORMATS, Files, frame
from tests.core.flat_folder import Folder, ids


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def folder(tmp_path):
    return Folder(str(tmp_path / "t"))


def drop_in(folder: Path, name: str, rows: pl.DataFrame) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(path)
    return path


def test_files_of_users_stay_and_are_read_beside_ours(files):
    foreign = drop_in(files.folder(), "mine.parquet", frame(100))
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1))
    result = files.run_one()
    assert files.rows("id") == [1, 100]
    assert foreign.exists()
    assert result.table_rows is None


def test_an_overwrite_replaces_files_of_users_and_says_so(files):
    """A folder that another tool wrote becomes ours; what is no data stays."""
    foreign = drop_in(files.folder(), "mine.parquet", frame(100))
    (files.folder() / "README.txt").write_text("hello")
    files.flow(load_type="overwrite")
    files.write("t", "a.parquet", frame(1))
    result = files.run_one()
    assert [one.code for one in result.warnings] == ["foreign_files_replaced"]
    assert files.rows("id") == [1]
    assert not foreign.exists()
    assert (files.folder() / "README.txt").exists()
    drop_in(files.folder(), "mine.parquet", frame(200))
    assert files.rows("id") == [1, 200]


def test_other_destinations_inside_the_folder_are_left_alone(files):
    files.flow("a", load_type="overwrite", table="o")
    files.flow("b", load_type="overwrite", table="o/inner")
    files.write("t", "a.parquet", frame(1))
    for _ in range(2):
        files.run()
        assert files.rows("id", table="o/inner") == [1]


def test_a_type_that_a_users_file_holds_differently_is_refused(files):
    """W74."""
    drop_in(files.folder(), "mine.parquet", pl.DataFrame({"id": ["x"]}))
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1))
    (result,) = files.run().dataflows
    assert result.error.code == "type_conflict"
    assert len(files.names()) == 1


def test_a_replay_refuses_rows_of_its_window_in_a_file_of_nobody(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2, 3))
    files.run_one()
    drop_in(files.folder(), "mine.parquet", frame(2))
    before = files.names()
    with pytest.raises(AssertionError, match=r"mine\.parquet, which no dataflow wrote, holds 1"):
        files.replay(2, 4, step=2)
    assert files.names() == before
    (files.folder() / "mine.parquet").unlink()
    drop_in(files.folder(), "mine.parquet", frame(50))
    files.replay(2, 4, step=2)
    assert files.rows("id") == [1, 2, 3, 50]


def test_a_file_that_somebody_deleted_is_a_foreign_change_once(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    (name,) = files.names()
    (files.folder() / name).unlink()
    files.write("t", "b.parquet", frame(3))
    result = files.run_one()
    assert [one.code for one in result.warnings] == ["foreign_change"]
    assert result.table_rows == 1
    files.write("t", "c.parquet", frame(4))
    assert not files.run_one().warnings


def test_a_deleted_file_is_loaded_again_where_that_is_wanted(files):
    files.flow(
        watermark=["id"],
        destination={"configure": {"datacoolie": {"on_foreign_change": "reload"}}},
    )
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    files.write("t", "b.parquet", frame(3))
    files.run_one()
    next(iter(files.folder().glob("*.parquet"))).unlink()
    files.run_one()
    assert files.rows("id") == [1, 2, 3]


def test_a_lost_manifest_stops_an_append_before_it_doubles_the_folder(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    shutil.rmtree(files.folder() / "_datacoolie")
    files.write("t", "b.parquet", frame(3))
    (result,) = files.run().dataflows
    assert result.error.code == "manifest_gone"
    assert "--full-refresh" in result.error.message
    files.run_one(full_refresh=True)
    assert files.rows("id") == [1, 2, 3]


def test_a_lost_folder_is_loaded_from_the_beginning(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    shutil.rmtree(files.folder())
    result = files.run_one()
    assert "table_gone" in [one.code for one in result.warnings]
    assert files.rows("id") == [1, 2]


def test_a_lost_state_is_taken_from_the_manifest(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    shutil.rmtree(files.root / ".datacoolie" / "state")
    result = files.run_one()
    assert (result.status, result.state.recovered) == ("skipped", True)
    assert files.rows("id") == [1, 2]


def test_ties_are_compared_with_the_files_where_hashes_do_not_help(files):
    """A source column came: the rows at the watermark are found by their values."""
    for form in FORMATS:
        one = Files(files.root / form, form=form)
        one.flow(watermark=["id"])
        one.write("t", "a.parquet", frame(1, 2, 2))
        one.run_one()
        wider = frame(1, 2, 2, 2, 3).with_columns(extra=pl.lit(None, pl.Int64))
        one.write("t", "a.parquet", wider)
        result = one.run_one()
        assert result.rows["rows_unchanged"] == 2
        assert one.rows("id") == [1, 2, 2, 2, 3]


def test_files_that_lost_digits_can_not_be_compared(tmp_path):
    folder = Folder(str(tmp_path / "t"), form="csv")
    rows = pl.DataFrame({"id": [1.234567]})
    options = {"float_precision": 2}
    folder.load(rows, options=options)
    with pytest.raises(WriteError, match="watermark_boundary: exclusive") as caught:
        folder.load(rows, options=options, overlap=Overlap())
    assert caught.value.code == "not_comparable"


def test_a_dated_folder_is_that_of_the_load_and_an_overwrite_replaces_only_it(files):
    """metadata 1.1: resolved with the current time, in UTC; one snapshot a day."""
    files.date_folders = "{year}/{month}/{day}"
    files.flow(load_type="overwrite")
    evening = dt.datetime(2026, 1, 1, 23, 30, tzinfo=dt.timezone(dt.timedelta(hours=-2)))
    for moment, row in ((evening, 1), (evening, 2), (evening + dt.timedelta(days=1), 3)):
        files.write("t", "a.parquet", frame(row))
        with time_machine.travel(moment, tick=False):
            files.run_one()
    assert {str(Path(name).parent) for name in files.names()} == {"2026/01/02", "2026/01/03"}
    assert files.rows("id") == [2, 3]


def test_rows_that_stay_in_a_replay_stay_in_their_dated_folder(files):
    files.date_folders = "{year}-{month}"
    files.form = "csv"
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2, 3))
    with time_machine.travel(dt.datetime(2026, 1, 5, tzinfo=dt.UTC), tick=False):
        files.run_one()
    with time_machine.travel(dt.datetime(2026, 2, 5, tzinfo=dt.UTC), tick=False):
        files.replay(2, 3, step=1)
    assert files.rows("id") == [1, 2, 3]
    assert {str(Path(name).parent) for name in files.names()} == {"2026-01", "2026-02"}


@pytest.mark.parametrize("pattern", ["{yaer}", "_{year}", "../{year}"])
def test_a_dated_folder_that_can_not_be_is_refused(folder, pattern):
    folder.dated = pattern
    with pytest.raises(WriteError, match="date_folder_partitions"):
        folder.load(ids(1))


def test_partition_columns_that_do_not_fit_the_files_are_refused(folder):
    rows = pl.DataFrame({"id": [1], "g": ["x"], "_h": ["y"], "deep": [[1]]})
    folder.load(rows)
    for by, code in (
        (("g",), "partition_mismatch"),
        (("nope",), "missing_column"),
        (("_h",), "unsupported_partition_name"),
        (("deep",), "unsupported_partition_type"),
        (("id", "g", "_h", "deep"), "unsupported_partition_type"),
    ):
        uri = folder.uri if code == "partition_mismatch" else f"{folder.uri}2"
        with pytest.raises(WriteError) as caught:
            Folder(uri).load(rows, partition_by=by)
        assert caught.value.code == code


def test_names_that_differ_in_case_only_are_refused(folder):
    folder.load(pl.DataFrame({"id": [1], "a": [1]}))
    with pytest.raises(WriteError, match="'a' and 'A'"):
        folder.load(pl.DataFrame({"id": [1], "A": [1]}))


@pytest.mark.parametrize("form", FORMATS)
def test_figures_are_told_without_a_load(tmp_path, form):
    folder = Folder(str(tmp_path / "t"), form=form)
    writer = folder.writer
    windows = [Window("id", 1, 3), Window("id", 3, 9)]
    assert writer.count_windows(folder.uri, "id", windows, {}) == [0, 0]
    assert writer.no_rows(folder.uri, {}) is None
    assert writer.read_schema(folder.uri, {}) is None
    assert writer.table_row_count(folder.uri, {}) is None
    rows = pl.DataFrame({"id": [1, 2, 3, None], "x": [0.5, float("inf"), None, 1.0]})
    result = folder.load(rows if "json" not in form else rows.with_columns(x=pl.lit(0.5)))
    assert (result.files_added, result.files_removed, result.table_rows) == (1, 0, 4)
    assert result.bytes_added == sum(info.size for info in folder.look().data.values())
    assert writer.count_windows(folder.uri, "id", windows, {}) == [2, 1]
    assert writer.column_maximum(folder.uri, "id", {}) == 3
    assert writer.no_rows(folder.uri, {}).collect().columns == ["id", "x"]
    assert writer.read_schema(folder.uri, {}) == {"id": "long", "x": "double"}
    assert writer.table_row_count(folder.uri, {}) == 4
    with pytest.raises(WriteError, match="no column 'nope'"):
        writer.column_maximum(folder.uri, "nope", {})


def test_a_row_outside_its_window_is_refused(folder):
    folder.load(ids(1, 2))
    with pytest.raises(WriteError, match="9 in column 'id' is outside the window"):
        folder.load(ids(2, 9), mode="replace_window", window=Window("id", 2, 5))
    assert folder.ids() == [1, 2]


def test_rows_without_a_value_belong_to_no_window(folder):
    rows = pl.DataFrame({"id": [1.0, None, float("nan"), 2.0]})
    folder.load(rows)
    folder.load(pl.DataFrame({"id": [1.5]}), mode="replace_window", window=Window("id", 0, 9))
    assert sorted(map(str, folder.frame()["id"])) == ["1.5", "None", "nan"]


def test_what_a_dead_load_left_staged_is_deleted_and_a_live_one_is_not(folder, tmp_path):
    folder.load(ids(1))
    alive, dead = Staging(folder.uri), tmp_path / "t" / "_datacoolie" / "staging" / "0123"
    (alive.root / "part.parquet").touch()
    dead.mkdir()
    (dead / "part.parquet").touch()
    drop_left_behind(folder.uri)
    assert (alive.root / "part.parquet").exists()
    assert not dead.exists()
    alive.discard()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_not_be_written_is_named(folder, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WriteError, match="permission denied"):
            folder.load(ids(1))
    finally:
        tmp_path.chmod(0o700)


def test_a_file_where_the_folder_should_be_is_an_error(folder):
    Path(folder.uri).write_text("in the way")
    with pytest.raises(WriteError):
        folder.load(ids(1))
    assert Path(folder.uri).read_text() == "in the way"


def test_the_project_works_on_another_kind_of_storage(tmp_path):
    """Nothing assumes a local disk."""
    for form in FORMATS:
        files = Files(tmp_path / form, form=form, base=f"memory://{tmp_path.name}/{form}")
        files.flow(watermark=["id"], partition_columns=["g"])
        files.write("t", "a.parquet", frame(1, 2, 3, g=["x", None, "y z"]))
        files.run_one()
        files.write("t", "b.parquet", frame(4, g=["x"]))
        files.run_one()
        files.replay(2, 4, step=2)
        there = Folder(f"{files.base}/o", form=form)
        assert there.frame().sort("id").select("id", "g").rows() == [
            (1, "x"),
            (2, None),
            (3, "y z"),
            (4, "x"),
        ]
        assert len(there.look().contents.files) == len(there.look().data)


@pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite", "scd2"])
def test_merges_into_files_are_a_metadata_error(files, load_type):
    files.flow(load_type=load_type, merge_keys=["id"])
    with pytest.raises(MetadataError, match=f"parquet can't do {load_type}, only append"):
        _ = files.metadata


def test_excel_is_read_only(files):
    """Said when the metadata is loaded, and by the writer itself."""
    files.form = "excel"
    files.flow()
    with pytest.raises(MetadataError, match="is excel, which can't be written"):
        _ = files.metadata
    connection = Connection(name="x", connection_type="file", format="excel")
    with pytest.raises(WriteError, match="format excel can be read, but not written"):
        writer_for(Destination(connection=connection, table="t"))


@pytest.mark.parametrize("form", FORMATS)
def test_patterns_of_other_readers_do_not_meet_staged_files(tmp_path, form):
    folder, met = Folder(str(tmp_path / "t"), form=form), {}
    folder.load(ids(1))
    before = set((tmp_path / "t").rglob(f"*.{form}"))

    def look(phase):
        met[phase] = set((tmp_path / "t").rglob("*.*"))

    folder.load(ids(2), on_phase=look)
    assert {path for path in met["staged"] if path.suffix == f".{form}"} == before
    assert any(path.suffix == ".part" for path in met["staged"])


def test_a_commit_without_rows_adds_no_file(folder):
    """As when only the watermark moves."""
    folder.load(ids(1))
    result = folder.load(ids(), required=True)
    assert (result.committed, result.files_added, result.table_rows) == (True, 0, 1)
    assert folder.sequence() == 2
