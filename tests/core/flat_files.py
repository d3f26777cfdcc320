"""A project whose destinations are folders of files, and a look at what its readers see there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.state.folder import list_visible
from datacoolie_core.writers.flat.place import Place
from datacoolie_core.writers.flat.stored import Stored
from tests.conftest import Project

FORMATS = ("parquet", "csv", "json", "jsonl", "avro")


@dataclass
class Files(Project):
    """``flow`` writes files of ``form`` below ``out``."""

    form: str = "parquet"
    base: str = "out"
    write_options: dict[str, Any] | None = None
    date_folders: str | None = None

    def flow(self, name: str = "f", **given: Any) -> dict[str, Any]:
        destination = {"connection_name": "files", **given.pop("destination", {})}
        return super().flow(name, destination=destination, **given)

    @property
    def document(self) -> dict[str, Any]:
        document = super().document
        configure: dict[str, Any] = {"base_path": self.base}
        if self.write_options:
            configure["write_options"] = self.write_options
        if self.date_folders:
            configure["date_folder_partitions"] = self.date_folders
        document["connections"].append(
            {"name": "files", "format": self.form, "configure": configure}
        )
        return document

    def folder(self, table: str = "o") -> Path:
        return self.root / "out" / table

    def names(self, table: str = "o") -> set[str]:
        """The files that any reader of the folder sees, hidden ones left out."""
        folder = self.folder(table)
        found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        return {str(path) for path in found if not any(part[0] in "_." for part in path.parts)}

    def seen(self, table: str = "o") -> set[str]:
        """The files that our readers see."""
        folder = str(self.folder(table))
        return {info.uri.removeprefix(f"{folder}/") for info in list_visible(folder, folder)}

    def manifest(self, name: str = "f", table: str = "o") -> dict[str, Any]:
        return json.loads((self.folder(table) / "_datacoolie" / f"_{name}.json").read_text())

    def look(self, table: str = "o"):
        return Place(str(self.folder(table)), self.form, "f", {}, self.date_folders).look()

    def rows(self, *columns: str, table: str = "o") -> list[Any]:
        """The rows as the writer itself reads them back; one column gives its values."""
        look = self.look(table)
        with Stored(self.form, {}) as stored:
            files = [stored.one(look.stored(path), look.schema) for path in look.data]
            frames = pl.collect_all([one.select(columns) for one in files])
        found = [row for frame in frames for row in frame.rows()]
        found.sort(key=lambda row: tuple((v is not None, v) for v in row))
        return [row[0] for row in found] if len(columns) == 1 else found

    def replay(self, start: Any, end: Any, **chunks: Any):
        with self.driver() as driver:
            flows = driver.metadata.dataflows
            windows = {
                one.dataflow_id: generate_chunks(
                    start, end, column=one.source.watermark_columns[0], **chunks
                )
                for one in flows
            }
            (result,) = driver.run_replay(flows, windows).dataflows
        assert result.status != "failed", result.error.message
        return result


def frame(*ids: int, **columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"id": list(ids), "v": [f"v{one}" for one in ids], **columns})
