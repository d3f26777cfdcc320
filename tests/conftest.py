"""A small real project: files in, Delta tables out, no fakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import settings

from datacoolie_core.driver import DataCoolieDriver
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.run.config import DataCoolieRunConfig

# Tests share their machine with others: how long one takes says nothing about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

SYSTEM = ("__created_at", "__updated_at", "__updated_by", "__dataflow_run_id")


@dataclass
class Project:
    """One project folder; ``flow`` adds a dataflow, ``run`` runs them all."""

    root: Path
    flows: list[dict[str, Any]] = field(default_factory=list)
    source_format: str = "parquet"
    read_options: dict[str, Any] = field(default_factory=dict)

    def write(self, table: str, file: str, frame: pl.DataFrame) -> Path:
        folder = self.root / "in" / table
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / file
        if self.source_format == "csv":
            frame.write_csv(path)
        else:
            frame.write_parquet(path)
        return path

    def flow(self, name: str = "f", **given: Any) -> dict[str, Any]:
        source = {"connection_name": "in", "table": given.pop("source_table", "t")}
        source.update(given.pop("source", {}))
        destination = {"connection_name": "lake", "table": given.pop("table", "o")}
        for key in ("load_type", "merge_keys", "partition_columns"):
            if key in given:
                destination[key] = given.pop(key)
        destination.update(given.pop("destination", {}))
        if "watermark" in given:
            source["watermark_columns"] = given.pop("watermark")
        document = {
            "name": name,
            "dataflow_id": given.pop("dataflow_id", name),
            "source": source,
            "destination": destination,
            **given,
        }
        self.flows = [one for one in self.flows if one["dataflow_id"] != document["dataflow_id"]]
        self.flows.append(document)
        return document

    @property
    def document(self) -> dict[str, Any]:
        return {
            "connections": [
                {
                    "name": "in",
                    "format": self.source_format,
                    "configure": {"base_path": "in", "read_options": self.read_options},
                },
                {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
                {"name": "lake_in", "format": "delta", "configure": {"base_path": "lake"}},
            ],
            "dataflows": self.flows,
        }

    @property
    def metadata(self):
        return metadata_from_documents([("test.json", self.document)])

    def driver(self, listeners=(), state=None, **config: Any) -> DataCoolieDriver:
        return DataCoolieDriver(
            self.metadata,
            project_dir=str(self.root),
            config=DataCoolieRunConfig(**config),
            listeners=listeners,
            state=state,
            sleep=lambda _: None,
        )

    def run(self, listeners=(), config=None, **options: Any):
        with self.driver(listeners, **(config or {})) as driver:
            return driver.run(**options)

    def run_one(self, **options: Any):
        """Run; return the only dataflow's result, which must not have failed."""
        (result,) = self.run(**options).dataflows
        assert result.status != "failed", result.error.message
        return result

    def path(self, table: str = "o") -> str:
        return str(self.root / "lake" / table)

    def table(self, table: str = "o", *, sort: str | None = None) -> pl.DataFrame:
        frame = pl.read_delta(self.path(table))
        frame = frame.select([name for name in frame.columns if not name.startswith("__")])
        return frame.sort(sort or frame.columns[0], nulls_last=True)

    def ids(self, table: str = "o", column: str = "id") -> list[Any]:
        return self.table(table)[column].sort(nulls_last=True).to_list()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def new_project(tmp_path_factory):
    """Makes projects, for tests that need several."""
    return lambda: Project(tmp_path_factory.mktemp("project"))
