"""History written by processes that die, that run at once, and that live in different zones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

SCRIPT = Path(__file__).parents[1] / "faults" / "killed_run.py"
VALIDITY = ["__valid_from", "__valid_to", "__is_current"]


def at(day, month=1):
    return datetime(2025, month, day, tzinfo=UTC)


def frame(*rows):
    schema = {"id": pl.Int64, "v": pl.String, "ts": pl.Datetime("us", "UTC")}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def history(project, *names):
    chosen = [*(names or ("id", "v")), *VALIDITY]
    return pl.read_delta(project.path()).select(chosen).sort(chosen[0], "__valid_from").rows()


def events(project, **given):
    """A dataflow over event rows with their own instants."""
    configure = {"scd2_effective_column": "ts", **given.pop("configure", {})}
    destination = {"configure": configure}
    project.flow(load_type="scd2", merge_keys=["id"], destination=destination, **given)


def replace_source(project, rows, name="a.parquet"):
    for old in (project.root / "in" / "t").glob("*"):
        old.unlink()
    project.write("t", name, rows)


@pytest.mark.parametrize("effective", [None, "CURRENT_TIMESTAMP"])
def test_runs_in_different_zones_leave_no_gap_and_no_overlap(project, effective):
    """scd2-mixed-naive-aware-validity."""
    configure = {} if effective is None else {"scd2_effective_column": effective}
    project.flow(load_type="scd2", merge_keys=["id"], destination={"configure": configure})
    metadata = project.root / "metadata.json"
    metadata.write_text(json.dumps(project.document))
    before = datetime.now(UTC)
    for zone, value in (("Asia/Kolkata", "a"), ("UTC", "b")):
        replace_source(project, pl.DataFrame({"id": [1], "v": [value]}))
        command = [sys.executable, str(SCRIPT), str(metadata), "none", "load"]
        subprocess.run(command, check=True, env={**os.environ, "TZ": zone}, timeout=120)
    old, new = history(project)
    assert before <= old[2] < old[3] == new[2] <= datetime.now(UTC)
    schema = pl.scan_delta(project.path()).collect_schema()
    assert schema["__valid_from"] == schema["__valid_to"] == pl.Datetime("us", "UTC")


@pytest.mark.parametrize("phase", ["staged", "committing", "committed", "saving", "saved"])
def test_a_kill_and_a_second_run_give_the_table_that_no_fault_touched(project, phase):
    """W36, W37."""
    events(project, watermark=["ts"])
    project.write("t", "a.parquet", frame((1, "a", at(1)), (2, "x", at(1))))
    project.run_one()
    project.write("t", "b.parquet", frame((1, "b", at(3)), (1, "c", at(5)), (3, "n", at(4))))
    metadata = project.root / "metadata.json"
    metadata.write_text(json.dumps(project.document))
    command = [sys.executable, str(SCRIPT), str(metadata), phase, "load"]
    killed = subprocess.run(command, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    project.run_one()
    assert history(project) == [
        (1, "a", at(1), at(3), False),
        (1, "b", at(3), at(5), False),
        (1, "c", at(5), None, True),
        (2, "x", at(1), None, True),
        (3, "n", at(4), None, True),
    ]


@pytest.mark.parametrize("identities", [("f", "f"), ("f", "g")])
def test_two_runs_at_once_leave_one_current_row_for_each_key(project, identities):
    """scd2-two-runs-at-once: two runs of one dataflow, or of two that write one table."""
    metadata = []
    for name in identities:
        project.flows = []
        project.flow(name, load_type="scd2", merge_keys=["id"])
        path = project.root / f"{len(metadata)}.json"
        path.write_text(json.dumps(project.document))
        metadata.append(path)
    for value in "abc":
        replace_source(project, pl.DataFrame({"id": range(50), "v": [value] * 50}))
        pair = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(path), "none", "load"], stderr=subprocess.PIPE
            )
            for path in metadata
        ]
        for process in pair:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
    rows = pl.read_delta(project.path())
    assert rows.height == 150
    assert rows.filter("__is_current")["id"].sort().to_list() == list(range(50))
    assert rows.filter("__is_current")["v"].unique().to_list() == ["c"]
