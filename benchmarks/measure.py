"""Time variants of a workload side by side: each run a process of its own, in turn A B B A.

Wall and CPU time are those of the work alone, without the imports; CPU time has that of the processes
it started. Memory is the highest resident size of the process, as the kernel counted it. A workload
may measure by itself: what its ``figures`` returns takes the place of ours.

Example: python -m benchmarks.measure append merge_recent --repeats 3
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

WORKLOADS = (
    "append",
    "append_memory",
    "merge_recent",
    "merge_random",
    "merge_partitioned",
    "scd2",
    "increments",
    "tiny",
    "compaction",
    "csv",
    "csv_large",
    "definitions_1000",
    "definitions_5000",
    "steps",
    "dagster_tiny",
)
OURS = "datacoolie"


@dataclass(frozen=True)
class Promise:
    """What ours may take of a baseline's figure; a figure without a promise is only shown."""

    baseline: str
    wall: float | None = None
    cpu: float | None = None
    cpu_seconds: float | None = None
    memory: float | None = None
    memory_mb: int | None = None


def workload(name: str) -> ModuleType:
    """Return the module of a workload."""
    return importlib.import_module(f"benchmarks.workloads.{name}")


def run_here(name: str, variant: str, folder: Path) -> None:
    """Run one variant in this process and print its figures as one JSON line."""
    module = workload(name)
    variants: Mapping[str, Callable[[Path], Any]] = module.VARIANTS
    _import_everything()
    began, cpu = time.perf_counter(), _cpu_seconds()
    variants[variant](folder)
    figures = {"wall": time.perf_counter() - began, "cpu": _cpu_seconds() - cpu}
    figures["memory"] = _peak_megabytes()
    if hasattr(module, "figures"):
        figures |= module.figures(folder, figures)
    print(json.dumps({**figures, "check": module.check(folder)}))


def _import_everything() -> None:
    """Import what any variant uses: how long that takes is not what is measured here."""
    import datacoolie_core

    for found in pkgutil.walk_packages(datacoolie_core.__path__, "datacoolie_core."):
        importlib.import_module(found.name)
    for needed in ("deltalake", "deltalake.transaction", "pyarrow.parquet", "pyarrow.dataset"):
        importlib.import_module(needed)


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it started and that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _peak_megabytes() -> int:
    """Return the highest resident size so far; on Linux free of what the parent process had."""
    status = Path("/proc/self/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def run_apart(name: str, variant: str) -> dict[str, Any]:
    """Run one variant in a process of its own, on a copy of what the workload prepared.

    Raises:
        RuntimeError: The variant failed; with what it said.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"bench_{name}_"))
    try:
        workload(name).prepare(folder)
        command = [sys.executable, "-m", "benchmarks.measure", "--inside", name, variant]
        done = subprocess.run(
            [*command, str(folder)],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[1],
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        if done.returncode:
            raise RuntimeError(f"{name}/{variant}: {done.stderr[-2000:]}")
        return json.loads(done.stdout.strip().splitlines()[-1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(name: str, repeats: int, console: Console) -> dict[str, Any]:
    """Run all variants of a workload in turn and return their medians and ratios."""
    module = workload(name)
    module.generate()
    names = list(module.VARIANTS)
    runs: dict[str, list[dict[str, Any]]] = {variant: [] for variant in names}
    for turn in range(repeats):
        for variant in names if turn % 2 == 0 else reversed(names):
            console.log(f"{name}: {variant} ({turn + 1} of {repeats})")
            runs[variant].append(run_apart(name, variant))
    checks = {json.dumps(run["check"]) for each in runs.values() for run in each}
    if len(checks) > 1 and not getattr(module, "CHECKS_DIFFER", False):
        raise RuntimeError(f"{name}: the variants gave different tables: {checks}")
    figures = {
        variant: {
            key: statistics.median(run[key] for run in each) for key in ("wall", "cpu", "memory")
        }
        for variant, each in runs.items()
    }
    return {"workload": name, "figures": figures, "promise": vars(module.PROMISE)}


def show(result: dict[str, Any], console: Console) -> bool:
    """Print a workload's table; return whether ours keeps its promise."""
    figures, promise = result["figures"], Promise(**result["promise"])
    base = figures[promise.baseline]
    table = Table(title=result["workload"])
    for column in ("variant", "wall s", "ratio", "CPU s", "ratio", "memory MB", "ratio"):
        table.add_column(column, justify="left" if column == "variant" else "right")
    for variant, own in figures.items():
        cells = [variant]
        for key, places in (("wall", 2), ("cpu", 2), ("memory", 0)):
            cells += [f"{own[key]:.{places}f}", f"{own[key] / base[key]:.2f}"]
        table.add_row(*cells)
    console.print(table)
    ours = figures[OURS]
    kept = True
    for what, allowed, found in (
        ("wall time", promise.wall, ours["wall"] / base["wall"]),
        ("CPU time", promise.cpu, ours["cpu"] / base["cpu"]),
        ("CPU time in seconds", promise.cpu_seconds, ours["cpu"]),
        ("peak memory", promise.memory, ours["memory"] / base["memory"]),
        ("peak memory in MB", promise.memory_mb, ours["memory"]),
    ):
        if allowed is None:
            continue
        good = found <= allowed
        kept = kept and good
        of = "" if what.endswith(("MB", "seconds")) else f" of {promise.baseline}"
        console.print(
            f"  {what}: {found:.2f}{of}, promised at most {allowed}: {'kept' if good else 'BROKEN'}",
            style="green" if good else "red",
        )
    return kept


def main() -> int:
    """Run the workloads that the command line names; exit code 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr] # pyright: ignore[reportOptionalMemberAccess]
    parser.add_argument("workloads", nargs="*", default=[], metavar="workload")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        name, variant, folder = chosen.workloads
        run_here(name, variant, Path(folder))
        return 0
    console = Console()
    results = [compare(name, chosen.repeats, console) for name in chosen.workloads or WORKLOADS]
    kept = [show(result, console) for result in results]
    if chosen.json:
        chosen.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
