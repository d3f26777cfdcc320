"""The examples of the page on transforms come out as the page says."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.metadata.models import Dataflow
from datacoolie_core.plan.columns import clean_name
from datacoolie_core.transforms.apply import BUILT_IN, TransformContext, apply

PAGE = Path(__file__).parents[2] / "docs" / "transforms.md"
TEXT = PAGE.read_text("utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```\n\n```json\n(.*?)```", TEXT, re.DOTALL)


def flow(**given: Any) -> Dataflow:
    document = {
        "connections": [
            {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
            {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
        ],
        "dataflows": [
            {
                "name": "f",
                "source": {"connection_name": "in", "table": "t"},
                "destination": {"connection_name": "lake", "table": "t"},
                **given,
            }
        ],
    }
    return metadata_from_documents([("page.json", document)]).dataflows[0]


def transformed(frame: pl.DataFrame, dataflow: Dataflow) -> list[dict[str, Any]]:
    context = TransformContext(run_id="r", now=datetime(2026, 6, 1, tzinfo=UTC))
    found = apply(frame.lazy(), dataflow, context)[0].collect()
    ours = [name for name in found.columns if name.startswith("__")]
    return [{k: _plain(v) for k, v in row.items()} for row in found.drop(ours).to_dicts()]


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value if isinstance(value, str | int | float | None) else str(value)


@pytest.mark.parametrize(("metadata", "rows"), EXAMPLES)
def test_an_example_gives_what_the_page_says(metadata: str, rows: str) -> None:
    given = json.loads(rows)
    found = transformed(pl.DataFrame(given["in"]), flow(transform=yaml.safe_load(metadata)))
    assert found == given["out"]


def test_there_is_an_example_for_each_kind_of_rule() -> None:
    text = " ".join(metadata for metadata, _ in EXAMPLES)
    for field in ("value_rules", "hash_columns", "deduplicate_columns", "masking_rules"):
        assert field in text
    assert len(EXAMPLES) == TEXT.count("```json")


def test_the_plug_in_of_the_page_works_as_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (module,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "plugins.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    (named,) = re.findall(r"```yaml\n(configure:\n  datacoolie:.*?)```", TEXT, re.DOTALL)
    found = transformed(pl.DataFrame({"price": [10.0]}), flow(**yaml.safe_load(named)))
    assert found == [{"price": 10.0, "price_eur": 9.0}]


def test_the_table_of_slots_is_that_of_the_code() -> None:
    listed = re.findall(r"^\| (\d+) \| (\w+) \|", TEXT, re.MULTILINE)
    assert listed == [(str(slot.number), slot.name) for slot in BUILT_IN]


@pytest.mark.parametrize("mode", ["lower", "snake"])
def test_the_table_of_names_is_that_of_the_code(mode: Any) -> None:
    (names,) = re.findall(r"^\| mode \| (.*) \|$", TEXT, re.MULTILINE)
    (cleaned,) = re.findall(rf"^\| `{mode}`[^|]*\| (.*) \|$", TEXT, re.MULTILINE)
    given = [name.strip("` ") for name in names.split("|")]
    assert [clean_name(name, mode) for name in given] == [
        name.strip("` ") for name in cleaned.split("|")
    ]
