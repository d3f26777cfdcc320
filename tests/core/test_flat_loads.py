"""Loads into folders of files: every load type, every format, partitioned or not."""

from __future__ import annotations

import polars as pl
import pytest
from deltalake import DeltaTable

from tests.core.flat_files import FORMATS, Files, frame


@pytest.fixture(params=FORMATS)
def files(request, tmp_path):
    return Files(tmp_path, form=request.param)


def partitioned(files, by=("g",), **given):
    return files.flow(watermark=["id"], partition_columns=list(by), **given)


def test_an_append_adds_files_and_counts_their_rows(files):
    """W70: counts for every destination."""
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    first = files.run_one()
    files.write("t", "b.parquet", frame(3))
    second = files.run_one()
    assert (first.rows["rows_written"], second.rows["rows_written"]) == (2, 1)
    assert second.table_rows == 3
    assert second.schema["id"] == "long"
    assert files.rows("id") == [1, 2, 3]
    assert files.run_one().status == "skipped"
    assert files.rows("id") == [1, 2, 3]


def test_an_overwrite_takes_the_place_of_everything(files):
    files.flow(load_type="overwrite")
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    before = files.names()
    files.write("t", "a.parquet", frame(3))
    result = files.run_one()
    assert files.rows("id") == [3]
    assert not before & files.names()
    assert result.table_rows == 1


def test_partition_columns_become_folders(files):
    """W75: in every format; the column is in the folder's name and not in the file."""
    partitioned(files)
    files.write("t", "a.parquet", frame(1, 2, 3, g=["a/b", "ü x", None]))
    files.run_one()
    folders = {name.rpartition("/")[0] for name in files.names()}
    assert folders == {"g=a%2Fb", "g=%C3%BC%20x", "g=__HIVE_DEFAULT_PARTITION__"}
    assert files.rows("id", "g") == [(1, "a/b"), (2, "ü x"), (3, None)]


def test_an_overwrite_that_fails_leaves_the_old_output_whole(files):
    """W33."""
    files.flow(
        load_type="overwrite",
        transform={"schema_hints": [{"column_name": "v", "data_type": "int"}]},
    )
    files.write("t", "a.parquet", frame(1).with_columns(v=pl.lit("1")))
    files.run_one()
    before = {name: (files.folder() / name).read_bytes() for name in files.names()}
    many = pl.DataFrame({"id": range(50_000)}).with_columns(
        v=pl.when(pl.col("id") == 49_999).then(pl.lit("bad")).otherwise(pl.lit("1"))
    )
    files.write("t", "a.parquet", many)
    (result,) = files.run().dataflows
    assert result.status == "failed"
    assert {name: (files.folder() / name).read_bytes() for name in files.names()} == before


def test_an_append_that_fails_leaves_nothing_behind(files):
    """W34: neither for our readers nor for others, not even an empty folder."""
    files.flow(
        watermark=["id"], transform={"schema_hints": [{"column_name": "v", "data_type": "int"}]}
    )
    files.write("t", "a.parquet", frame(1))
    (result,) = files.run().dataflows
    assert (result.status, result.error.phase) == ("failed", "transform")
    assert not files.folder().exists()


@pytest.mark.parametrize(("policy", "left"), [("overwrite", []), ("skip", [1, 2])])
def test_an_emptied_source_empties_only_where_it_is_told_to(files, policy, left):
    """W27."""
    datacoolie = {"configure": {"datacoolie": {"empty_source": policy}}}
    files.flow(load_type="overwrite", destination=datacoolie)
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    files.write("t", "a.parquet", frame().cast({"id": pl.Int64, "v": pl.String}))
    result = files.run_one()
    assert result.status == ("succeeded" if policy == "overwrite" else "skipped")
    assert files.rows("id") == left
    files.write("t", "a.parquet", frame(3))
    files.run_one()
    assert files.rows("id") == [3]


def test_an_append_repeated_by_a_replay_doubles_no_row(files):
    """W46; rows outside the range stay, also in a file that lies partly inside."""
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(*range(10)))
    files.run_one()
    for _ in range(2):
        result = files.replay(2, 6, step=2)
        assert files.rows("id") == list(range(10))
        assert result.table_rows == 10
    assert files.run_one().status == "skipped"


def test_a_replay_of_an_overwrite_keeps_the_other_windows(files):
    """W11."""
    files.flow(load_type="overwrite", watermark=["id"])
    files.write("t", "a.parquet", frame(*range(10)))
    files.replay(0, 10, step=5)
    assert files.rows("id") == list(range(10))


def test_a_window_that_was_emptied_loses_its_rows(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2, 3, 4))
    files.run_one()
    files.write("t", "a.parquet", frame(1, 4))
    result = files.replay(2, 4, step=2)
    assert result.rows["rows_deleted"] == 2
    assert files.rows("id") == [1, 4]


def test_a_replay_over_a_partition_column_looks_at_folders_alone(files):
    files.flow(watermark=["id"], partition_columns=["id"])
    files.write("t", "a.parquet", frame(1, 2, 3, 4))
    files.run_one()
    kept = {name for name in files.names() if name.startswith(("id=1", "id=4"))}
    files.replay(2, 4, step=1)
    assert files.rows("id") == [1, 2, 3, 4]
    assert kept < files.names()


def test_new_columns_are_added_and_missing_ones_are_null(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    files.write("t", "b.parquet", pl.DataFrame({"id": [3], "extra": [1.5]}))
    result = files.run_one()
    assert files.rows("id", "v", "extra") == [(1, "v1", None), (2, "v2", None), (3, None, 1.5)]
    columns = list(result.schema)
    assert columns.index("v") < columns.index("extra")


def test_a_changed_type_is_refused_before_anything_is_written(files):
    """W74: such a file would make the folder unreadable."""
    files.flow("a", watermark=["id"])
    files.write("t", "a.parquet", frame(1))
    files.run_one()
    before = files.names()
    files.flow("b", watermark=["id"], source_table="u")
    files.write("u", "a.parquet", pl.DataFrame({"id": [2], "v": [2.5]}))
    results = {one.dataflow.name: one for one in files.run().dataflows}
    assert results["b"].error.code == "type_conflict"
    assert "column 'v' is string in the files" in results["b"].error.message
    assert files.names() == before


def test_a_narrower_number_takes_the_type_that_is_there(files):
    files.flow("a", watermark=["id"])
    files.write("t", "a.parquet", pl.DataFrame({"id": [1], "n": [1]}))
    files.run_one()
    files.flow("b", source_table="u")
    narrow = pl.DataFrame({"id": [2], "n": pl.Series([2], dtype=pl.Int16)})
    files.write("u", "a.parquet", narrow)
    files.run()
    assert files.rows("id", "n") == [(1, 1), (2, 2)]


def test_a_full_refresh_of_an_append_replaces_what_is_there(files):
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run_one()
    files.write("t", "a.parquet", frame(2, 3))
    assert files.run_one(full_refresh=True).run_kind == "full_refresh"
    assert files.rows("id") == [2, 3]


def test_two_dataflows_append_to_one_folder_and_keep_apart(files):
    files.flow("a", watermark=["id"])
    files.flow("b", watermark=["id"], source_table="u")
    files.write("t", "a.parquet", frame(1, 2))
    files.write("u", "a.parquet", frame(10, 20))
    files.run()
    files.write("t", "b.parquet", frame(3))
    files.write("u", "b.parquet", frame(30))
    files.run()
    assert files.rows("id") == [1, 2, 3, 10, 20, 30]


def test_an_overwrite_replaces_what_other_dataflows_wrote(files):
    """As for a Delta table; the others are told at their next load, once."""
    files.flow("a", watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2))
    files.run()
    files.flow("b", load_type="overwrite", source_table="u")
    files.write("u", "a.parquet", frame(10))
    files.run(include=["b"])
    assert files.rows("id") == [10]
    files.write("t", "b.parquet", frame(3))
    (told,) = files.run(include=["a"]).dataflows
    assert [one.code for one in told.warnings] == ["foreign_change"]
    assert files.rows("id") == [3, 10]
    files.write("t", "c.parquet", frame(4))
    (quiet,) = files.run(include=["a"]).dataflows
    assert not quiet.warnings
    assert len(files.names()) == 3


def test_a_dataflow_reads_what_another_one_wrote(tmp_path):
    """The folder is a source as well: only rows that are loaded are read."""
    files = Files(tmp_path, form="csv")
    files.flow("a", watermark=["id"], partition_columns=["g"])
    files.write("t", "a.parquet", frame(1, 2, g=["x", None]))
    files.run()
    (files.folder() / "_datacoolie" / "staging").mkdir()
    (files.folder() / "_datacoolie" / "staging" / "left.csv").write_text("id\n99\n")
    document = files.document
    document["connections"][-1]["configure"]["use_hive_partitioning"] = True
    document["dataflows"].append(
        {
            "name": "b",
            "source": {"connection_name": "files", "table": "o"},
            "destination": {"connection_name": "lake", "table": "p", "load_type": "overwrite"},
        }
    )
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.metadata.loader import metadata_from_documents

    with DataCoolieDriver(
        metadata_from_documents([("test.json", document)]), project_dir=str(tmp_path)
    ) as driver:
        result = driver.run()
    assert [one.status for one in result.dataflows] == ["skipped", "succeeded"]
    assert sorted(files.table("p").select("id", "g").rows()) == [("1", "x"), ("2", None)]
    assert DeltaTable(files.path("p")).version() == 0


def test_names_with_pattern_characters_and_spaces_are_names(files):
    files.flow(watermark=["id"], table="odd [1] * ?")
    files.write("t", "a.parquet", frame(1, 2, 3))
    files.run_one()
    files.replay(2, 4, step=2)
    assert files.rows("id", table="odd [1] * ?") == [1, 2, 3]
    assert all(name.startswith("odd--1----") for name in files.names("odd [1] * ?"))
