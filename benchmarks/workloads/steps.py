"""CPU time of a step's process until its body begins, whatever the number of dataflows.

Each variant is a run of three steps in processes of their own; a step writes down what it has used.
The variant of Dagster's own executor has 1,000 dataflows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import flows
from benchmarks.measure import OURS, Promise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROMISE = Promise("10 dataflows", cpu=1.5, cpu_seconds=0.5)
STEPS = 3
CODE = """
import time
from pathlib import Path

import dagster as dg
from datacoolie_dagster import build_datacoolie_definitions
from datacoolie_dagster.warm import warm_executor

ROOT = Path({root!r})


def probe(number):
    @dg.asset(name=f"probe_{{number}}")
    def step() -> None:
        with (ROOT / "used").open("a") as file:
            file.write(f"{{time.process_time()}}\\n")

    return step


PROBES = [probe(number) for number in range({steps})]
defs = dg.Definitions.merge(
    build_datacoolie_definitions(ROOT / "metadata.json", project_dir=ROOT, granularity="group"),
    dg.Definitions(
        PROBES, jobs=[dg.define_asset_job("probes", PROBES, executor_def={executor})]
    ),
)
"""


def _run(count: int, executor: str) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        content = flows.document(count, max(1, count // 100), folder / "source", folder / "lake")
        flows.write(folder / "metadata.json", content)
        code = CODE.format(root=str(folder), steps=STEPS, executor=executor)
        (folder / "code_location.py").write_text(code)
        home = folder / "home"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        subprocess.run(
            [
                *(sys.executable, "-m", "dagster", "job", "execute"),
                *("-f", "code_location.py", "-j", "probes"),
            ],
            cwd=folder,
            env={
                **os.environ,
                "DAGSTER_HOME": str(home),
                "PYTHONPATH": str(Path(__file__).parents[2]),
            },
            check=True,
            capture_output=True,
        )

    return run


VARIANTS: Mapping[str, Callable[[Path], Any]] = {
    "10 dataflows": _run(10, "warm_executor()"),
    "1,000 dataflows": _run(1000, "warm_executor()"),
    "Dagster's own": _run(1000, "dg.multi_or_in_process_executor"),
    OURS: _run(5000, "warm_executor()"),
}


def generate() -> None:
    """The metadata is written for each run."""


def prepare(folder: Path) -> None:
    """Nothing is there before the run."""


def figures(folder: Path, _whole: Mapping[str, float]) -> Mapping[str, float]:
    """Return what a step used before its body began; not what the whole run did."""
    used = [float(line) for line in (folder / "used").read_text().splitlines()]
    return {"cpu": statistics.median(used)}


def check(folder: Path) -> int:
    """Return how many steps there were."""
    return len((folder / "used").read_text().splitlines())
