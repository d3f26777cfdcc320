"""A project of groups whose steps can be held up and made to fail, and its UI on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.ui.conftest import Server, free_port, wait_until_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
CODE = """
    import time
    from pathlib import Path
    import polars as pl

    HERE = Path(__file__).parent

    def load(*, source, **_):
        \"\"\"Rows, unless a file says that the source is broken, or held up.\"\"\"
        name = source.configure.name
        with (HERE / "asked.txt").open("a") as asked:
            asked.write(name + "\\n")
        while (HERE / f"hold-{name}").exists():
            time.sleep(0.05)
        if (HERE / f"break-{name}").exists():
            raise ValueError(f"{name} is broken")
        return pl.DataFrame({"id": [1, 2]})
"""
DEFINITIONS = """
    from pathlib import Path
    from datacoolie_dagster import build_datacoolie_definitions

    HERE = Path(__file__).parent
    defs = build_datacoolie_definitions(HERE / "flows.json", project_dir=HERE, granularity="group")
"""
DAGSTER_YAML = """
    telemetry: {enabled: false}
    run_monitoring: {enabled: true, poll_interval_seconds: 2}
"""


def metadata() -> dict[str, Any]:
    """Return six tables of a group in two orders, and three that read the first ones."""
    flows = [
        {
            "name": f"t{order}{index}",
            "dataflow_id": f"raw/t{order}{index}",
            "stage": "raw",
            "group_number": 1,
            "execution_order": order,
            "source": {
                "connection_name": "code",
                "python_function": "sources.load",
                "configure": {"name": f"t{order}{index}"},
            },
            "destination": {"connection_name": "raw", "table": f"t{order}{index}"},
        }
        for order in range(2)
        for index in range(3)
    ]
    flows += [
        {
            "name": f"c{index}",
            "dataflow_id": f"clean/c{index}",
            "stage": "clean",
            "group_number": 2,
            "source": {"connection_name": "raw", "table": f"t0{index}"},
            "destination": {"connection_name": "clean", "table": f"c{index}"},
            "configure": {"datacoolie": {"on_upstream_failure": "block"}},
        }
        for index in range(3)
    ]
    for one in flows:
        one["destination"] = {**one["destination"], "load_type": "full_load"}
    return {
        "connections": [
            {"name": "code", "connection_type": "function", "format": "function"},
            {"name": "raw", "format": "delta", "configure": {"base_path": "lake/raw"}},
            {"name": "clean", "format": "delta", "configure": {"base_path": "lake/clean"}},
        ],
        "dataflows": flows,
    }


@dataclass(frozen=True)
class Groups:
    """The project and its UI.

    Attributes:
        folder: The project.
        server: Its webserver.
    """

    folder: Path
    server: Server

    @property
    def asked(self) -> list[str]:
        """The sources that were asked for rows, in turn."""
        path = self.folder / "asked.txt"
        return path.read_text().split() if path.exists() else []

    def forget(self) -> None:
        """Forget which sources were asked."""
        (self.folder / "asked.txt").unlink(missing_ok=True)

    def mark(self, kind: str, name: str, *, on: bool = True) -> None:
        """Hold up or break a source, or let it go."""
        path = self.folder / f"{kind}-{name}"
        path.touch() if on else path.unlink()

    def launch(self, *keys: str) -> str:
        """Materialize some assets, or all, as the button does; return the run's id."""
        params = {
            "selector": {
                "repositoryName": "__repository__",
                "repositoryLocationName": "groups",
                "jobName": "__ASSET_JOB",
                "assetSelection": [{"path": key.split("/")} for key in keys or self.all_keys()],
            },
            "runConfigData": {},
        }
        return _run_id(self.server.query(LAUNCH, params=params)["launchRun"])

    def all_keys(self) -> list[str]:
        """Return the keys of everything that can be loaded."""
        nodes = self.server.query("{ assetNodes { isMaterializable assetKey { path } } }")
        return [
            "/".join(n["assetKey"]["path"]) for n in nodes["assetNodes"] if n["isMaterializable"]
        ]

    def again(self, run_id: str, strategy: str) -> str:
        """Execute a run again as the menu of its page does."""
        params = {"parentRunId": run_id, "strategy": strategy}
        return _run_id(self.server.query(AGAIN, params=params)["launchRunReexecution"])

    def wait(self, run_id: str, *statuses: str) -> str:
        """Wait for one of some statuses of a run, or for its end."""
        wanted = {*statuses, "SUCCESS", "FAILURE", "CANCELED"}
        deadline = time.monotonic() + 180
        while (
            status := self.server.query(STATUS, id=run_id)["runOrError"]["status"]
        ) not in wanted:
            assert time.monotonic() < deadline, status
        return status

    def wait_until_asked(self, name: str) -> None:
        """Wait until a source is asked for rows."""
        deadline = time.monotonic() + 120
        while name not in self.asked:
            assert time.monotonic() < deadline, self.asked

    def recorded(self, run_id: str) -> list[str]:
        """Return the assets that a run materialized."""
        events = self.server.query(EVENTS, id=run_id)["logsForRun"]["events"]
        return sorted("/".join(one["assetKey"]["path"]) for one in events if one.get("assetKey"))


LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
AGAIN = """mutation($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
STOP = """mutation($id: String!) { terminateRun(runId: $id) { __typename } }"""
STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
EVENTS = """query($id: ID!) { logsForRun(runId: $id, limit: 1000) { ... on EventConnection {
  events { ... on MaterializationEvent { assetKey { path } } } } } }"""


def _run_id(answer: dict[str, Any]) -> str:
    assert answer["__typename"] == "LaunchRunSuccess", answer
    return answer["run"]["runId"]


def make(folder: Path) -> None:
    """Write the project."""
    (folder / "flows.json").write_text(json.dumps(metadata()))
    (folder / "sources.py").write_text(textwrap.dedent(CODE))
    (folder / "definitions.py").write_text(textwrap.dedent(DEFINITIONS))
    (folder / "workspace.yaml").write_text(
        "load_from:\n  - python_file: {relative_path: definitions.py, location_name: groups}\n"
    )
    (folder / "home").mkdir()
    (folder / "home" / "dagster.yaml").write_text(textwrap.dedent(DAGSTER_YAML))


@contextlib.contextmanager
def served(folder: Path, write: Callable[[Path], None] = make) -> Iterator[Groups]:
    """Serve a project: webserver and daemon, until the block ends.

    Args:
        folder: Where the project is.
        write: Writes it.
    """
    write(folder)
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", folder / "ui.log")
    command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml"]
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            [*command, "-h", "127.0.0.1", "-p", str(port)],
            cwd=folder,
            env={
                **os.environ,
                "DAGSTER_HOME": str(folder / "home"),
                "PYTHONPATH": str(ROOT),
                "DAGSTER_DISABLE_TELEMETRY": "1",
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until_up(process, server)
        yield Groups(folder, server)
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(40)
        if process.poll() is None:
            process.kill()
