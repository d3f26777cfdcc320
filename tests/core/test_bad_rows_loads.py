"""Quarantine with every kind of load: each bad row is kept once, whatever is read again."""

from __future__ import annotations

import json

import polars as pl
import pytest

from datacoolie_core.plan.replay_config import ReplayConfig
from tests.core.quarantines import bad_ids, flow, put, quarantined

KEYED = {"merge_keys": ["id"]}
LOADS = {
    "append": {},
    "overwrite": {},
    "full_load": {},
    "merge_upsert": KEYED,
    "merge_overwrite": KEYED,
    "scd2": {**KEYED, "destination": {"configure": {"scd2_effective_column": "ts"}}},
}


def replay(project, start, end, **options):
    chunks = ReplayConfig(
        f"2025-01-{start:02}", f"2025-01-{end:02}", {"days": 10}, chunk_column="ts"
    )
    with project.driver() as driver:
        (result,) = driver.run_replay(driver.metadata.dataflows, chunks, **options).dataflows
    assert result.status != "failed", result.error.message
    return result


@pytest.mark.parametrize("load_type", LOADS)
def test_every_load_type_keeps_bad_rows_apart(project, load_type):
    flow(project, load_type=load_type, **LOADS[load_type])
    put(project, "a.csv", "1,10,1", "2,x,2", "3,30,3")
    first = project.run_one()
    assert (first.rows["rows_rejected"], project.ids(), bad_ids(project)) == (1, [1, 3], [(1, "2")])
    put(project, "b.csv", "4,40,4", "5,y,5")
    second = project.run_one()
    assert second.rows["rows_rejected"] == 1
    assert bad_ids(project) == [(1, "2"), (2, "5")]
    assert second.watermark["ts"].day == 5


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "json", "avro"])
@pytest.mark.parametrize("load_type", ["append", "overwrite"])
def test_flat_files_have_their_quarantine_beside_them(project, form, load_type):
    """It is a Delta table whatever the destination is, and readers of the folder never see it."""
    flow(project, load_type=load_type, destination={"connection_name": "files"})
    document = type(project).document.fget(project)
    files = {"name": "files", "format": form, "configure": {"base_path": "lake"}}
    document["connections"].append(files)
    project.__class__ = type("P", (type(project),), {"document": property(lambda _: document)})
    put(project, "a.csv", "1,10,1", "2,x,2")
    assert project.run_one().rows["rows_rejected"] == 1
    put(project, "b.csv", "3,30,3", "4,y,4")
    project.run_one()
    assert bad_ids(project) == [(1, "2"), (2, "4")]
    found = {one.suffix for one in (project.root / "lake" / "o").glob("*.*")}
    assert found == {f".{form}"}


def test_a_run_without_new_rows_is_skipped_and_quarantines_nothing(project):
    """Rows that tie with the watermark are read again; the bad ones among them are known too."""
    flow(project)
    put(project, "a.csv", "1,10,1", "2,x,2", "3,30,2", "2,x,2")
    project.run_one()
    again = project.run_one()
    assert (again.status, again.reason) == ("skipped", "only known rows")
    assert bad_ids(project) == [(1, "2"), (1, "2")]
    put(project, "b.csv", "4,y,2", "5,50,2")
    third = project.run_one()
    assert (third.rows["rows_rejected"], third.rows["rows_inserted"]) == (1, 1)
    assert bad_ids(project) == [(1, "2"), (1, "2"), (2, "4")]


def test_a_row_whose_bad_value_is_another_one_is_another_row(project):
    """A tie that differs from a known one in a bad value alone is not taken for it."""
    flow(project)
    put(project, "a.csv", "1,x,1")
    project.run_one()
    put(project, "b.csv", "1,y,1", "1,,1")
    result = project.run_one()
    assert (result.rows["rows_rejected"], project.table().rows()[0][:2]) == (1, (1, None))
    values = quarantined(project).sort("sequence")["value"].to_list()
    assert values == ["x", "y"]


@pytest.mark.parametrize("load_type", ["append", "merge_upsert", "overwrite", "scd2"])
def test_a_row_with_a_bad_watermark_is_quarantined_once_however_often_it_is_read(
    project, load_type
):
    """It moves no watermark, so each run reads it again from an untyped file."""
    flow(project, load_type=load_type, **LOADS[load_type])
    put(project, "a.csv", "1,10,1", "2,20,soon", "2,20,soon")
    first = project.run_one()
    assert first.rows["rows_rejected"] == 2
    assert first.rows["rows_null_watermark"] == 0
    assert first.watermark["ts"].day == 1
    for _ in range(2):
        again = project.run_one()
        assert (again.status, again.reason) == ("skipped", "only known rows")
        assert again.state.sequence == 1
    put(project, "b.csv", "3,30,later", "2,20,soon", "4,40,2", header="id,v,ts")
    second = project.run_one()
    assert second.watermark["ts"].day == 2
    assert bad_ids(project) == [(1, "2"), (1, "2"), (2, "2"), (2, "3")]
    # a new column changes neither what a row is nor whether it is known
    put(project, "c.csv", "5,50,2025-01-03,w", header="id,v,ts,more")
    project.run_one()
    assert bad_ids(project) == [(1, "2"), (1, "2"), (2, "2"), (2, "3")]


def test_two_watermarks_lose_no_row_of_which_one_is_bad(project):
    hints = [{"column_name": "v", "data_type": "INT"}, {"column_name": "ts", "data_type": "DATE"}]
    flow(project, watermark=["ts", "v"], transform={"schema_hints": hints})
    put(project, "a.csv", "1,10,10")
    project.run_one()
    put(project, "b.csv", "2,x,1", "3,1,soon", "4,1,1")
    result = project.run_one()
    assert result.rows["rows_rejected"] == 2
    assert sorted(one for _, one in bad_ids(project)) == ["2", "3"]
    assert project.ids(column="id") == ["1"]


@pytest.mark.parametrize("load_type", ["append", "merge_upsert", "merge_overwrite"])
def test_look_back_reads_bad_rows_again_and_keeps_them_once(project, load_type):
    source = {"configure": {"backward_days": 5}}
    flow(project, load_type=load_type, source=source, **LOADS[load_type])
    put(project, "a.csv", "1,10,1", "2,x,2", "3,30,3")
    project.run_one()
    put(project, "b.csv", "4,y,2", "5,50,4", "2,x,2")
    second = project.run_one()
    assert second.rows["rows_rejected"] == 3
    # the same row of another file is another row
    assert bad_ids(project) == [(1, "2"), (2, "2"), (2, "4")]


def test_a_full_snapshot_that_is_merged_keeps_a_bad_row_once(project):
    flow(project, load_type="merge_upsert", merge_keys=["id"], watermark=[])
    put(project, "a.csv", "1,10,1", "2,x,2")
    project.run_one()
    again = project.run_one()
    assert again.rows["rows_rejected"] == 1, "it still is not in the table"
    assert bad_ids(project) == [(1, "2")]


def test_an_append_without_a_watermark_takes_every_row_for_a_new_one(project):
    flow(project, watermark=[])
    put(project, "a.csv", "1,10,1", "2,x,2")
    project.run_one()
    project.run_one()
    assert project.ids() == [1, 1]
    assert bad_ids(project) == [(1, "2"), (2, "2")]


@pytest.mark.parametrize("load_type", ["overwrite", "full_load"])
def test_a_load_that_replaces_the_table_replaces_its_quarantine(project, load_type):
    flow(project, load_type=load_type, watermark=[])
    put(project, "a.csv", "1,10,1", "2,x,2", "3,y,3")
    project.run_one()
    put(project, "a.csv", "1,10,1", "2,20,2", "3,y,3")
    project.run_one()
    assert (project.ids(), bad_ids(project)) == ([1, 2], [(2, "3")])
    put(project, "a.csv", "1,10,1", "2,20,2", "3,30,3")
    project.run_one()
    assert (project.ids(), bad_ids(project)) == ([1, 2, 3], [])


def test_a_full_refresh_replaces_the_quarantine(project):
    flow(project)
    put(project, "a.csv", "1,10,1", "2,x,2", "3,30,soon")
    project.run_one()
    put(project, "a.csv", "1,10,1", "2,20,2", "3,30,soon")
    project.run_one(full_refresh=True)
    assert (project.ids(), bad_ids(project)) == ([1, 2], [(2, "3")])


@pytest.mark.parametrize("load_type", [one for one in LOADS if one != "full_load"])
def test_a_replay_replaces_what_its_window_had_quarantined(project, load_type):
    flow(project, load_type=load_type, **LOADS[load_type])
    put(project, "a.csv", "1,x,1", "2,y,12", "3,z,22", "4,40,23", "5,50,never")
    project.run_one()
    assert [one for _, one in bad_ids(project)] == ["1", "2", "3", "5"]
    put(project, "a.csv", "1,10,1", "2,still,12", "3,30,22", "4,40,23", "5,50,never")
    result = replay(project, 1, 21)
    assert [chunk.rows["rows_rejected"] for chunk in result.chunks] == [0, 1]
    assert result.rows["rows_rejected"] == 1
    assert bad_ids(project) == [(1, "3"), (1, "5"), (3, "2")]
    assert {1, 4} <= set(project.ids())
    window = quarantined(project).filter(pl.col("sequence") == 3)["window"].item()
    assert json.loads(window)["column"] == "ts"


@pytest.mark.parametrize(
    "column_type",
    [pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("us", "UTC"), pl.Date],
    ids=str,
)
def test_a_replay_finds_the_rows_of_its_window_whatever_type_the_source_has(project, column_type):
    flow(project, transform={"schema_hints": [{"column_name": "v", "data_type": "INT"}]})
    project.source_format = "parquet"
    frame = pl.DataFrame({"id": [1, 2], "v": ["x", "y"], "TS": ["2025-01-05", "2025-01-15"]})
    typed = frame.with_columns(frame["TS"].str.slice(0, 10).str.to_date().cast(column_type))
    project.write("t", "a.parquet", typed)
    project.run_one()
    project.write("t", "a.parquet", typed.with_columns(v=pl.lit("1")))
    replay(project, 1, 11)
    assert [json.loads(one)["id"] for one in quarantined(project)["row"]] == [2]


def test_a_replay_by_numbers_finds_the_rows_of_its_window(project):
    flow(project, watermark=["id"])
    put(project, "a.csv", "1,x,1", "12,y,1", "23,z,1")
    project.run_one()
    put(project, "a.csv", "1,1,1", "12,1,1", "23,1,1")
    chunks = ReplayConfig(10, 20, step=10, chunk_column="id")
    with project.driver() as driver:
        driver.run_replay(driver.metadata.dataflows, chunks)
    assert bad_ids(project) == [(1, "1"), (1, "23")]


def test_a_replay_by_a_masked_column_loses_no_row_and_doubles_none(project):
    """Where a row lies can't be told from a value that is hidden: known rows stay as they are."""
    rules = [{"columns": ["ts"], "method": "nullify"}]
    options = {"load_type": "merge_upsert", "merge_keys": ["id"]}
    flow(project, transform={"masking_rules": rules}, watermark=["id"], **options)
    put(project, "a.csv", "1,x,1", "2,y,12")
    project.run_one()
    replay(project, 1, 11)
    assert [one for _, one in bad_ids(project)] == ["1", "2"]


def test_when_every_row_is_bad_the_watermark_moves_and_the_table_is_empty(project):
    flow(project)
    put(project, "a.csv", "1,x,1", "2,y,2")
    result = project.run_one()
    assert (result.status, result.rows["rows_written"]) == ("succeeded", 0)
    assert result.watermark["ts"].day == 2
    assert project.table().height == 0
    assert [one for _, one in bad_ids(project)] == ["1", "2"]
    assert project.run_one().status == "skipped"


def test_when_every_row_is_bad_and_there_is_no_watermark_the_load_counts(project):
    flow(project, watermark=[], load_type="merge_upsert", merge_keys=["id"])
    put(project, "a.csv", "1,x,1")
    assert project.run_one().status == "succeeded"
    again = project.run_one()
    assert (again.state.sequence, again.rows["rows_rejected"]) == (1, 1)
    assert bad_ids(project) == [(1, "1")]


@pytest.mark.parametrize("full_refresh", [False, True])
def test_bad_rows_alone_do_not_empty_a_table(project, full_refresh):
    flow(project, load_type="append" if full_refresh else "full_load", watermark=[])
    put(project, "a.csv", "1,10,1")
    project.run_one()
    put(project, "a.csv", "1,x,1")
    (result,) = project.run(full_refresh=full_refresh).dataflows
    assert result.error.code == "all_rows_bad"
    assert (project.ids(), bad_ids(project)) == ([1], [])


def test_a_snapshot_with_bad_rows_closes_no_keys(project):
    destination = {
        "configure": {
            "scd2_effective_column": "ts",
            "datacoolie": {"scd2_close_missing": True},
        }
    }
    flow(project, load_type="scd2", merge_keys=["id"], watermark=[], destination=destination)
    put(project, "a.csv", "1,10,1", "2,20,1")
    project.run_one()
    put(project, "a.csv", "1,10,1", "2,x,1")
    (result,) = project.run().dataflows
    assert result.error.code == "incomplete_snapshot"
    assert project.ids() == [1, 2]


def test_dataflows_of_one_table_have_their_own_rows_in_its_quarantine(project):
    flow(project, name="f")
    flow(project, name="g", source_table="u")
    put(project, "a.csv", "1,x,1")
    folder = project.root / "in" / "u"
    folder.mkdir()
    (folder / "a.csv").write_text("id,v,ts\n2,y,2025-01-01\n")
    assert not project.run().has_failures
    rows = quarantined(project).select("dataflow_id", "value").sort("dataflow_id").rows()
    assert rows == [("f", "x"), ("g", "y")]
    # replacing one's rows leaves those of the other
    put(project, "a.csv", "1,10,1")
    replay_of_f = ReplayConfig("2025-01-01", "2025-01-02", {"days": 1}, chunk_column="ts")
    project.flows[0]["destination"] |= {"configure": {"datacoolie": {"replay_filter": "id = 1"}}}
    project.flows[1]["destination"] |= {"configure": {"datacoolie": {"replay_filter": "id = 2"}}}
    with project.driver() as driver:
        one = [flow for flow in driver.metadata.dataflows if flow.name == "f"]
        (result,) = driver.run_replay(one, replay_of_f).dataflows
    assert result.status == "succeeded", result.error
    assert quarantined(project)["value"].to_list() == ["y"]
