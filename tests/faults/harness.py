"""Runs projects in children that a fault strikes, and looks at what is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import polars as pl

from datacoolie_core.state.folder import list_visible
from datacoolie_core.state.open_store import open_store
from tests.faults.zygote import QUIET

ROOT = Path(__file__).parents[2]
SYSTEM = ("__created_at", "__updated_at", "__updated_by", "__dataflow_run_id")
OF_THE_MACHINE = ("__file_path", "__file_modification_time")
PATIENCE = 120.0
"""Seconds until a child counts as hanging."""


class Zygote:
    """The process that forks the children; started at its first use."""

    def __init__(self) -> None:
        environment = {**os.environ, **QUIET, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        busy = self._read()["busy"]
        assert not busy, f"threads that make forking unsafe: {busy}"

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        assert line, "the zygote died; its stderr says why"
        return json.loads(line)

    def ask(self, **question: Any) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        assert "error" not in answer, answer["error"]
        return answer

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@dataclass
class Child:
    """A process that runs a job."""

    zygote: Zygote
    job: dict[str, Any]
    pid: int

    def wait(self, seconds: float = PATIENCE) -> int:
        """Return how it ended; what hangs is killed, and is an error."""
        status = self.zygote.ask(do="wait", pid=self.pid, seconds=seconds)["status"]
        if status is None:
            self.signal(signal.SIGKILL)
            self.zygote.ask(do="wait", pid=self.pid, seconds=seconds)
            raise AssertionError(f"a child hangs: {self.job}\n{self.log}")
        return status

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    @property
    def log(self) -> str:
        path = Path(self.job["log"])
        return path.read_text() if path.exists() else ""

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of its steps, as ``run --json`` has them."""
        return json.loads(Path(self.job["out"]).read_text())["results"]

    @property
    def reached(self) -> dict[str, int]:
        return json.loads(Path(self.job["out"]).read_text())["reached"]

    @property
    def gate(self) -> Path:
        return Path(self.job["fault"]["gate"])

    def wait_until_paused(self, seconds: float = PATIENCE) -> None:
        from time import monotonic, sleep

        deadline = monotonic() + seconds
        while not self.gate.with_suffix(".paused").exists():
            status = self.zygote.ask(do="wait", pid=self.pid, seconds=0)["status"]
            assert status is None, f"ended with {status} before it paused\n{self.log}"
            assert monotonic() < deadline, "never paused"
            sleep(0.01)

    def go_on(self) -> None:
        self.gate.with_suffix(".go").touch()


@dataclass
class Lab:
    """One project folder, and the children that run it.

    Attributes:
        root: The folder; source files are in ``in/t``, the destination is ``lake/o``.
        state: Folder or URL of the state, None for the default.
        scratch: Where children leave what is no part of the project.
    """

    zygote: Zygote
    root: Path
    state: str | None = None
    scratch: Path = field(default=Path())

    def __post_init__(self) -> None:
        self.scratch = self.root.with_name(f"{self.root.name}.children")
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.root.mkdir(parents=True, exist_ok=True)

    @property
    def source(self) -> Path:
        return self.root / "in" / "t"

    @property
    def metadata(self) -> Path:
        return self.root / "metadata.json"

    def write(self, document: dict[str, Any]) -> Self:
        self.metadata.write_text(json.dumps(document))
        return self

    def copy(self, root: Path) -> Lab:
        """Return a copy of the project as it is now."""
        shutil.copytree(self.root, root)
        return Lab(self.zygote, root, self.state)

    def job(self, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
        name = uuid4().hex[:8]
        fault = more.pop("fault", None)
        if fault is not None:
            fault = {"nth": 1, "gate": str(self.scratch / f"{name}.gate"), **fault}
        return {
            "project": str(self.root),
            "metadata": str(self.metadata),
            "state": self.state,
            "steps": list(steps),
            "log": str(self.scratch / f"{name}.log"),
            "out": str(self.scratch / f"{name}.json"),
            "fault": fault,
            **more,
        }

    def start(self, *steps: dict[str, Any], **more: Any) -> Child:
        job = self.job(*steps, **more)
        return Child(self.zygote, job, self.zygote.ask(do="start", job=job)["pid"])

    def run(self, *steps: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        """Run steps in one child, which must end well; return each step's result."""
        child = self.start(*(steps or ({"do": "run"},)), **more)
        status = child.wait()
        assert status == 0, f"{status}\n{child.log}\n{self._errors(child)}"
        return child.results

    def _errors(self, child: Child) -> str:
        if not Path(child.job["out"]).exists():
            return ""
        flows = [one for result in child.results for one in result["dataflows"]]
        return "\n".join(str(one["error"]) for one in flows if one["error"])

    def kill(self, step: dict[str, Any], point: str, nth: int = 1, **more: Any) -> None:
        """Run a step in a child that dies at a point, which it must reach."""
        fault = {"point": point, "nth": nth, "action": "SIGKILL"}
        child = self.start(step, fault=fault, **more)
        status = child.wait()
        if status >= 0:
            reached = child.reached if Path(child.job["out"]).exists() else {}
            raise AssertionError(
                f"{point} ({nth}) was not reached: {reached}\n{child.log}\n{self._errors(child)}"
            )
        assert status == -signal.SIGKILL, f"{status}\n{child.log}"

    def strike(self, step: dict[str, Any], point: str, nth: int = 1) -> bool:
        """Run a step in a child that dies at a point if it comes there; return whether it did."""
        child = self.start(step, fault={"point": point, "nth": nth, "action": "SIGKILL"})
        status = child.wait()
        assert status in (0, -signal.SIGKILL), f"{status}\n{child.log}\n{self._errors(child)}"
        return status != 0

    def pause(self, step: dict[str, Any], point: str, nth: int = 1, **more: Any) -> Child:
        """Start a step in a child and return when it waits at a point."""
        child = self.start(step, fault={"point": point, "nth": nth, "action": "pause"}, **more)
        child.wait_until_paused()
        return child

    def trace(self, step: dict[str, Any], kill_at: int | None = None) -> list[str]:
        """Run a step in a child that dies before a call that changes a file; return its calls.

        Args:
            step: What it does.
            kill_at: Which call, from 0; None lets it live. A run may end with fewer calls, since
                threads share the work in another way each time.
        """
        job = self.job(step)
        found = self.zygote.ask(do="trace", job=job, folder=str(self.root), kill_at=kill_at)
        assert found["status"] in (0, -signal.SIGKILL), Path(job["log"]).read_text()
        return found["calls"]

    # What is left -----------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        return self.root / "lake" / "o"

    @property
    def form(self) -> str:
        """The destination's format."""
        connections = json.loads(self.metadata.read_text())["connections"]
        return next(one["format"] for one in connections if one["name"] == "lake")

    def is_table(self) -> bool:
        """Whether there is a Delta table; files without a log are none."""
        from deltalake import DeltaTable

        return self.form == "delta" and DeltaTable.is_deltatable(str(self.folder))

    def seen(self) -> set[str]:
        """The data files that our readers read."""
        if self.is_table():
            from deltalake import DeltaTable

            table = DeltaTable(str(self.folder))
            return {uri.removeprefix(f"{self.folder}/") for uri in table.file_uris()}
        if self.form == "delta" or not self.folder.exists():
            return set()
        found = list_visible(str(self.folder), str(self.folder))
        return {one.uri.removeprefix(f"{self.folder}/") for one in found}

    def there(self) -> set[str]:
        """The data files that a reader sees who knows nothing of logs and manifests."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        return {str(path) for path in found if not any(one[0] in "_." for one in path.parts)}

    def rows(self) -> pl.DataFrame:
        """The rows that our readers see, read by polars alone; columns in alphabetical order."""
        if self.is_table():
            frame = pl.read_delta(str(self.folder))
        else:
            parts = [_read(self.folder, path) for path in sorted(self.seen())]
            frame = pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()
        return frame.select(sorted(frame.columns))

    def content(self, from_load: tuple[str, ...] = ()) -> list[str]:
        """The rows as sorted text, without nulls and what differs from run to run.

        Args:
            from_load: Columns whose values are instants of loads: their ranks are compared.
        """
        frame = self.rows()
        ranks = [pl.col(name).rank("dense") for name in from_load if name in frame.columns]
        frame = frame.with_columns(ranks).drop(*SYSTEM, *OF_THE_MACHINE, strict=False)
        kept = (
            {name: value for name, value in row.items() if value is not None}
            for row in frame.rows(named=True)
        )
        return sorted(map(repr, kept))

    def record(self) -> dict[str, Any] | None:
        """The stored state without what differs from run to run."""
        found = self.store().load("f")
        if found is None:
            return None
        document = found.to_json()
        for name in ("run_id", "updated_at", "table_id", "table_version", "sequence"):
            document.pop(name)
        if "files" in document:
            # the files of another project have other times
            document["files"] = document["files"]["count"]
        return document

    def store(self) -> Any:
        return open_store(self.state or ".datacoolie/state", str(self.root))

    def sequences(self) -> tuple[int, int]:
        """The sequence in the state, and the one in the destination."""
        from datacoolie_core.metadata.loader import load_metadata
        from datacoolie_core.writers.destination import writer_for

        (flow,) = load_metadata([str(self.metadata)], project_dir=str(self.root)).dataflows
        found = writer_for(flow.destination).inspect(str(self.folder), "f", {})
        stored = self.store().load("f")
        return (stored.sequence if stored else 0), (found.sequence or 0)


def _read(folder: Path, path: str) -> pl.DataFrame:
    place, ending = folder / path, path.rpartition(".")[2]
    readers = {
        "parquet": lambda: pl.read_parquet(place, hive_partitioning=False),
        "csv": lambda: pl.read_csv(place, infer_schema=False),
        "jsonl": lambda: pl.read_ndjson(place, infer_schema_length=None),
        "json": lambda: pl.read_json(place, infer_schema_length=None),
        "avro": lambda: pl.read_avro(place),
    }
    frame = readers[ending]()
    levels = (level.split("=", 1) for level in path.split("/")[:-1] if "=" in level)
    return frame.with_columns(pl.lit(value).alias(name) for name, value in levels)
