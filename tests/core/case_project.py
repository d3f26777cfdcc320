"""A project for cases of real trouble: rows in as text or frames, any destination, front doors only."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from datacoolie_core import ReplayConfig
from tests.conftest import Project

BIN = Path(sys.executable).with_name("datacoolie")


@dataclass
class Case(Project):
    """One dataflow from ``in/t`` to ``lake/o``; text is CSV, a list JSON lines, a frame parquet."""

    form: str = "delta"

    @property
    def document(self) -> dict[str, Any]:
        document = super().document
        document["connections"][1]["format"] = self.form
        document["connections"][2]["format"] = self.form
        return document

    def put(self, rows: str | list[dict[str, Any]] | pl.DataFrame, file: str = "a") -> None:
        """Write a source file; ``a`` takes the place of all there are, another name is added."""
        folder = self.root / "in" / "t"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir() if file == "a" else ():
            old.unlink()
        if isinstance(rows, str):
            self.source_format = "csv"
            (folder / f"{file}.csv").write_text(rows, encoding="utf-8")
        elif isinstance(rows, list):
            self.source_format = "jsonl"
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            (folder / f"{file}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            self.source_format = "parquet"
            rows.write_parquet(folder / f"{file}.parquet")

    def load(self, load_type: str = "append", *keys: str, **given: Any) -> None:
        """Declare the dataflow.

        ``hints`` are column → type; ``own`` and ``own_source`` are our keys of destination and
        source, ``zone`` and ``names`` those of ``transform.configure``; the rest is as in
        ``flow``.
        """
        transform = dict(given.pop("transform", {}))
        hints = given.pop("hints", {})
        if hints:
            transform["schema_hints"] = [
                {"column_name": name, "data_type": kind} for name, kind in hints.items()
            ]
        configure = dict(transform.pop("configure", {}))
        for key, field in (("zone", "timestamp_timezone"), ("names", "column_name_mode")):
            if key in given:
                configure[field] = given.pop(key)
        transform["configure"] = configure
        for side, key in (("destination", "own"), ("source", "own_source")):
            if key in given:
                there = dict(given.get(side, {}))
                there["configure"] = {**there.get("configure", {}), "datacoolie": given.pop(key)}
                given[side] = there
        self.flow(load_type=load_type, merge_keys=list(keys), transform=transform, **given)

    def works(self, **options: Any):
        """Run; return the result, which must not have failed."""
        return self.run_one(**options)

    def fails(self, **options: Any):
        """Run; return the error, which must be a deliberate one that says where and what to do."""
        (result,) = self.run(**options).dataflows
        assert result.status == "failed"
        return told(result.error)

    def replays(self, start: Any, end: Any, **given: Any):
        """Replay; return the result."""
        with self.driver() as driver:
            asked = ReplayConfig(start=start, end=end, **given)
            (result,) = driver.run_replay(driver.metadata.dataflows, asked).dataflows
        return result

    def rows(self, *columns: str, table: str = "o") -> list[tuple[Any, ...]]:
        """The destination's rows, sorted; all columns but ours if none is named."""
        frame = self.stored(table)
        names = columns or [name for name in frame.columns if not name.startswith("__")]
        return sorted(frame.select(names).rows(), key=repr)

    def stored(self, table: str = "o") -> pl.DataFrame:
        """What a reader sees in the destination; text everywhere in CSV."""
        if self.form == "delta":
            return pl.read_delta(self.path(table))
        root = Path(self.path(table))
        files = [
            one for one in sorted(root.rglob(f"*.{self.form}")) if "_datacoolie" not in one.parts
        ]
        read = {
            "csv": lambda file: pl.read_csv(file, infer_schema=False),
            "jsonl": pl.read_ndjson,
            "json": pl.read_json,
            "parquet": lambda file: pl.read_parquet(file, hive_partitioning=False),
        }[self.form]
        return pl.concat([read(file) for file in files], how="diagonal_relaxed")

    def write_metadata(self) -> None:
        folder = self.root / "metadata"
        folder.mkdir(exist_ok=True)
        (folder / "all.yaml").write_text(yaml.safe_dump(self.document), encoding="utf-8")

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start the command line in a process of its own."""
        self.write_metadata()
        return subprocess.Popen(
            [str(BIN), *arguments, "--json"],
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.root), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ends(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for a process; return its only dataflow's entry of the JSON."""
        printed, trouble = process.communicate(timeout=120)
        assert printed, trouble
        (result,) = json.loads(printed)["dataflows"]
        return {**result, "exit_code": process.returncode}

    def calls(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """Run the command line; return the only dataflow's entry of its JSON."""
        return self.ends(self.start(*arguments, **environment))


def told(error: Any):
    """Return an error that a person can use: no accident, and it says what to do."""
    assert error.code not in ("internal_error", "error"), error.message
    assert error.remedy, error.message
    assert "dataflow 'f'" in error.message
    return error
