"""The command line: exit codes, JSON, and messages that say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

BIN = Path(sys.executable).with_name("datacoolie")


def frame(*ids):
    return pl.DataFrame({"id": list(ids)}, schema={"id": pl.Int64})


def call(project, *arguments, env=None):
    if project.flows:
        (project.root / "metadata").mkdir(exist_ok=True)
        (project.root / "metadata/all.yaml").write_text(yaml.safe_dump(project.document))
    return subprocess.run(
        [str(BIN), *arguments],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=env,
    )


def document(done):
    return json.loads(done.stdout)


@pytest.fixture
def two(project):
    for name, stage in (("orders", "bronze"), ("totals", "silver")):
        project.write(name, "a.parquet", frame(1, 2))
        project.flow(
            name, source_table=name, table=f"{stage}_{name}", stage=stage, watermark=["id"]
        )
    return project


def test_run_gives_the_documented_json(two):
    done = call(two, "run", "--json")
    assert done.returncode == 0, done.stderr
    result = document(done)
    assert result["version"] == 1
    assert result["status"] == "succeeded"
    assert result["counts"] == {
        "total": 2,
        "succeeded": 2,
        "failed": 0,
        "skipped": 0,
        "running": 0,
        "pending": 0,
    }
    first = result["dataflows"][0]
    assert first["watermark"] == {"id": 2}
    assert (first["sequence"], first["table_version"], first["rows_written"]) == (1, 0, 2)
    assert first["error"] is None
    expected = {
        *("name", "dataflow_id", "stage", "status", "reason", "attempts", "started_at"),
        *("duration_seconds", "destination", "table_version", "sequence", "watermark"),
        *("rows_read", "rows_written", "rows_inserted", "rows_updated", "rows_deleted"),
        *("rows_unchanged", "rows_stale", "rows_rejected", "rows_null_watermark"),
        *("warnings", "error"),
    }
    assert expected <= set(first)


def test_all_skipped_is_good(two):
    call(two, "run")
    done = call(two, "run", "--json")
    assert done.returncode == 0
    assert document(done)["counts"]["skipped"] == 2


def test_a_failed_dataflow_is_exit_code_one_with_its_remedy(two):
    (two.root / "in/orders/a.parquet").unlink()
    (two.root / "in/orders").rmdir()
    done = call(two, "run", "--json")
    assert done.returncode == 1
    error = document(done)["dataflows"][0]["error"]
    assert error["phase"] == "read"
    assert "bronze/orders" in error["message"]
    assert str(two.root / "in/orders") in error["message"]


def test_an_unknown_stage_is_exit_code_two_with_a_suggestion(two):
    done = call(two, "run", "--stage", "bronse")
    assert done.returncode == 2
    assert "bronze" in done.stderr


def test_an_unknown_option_is_exit_code_two(two):
    assert call(two, "run", "--stages", "bronze").returncode == 2


def test_wrong_metadata_is_exit_code_three_and_nothing_runs(two):
    two.flows[0]["destination"]["load_typ"] = "append"
    done = call(two, "run", "--json")
    assert done.returncode == 3
    problems = document(done)["error"]["problems"]
    assert problems[0]["suggestion"] == "load_type"
    assert not (two.root / "lake").exists()


def test_quarantine_runs_the_valid_rest_and_fails_the_other(two):
    two.flows[0]["destination"]["load_type"] = "upsert"
    done = call(two, "run", "--json", "--on-invalid", "quarantine")
    assert done.returncode == 1
    result = document(done)
    assert result["counts"]["succeeded"] == 1
    assert result["counts"]["failed"] == 1
    bad = next(one for one in result["dataflows"] if one["status"] == "failed")
    assert bad["error"]["phase"] == "metadata"
    assert "load_type" in bad["error"]["message"]


def test_check_prints_every_problem_at_once(two):
    two.flows[0]["source"]["connection_name"] = "inn"
    two.flows[1]["destination"]["load_type"] = "append_only"
    done = call(two, "check")
    assert done.returncode == 3
    assert "Did you mean 'in'?" in done.stderr
    assert "append_only" in done.stderr


def test_check_says_when_all_is_good(two):
    done = call(two, "check")
    assert done.returncode == 0
    assert "2 dataflows" in done.stdout


def test_plan_shows_order_reasons_and_windows_and_writes_nothing(two):
    call(two, "run", "--stage", "bronze")
    done = call(two, "plan", "--json")
    assert done.returncode == 0
    steps = document(done)["steps"]
    assert [one["name"] for one in steps] == ["orders", "totals"]
    assert not (two.root / "lake/silver_totals").exists()
    text = call(two, "plan").stdout
    assert "2 → now" in text
    assert "from the beginning" in text
    assert "Nothing was run" in text


def test_selection_by_pattern(two):
    done = call(two, "run", "--select", "silver/*", "--json")
    assert [one["name"] for one in document(done)["dataflows"]] == ["totals"]


def test_an_empty_shard_is_good(two):
    indexes = [
        len(
            document(call(two, "plan", "--json", "--job-num", "16", "--job-index", str(i)))["steps"]
        )
        for i in range(16)
    ]
    assert sum(indexes) == 2
    empty = indexes.index(0)
    done = call(two, "run", "--job-num", "16", "--job-index", str(empty), "--json")
    assert done.returncode == 0
    assert document(done)["counts"]["total"] == 0


def test_a_shard_out_of_range_is_exit_code_three(two):
    done = call(two, "run", "--job-num", "2", "--job-index", "2")
    assert done.returncode == 3
    assert "job_index" in done.stderr


def test_the_table_for_people_names_watermark_and_rows(two):
    done = call(two, "run")
    assert "bronze/orders" in done.stdout
    assert "2 succeeded" in done.stdout
    assert "Traceback" not in done.stderr


def test_every_command_has_an_example_in_its_help(project):
    for command in ("check", "plan", "run"):
        done = call(project, command, "--help")
        assert f"Example: datacoolie {command}" in done.stdout


def test_no_secret_reaches_output_logs_or_records(two):
    import os

    document_ = two.document
    document_["connections"][0]["configure"]["password"] = "DB"
    document_["connections"][0]["secrets_ref"] = {"env:TEST_SECRET_": ["password"]}
    (two.root / "metadata").mkdir()
    (two.root / "metadata/all.yaml").write_text(yaml.safe_dump(document_))
    flows, two.flows = two.flows, []
    env = {**os.environ, "TEST_SECRET_DB": "hunter2secret"}
    done = call(two, "run", "--json", "--log-path", "logs", env=env)
    two.flows = flows
    assert done.returncode == 0, done.stderr
    assert "hunter2secret" not in done.stdout + done.stderr
    for path in two.root.rglob("*"):
        if path.is_file():
            assert b"hunter2secret" not in path.read_bytes(), path
