"""``datacoolie init``: what it makes works at once, and nothing of the user's is touched."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

from datacoolie_core.cli.main import app
from datacoolie_core.errors import DataCoolieError


def cli(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def made(folder: Path, *arguments: str) -> Path:
    cli("init", str(folder), *arguments)
    return folder


def run(folder: Path, *arguments: str) -> dict[str, str]:
    """Run a project; return the status of each dataflow."""
    document = json.loads(cli("run", "--project-dir", str(folder), "--json", *arguments))
    return {f"{one['stage']}/{one['name']}": one["status"] for one in document["dataflows"]}


def rows(folder: Path, table: str) -> int:
    return pl.read_delta(str(folder / table)).height


@pytest.mark.parametrize("example", [False, True])
def test_a_new_project_is_right_runs_and_loads_nothing_twice(tmp_path, example):
    folder = made(tmp_path / "shop", *(["--example"] if example else []))
    cli("check", "--project-dir", str(folder))
    assert set(run(folder).values()) == {"succeeded"}
    assert rows(folder, "lake/bronze/customers") == 4
    assert rows(folder, "lake/silver/customers") == 3
    again = run(folder)
    assert (again["bronze/customers"], again["silver/customers"]) == ("skipped", "skipped")
    assert rows(folder, "lake/bronze/customers") == 4


def test_the_example_has_an_environment_with_a_lake_of_its_own(tmp_path):
    folder = made(tmp_path / "shop", "--example")
    assert set(run(folder, "--env", "dev").values()) == {"succeeded"}
    assert rows(folder, "lake_dev/bronze/orders") > 0
    assert not (folder / "lake").exists()


def test_the_example_replays_its_months(tmp_path):
    folder = made(tmp_path / "shop", "--example")
    run(folder)
    before = rows(folder, "lake/bronze/orders")
    command = ("replay", "--select", "bronze/orders", "--project-dir", str(folder), "--json")
    replayed = json.loads(cli(*command, "--end", "2025-03-01"))
    assert replayed["status"] == "succeeded"
    assert rows(folder, "lake/bronze/orders") == before


def test_the_project_is_a_dagster_code_location(tmp_path):
    folder = made(tmp_path / "shop", "--example")
    workspace = yaml.safe_load((folder / "workspace.yaml").read_text())
    (location,) = workspace["load_from"]
    script = (
        "import runpy, sys; sys.path.insert(0, '.');"
        f"defs = runpy.run_path({location['python_file']['relative_path']!r})['defs'];"
        "print(*sorted(k.to_user_string() for k in defs.resolve_all_asset_keys()))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert {"bronze/customers", "silver/customers", "bronze/orders"} <= set(done.stdout.split())


def test_it_opens_no_connection(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("init must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    made(tmp_path / "shop", "--example")


def test_a_folder_with_files_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    done = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert isinstance(done.exception, DataCoolieError) or done.exit_code == 3
    assert "notes.txt" in str(done.exception) + done.output
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def test_force_adds_files_and_replaces_none(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    document = json.loads(cli("init", str(tmp_path), "--force", "--json"))
    assert document["kept"] == ["README.md"]
    assert "metadata/bronze.yaml" in document["files"]
    assert (tmp_path / "README.md").read_text() == "mine"
    assert set(run(tmp_path).values()) == {"succeeded"}


def test_a_git_folder_is_no_file_of_the_users(tmp_path):
    (tmp_path / ".git").mkdir()
    assert (made(tmp_path) / ".gitignore").read_text().startswith(".datacoolie/")


@pytest.mark.parametrize("name", ["shop", 'the "big" one', "back\\slash", "größe", "yes: no # x"])
def test_any_name_gives_files_that_can_be_read(tmp_path, name):
    folder = made(tmp_path / "p", "--name", name)
    workspace = yaml.safe_load((folder / "workspace.yaml").read_text("utf-8"))
    assert workspace["load_from"][0]["python_file"]["location_name"] == name
    assert (folder / "README.md").read_text("utf-8").startswith(f"# {name}\n")
    assert set(run(folder).values()) == {"succeeded"}


def test_a_file_of_that_name_is_refused(tmp_path):
    (tmp_path / "shop").write_text("")
    done = CliRunner().invoke(app, ["init", str(tmp_path / "shop")])
    assert done.exit_code != 0
    assert "this is a file" in str(done.exception) + done.output
