"""Projects with bad rows, and what is in their quarantine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import DeltaTable

HINTS = [
    {"column_name": "id", "data_type": "BIGINT"},
    {"column_name": "v", "data_type": "INT"},
    {"column_name": "ts", "data_type": "DATE"},
]


def flow(project: Any, policy: str = "quarantine", **given: Any) -> dict[str, Any]:
    """Add a dataflow from CSV files of ``id,v,ts`` whose bad rows go where the policy says."""
    project.source_format = "csv"
    transform = {"schema_hints": HINTS, **given.pop("transform", {})}
    given.setdefault("watermark", ["ts"])
    options = {"on_cast_error": policy, **given.pop("options", {})}
    return project.flow(transform=transform, configure={"datacoolie": options}, **given)


def put(project: Any, file: str, *lines: str, header: str = "id,v,ts") -> Path:
    """Write a source file; lines are ``id,v,day`` with the day of January."""
    folder = project.root / "in" / "t"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text("\n".join([header, *map(_line, lines)]) + "\n")
    return path


def _line(line: str) -> str:
    start, _, last = line.rpartition(",")
    return f"{start},2025-01-{int(last):02}" if last.isdigit() else line


def side(project: Any, table: str = "o") -> str:
    return str(project.root / "lake" / "_quarantine" / table)


def quarantined(project: Any, table: str = "o") -> pl.DataFrame:
    """The rows in quarantine; none if there is no such table."""
    path = side(project, table)
    if not DeltaTable.is_deltatable(path):
        return pl.DataFrame(schema={"sequence": pl.Int64, "row": pl.String, "column": pl.String})
    return pl.read_delta(path)


def bad_ids(project: Any, table: str = "o") -> list[tuple[int, str]]:
    """Sequence and ``id`` of each row in quarantine."""
    rows = quarantined(project, table).select("sequence", "row").rows()
    return sorted((sequence, json.loads(row)["id"]) for sequence, row in rows)
