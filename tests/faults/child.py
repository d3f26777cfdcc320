"""What a child of the zygote does: the steps of a job, with a fault at a named point.

The points are the phases that a run tells of, its other events, and seams that everything goes
through: polars' sinks, delta-rs' commits, the state's store and its file. They are placed here,
from outside; the product knows nothing of them.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

SMALL_FILES = 3
"""Rows in a staged file, so that each load has several."""


class Points:
    """Counts the points as they are reached, and strikes at the one that is asked for.

    Args:
        fault: ``point``, ``nth``, ``action`` and, to pause, ``gate``.
    """

    def __init__(self, fault: dict[str, Any] | None) -> None:
        self._fault = fault or {}
        self._guard = threading.Lock()
        self.seen: Counter[str] = Counter()
        self.saving = threading.local()

    def hit(self, name: str) -> None:
        with self._guard:
            self.seen[name] += 1
            mine = name == self._fault.get("point") and self.seen[name] == self._fault["nth"]
        if mine:
            self._strike(self._fault["action"])

    def _strike(self, action: str) -> None:
        if action == "pause":
            gate = Path(self._fault["gate"])
            gate.with_suffix(".paused").touch()
            parent = os.getppid()
            while not gate.with_suffix(".go").exists():
                if os.getppid() != parent:  # the test ended without it
                    os._exit(71)
                time.sleep(0.005)
        elif action == "error":
            raise OSError(5, "an error that a test made")
        else:
            os.kill(os.getpid(), getattr(signal, action))
            if action == "SIGKILL":
                time.sleep(60)

    def listen(self, event: Any) -> None:
        """Take an event of a run."""
        from datacoolie_core.run.events import DataflowFinished, RunFinished

        if isinstance(event, DataflowFinished):
            self.hit("dataflow-finished")
        elif isinstance(event, RunFinished):
            self.hit("run-finished")

    def phase(self, name: str) -> None:
        """Take a phase of a dataflow, in the thread that runs it."""
        if name in ("saving", "saved"):
            self.saving.now = name == "saving"
        self.hit(name)


def place(points: Points, state: str | None) -> None:
    """Wrap the seams."""
    import polars as pl

    from datacoolie_core.run.context import RunContext
    from datacoolie_core.writers import rewrite, staging
    from datacoolie_core.writers.flat import pieces, staging as flat_staging

    def reached(self: Any, dataflow: Any, name: str, window: Any = None) -> None:
        points.phase(name)
        told(self, dataflow, name, window)

    told, RunContext.phase = RunContext.phase, reached
    staging.ROWS_PER_FILE = rewrite.ROWS_PER_FILE = flat_staging._BATCH = SMALL_FILES
    _flowing(points, pl)
    _files(points, pl, pieces)
    for writer in (staging.Staging, flat_staging.Staging):
        writer.write = after(writer.write, lambda _: points.hit("files-written"))
    _commits(points)
    _state(points, state)
    _recovery(points)


def after(function: Any, then: Any) -> Any:
    """Return a function that calls another one with its result before returning it."""

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        then(found)
        return found

    return wrapped


def _flowing(points: Points, pl: Any) -> None:
    """``rows-flowing``: the first rows are read, and on their way into a file."""

    def seen(rows: Any) -> Any:
        points.hit("rows-flowing")
        return rows

    for name in ("sink_parquet", "collect_batches"):
        inner = getattr(pl.LazyFrame, name)

        def wrapped(self: Any, *args: Any, inner: Any = inner, **options: Any) -> Any:
            return inner(self.map_batches(seen, streamable=True), *args, **options)

        setattr(pl.LazyFrame, name, wrapped)


def _files(points: Points, pl: Any, pieces: Any) -> None:
    """``file-opened``, ``next-file-opened``: staging has begun, staging is half-way."""
    opened = Counter()

    def tell() -> None:
        opened["files"] += 1
        points.hit("file-opened" if opened["files"] == 1 else "next-file-opened")

    partition_by = pl.PartitionBy

    def watched(*args: Any, file_path_provider: Any, **options: Any) -> Any:
        return partition_by(
            *args, file_path_provider=after(file_path_provider, lambda _: tell()), **options
        )

    pl.PartitionBy = watched
    pieces.made = after(pieces.made, lambda _: tell())


def _commits(points: Points) -> None:
    """``columns-added``, ``entry-written``: the log has a new entry, nobody knows yet."""
    import deltalake
    from deltalake.table import TableAlterer, TableMerger, TableOptimizer

    from datacoolie_core.writers import creation

    def written(_: Any) -> None:
        points.hit("entry-written")

    table = deltalake.DeltaTable
    table.create_write_transaction = after(table.create_write_transaction, written)
    creation.publish = after(creation.publish, written)
    for name in ("write_deltalake",):
        setattr(deltalake, name, after(getattr(deltalake, name), written))
    TableMerger.execute = after(TableMerger.execute, written)
    TableOptimizer.compact = after(TableOptimizer.compact, written)
    TableAlterer.add_columns = after(
        TableAlterer.add_columns, lambda _: points.hit("columns-added")
    )


def _state(points: Points, state: str | None) -> None:
    """``state-written``, ``state-synced``, ``state-renamed``, ``state-sent``."""
    fsync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        own = getattr(points.saving, "now", False) and not os.path.isdir(  # noqa: PTH112
            f"/proc/self/fd/{descriptor}"
        )
        if own:
            points.hit("state-written")
        fsync(descriptor)
        if own:
            points.hit("state-synced")

    def renamed(self: Path, target: Any) -> Any:
        found = replace(self, target)
        if getattr(points.saving, "now", False):
            points.hit("state-renamed")
        return found

    os.fsync, Path.replace = synced, renamed
    if state is not None and "://" in state:
        from sqlalchemy import event
        from sqlalchemy.engine import Engine

        def sent(*_: Any) -> None:
            if getattr(points.saving, "now", False):
                points.hit("state-sent")

        event.listen(Engine, "after_cursor_execute", sent)


def run(job: dict[str, Any]) -> int:
    """Do a job; returns the exit status, 0 if every step went well."""
    points = Points(job.get("fault"))
    if job.get("clock"):
        import time_machine

        moved = timedelta(seconds=job["clock"])
        from datacoolie_core import clock

        time_machine.travel(clock.utc_now() + moved, tick=True).start()
    place(points, job.get("state"))
    if job.get("barrier"):
        gate = Path(job["barrier"])
        gate.with_suffix(f".{os.getpid()}.ready").touch()
        while not gate.exists():
            time.sleep(0.002)
    results, status = [], 0
    with _small_disk(job.get("fsize")):
        for step in job["steps"]:
            found = _cli(step) if step["do"] == "cli" else _step(job, step, points)
            results.append(found.to_json())
            status = found.code if isinstance(found, Exit) else max(status, found.has_failures)
    done = {"results": results, "reached": dict(points.seen)}
    Path(job["out"]).write_text(json.dumps(done, default=str))
    return int(status)


def _recovery(points: Points) -> None:
    """``recovering``, ``recovered``: the state is saved that the destination knew better."""
    import sys

    from datacoolie_core.run import saved_state

    save = saved_state.save_state

    def watched(*args: Any) -> None:
        own = getattr(points.saving, "now", False)
        if not own:
            points.hit("recovering")
        save(*args)
        if not own:
            points.hit("recovered")

    for name, module in list(sys.modules.items()):
        if name.startswith("datacoolie_core.") and getattr(module, "save_state", None) is save:
            module.save_state = watched


@contextmanager
def _small_disk(size: int | None) -> Iterator[None]:
    """Let no file grow above a size, in bytes: writing then fails as on a full disk."""
    if size is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass(frozen=True)
class Exit:
    """How a command ended."""

    code: int

    @property
    def has_failures(self) -> bool:
        return self.code != 0

    def to_json(self) -> dict[str, Any]:
        return {"exit": self.code, "dataflows": []}


def _cli(step: dict[str, Any]) -> Exit:
    from datacoolie_core.cli import main

    try:
        main(step["arguments"])
    except SystemExit as error:
        return Exit(error.code or 0)
    return Exit(0)


def _step(job: dict[str, Any], step: dict[str, Any], points: Points) -> Any:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.run.config import DataCoolieRunConfig

    settings = {"retry_delay": 0, **step.get("config", {})}
    config = DataCoolieRunConfig(**settings)
    with DataCoolieDriver(
        job["metadata"],
        project_dir=job["project"],
        state=job.get("state"),
        config=config,
        log_path=job.get("logs"),
        listeners=[points.listen],
    ) as driver:
        return STEPS[step["do"]](driver, step)


def _run(driver: Any, step: dict[str, Any]) -> Any:
    return driver.run(run_id=step.get("run_id"))


def _refresh(driver: Any, step: dict[str, Any]) -> Any:
    return driver.run(full_refresh=True, run_id=step.get("run_id"))


def _replay(driver: Any, step: dict[str, Any]) -> Any:
    from datacoolie_core.plan.replay_config import ReplayConfig

    replay = ReplayConfig(
        step["start"], step["end"], {"days": step["days"]}, chunk_column=step["column"]
    )
    return driver.run_replay(
        driver.metadata.dataflows,
        replay,
        save_watermark=step.get("save_watermark", False),
        run_id=step.get("run_id"),
    )


def _maintain(driver: Any, step: dict[str, Any]) -> Any:
    return driver.run_maintenance(
        run_id=step.get("run_id"), allow_short_retention=step.get("short", False)
    )


def _set(driver: Any, step: dict[str, Any]) -> Exit:
    (flow,) = driver.metadata.dataflows
    driver.watermarks.set(flow, {step["column"]: datetime.fromisoformat(step["value"])})
    return Exit(0)


def _reset(driver: Any, step: dict[str, Any]) -> Exit:
    (flow,) = driver.metadata.dataflows
    driver.watermarks.reset(flow)
    return Exit(0)


STEPS = {
    "run": _run,
    "refresh": _refresh,
    "replay": _replay,
    "maintain": _maintain,
    "set": _set,
    "reset": _reset,
}
