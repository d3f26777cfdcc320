"""``datacoolie replay`` and ``plan --connect`` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
import yaml

BIN = Path(sys.executable).with_name("datacoolie")
MONTHS = {"start": "2025-01-01", "end": "2025-04-01", "chunk_interval": {"months": 1}}


def call(project, *arguments):
    (project.root / "metadata").mkdir(exist_ok=True)
    (project.root / "metadata/all.yaml").write_text(yaml.safe_dump(project.document))
    return subprocess.run(
        [str(BIN), *arguments],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def shop(project):
    frame = pl.DataFrame({"id": [1, 2, 3], "ts": [datetime(2025, month, 9) for month in (1, 2, 3)]})
    for name, options in (("orders", {"replay": MONTHS}), ("items", {})):
        project.write(name, "a.parquet", frame)
        project.flow(
            name,
            stage="bronze",
            source_table=name,
            table=name,
            watermark=["ts"],
            configure={"datacoolie": options},
        )
    return project


def keys(done):
    return {
        one["name"]: [chunk["window"]["key"] for chunk in one["chunks"]]
        for one in json.loads(done.stdout)["dataflows"]
    }


def test_a_range_of_the_command_line_is_replayed_in_chunks(shop):
    options = ["--start", "2025-01-01", "--end", "2025-03-01", "--every", "1mo"]
    done = call(shop, "replay", *options, "--select", "bronze/items", "--json")
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["dataflows"]
    assert (one["run_kind"], one["rows_written"], one["watermark"]) == ("replay", 2, None)
    assert keys(done) == {"items": ["2025-01", "2025-02"]}
    assert "bronze/items 2025-01: 1 rows" in done.stderr
    assert shop.ids("items") == [1, 2]


def test_what_is_not_given_comes_from_each_dataflow(shop):
    done = call(shop, "replay", "--json", "--save-watermark")
    assert keys(done) == {"orders": ["2025-01", "2025-02", "2025-03"]}
    assert json.loads(done.stdout)["dataflows"][0]["watermark"] is not None
    done = call(shop, "replay", "--json", "--start", "2025-02-15", "--end", "2025-03-20")
    assert keys(done) == {"orders": ["2025-02", "2025-03"], "items": ["2025-02-15_2025-03-20"]}
    done = call(shop, "replay", "--json", "--every", "2w", "--end", "2025-01-20")
    assert keys(done) == {"orders": ["2024-12-30", "2025-01-13"]}


def test_numbers_and_their_steps(shop):
    options = ["--start", "-1", "--end", "5", "--step", "3", "--column", "id"]
    done = call(
        shop, "replay", *options, "--stage", "bronze", "--exclude", "bronze/orders", "--json"
    )
    assert keys(done) == {"items": ["-3", "00", "03"]}
    assert shop.ids("items") == [1, 2, 3]


def test_a_dry_run_shows_the_chunks_and_loads_nothing(shop):
    done = call(shop, "replay", "--dry-run", "--select", "orders")
    assert done.returncode == 0
    assert "2025-02  2025-02-01 → 2025-03-01" in done.stdout
    assert "datacoolie replay, with the same options" in done.stdout
    assert not (shop.root / "lake").exists()
    assert not (shop.root / ".datacoolie").exists()
    done = call(shop, "replay", "--dry-run", "--json", "--select", "orders")
    assert keys(done) == {"orders": ["2025-01", "2025-02", "2025-03"]}


def test_a_refused_dataflow_is_exit_code_one_and_the_others_run(shop):
    shop.flows[1]["transform"] = {"drop_columns": ["ts"]}
    options = ["--start", "2025-01-01", "--end", "2025-04-01"]
    done = call(shop, "replay", *options, "--json")
    assert done.returncode == 1
    found = {one["name"]: one for one in json.loads(done.stdout)["dataflows"]}
    assert (found["orders"]["status"], found["items"]["status"]) == ("succeeded", "failed")
    assert found["items"]["error"]["code"] == "replay_refused"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--start", "2025-02-01", "--end", "2025-01-01"], "is not before end"),
        (["--start", "2025-01-01", "--end", "2025-02-01", "--every", "1 month"], "no interval"),
        (["--start", "1", "--end", "5", "--step", "x"], "--step is 'x'"),
        (["--start", "1", "--end", "5", "--step", "1", "--every", "1d"], "Keep one"),
        (["--select", "items"], "Give --start and --end"),
        (["--start", "2025-01-01", "--timezone", "Mars"], "no time zone 'Mars'"),
    ],
)
def test_a_range_that_makes_no_sense_is_exit_code_three_and_nothing_runs(shop, options, words):
    done = call(shop, "replay", *options)
    assert done.returncode == 3
    assert words in done.stderr
    assert not (shop.root / "lake").exists()


def test_an_unknown_dataflow_is_exit_code_two(shop):
    done = call(shop, "replay", "--select", "bronze/order")
    assert done.returncode == 2
    assert "orders" in done.stderr


def test_a_plan_shows_sql_and_ends_with_one_if_a_dataflow_would_fail(shop):
    lake = {"connection_name": "lake_in", "table": None}
    shop.flow("sums", source={**lake, "query": "SELECT id FROM orders;"}, table="sums")
    done = call(shop, "plan", "--select", "sums")
    assert done.returncode == 0
    assert "SQL of sums:\n  SELECT id FROM orders\n" in done.stdout
    shop.flow("lost", source={**lake, "query": "lost/q.sql"}, table="lost")
    done = call(shop, "plan", "--json")
    assert done.returncode == 1
    steps = {one["name"]: one for one in json.loads(done.stdout)["steps"]}
    assert (steps["lost"]["action"], steps["sums"]["action"]) == ("fail", "run")
    assert "lost/q.sql" in steps["lost"]["error"]
    assert steps["sums"]["connect"] is None


def test_connect_says_what_does_not_fit_and_ends_with_one(shop):
    done = call(shop, "plan", "--connect", "--json")
    assert done.returncode == 0, done.stdout
    call(shop, "run")
    broken = pl.DataFrame({"id": ["x"], "ts": [datetime(2025, 5, 1)]})
    shop.write("items", "a.parquet", broken)
    done = call(shop, "plan", "--connect", "--json")
    assert done.returncode == 1
    steps = {one["name"]: one["connect"] for one in json.loads(done.stdout)["steps"]}
    assert steps["orders"]["fits"]
    assert steps["items"]["code"] == "type_conflict"
    text = call(shop, "plan", "--connect")
    assert "does not fit: dataflow 'bronze/items', write" in text.stdout
