"""Replays: windows are replaced, progress is left alone, and normal runs go on unharmed."""

from __future__ import annotations

import shutil

import polars as pl
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.run.events import ChunkFinished


def frame(*ids, tag="a"):
    return pl.DataFrame(
        {"id": list(ids), "tag": [tag] * len(ids)}, schema={"id": pl.Int64, "tag": pl.String}
    )


def replay(project, start, end, step, *, save=False, listeners=()):
    with project.driver(listeners) as driver:
        flows = driver.metadata.dataflows
        windows = {
            one.dataflow_id: generate_chunks(start, end, step=step, column="id") for one in flows
        }
        (result,) = driver.run_replay(flows, windows, save_watermark=save).dataflows
        return result


def test_a_replay_before_any_load_and_then_an_incremental_one_double_nothing(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(12)))
    result = replay(project, 0, 8, 4)
    assert [one.rows["rows_written"] for one in result.chunks] == [4, 4]
    assert dict(result.watermark) == {}
    assert project.ids() == list(range(8))
    second = project.run_one()
    assert second.rows["rows_written"] == 4
    assert second.watermark == {"id": 11}
    assert project.run_one().status == "skipped"
    assert project.ids() == list(range(12))


def test_a_repeated_replay_of_an_append_gives_the_same_table(project):
    """W46."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(10)))
    project.run_one()
    for _ in range(2):
        replay(project, 0, 10, 3)
    assert project.ids() == list(range(10))


def test_a_replay_takes_what_the_source_says_now(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(6)))
    project.run_one()
    project.write("t", "a.parquet", frame(0, 2, 3, 4, 5, tag="b"))
    replay(project, 0, 3, 3)
    assert project.ids() == [0, 2, 3, 4, 5]
    assert project.table()["tag"].to_list() == ["b", "b", "a", "a", "a"]


def test_an_emptied_window_empties_its_rows(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(6)))
    project.run_one()
    project.write("t", "a.parquet", frame(3, 4, 5))
    result = replay(project, 0, 3, 3)
    assert (result.status, result.rows["rows_deleted"]) == ("succeeded", 3)
    assert project.ids() == [3, 4, 5]


def test_a_replay_of_an_overwrite_replaces_only_its_window(project):
    """W11."""
    project.flow(load_type="overwrite", source={"watermark_columns": ["id"]})
    project.write("t", "a.parquet", frame(*range(10)))
    replay(project, 0, 10, 5)
    assert project.ids() == list(range(10))


def test_saved_progress_never_moves_back(project):
    """W6."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(10)))
    project.run_one()
    assert replay(project, 0, 5, 5, save=True).watermark == {"id": 9}
    assert project.run_one().status == "skipped"


def test_saved_progress_moves_on_with_the_chunks(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(10)))
    assert replay(project, 0, 6, 3, save=True).watermark == {"id": 5}
    project.run_one()
    assert project.ids() == list(range(10))


def test_a_row_that_ties_with_the_watermark_and_came_by_replay_is_not_doubled(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    project.write("t", "b.parquet", frame(2, tag="late"))
    replay(project, 2, 3, 1)
    project.run_one()
    assert project.ids() == [1, 2, 2]
    assert project.run_one().status == "skipped"


def test_rows_above_the_watermark_that_came_by_replay_are_not_doubled(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    project.write("t", "b.parquet", frame(3, 4, 5))
    replay(project, 3, 5, 1)
    assert project.ids() == [1, 2, 3, 4]
    second = project.run_one()
    assert second.rows["rows_written"] == 1
    assert project.ids() == [1, 2, 3, 4, 5]


def test_a_failed_chunk_stops_the_dataflow_and_keeps_the_earlier_ones(project):
    project.flow(watermark=["id"], transform={"filter_expression": "100 / (id - 4) < 1000"})
    project.flow(
        watermark=["id"],
        transform={"schema_hints": [{"column_name": "tag", "data_type": "int"}]},
    )
    project.write("t", "a.parquet", pl.concat([frame(0, 1, 2, 3, tag="1"), frame(4, 5, tag="x")]))
    seen = []
    result = replay(project, 0, 8, 2, listeners=[seen.append])
    assert [one.status for one in result.chunks] == ["succeeded", "succeeded", "failed"]
    assert result.status == "failed"
    assert project.ids() == [0, 1, 2, 3]
    assert len([one for one in seen if isinstance(one, ChunkFinished)]) == 3


def test_a_merge_is_replayed_by_merging(project):
    project.flow(load_type="merge_upsert", merge_keys=["id"], watermark=["id"])
    project.write("t", "a.parquet", frame(*range(4)))
    project.run_one()
    project.write("t", "a.parquet", frame(*range(4), tag="b"))
    result = replay(project, 0, 2, 2)
    assert result.rows["rows_updated"] == 2
    assert project.table()["tag"].to_list() == ["b", "b", "a", "a"]


def test_every_chunk_is_one_commit_with_its_window(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(4)))
    replay(project, 0, 4, 2)
    infos = [one["datacoolie"] for one in DeltaTable(project.path()).history()]
    assert [one["window"]["key"] for one in infos] == ["2", "0"]
    assert [one["sequence"] for one in infos] == [2, 1]
    assert all(one["state_watermark"] == {} for one in infos)


def test_a_destination_that_hides_the_chunk_column_is_refused(project):
    project.flow(watermark=["id"], transform={"drop_columns": ["id"]})
    project.write("t", "a.parquet", frame(1))
    result = replay(project, 0, 2, 2)
    assert (result.status, result.error.code) == ("failed", "replay_refused")
    assert "'id'" in result.error.message


action = st.one_of(
    st.just(("run",)),
    st.tuples(st.just("grow"), st.integers(1, 5)),
    st.tuples(st.just("replay"), st.integers(0, 12), st.integers(1, 12), st.booleans()),
    st.just(("lose state",)),
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(action, min_size=2, max_size=7))
def test_any_order_of_runs_growth_replays_and_losses_ends_with_each_row_once(new_project, actions):
    project = new_project()
    project.flow(watermark=["id"])
    top = 3
    project.write("t", "f0.parquet", frame(*range(top)))
    for number, one in enumerate(actions, start=1):
        if one[0] == "run":
            project.run_one()
        elif one[0] == "grow":
            fresh = range(top, top + one[1])
            project.write("t", f"f{number}.parquet", frame(*fresh))
            top += one[1]
        elif one[0] == "replay":
            replay(project, one[1], one[1] + one[2], 4, save=False)
        else:
            shutil.rmtree(project.root / ".datacoolie", ignore_errors=True)
    project.run_one()
    assert project.ids() == list(range(top))


@pytest.mark.parametrize("column", ["ID", "Id"])
def test_the_chunk_column_is_found_whatever_its_case(project, column):
    project.flow(watermark=[column])
    project.write("t", "a.parquet", frame(1, 2))
    replay(project, 0, 3, 3)
    assert project.ids() == [1, 2]
