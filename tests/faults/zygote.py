"""A warm process that forks the children of the fault tests, so that each starts at once.

A child that imports everything itself costs about 1.5 seconds of CPU before it does anything, a
forked one some 10 milliseconds. Forking is safe here because this process never runs a query: the
thread pools of polars, Arrow and delta-rs start at their first use, in the child. What importing
starts is switched off below (the allocators' background threads, OpenBLAS), or idle for good
(polars' cleaner of spilled data). ``multiprocessing``'s fork server does the same, but runs the
test runner's main module again in every child, and can't trace it.

One JSON object a line on stdin, one on stdout. Answers come in the order of the questions.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import time
from contextlib import suppress
from pathlib import Path

QUIET = {
    "_RJEM_MALLOC_CONF": "background_thread:false",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Set before the process starts, else the libraries do not see it."""

LIBRARIES = (
    *("polars", "deltalake", "pyarrow.parquet", "pyarrow.compute", "pyarrow.fs", "fastavro"),
    *("pandas", "numpy", "sqlglot", "sqlalchemy", "filelock", "fsspec.implementations.local"),
    *("dateutil.parser", "time_machine", "uuid", "multiprocessing", "_strptime", "zoneinfo"),
)
_IDLE = ("polars-ooc-clea",)


def warm_up() -> None:
    """Import what a run needs."""
    import datacoolie_core

    for name in LIBRARIES:
        # pandas is nobody's dependency, but Arrow imports it where it finds it
        with suppress(ImportError):
            importlib.import_module(name)
    for module in pkgutil.walk_packages(datacoolie_core.__path__, "datacoolie_core."):
        if ".cli" not in module.name and "__main__" not in module.name:
            importlib.import_module(module.name)
    importlib.import_module("tests.faults.child")


def busy_threads() -> list[str]:
    """Return the threads that make forking unsafe."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return []
    others = (task for task in tasks.iterdir() if task.name != str(os.getpid()))
    names = [(task / "comm").read_text().strip() for task in others]
    return [name for name in names if name not in _IDLE]


def start(job: dict) -> int:
    """Fork a child for a job and return its process id."""
    pid = os.fork()
    if pid == 0:
        run_child(job)
    return pid


def run_child(job: dict) -> None:
    """Do a job in a forked child; never returns."""
    from tests.faults import child

    status = 70
    try:
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.setpgid(0, 0)
        status = child.run(job)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - a fork must never return
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait(pid: int, seconds: float) -> int | None:
    """Return how a child ended, as ``subprocess`` does; None if it has not."""
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.004)


def answer(asked: dict) -> dict:
    """Do what was asked for."""
    what = asked.pop("do")
    if what == "start":
        return {"pid": start(asked["job"])}
    if what == "wait":
        return {"status": wait(asked["pid"], asked["seconds"])}
    if what == "trace":
        from tests.faults import tracer

        return tracer.trace(lambda: run_child(asked["job"]), asked["folder"], asked["kill_at"])
    raise ValueError(what)


def main() -> None:
    """Serve until stdin ends."""
    warm_up()
    busy = busy_threads()
    print(json.dumps({"busy": busy}), flush=True)
    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the asker raises it
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
