"""A Dagster run of a thousand dataflows of a hundred rows each, by an instance on disk.

Beside it, all in one process: a thousand assets that load nothing, each below a source of its own as
ours are; the same without sources; and as many ops, which have no events of assets. Besides, ours
with a process for each dataflow, which is run with forty dataflows and taken times 25.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from benchmarks import flows
from benchmarks.measure import OURS, Promise
from benchmarks.workloads import tiny
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_dagster import build_datacoolie_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FLOWS, GROUPS = tiny.FLOWS, 20
SOME = 40
PROCESSES = "process a step"
EMPTY = "empty assets"
PROMISE = Promise(EMPTY, cpu=1.5)
CHECKS_DIFFER = True
CODE = """
from pathlib import Path

import dagster as dg
from datacoolie_dagster import build_datacoolie_definitions

ROOT = Path({root!r})
defs = build_datacoolie_definitions(
    ROOT / "metadata.json",
    project_dir=ROOT,
    granularity="dataflow",
    executor=dg.multiprocess_executor,
)
"""


def generate() -> None:
    """Make a source folder for each dataflow."""
    tiny.generate()


def prepare(folder: Path) -> None:
    """Make an instance with empty tables, and the metadata."""
    (folder / "home").mkdir()
    (folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.local_temp(str(folder / "home")) as instance:
        instance.get_runs()
        instance.all_asset_keys()
    _metadata(folder, FLOWS, GROUPS)


def _metadata(folder: Path, count: int, groups: int) -> None:
    content = flows.document(count, groups, tiny.source(), folder / "lake")
    flows.write(folder / "metadata.json", content)


def product(folder: Path) -> None:
    """Ours: a step for each group."""
    defs = build_datacoolie_definitions(
        folder / "metadata.json",
        project_dir=folder,
        run_config=DataCoolieRunConfig(max_workers=tiny.WORKERS),
    )
    _execute(defs.resolve_job_def("bench"), folder)


def empty_assets(*, with_sources: bool) -> Callable[[Path], None]:
    """Return a run of as many assets, a step each, all in one process, none with anything to do."""

    def empty(number: int) -> dg.AssetsDefinition:
        source = [dg.AssetKey(["files", f"s{number:04d}"])] if with_sources else []

        @dg.asset(name=f"f{number:04d}", deps=source)
        def nothing() -> None:
            pass

        return nothing

    def run(folder: Path) -> None:
        assets = [empty(number) for number in range(FLOWS)]
        defs = dg.Definitions(assets, jobs=[dg.define_asset_job("bench")])
        _execute(defs.resolve_job_def("bench"), folder)

    return run


def empty_ops(folder: Path) -> None:
    """The same without assets."""

    @dg.op(out=dg.Out(dg.Nothing))
    def nothing() -> None:
        pass

    @dg.job
    def job() -> None:
        for number in range(FLOWS):
            nothing.alias(f"nothing_{number}")()

    _execute(job, folder)


def _execute(job: dg.JobDefinition, folder: Path) -> None:
    with dg.DagsterInstance.local_temp(str(folder / "home")) as instance:
        result = job.execute_in_process(instance=instance)
        (folder / "steps").write_text(str(len(result.get_step_success_events())))


def processes(folder: Path) -> None:
    """Dagster's usual way: a process for each step."""
    _metadata(folder, SOME, 1)
    (folder / "code_location.py").write_text(CODE.format(root=str(folder)))
    subprocess.run(
        [
            *(sys.executable, "-m", "dagster", "job", "execute"),
            *("-f", "code_location.py", "-j", "bench"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "DAGSTER_HOME": str(folder / "home"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        check=True,
        capture_output=True,
    )
    (folder / "steps").write_text(str(SOME))


VARIANTS = {
    EMPTY: empty_assets(with_sources=True),
    "empty assets, no sources": empty_assets(with_sources=False),
    "empty ops": empty_ops,
    PROCESSES: processes,
    OURS: product,
}


def figures(folder: Path, measured: Mapping[str, float]) -> Mapping[str, float]:
    """Return what a run of all would take, where only some were run."""
    scale = FLOWS / SOME if int((folder / "steps").read_text()) == SOME else 1
    return {name: measured[name] * scale for name in ("wall", "cpu")}


def check(folder: Path) -> list[Any]:
    """Return the steps, and the rows of the tables that there are."""
    tables = [pl.scan_delta(str(table)) for table in sorted((folder / "lake").glob("t*"))]
    rows = sum(table.select(pl.len()).collect().item() for table in tables)
    return [int((folder / "steps").read_text()), rows]
