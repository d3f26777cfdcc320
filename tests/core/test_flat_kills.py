"""A kill -9 at any named point of a load into files loses no row and doubles no row."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.core.flat_files import Files, frame

SCRIPT = Path(__file__).parents[1] / "faults" / "killed_run.py"
PHASES = [
    "preparing",
    "reading",
    "staging",
    "staged",
    "committing",
    "claimed",
    "publishing",
    "published",
    "committed",
    "cleaned",
    "saving",
    "saved",
]
BEFORE_COMMIT = PHASES[: PHASES.index("committed")]
WRITING = PHASES[PHASES.index("staging") : PHASES.index("saving")]


def command(files, phase, what="load"):
    metadata = files.root / "metadata.json"
    metadata.write_text(json.dumps(files.document))
    return [sys.executable, str(SCRIPT), str(metadata), phase, what]


def kill(files, phase, what="load"):
    done = subprocess.run(command(files, phase, what), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, (phase, done.stderr.decode())


def settled(files):
    """Nothing is left of the killed load, for any reader."""
    assert files.names() == files.seen()
    manifest = files.manifest()
    assert manifest["pending"] is None
    assert {entry["path"] for entry in manifest["files"]} == files.names()
    assert not list((files.folder() / "_datacoolie").glob("staging/*"))


@pytest.mark.parametrize("phase", PHASES)
def test_an_append_that_is_killed_is_made_good(tmp_path, phase):
    files = Files(tmp_path, form="csv")
    files.flow(watermark=["id"], partition_columns=["g"])
    files.write("t", "a.parquet", frame(1, 2, g=["x", "y"]))
    files.run_one()
    files.write("t", "b.parquet", frame(3, 4, 5, g=["x", "y", None]))
    kill(files, phase)
    expected = [1, 2] if phase in BEFORE_COMMIT else [1, 2, 3, 4, 5]
    assert files.rows("id") == expected
    result = files.run_one()
    assert (result.status == "succeeded") == (phase in BEFORE_COMMIT)
    files.write("t", "c.parquet", frame(6, g=["x"]))
    files.run_one()
    assert files.rows("id") == [1, 2, 3, 4, 5, 6]
    settled(files)


@pytest.mark.parametrize("phase", WRITING)
def test_an_overwrite_that_is_killed_shows_the_old_rows_or_the_new_ones(tmp_path, phase):
    """W33: never both, never none."""
    files = Files(tmp_path, form="parquet", write_options={"max_rows_per_file": 2})
    files.flow(load_type="overwrite")
    files.write("t", "a.parquet", frame(1, 2, 3))
    files.run_one()
    files.write("t", "a.parquet", frame(4, 5, 6))
    kill(files, phase)
    expected = [1, 2, 3] if phase in BEFORE_COMMIT else [4, 5, 6]
    assert files.rows("id") == expected
    assert sorted(pl.concat(map(pl.read_parquet, paths(files)))["id"]) == expected
    files.run_one()
    assert files.rows("id") == [4, 5, 6]
    settled(files)


def paths(files):
    return [files.folder() / name for name in sorted(files.seen())]


@pytest.mark.parametrize("phase", WRITING)
def test_a_replay_that_is_killed_can_be_repeated(tmp_path, phase):
    files = Files(tmp_path, form="jsonl")
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(*range(10)))
    files.run_one()
    changed = pl.when(pl.col("id").is_between(4, 7)).then(pl.lit("new")).otherwise("v").alias("v")
    files.write("t", "a.parquet", frame(*range(10)).with_columns(changed))
    kill(files, phase, "replay:4:8:4")
    kept = ["v4", "v5", "v6", "v7"] if phase in BEFORE_COMMIT else ["new"] * 4
    assert [v for i, v in files.rows("id", "v") if 4 <= i < 8] == kept
    files.replay(4, 8, step=4)
    expected = [(i, "new" if 4 <= i < 8 else f"v{i}") for i in range(10)]
    assert files.rows("id", "v") == expected
    settled(files)
    assert files.run_one().status == "skipped"


@pytest.mark.parametrize("phase", ["staging", "claimed", "publishing"])
def test_a_first_load_that_is_killed_leaves_nothing_that_counts(tmp_path, phase):
    files = Files(tmp_path, form="json", write_options={"max_rows_per_file": 1})
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(1, 2, 3))
    kill(files, phase)
    assert files.rows("id") == []
    files.run_one()
    assert files.rows("id") == [1, 2, 3]
    settled(files)


def test_two_processes_of_one_dataflow_lose_and_double_nothing(tmp_path):
    """W42: the second one waits for nothing and is skipped, or reads what is left."""
    files = Files(tmp_path, form="csv")
    files.flow(watermark=["id"])
    files.write("t", "a.parquet", frame(*range(50)))
    for turn in range(1, 4):
        pair = [subprocess.Popen(command(files, "none"), stderr=subprocess.PIPE) for _ in range(2)]
        files.write("t", f"b{turn}.parquet", frame(*range(50 * turn, 50 * turn + 50)))
        for process in pair:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors.decode()
    files.run_one()
    assert files.rows("id") == list(range(200))
    settled(files)


def test_two_processes_that_overwrite_one_folder_leave_one_of_both(tmp_path):
    """W38: never the union."""
    one, other = Files(tmp_path / "1"), Files(tmp_path / "2")
    shared = str(tmp_path / "out")
    for files, name in ((one, "a"), (other, "b")):
        files.base = shared
        files.flow(name, load_type="overwrite")
        files.root.mkdir()
    one.write("t", "a.parquet", frame(*range(3)))
    other.write("t", "a.parquet", frame(*range(10, 13)))
    both = Files(tmp_path)
    for _ in range(3):
        pair = [
            subprocess.Popen(command(files, "none"), stderr=subprocess.PIPE)
            for files in (one, other)
        ]
        for process in pair:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors.decode()
        assert both.rows("id") in ([0, 1, 2], [10, 11, 12])
        assert both.names() == both.seen()
