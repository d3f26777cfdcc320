"""``datacoolie convert`` as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from datacoolie_core.cli.main import app
from datacoolie_core.metadata.loader import load_metadata


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    done = CliRunner().invoke(app, ["init", str(tmp_path / "shop"), "--example"])
    assert done.exit_code == 0, done.output
    return tmp_path / "shop"


def invoke(root: Path, *arguments: str):
    return CliRunner().invoke(app, ["convert", "--project-dir", str(root), *arguments])


def convert(root: Path, *arguments: str) -> dict[str, object]:
    done = invoke(root, "--json", *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def scope(root: Path, path: Path, environment: str | None = None):
    found = load_metadata([str(path)], project_dir=str(root), environment=environment)
    flows = sorted(found.dataflows, key=lambda one: one.dataflow_id)
    return sorted(found.connections, key=lambda one: one.name), flows


@pytest.mark.parametrize(
    ("output", "options", "files"),
    [
        ("out/all.json", [], ["out/all.json"]),
        ("out/all.yaml", [], ["out/all.yaml"]),
        ("out/all.xlsx", [], ["out/all.xlsx"]),
        ("out", ["--to", "yaml"], ["out/connections.yaml", "out/bronze.yaml", "out/silver.yaml"]),
        ("out", ["--to", "json", "--layout", "single"], ["out/metadata.json"]),
        ("out", ["--to", "excel"], ["out/connections.xlsx", "out/bronze.xlsx", "out/silver.xlsx"]),
    ],
)
def test_every_form_and_layout_gives_the_same_scope(shop, output, options, files):
    told = convert(shop, "--input", "metadata", "--output", str(shop / output), *options)
    assert set(files) <= set(told["files"])
    assert told["counts"] == {"connections": 2, "dataflows": 4, "schema_hints": 0}
    assert scope(shop, shop / output) == scope(shop, shop / "metadata")
    assert scope(shop, shop / output, "dev") == scope(shop, shop / "metadata", "dev")


def test_without_an_input_the_metadata_of_the_project_is_taken(shop):
    assert convert(shop, "--output", str(shop / "all.json"))["counts"]["dataflows"] == 4


def test_people_are_told_what_was_written_and_what_was_left(shop):
    done = invoke(shop, "--output", str(shop / "all.xlsx"))
    assert "wrote all.xlsx" in done.output
    assert "note: comments are not carried over" in done.output
    assert "4 dataflows" in done.output


def test_a_file_that_is_there_is_replaced_only_when_asked(shop):
    (shop / "all.json").write_text("mine")
    refused = invoke(shop, "--output", str(shop / "all.json"))
    assert refused.exit_code != 0
    assert (shop / "all.json").read_text() == "mine"
    convert(shop, "--output", str(shop / "all.json"), "--overwrite")
    assert json.loads((shop / "all.json").read_text())["dataflows"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "out"], "give json, yaml or excel"),
        (["--output", "a.json", "--to", "yaml"], "is no file of yaml"),
        (["--output", "a.json", "--layout", "split"], "need a folder"),
    ],
)
def test_what_does_not_fit_together_is_wrong_usage(shop, arguments, said):
    done = invoke(shop, *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())
