"""How long a code location takes to load: metadata, assets, repository and asset graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg

from benchmarks import flows
from benchmarks.measure import OURS
from datacoolie_dagster import build_datacoolie_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

BARE = "bare assets"


def variants(count: int, groups: int) -> Mapping[str, Callable[[Path], Any]]:
    """Return both ways to define that many assets, with the same order among them."""

    def bare(folder: Path) -> None:
        _load(dg.Definitions(assets=flows.bare_assets(count, groups)), folder)

    def ours(folder: Path) -> None:
        metadata = folder / "metadata.json"
        _load(build_datacoolie_definitions(metadata, project_dir=folder), folder)

    return {BARE: bare, OURS: ours}


def prepare(folder: Path, count: int, groups: int) -> None:
    """Write the metadata; reading it is part of what is measured."""
    content = flows.document(count, groups, folder / "source", folder / "lake")
    flows.write(folder / "metadata.json", content)


def check(folder: Path) -> int:
    """Return how many assets can be materialized."""
    return int((folder / "assets").read_text())


def _load(defs: dg.Definitions, folder: Path) -> None:
    graph = defs.get_repository_def().asset_graph
    (folder / "assets").write_text(str(len(graph.materializable_asset_keys)))
