"""``dg dev`` serves the component's assets."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from tests.dagster.component_project import BIN, DgProject

QUERY = "{ assetNodes { assetKey { path } } repositoriesOrError { __typename } }"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(port: int) -> dict:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": QUERY}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["data"]


def test_dg_dev_serves_the_assets_of_a_scaffolded_component(tmp_path):
    project = DgProject(tmp_path / "shop")
    project.run("dg", "scaffold", "defs", "datacoolie_dagster.DataCoolieComponent", "ingest")
    port, log = free_port(), tmp_path / "log"
    command = [str(BIN / "dg"), "dev", "--port", str(port), "--host", "127.0.0.1"]
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=project.root,
            env=project.environment,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 150
        found, pause = None, threading.Event()
        while found is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            with contextlib.suppress(OSError):
                found = ask(port)
            pause.wait(0.3)
        paths = {"/".join(one["assetKey"]["path"]) for one in found["assetNodes"]}
        assert paths == {"bronze/customers", "silver/customers", "files/customers"}
    finally:
        os.kill(process.pid, signal.SIGINT)
        try:
            process.wait(40)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
