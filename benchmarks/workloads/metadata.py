"""Metadata of 5,000 dataflows, parsed, checked and put into the graph.

Beside it: the same file parsed as JSON, and each entry looked at by a bare pydantic model that
knows no rule of the format.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from benchmarks import flows
from benchmarks.measure import OURS, Promise

if TYPE_CHECKING:
    from pathlib import Path

COUNT, GROUPS = 5000, 50
PARSED, LOOKED_AT = "json.load", "bare pydantic"
PROMISE = Promise(LOOKED_AT, cpu_seconds=2.0)


class _Bare(BaseModel):
    name: str
    stage: str
    group_number: int
    execution_order: int
    source: dict[str, Any]
    destination: dict[str, Any]
    transform: dict[str, Any]


def generate() -> None:
    """The metadata is written for each run."""


def prepare(folder: Path) -> None:
    """Write the metadata: a merge by key, a watermark and three hints each."""
    content = flows.document(COUNT, GROUPS, folder / "source", folder / "lake")
    for one in content["dataflows"]:
        one["source"]["watermark_columns"] = ["changed_at"]
        one["destination"] |= {"load_type": "merge_upsert", "merge_keys": ["id"]}
        types = {"id": "int", "changed_at": "timestamp", "amount": "decimal(10,2)"}
        hints = [{"column_name": name, "data_type": kind} for name, kind in types.items()]
        one["transform"] = {"schema_hints": hints}
    flows.write(folder / "metadata.json", content)


def ours(folder: Path) -> None:
    """Load, check, build the graph."""
    from datacoolie_core.metadata.loader import load_metadata
    from datacoolie_core.plan.graph import build_graph

    metadata = load_metadata("metadata.json", project_dir=str(folder))
    _count(folder, len(build_graph(metadata).dataflows))


def parsed(folder: Path) -> None:
    """Parse the text."""
    _count(folder, len(_read(folder)["dataflows"]))


def looked_at(folder: Path) -> None:
    """Parse the text, and make a model of each dataflow."""
    _count(folder, len([_Bare.model_validate(one) for one in _read(folder)["dataflows"]]))


VARIANTS = {PARSED: parsed, LOOKED_AT: looked_at, OURS: ours}


def check(folder: Path) -> int:
    """Return how many dataflows were found."""
    return int((folder / "count").read_text())


def _read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metadata.json").read_text())


def _count(folder: Path, found: int) -> None:
    (folder / "count").write_text(str(found))
