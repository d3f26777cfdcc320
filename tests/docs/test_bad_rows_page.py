"""The example of the page on bad rows comes out as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
import yaml

from datacoolie_core.driver import DataCoolieDriver
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.writers.quarantine_table import SCHEMA

TEXT = (Path(__file__).parents[2] / "docs" / "bad-rows.md").read_text("utf-8")
CONNECTIONS = [
    {"name": "files", "format": "csv", "configure": {"base_path": "."}},
    {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
]


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "orders.csv").write_text(block("csv"))
    return tmp_path


def load(root: Path, policy: str = "quarantine"):
    document = {"connections": CONNECTIONS, **yaml.safe_load(block("yaml"))}
    document["dataflows"][0]["configure"]["datacoolie"]["on_cast_error"] = policy
    metadata = metadata_from_documents([("page.yaml", document)])
    with DataCoolieDriver(metadata, project_dir=str(root)) as driver:
        (result,) = driver.run().dataflows
    return result


def test_the_quarantine_holds_what_the_table_shows(project, monkeypatch):
    assert load(project).rows["rows_rejected"] == 2
    table = pl.read_delta(str(project / "lake/orders"))
    assert sorted(table["id"].to_list()) == [1, 4]
    told = re.findall(r"^\| `(\w+)` \| `(.*?)` \| `(.*?)` \| `(\{.*?\})` \|$", TEXT, re.MULTILINE)
    rows = pl.read_delta(str(project / "lake/_quarantine/orders"))
    assert rows.select("column", "value", "reason", "row").rows() == told
    assert len(told) == 2
    monkeypatch.chdir(project)
    namespace: dict[str, object] = {}
    exec(block("python"), namespace)


def test_the_page_names_every_column_of_the_quarantine():
    rows = re.findall(r"^\| (`.*?`) \| [^|]* \|$", TEXT, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(SCHEMA) <= named


@pytest.mark.parametrize(("policy", "status"), [("fail", "failed"), ("null", "succeeded")])
def test_the_other_policies_do_what_the_page_says(project, policy, status):
    result = load(project, policy)
    assert result.status == status
    written = (project / "lake/orders/_delta_log").exists()
    assert written == (policy == "null")
