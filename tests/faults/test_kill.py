"""A kill -9 at any named point loses no row and doubles no row."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

SCRIPT = Path(__file__).with_name("killed_run.py")
PHASES = ["preparing", "reading", "staging", "staged", "committing", "committed", "saving", "saved"]


def frame(*ids):
    return pl.DataFrame({"id": list(ids), "v": [f"v{one}" for one in ids]})


def launch(project, phase, what="load"):
    metadata = project.root / "metadata.json"
    metadata.write_text(json.dumps(project.document))
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(metadata), phase, what],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def killed(project, phase, what="load"):
    done = launch(project, phase, what)
    assert done.returncode == -signal.SIGKILL, done.stderr


def live_files(project):
    folder = Path(project.path())
    if not folder.exists():
        return set()
    return {str(one.relative_to(folder)) for one in folder.rglob("*.parquet")}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("load_type", ["append", "merge_upsert", "full_load"])
def test_a_kill_and_a_second_run_give_the_table_that_no_fault_touched(project, load_type, phase):
    keys = ["id"] if load_type == "merge_upsert" else []
    watermark = [] if load_type == "full_load" else ["id"]
    project.flow(load_type=load_type, merge_keys=keys, watermark=watermark)
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    project.write("t", "b.parquet", frame(3, 4))
    killed(project, phase)
    project.run_one()
    assert project.ids() == [1, 2, 3, 4]
    assert project.table()["v"].to_list() == ["v1", "v2", "v3", "v4"]


@pytest.mark.parametrize("phase", ["staged", "committing", "committed"])
def test_a_kill_in_the_first_load_adds_no_rows(project, phase):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    killed(project, phase)
    project.run_one()
    assert project.ids() == [1, 2]


def test_a_crash_between_commit_and_state_is_reported_as_recovered(project):
    """W37, wm-write-done-state-save-failed."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2, 3))
    killed(project, "saving")
    result = project.run_one()
    assert (result.status, result.state.recovered) == ("skipped", True)
    assert result.watermark == {"id": 3}
    assert DeltaTable(project.path()).version() == 0


@pytest.mark.parametrize("phase", ["staged", "committing", "committed", "saved"])
def test_a_replay_that_is_killed_and_repeated_is_whole(project, phase):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(10)))
    project.run_one()
    killed(project, phase, "replay:0:10:4")
    assert launch(project, "none", "replay:0:10:4").returncode == 0
    assert project.ids() == list(range(10))
    assert project.run_one().status == "skipped"


def test_two_processes_on_one_dataflow_never_double_a_row(project):
    """W42: the source grows while both run."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(*range(50)))
    metadata = project.root / "metadata.json"
    metadata.write_text(json.dumps(project.document))
    command = [sys.executable, str(SCRIPT), str(metadata), "none", "load"]
    for turn in range(1, 4):
        pair = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
        project.write("t", f"b{turn}.parquet", frame(*range(50 * turn, 50 * turn + 50)))
        for process in pair:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors.decode()
    project.run_one()
    assert project.ids() == list(range(200))


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


def test_a_state_folder_that_cannot_be_written_loses_and_doubles_nothing(project):
    """W37: the commit is there, the file is not."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    (project.root / ".datacoolie").mkdir()
    (project.root / ".datacoolie/state").write_text("in the way")
    (result,) = project.run(config={"retry_count": 2}).dataflows
    assert result.status == "failed"
    assert ".datacoolie/state" in result.error.message
    (project.root / ".datacoolie/state").unlink()
    assert project.run_one().status == "skipped"
    assert project.ids() == [1, 2]


def test_a_full_disk_is_told_as_such_and_changes_nothing(project, tmp_path):
    """Disk full: a file system of one megabyte."""
    small = project.root / "lake"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    try:
        project.flow(watermark=["id"])
        project.write("t", "a.parquet", frame(1, 2))
        project.run_one()
        noise = pl.DataFrame({"id": range(3, 300_003)}).with_columns(
            v=(pl.col("id").hash().cast(pl.String) + pl.col("id").hash(seed=7).cast(pl.String))
        )
        big = project.write("t", "b.parquet", noise)
        (result,) = project.run().dataflows
        assert (result.status, result.error.phase) == ("failed", "write")
        assert "no space is left" in result.error.message
        assert project.ids() == [1, 2]
        big.unlink()
        project.write("t", "b.parquet", frame(3))
        project.run_one()
        assert project.ids() == [1, 2, 3]
    finally:
        subprocess.run(["umount", str(small)], check=True)
