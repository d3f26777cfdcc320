"""The product's side of every workload: metadata, and a driver that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacoolie_core import DataCoolieDriver, DataCoolieRunConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def dataflow(name: str, source: Path, destination: Path, **fields: Any) -> dict[str, Any]:
    """Return a metadata document of one dataflow from a parquet folder to a Delta table.

    Args:
        name: Its name.
        source: The folder of the source's files.
        destination: The table's folder.
        fields: ``watermark_columns`` for the source, everything else for the destination.
    """
    watermark = fields.pop("watermark_columns", [])
    return {
        "connections": [
            {
                "name": f"{name}_files",
                "connection_type": "file",
                "format": "parquet",
                "configure": {"base_path": str(source.parent)},
            },
            {
                "name": f"{name}_lake",
                "connection_type": "lakehouse",
                "format": "delta",
                "configure": {"base_path": str(destination.parent)},
            },
        ],
        "dataflows": [
            {
                "name": name,
                "stage": "bench",
                "source": {
                    "connection_name": f"{name}_files",
                    "table": source.name,
                    "watermark_columns": watermark,
                },
                "destination": {
                    "connection_name": f"{name}_lake",
                    "table": destination.name,
                    **fields,
                },
            }
        ],
    }


def runner(
    document: dict[str, Any], folder: Path, **config: Any
) -> Callable[[], dict[str, int | None]]:
    """Return a function that runs a document's dataflows once, and gives the rows written.

    Args:
        document: The metadata.
        folder: The project folder.
        config: Of the run.
    """
    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("benchmark", document)])
    driver = DataCoolieDriver(scope, project_dir=str(folder), config=DataCoolieRunConfig(**config))

    def once() -> dict[str, int | None]:
        result = driver.run()
        if result.failed:
            raise RuntimeError(str([one.error for one in result.dataflows if one.error]))
        return {one.dataflow.label: one.rows.get("rows_written") for one in result.dataflows}

    return once


def maintain(document: dict[str, Any], folder: Path) -> None:
    """Maintain the destinations of a document's dataflows once."""
    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("benchmark", document)])
    driver = DataCoolieDriver(scope, project_dir=str(folder))
    driver.run_maintenance()
