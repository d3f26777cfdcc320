"""Watermarks over several runs, through real files and real Delta tables."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable


def at(hour, minute=0, day=3):
    return datetime(2022, 1, day, hour, minute)


def rows(*pairs, **schema):
    return pl.DataFrame(
        {"id": [one for one, _ in pairs], "ts": [ts for _, ts in pairs]},
        schema={"id": pl.Int64, "ts": pl.Datetime("us"), **schema},
    )


def test_a_second_run_loads_what_is_new_and_nothing_twice(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, at(2))))
    first = project.run_one()
    assert (first.status, first.rows["rows_written"], first.run_kind) == ("succeeded", 2, "full")
    project.write("t", "b.parquet", rows((3, at(3))))
    second = project.run_one()
    assert (second.rows["rows_written"], second.run_kind) == (1, "incremental")
    third = project.run_one()
    assert (third.status, third.reason) == ("skipped", "only known rows")
    assert project.ids() == [1, 2, 3]
    assert third.watermark == {"ts": at(3)}


def test_a_late_row_that_ties_with_the_watermark_is_loaded_once(project):
    """W2, wm-ties-at-boundary."""
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(0)), (2, at(0))))
    project.run_one()
    project.write("t", "b.parquet", rows((3, at(0))))
    second = project.run_one()
    third = project.run_one()
    assert project.ids() == [1, 2, 3]
    assert third.status == "skipped"
    assert second.watermark == third.watermark == {"ts": at(0)}


def test_equal_rows_at_the_watermark_are_counted_not_merged(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(0)), (1, at(0))))
    project.run_one()
    project.write("t", "b.parquet", rows((1, at(0))))
    assert project.run_one().rows["rows_written"] == 1
    assert project.ids() == [1, 1, 1]


def test_more_ties_than_hashes_can_hold_are_compared_with_the_table(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows(*[(i, at(0)) for i in range(500)]))
    project.run_one()
    project.write("t", "b.parquet", rows((500, at(0)), (501, at(1))))
    assert project.run_one().rows["rows_written"] == 2
    assert project.run_one().status == "skipped"
    assert project.ids() == list(range(502))


def test_a_column_that_appears_does_not_double_the_ties(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(0))))
    project.run_one()
    project.write("t", "a.parquet", rows((1, at(0))).with_columns(extra=pl.lit(None, pl.String)))
    project.write("t", "b.parquet", rows((2, at(1))).with_columns(extra=pl.lit("x")))
    project.run_one()
    assert project.ids() == [1, 2]


def test_null_watermarks_load_at_first_and_are_counted_later(project):
    """W3."""
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, None)))
    project.run_one()
    project.write("t", "b.parquet", rows((3, None), (4, at(2))))
    second = project.run_one()
    assert project.ids() == [1, 2, 4]
    assert second.rows["rows_null_watermark"] == 2
    assert "2 rows have no watermark: left out" in second.warnings[0].message


def test_null_watermarks_can_fail_the_run_and_nothing_is_written(project):
    """wm-null-cursor-rows."""
    project.flow(
        source={
            "watermark_columns": ["ts"],
            "configure": {"datacoolie": {"null_watermark": "fail"}},
        }
    )
    project.write("t", "a.parquet", rows((1, at(1)), (2, None)))
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert "in ts" in result.error.message
    assert "1 or more" in result.error.message
    assert not Path(project.path()).exists()


def test_null_watermarks_included_meet_a_merge(project):
    """wm-null-cursor-rows, include."""
    project.flow(
        load_type="merge_upsert",
        merge_keys=["id"],
        source={
            "watermark_columns": ["ts"],
            "configure": {"datacoolie": {"null_watermark": "include"}},
        },
    )
    project.write("t", "a.parquet", rows((1, None), (2, None), (3, at(2))))
    project.run_one()
    project.write("t", "a.parquet", rows((1, None), (2, at(3)), (3, at(2)), (4, None)))
    result = project.run_one()
    assert project.ids() == [1, 2, 3, 4]
    assert result.watermark == {"ts": at(3)}


def test_a_batch_without_any_watermark_value_is_loaded_once(project):
    """W4."""
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, None), (2, None)))
    project.run_one()
    second = project.run_one()
    assert project.ids() == [1, 2]
    assert second.status == "skipped"


def test_nan_is_no_watermark(project):
    """W5, wm-nan-cursor."""

    def floats(*pairs):
        return pl.DataFrame(
            {"id": [a for a, _ in pairs], "x": [b for _, b in pairs]},
            schema={"id": pl.Int64, "x": pl.Float64},
        )

    project.flow(watermark=["x"])
    project.write("t", "a.parquet", floats((1, 1.0), (2, 2.0), (3, float("nan"))))
    assert project.run_one().watermark == {"x": 2.0}
    project.write("t", "b.parquet", floats((4, 3.0)))
    second = project.run_one()
    assert second.rows["rows_written"] == 1
    project.write("t", "c.parquet", floats((5, float("nan"))))
    assert project.run_one().watermark == {"x": 3.0}
    assert project.ids() == [1, 2, 3, 4]


def test_numbers_in_a_csv_are_numbers(project):
    """W1."""
    project.source_format = "csv"
    project.flow(watermark=["id"])
    project.write("t", "a.csv", pl.DataFrame({"id": list(range(1, 10))}))
    assert project.run_one().watermark == {"id": 9}
    project.write("t", "b.csv", pl.DataFrame({"id": [10, 11, 12]}))
    project.run_one()
    assert sorted(int(one) for one in project.table()["id"]) == list(range(1, 13))


def test_microseconds_survive_the_state(project):
    """wm-stored-in-milliseconds."""
    project.flow(watermark=["ts"])
    last = datetime(2026, 1, 1, 12, 0, 0, 999999)
    project.write("t", "a.parquet", rows((1, last.replace(microsecond=999100)), (2, last)))
    assert project.run_one().watermark == {"ts": last}
    assert project.run_one().status == "skipped"
    assert project.ids() == [1, 2]


def test_a_value_in_the_future_does_not_move_the_watermark_past_the_limit(project):
    """wm-future-dated-row."""
    project.flow(
        source={
            "watermark_columns": ["ts"],
            "configure": {"datacoolie": {"max_watermark": "now + 1d"}},
        }
    )
    project.write("t", "a.parquet", rows((1, datetime(2026, 1, 1)), (2, datetime(9999, 12, 31))))
    first = project.run_one()
    assert first.watermark == {"ts": datetime(2026, 1, 1)}
    assert "above max_watermark" in first.warnings[0].message
    project.write("t", "b.parquet", rows((3, datetime(2026, 1, 2))))
    project.run_one()
    project.run_one()
    assert project.ids() == [1, 2, 3]


def test_an_empty_source_is_skipped_and_makes_no_version(project):
    """wm-empty-source."""
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1))))
    first = project.run_one()
    project.write("t", "a.parquet", rows())
    second = project.run_one()
    assert second.status == "skipped"
    assert second.watermark == first.watermark
    assert DeltaTable(project.path()).version() == 0


def test_an_empty_source_at_first_leaves_no_state(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows())
    result = project.run_one()
    assert (result.status, dict(result.watermark)) == ("skipped", {})
    assert not Path(project.path()).exists()


def test_a_look_back_reads_late_rows_and_never_lowers_the_watermark(project):
    """W8, W47 on Delta, wm-lookback-window."""
    project.flow(source={"watermark_columns": ["ts"], "configure": {"backward": {"hours": 1}}})
    project.write("t", "a.parquet", rows((1, at(9, 45)), (2, at(10))))
    project.run_one()
    project.write("t", "b.parquet", rows((7, at(9, 30))))
    second = project.run_one()
    assert second.rows["rows_written"] == 1
    assert second.watermark == {"ts": at(10)}
    assert project.run_one().status == "skipped"
    assert project.ids() == [1, 2, 7]


def test_several_watermark_columns_load_what_is_above_in_at_least_one(project):
    def frame(*triples):
        return pl.DataFrame(
            {
                "id": [one for one, _, _ in triples],
                "a": [a for _, a, _ in triples],
                "b": [b for _, _, b in triples],
            }
        )

    project.flow(watermark=["a", "b"])
    project.write("t", "a.parquet", frame((1, 1, 9), (2, 5, 1)))
    assert project.run_one().watermark == {"a": 5, "b": 9}
    project.write("t", "b.parquet", frame((3, 6, 1), (4, 1, 10), (5, 5, 3), (6, 2, 2)))
    project.run_one()
    project.run_one()
    assert project.ids() == [1, 2, 3, 4, 5]


def test_a_new_name_or_stage_keeps_the_state(project):
    """W32."""
    project.flow(watermark=["ts"], dataflow_id="stable")
    project.write("t", "a.parquet", rows((1, at(1))))
    project.run_one()
    project.flow("renamed", watermark=["ts"], dataflow_id="stable", stage="bronze")
    assert project.run_one().status == "skipped"
    assert project.ids() == [1]


def test_a_lost_state_folder_is_made_good_from_the_table(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, at(2))))
    project.run_one()
    shutil.rmtree(project.root / ".datacoolie")
    result = project.run_one()
    assert (result.status, result.state.recovered) == ("skipped", True)
    assert project.ids() == [1, 2]


def test_an_exclusive_boundary_reads_no_ties(project):
    project.flow(
        source={
            "watermark_columns": ["ts"],
            "configure": {"datacoolie": {"watermark_boundary": "exclusive"}},
        }
    )
    project.write("t", "a.parquet", rows((1, at(1))))
    project.run_one()
    project.write("t", "b.parquet", rows((2, at(1))))
    assert project.run_one().status == "skipped"
    assert project.ids() == [1]


def test_a_full_refresh_rebuilds_the_table(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, at(2))))
    project.run_one()
    project.write("t", "a.parquet", rows((2, at(2)), (3, at(1))))
    result = project.run_one(full_refresh=True)
    assert result.run_kind == "full_refresh"
    assert project.ids() == [2, 3]
    assert project.run_one().status == "skipped"


def test_the_state_file_has_what_the_commit_has(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1))))
    result = project.run_one()
    document = json.loads((project.root / ".datacoolie/state/f.json").read_text())
    info = DeltaTable(project.path()).history(1)[0]["datacoolie"]
    assert document["watermark"] == info["state_watermark"]
    assert document["boundary"] == info["boundary"]
    assert document["sequence"] == info["sequence"] == 1
    assert document["table_version"] == result.state.table_version == 0
    assert info["rows_written"] == 1


def test_an_aware_column_keeps_instants(project):
    """wm-naive-meets-aware, aware side."""

    def frame(*pairs):
        return rows(*pairs, ts=pl.Datetime("us", "UTC"))

    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", frame((1, datetime(2025, 4, 4, 10, tzinfo=UTC))))
    assert project.run_one().watermark == {"ts": datetime(2025, 4, 4, 10, tzinfo=UTC)}
    project.write("t", "b.parquet", frame((2, datetime(2025, 4, 4, 10, 1, tzinfo=UTC))))
    project.run_one()
    assert project.ids() == [1, 2]


@pytest.mark.parametrize("load_type", ["append", "overwrite", "full_load"])
def test_without_watermark_columns_everything_is_read_each_time(project, load_type):
    project.flow(load_type=load_type)
    project.write("t", "a.parquet", rows((1, at(1))))
    project.run_one()
    project.run_one()
    assert project.ids() == ([1, 1] if load_type == "append" else [1])


def test_a_cleaned_log_and_a_lost_store_take_the_tables_own_maximum(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, at(2))))
    project.run_one()
    table = DeltaTable(project.path())
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    table.cleanup_metadata()
    for entry in sorted((Path(project.path()) / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    shutil.rmtree(project.root / ".datacoolie")
    project.write("t", "b.parquet", rows((3, at(2)), (4, at(3))))
    result = project.run_one()
    assert project.ids() == [1, 2, 3, 4]
    assert "log_cleaned" in [one.code for one in result.warnings]


def test_many_ties_of_an_untyped_csv_column_are_compared_whole(project):
    project.source_format = "csv"
    project.flow(watermark=["ts"])
    stamps = pl.DataFrame({"id": list(range(400)), "ts": ["2024-01-01 10:00:00"] * 400})
    project.write("t", "a.csv", stamps)
    project.run_one()
    project.write("t", "b.csv", pl.DataFrame({"id": [400], "ts": ["2024-01-01 10:00:00"]}))
    assert project.run_one().rows["rows_written"] == 1
    assert project.run_one().status == "skipped"
    assert sorted(int(one) for one in project.table()["id"]) == list(range(401))


def test_null_rows_that_are_included_are_not_doubled_by_a_new_column(project):
    project.flow(
        source={
            "watermark_columns": ["ts"],
            "configure": {"datacoolie": {"null_watermark": "include"}},
        }
    )
    project.write("t", "a.parquet", rows((1, at(1)), (2, None)))
    project.run_one()
    wider = rows((1, at(1)), (2, None), (3, at(2))).with_columns(extra=pl.lit(None, pl.String))
    project.write("t", "a.parquet", wider)
    project.run_one()
    assert project.run_one().status == "skipped"
    assert project.ids() == [1, 2, 3]


def test_an_overwrite_with_a_watermark_and_nothing_new_keeps_its_table(project):
    project.flow(load_type="overwrite", watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, at(2)), (3, at(2))))
    project.run_one()
    assert project.run_one().status == "skipped"
    assert project.ids() == [1, 2, 3]


def test_a_watermark_in_the_future_is_told(project):
    """wm-future-dated-row, without a limit."""
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows((1, datetime(2026, 1, 1)), (2, datetime(9999, 12, 31))))
    (notice,) = project.run_one().warnings
    assert notice.code == "future_watermark"
    assert "'ts'" in notice.message
    assert "9999-12-31" in notice.message


class BrokenStore:
    """Fails as a store of the user's own may: with errors that are not ours."""

    def __init__(self, inner, failures):
        self.inner, self.failures = inner, failures

    def load(self, dataflow_id):
        return self.inner.load(dataflow_id)

    def save(self, record):
        if self.failures:
            self.failures -= 1
            raise OSError("disk full")
        self.inner.save(record)


@pytest.mark.parametrize("load_type", ["append", "full_load", "merge_upsert"])
@pytest.mark.parametrize("retry_count", [0, 1])
def test_a_store_that_fails_after_the_commit_doubles_nothing(project, load_type, retry_count):
    """wm-write-done-state-save-failed, retry-append-twice."""
    from datacoolie_core.state.stores import FileStateStore

    keys = ["id"] if load_type == "merge_upsert" else []
    project.flow(load_type=load_type, merge_keys=keys, watermark=["ts"])
    project.write("t", "a.parquet", rows((1, at(1)), (2, at(2)), (3, at(3))))
    store = BrokenStore(FileStateStore(str(project.root / "state")), 1)
    with project.driver(state=store, retry_count=retry_count) as driver:
        (first,) = driver.run().dataflows
        assert first.status == ("succeeded" if retry_count else "failed")
        if not retry_count:
            assert "disk full" in first.error.message
            assert "The rows are safe" in first.error.message
        (second,) = driver.run().dataflows
    assert second.status == "skipped"
    assert second.watermark == {"ts": at(3)}
    assert project.ids() == [1, 2, 3]


def test_a_broken_state_file_fails_its_dataflow_and_no_other(project):
    """W43."""
    for name in ("a", "b"):
        project.write(name, "x.parquet", rows((1, at(1))))
        project.flow(name, source_table=name, table=name, watermark=["ts"])
    project.run()
    (project.root / ".datacoolie/state/a.json").write_text("{")
    result = project.run()
    assert (result.failed, result.skipped) == (1, 1)
    assert ".datacoolie/state/a.json" in result.errors["a"]


@pytest.mark.parametrize("load_type", ["append", "full_load"])
def test_a_folder_without_files_is_skipped(project, load_type):
    """wm-empty-source, W60."""
    project.flow(
        load_type=load_type,
        watermark=["ts"],
        transform={"schema_hints": [{"column_name": "ts", "data_type": "timestamp_ntz"}]},
    )
    (project.root / "in/t").mkdir(parents=True)
    assert project.run_one().status == "skipped"
    path = project.write("t", "a.parquet", rows((1, at(1))))
    project.run_one()
    path.unlink()
    after = project.run_one()
    assert (after.status, after.watermark) == ("skipped", {"ts": at(1)})
    assert project.ids() == [1]


def test_a_folder_without_files_can_empty_the_table(project):
    """W27."""
    project.flow(
        load_type="full_load",
        destination={"configure": {"datacoolie": {"empty_source": "overwrite"}}},
    )
    path = project.write("t", "a.parquet", rows((1, at(1))))
    project.run_one()
    path.unlink()
    assert project.run_one().rows["rows_deleted"] == 1
    assert project.ids() == []


def test_a_csv_with_carriage_returns_alone_is_refused_and_not_taken_for_empty(project):
    project.source_format = "csv"
    project.flow()
    folder = project.root / "in/t"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_bytes(b"id,name\r1,a\r2,b\r")
    (result,) = project.run().dataflows
    assert (result.status, result.error.phase) == ("failed", "read")
    assert "a.csv" in result.error.message
    project.read_options = {"line_sep": "\r"}
    project.run_one()
    assert project.ids() == ["1", "2"]
