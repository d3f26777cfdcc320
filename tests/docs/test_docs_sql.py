"""The pages on SQL and types say what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pages_on_sql_and_types_are_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("generate_sql", ROOT / "docs/generate_sql.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [path.name for path, text in module.pages().items() if path.read_text("utf-8") != text]
    assert stale == [], "run: python docs/generate_sql.py"
