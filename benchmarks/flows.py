"""Many small dataflows, as metadata and as what Dagster users would write by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKETS = 5


def places(count: int, groups: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, group and order of each dataflow: equal groups, each in five equal buckets."""
    size = count // groups
    for number in range(count):
        group, inside = divmod(number, size)
        yield number, group, inside // (size // BUCKETS)


def document(count: int, groups: int, source: Path, lake: Path) -> dict[str, Any]:
    """Return metadata of dataflows that each read a folder of parquet files and overwrite a table."""
    return {
        "connections": [
            {"name": "files", "format": "parquet", "configure": {"base_path": str(source)}},
            {"name": "lake", "format": "delta", "configure": {"base_path": str(lake)}},
        ],
        "dataflows": [
            {
                "name": f"f{number:04d}",
                "stage": "bench",
                "group_number": group + 1,
                "execution_order": order,
                "source": {"connection_name": "files", "table": f"s{number:04d}"},
                "destination": {
                    "connection_name": "lake",
                    "table": f"t{number:04d}",
                    "load_type": "overwrite",
                },
            }
            for number, group, order in places(count, groups)
        ],
    }


def write(path: Path, content: dict[str, Any]) -> None:
    """Write metadata into a file."""
    path.write_text(json.dumps(content))


def bare_assets(count: int, groups: int) -> list[Any]:
    """Return an empty asset for each dataflow; each depends on all of the next lower order."""
    import dagster as dg

    buckets: dict[tuple[int, int], list[dg.AssetKey]] = {}
    for number, group, order in places(count, groups):
        buckets.setdefault((group, order), []).append(dg.AssetKey(["bench", f"f{number:04d}"]))
    made: list[Any] = []
    for (group, order), keys in buckets.items():
        for key in keys:

            @dg.asset(key=key, deps=buckets.get((group, order - 1), []), group_name="bench")
            def bare() -> None:
                pass

            made.append(bare)
    return made
