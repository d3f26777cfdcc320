"""Each environment keeps a state of its own."""

from __future__ import annotations

import json

import polars as pl
from typer.testing import CliRunner

from datacoolie_core.cli.main import app

METADATA = {
    "connections": [
        {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
        {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
    ],
    "dataflows": [
        {
            "name": "f",
            "source": {"connection_name": "in", "table": "t", "watermark_columns": ["id"]},
            "destination": {"connection_name": "lake", "table": "o"},
        }
    ],
}
OVERLAY = {
    "patches": [
        {
            "match": {"type": "connection", "where": {"name": "lake"}},
            "patch": {"configure": {"base_path": "lake_dev"}},
        }
    ]
}


def run(root, *arguments):
    done = CliRunner().invoke(app, ["run", "--project-dir", str(root), "--json", *arguments])
    assert done.exit_code == 0, done.output
    (flow,) = json.loads(done.stdout)["dataflows"]
    return flow["status"], flow["warnings"]


def test_environments_do_not_disturb_each_other(tmp_path):
    folder = tmp_path / "metadata" / "environments" / "dev"
    folder.mkdir(parents=True)
    (tmp_path / "metadata" / "all.json").write_text(json.dumps(METADATA))
    (folder / "lake.json").write_text(json.dumps(OVERLAY))
    (tmp_path / "in" / "t").mkdir(parents=True)
    pl.DataFrame({"id": [1]}).write_parquet(tmp_path / "in" / "t" / "a.parquet")
    assert run(tmp_path) == ("succeeded", [])
    assert run(tmp_path, "--env", "dev") == ("succeeded", [])
    assert run(tmp_path) == ("skipped", [])
    assert run(tmp_path, "--env", "dev") == ("skipped", [])
    assert pl.read_delta(str(tmp_path / "lake" / "o")).height == 1
    assert pl.read_delta(str(tmp_path / "lake_dev" / "o")).height == 1
    assert len(list((tmp_path / ".datacoolie" / "dev" / "state").iterdir())) == 1
