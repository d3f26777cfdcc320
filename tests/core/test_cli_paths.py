"""Which project a command means, by the paths that were typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

BIN = Path(sys.executable).with_name("datacoolie")


@pytest.fixture
def shop(project):
    """A project ``shop`` below the folder in which the user stands."""
    project.flow()
    project.root /= "shop"
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 2]}))
    (project.root / "metadata").mkdir()
    (project.root / "metadata/all.yaml").write_text(yaml.safe_dump(project.document))
    return project


def run(shop, *arguments):
    clean = {name: text for name, text in os.environ.items() if "DATACOOLIE" not in name}
    return subprocess.run(
        [str(BIN), "run", *arguments],
        cwd=shop.root.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=clean,
    )


def loaded(shop):
    return pl.read_delta(str(shop.root / "lake/o"))["id"].sort().to_list()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--project-dir", "shop"),
        ("--project-dir", "shop", "--metadata", "metadata"),
        ("--project-dir", "shop", "--metadata", "shop/metadata"),
        ("--project-dir", "shop", "--metadata", "shop/metadata/all.yaml"),
    ],
)
def test_metadata_is_found_below_the_root_or_as_it_was_typed(shop, arguments):
    done = run(shop, *arguments)
    assert done.returncode == 0, done.stderr
    assert loaded(shop) == [1, 2]


def test_metadata_inside_a_project_means_that_project(shop):
    (shop.root / "datacoolie.toml").write_text("max_workers = 2\n")
    done = run(shop, "--metadata", "shop/metadata")
    assert done.returncode == 0, done.stderr
    assert loaded(shop) == [1, 2]


def test_the_users_own_project_wins_over_that_of_the_metadata(shop):
    (shop.root / "datacoolie.toml").write_text("max_workers = 2\n")
    (shop.root.parent / "datacoolie.toml").write_text("max_workers = 2\n")
    done = run(shop, "--metadata", "shop/metadata")
    assert done.returncode == 1
    assert not (shop.root / "lake").exists()


def test_a_path_that_is_nowhere_is_named(shop):
    done = run(shop, "--project-dir", "shop", "--metadata", "shp/metadata")
    assert done.returncode == 3
    assert "shp/metadata: there is no such file or folder" in done.stderr
