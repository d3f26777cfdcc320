"""What a run tells of a fault: recovered, or failed with nothing changed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from deltalake import DeltaTable

from tests.faults.kinds import LOADS, PLACES, put, rows
from tests.faults.proof import RUN, prepare


def frame(*ids):
    return pl.DataFrame({"id": list(ids), "v": [f"v{one}" for one in ids]})


def live_files(project):
    folder = Path(project.path())
    if not folder.exists():
        return set()
    return {str(one.relative_to(folder)) for one in folder.rglob("*.parquet")}


def test_a_crash_between_commit_and_state_is_reported_as_recovered(lab):
    """W37, wm-write-done-state-save-failed."""
    prepare(lab, LOADS["append, ties"], PLACES["Delta"], "first load")
    lab.kill(RUN, "saving")
    child = lab.start(RUN)
    assert child.wait() == 0
    (result,) = child.results[0]["dataflows"]
    assert (result["status"], result["sequence"]) == ("skipped", 1)
    assert result["watermark"] == {"ts": {"__datetime__": "2025-03-09T00:00:00+00:00"}}
    assert child.reached["recovering"] == 1
    assert DeltaTable(str(lab.folder)).version() == 0


def test_a_repeat_with_the_same_run_id_says_that_it_was_loaded_before(lab):
    prepare(lab, LOADS["append"], PLACES["Delta"], "first load")
    step = {**RUN, "run_id": "the-run"}
    lab.kill(step, "committed")
    ((result,),) = (one["dataflows"] for one in lab.run(step))
    assert (result["status"], result["rows_written"]) == ("succeeded", 9)
    assert [one["code"] for one in result["warnings"]] == ["recovered"]
    assert DeltaTable(str(lab.folder)).version() == 0


def test_rows_that_come_between_a_kill_and_its_repeat_are_loaded_with_it(lab):
    prepare(lab, LOADS["append, ties"], PLACES["Delta"], "first load")
    lab.kill(RUN, "committed")
    put(lab.source, "b.parquet", rows((8, 8, "v1"), (9, 9, "more")))
    lab.run()
    # a twin of a row that is loaded is a row of its own: the source has it twice
    assert sorted(lab.rows()["id"]) == [1, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9]


def test_a_failed_write_leaves_watermark_and_table_as_they_were(project):
    """wm-state-ahead-of-failed-write."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    bad = pl.DataFrame({"id": [3, 4], "v": [3, 4]})
    path = project.write("t", "b.parquet", bad)
    before = live_files(project)
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert live_files(project) == before
    path.unlink()
    project.write("t", "b.parquet", frame(3, 4))
    project.run_one()
    assert project.ids() == [1, 2, 3, 4]
