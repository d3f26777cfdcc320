"""A replay can be repeated: for every load type and destination, nothing is lost or doubled."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl
import pytest

from datacoolie_core import ReplayConfig

DAYS = ReplayConfig("2025-01-01", "2025-01-05", {"days": 1})
SOME = ReplayConfig("2025-01-02", "2025-01-04")
REPLACING = ["append", "overwrite", "full_load", "window_overwrite"]
MERGING = ["merge_upsert", "merge_overwrite"]


def rows(*given):
    """Rows of (id, day of January, value)."""
    return pl.DataFrame(
        [(one, datetime(2025, 1, day, 12), value) for one, day, value in given],
        schema={"id": pl.Int64, "ts": pl.Datetime("us"), "v": pl.String},
        orient="row",
    )


FIRST = [(1, 1, "a"), (2, 2, "a"), (3, 2, "a"), (4, 3, "a"), (5, 4, "a")]


def flow(project, load_type, name="f", **given: Any):
    """A dataflow that reads by ``ts``; windows of ``overwrite`` are told by a chunk column."""
    source: dict[str, Any] = {"watermark_columns": ["ts"]}
    if load_type == "window_overwrite":
        load_type = "merge_overwrite"
        source["configure"] = {"backward": {"days": 1}}
        given["destination"] = {"configure": {"replace_by_watermark": True}}
    if load_type in ("overwrite", "full_load"):
        source = {}
        given["configure"] = {
            "datacoolie": {"replay": {"start": "2025-01-01", "chunk_column": "ts"}}
        }
    if load_type.startswith("merge"):
        given["merge_keys"] = ["id"]
    project.flow(name, load_type=load_type, source=source, **given)


def replay(project, config, **given):
    with project.driver() as driver:
        (result,) = driver.run_replay(driver.metadata.dataflows, config, **given).dataflows
    assert result.status == "succeeded", result.error.message
    return result


def content(project):
    found = project.table().select("id", pl.col("ts").dt.day(), "v")
    return sorted(found.rows())


@pytest.mark.parametrize("load_type", [*REPLACING, *MERGING])
def test_replays_that_repeat_and_overlap_change_nothing(project, load_type):
    """W11, W46."""
    flow(project, load_type)
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    for config in (DAYS, DAYS, SOME, DAYS):
        replay(project, config)
        assert content(project) == FIRST


@pytest.mark.parametrize("load_type", [*REPLACING, *MERGING])
def test_a_replay_into_nothing_and_a_normal_load_after_it_double_nothing(project, load_type):
    flow(project, load_type)
    project.write("t", "a.parquet", rows(*FIRST))
    replay(project, SOME)
    assert content(project) == FIRST[1:4]
    project.run_one()
    assert content(project) == FIRST
    project.write("t", "b.parquet", rows((6, 5, "a")))
    project.run_one()
    assert content(project) == [*FIRST, (6, 5, "a")]


@pytest.mark.parametrize("load_type", REPLACING)
def test_the_window_is_what_the_source_says_now(project, load_type):
    """W12, W17: rows that changed, went and came; an emptied day is emptied."""
    flow(project, load_type)
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    project.write("t", "a.parquet", rows((1, 1, "b"), (2, 2, "b"), (7, 2, "b"), (5, 4, "b")))
    replay(project, ReplayConfig("2025-01-02", "2025-01-04", {"days": 1}))
    assert content(project) == [(1, 1, "a"), (2, 2, "b"), (5, 4, "a"), (7, 2, "b")]


@pytest.mark.parametrize("load_type", MERGING)
def test_a_merge_takes_what_the_source_says_now_and_keeps_the_rest(project, load_type):
    flow(project, load_type)
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    project.write("t", "a.parquet", rows((1, 1, "b"), (2, 2, "b"), (7, 2, "b"), (5, 4, "b")))
    for _ in range(2):
        replay(project, ReplayConfig("2025-01-02", "2025-01-04", {"days": 1}))
        assert content(project) == [
            (1, 1, "a"), (2, 2, "b"), (3, 2, "a"), (4, 3, "a"), (5, 4, "a"), (7, 2, "b")
        ]  # fmt: skip


@pytest.mark.parametrize("load_type", REPLACING)
def test_the_last_rows_of_a_window_go_when_the_source_is_empty(project, load_type):
    flow(project, load_type)
    path = project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    path.unlink()
    replay(project, SOME)
    assert content(project) == [(1, 1, "a"), (5, 4, "a")]


@pytest.mark.parametrize("load_type", REPLACING)
def test_a_row_that_moved_to_another_window_is_there_once_when_both_were_replayed(
    project, load_type
):
    flow(project, load_type)
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    project.write("t", "a.parquet", rows((1, 1, "a"), (2, 4, "moved"), *FIRST[2:]))
    replay(project, DAYS)
    assert content(project) == [(1, 1, "a"), (2, 4, "moved"), *FIRST[2:]]


@pytest.mark.parametrize("load_type", ["append", "window_overwrite", *MERGING])
@pytest.mark.parametrize("save", [False, True])
def test_saved_progress_moves_only_when_asked_and_skips_no_chunk(project, load_type, save):
    flow(project, load_type)
    project.write("t", "a.parquet", rows(*FIRST))
    config = ReplayConfig("2025-01-01", "2025-01-03", {"days": 1}, save_watermark=save)
    for _ in range(2):
        result = replay(project, config)
        assert [one.rows["rows_read"] for one in result.chunks] == [1, 2]
        wanted = {"ts": datetime(2025, 1, 2, 12)} if save else {}
        assert dict(result.watermark) == wanted
    project.run_one()
    assert content(project) == FIRST
    replay(project, config)
    assert project.run_one().watermark == {"ts": datetime(2025, 1, 4, 12)}
    assert content(project) == FIRST


def test_late_rows_come_by_replay_and_once(project):
    flow(project, "append")
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    project.write("t", "late.parquet", rows((8, 2, "late"), (9, 4, "late")))
    project.run_one()
    assert (8, 2, "late") not in content(project)
    replay(project, DAYS)
    project.run_one()
    assert content(project) == [*FIRST, (8, 2, "late"), (9, 4, "late")]


def test_rows_without_a_value_of_the_chunk_column_belong_to_no_window(project):
    flow(project, "append")
    frame = pl.concat(
        [rows(*FIRST), rows((9, 1, "null")).with_columns(ts=None)], how="vertical_relaxed"
    )
    project.write("t", "a.parquet", frame)
    project.run_one()
    replay(project, DAYS)
    assert project.ids() == [1, 2, 3, 4, 5, 9]


def test_a_chunk_column_of_its_own_leaves_the_watermark_alone(project):
    """Selection and progress are two things: chunks by day, progress by number."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    project.write("t", "b.parquet", rows((6, 2, "new")))
    config = ReplayConfig("2025-01-02", "2025-01-03", chunk_column="ts", save_watermark=True)
    result = replay(project, config)
    assert result.watermark == {"id": 6}
    assert project.run_one().status == "skipped"
    assert content(project) == [*FIRST, (6, 2, "new")]


def test_a_chunk_column_of_its_own_without_saving_doubles_nothing_later(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", rows(*FIRST))
    project.run_one()
    project.write("t", "b.parquet", rows((6, 2, "new"), (7, 4, "new")))
    replay(project, ReplayConfig("2025-01-02", "2025-01-03", chunk_column="ts"))
    project.run_one()
    assert content(project) == [*FIRST, (6, 2, "new"), (7, 4, "new")]


def test_partitions_by_day_are_replaced_alone(project):
    """pb-empty-chunk-must-clear-partition, merge-interval-rerun."""
    project.flow(
        watermark=["day"],
        partition_columns=["day"],
        source={"watermark_columns": ["day"]},
    )
    frame = pl.DataFrame({"id": [1, 2, 3], "day": [date(2026, 1, 1)] * 2 + [date(2026, 1, 2)]})
    project.write("t", "a.parquet", frame)
    project.run_one()
    project.write("t", "a.parquet", frame.tail(1))
    result = replay(project, ReplayConfig("2026-01-01", "2026-01-03", {"days": 1}))
    assert [one.rows["rows_deleted"] for one in result.chunks] == [2, 1]
    assert project.ids() == [3]


VERSIONS = [(1, 1, "a"), (2, 1, "a"), (1, 2, "b"), (3, 3, "a"), (1, 3, "c"), (2, 4, "b")]
HISTORY = [
    (1, "a", 1, 2, False),
    (1, "b", 2, 3, False),
    (1, "c", 3, None, True),
    (2, "a", 1, 4, False),
    (2, "b", 4, None, True),
    (3, "a", 3, None, True),
]


def scd2(project):
    project.flow(
        load_type="scd2",
        merge_keys=["id"],
        watermark=["ts"],
        destination={"configure": {"scd2_effective_column": "ts"}},
    )
    project.write("t", "a.parquet", rows(*VERSIONS))


def history(project):
    found = pl.read_delta(project.path()).select(
        "id", "v", pl.col("__valid_from", "__valid_to").dt.day(), "__is_current"
    )
    return sorted(found.rows(), key=str)


def test_replays_of_a_history_give_the_same_history(project):
    """W17."""
    scd2(project)
    project.run_one()
    assert history(project) == HISTORY
    for config in (DAYS, SOME, DAYS):
        replay(project, config)
        assert history(project) == HISTORY


def test_a_history_is_rebuilt_from_chunks_in_any_order(project):
    scd2(project)
    for start, end in (("03", "05"), ("01", "02"), ("02", "03"), ("01", "05")):
        replay(project, ReplayConfig(f"2025-01-{start}", f"2025-01-{end}", {"days": 1}))
    assert history(project) == HISTORY
    project.run_one()
    assert history(project) == HISTORY


@pytest.mark.parametrize("load_type", ["append", "window_overwrite"])
def test_a_filter_keeps_the_rows_of_others_in_a_shared_table(project, load_type):
    for name in ("eu", "us"):
        flow(project, load_type, name=name, source_table=name, dataflow_id=name)
        own = project.flows[-1]["destination"].setdefault("configure", {})
        own["datacoolie"] = {"replay_filter": f"v = '{name}'"}
    project.write("eu", "a.parquet", rows((1, 1, "eu"), (2, 2, "eu")))
    project.write("us", "a.parquet", rows((11, 1, "us"), (12, 2, "us")))
    project.run()
    project.write("eu", "a.parquet", rows((3, 2, "eu")))
    with project.driver() as driver:
        flows = [one for one in driver.metadata.dataflows if one.name == "eu"]
        for _ in range(2):
            (result,) = driver.run_replay(flows, DAYS).dataflows
            assert result.status == "succeeded", result.error.message
            assert content(project) == [(3, 2, "eu"), (11, 1, "us"), (12, 2, "us")]
