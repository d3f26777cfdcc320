"""The examples of the pages about databases and functions run as they stand."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from datacoolie_core import DataCoolieDriver
from datacoolie_core.metadata.loader import metadata_from_documents

DOCS = Path(__file__).resolve().parents[2] / "docs"


def fences(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def loads(page: str, root: Path) -> dict[str, int | None]:
    (document,) = [yaml.safe_load(one) for one in fences(page, "yaml")]
    metadata = metadata_from_documents([(page, document)])
    with DataCoolieDriver(metadata, project_dir=str(root)) as driver:
        return {one.dataflow.name: one.rows["rows_written"] for one in driver.run().dataflows}


def test_the_example_of_a_database_loads(tmp_path):
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data/shop.db")) as handle, handle:
        handle.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        handle.execute("CREATE TABLE orders (id INTEGER, customer_id INTEGER, amount REAL)")
        handle.execute("INSERT INTO customers VALUES (1, 'Anna')")
        handle.execute("INSERT INTO orders VALUES (1, 1, 50), (2, 1, 500)")
    assert loads("sources-databases.md", tmp_path) == {"orders": 2, "big_orders": 1}


@pytest.mark.parametrize("runs", [1, 2])
def test_the_example_of_a_function_loads(tmp_path, monkeypatch, runs):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (code,) = fences("sources-functions.md", "python")
    file = tmp_path / code.splitlines()[0].removeprefix("# ")
    file.parent.mkdir()
    file.write_text(code, encoding="utf-8")
    found = [loads("sources-functions.md", tmp_path)["orders"] for _ in range(runs)]
    assert found == [3, 0][:runs]
