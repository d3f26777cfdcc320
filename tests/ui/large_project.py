"""A project of a thousand dataflows: two stages of five hundred, in groups of five orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TABLES = 500
ORDERS = 5
DEFINITIONS = """\
from pathlib import Path
from datacoolie_dagster import build_datacoolie_definitions

HERE = Path(__file__).parent
defs = build_datacoolie_definitions(HERE / "flows.json", project_dir=HERE)
"""


def _flow(stage: str, index: int, group: int, source: dict[str, Any]) -> dict[str, Any]:
    name = f"table_{index:03}"
    return {
        "name": name,
        "dataflow_id": f"{stage}/{name}",
        "stage": stage,
        "group_number": group,
        "execution_order": index * ORDERS // TABLES,
        "source": source,
        "destination": {
            "connection_name": "lake",
            "schema_name": stage,
            "table": name,
            "load_type": "full_load",
        },
    }


def make_large(folder: Path) -> None:
    """Write the project, its workspace file and the settings of its instance."""
    flows: list[dict[str, Any]] = []
    for index in range(TABLES):
        name = f"table_{index:03}"
        file = {"connection_name": "erp", "table": f"{name}.parquet"}
        bronze = {"connection_name": "lake", "schema_name": "bronze", "table": name}
        flows += [_flow("bronze", index, 1, file), _flow("silver", index, 2, bronze)]
    connections = [
        {"name": "erp", "format": "parquet", "configure": {"base_path": "erp"}},
        {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
    ]
    document = {"connections": connections, "dataflows": flows}
    (folder / "flows.json").write_text(json.dumps(document))
    (folder / "definitions.py").write_text(DEFINITIONS)
    (folder / "workspace.yaml").write_text(
        "load_from:\n  - python_file: {relative_path: definitions.py, location_name: large}\n"
    )
    (folder / "home").mkdir()
    (folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
