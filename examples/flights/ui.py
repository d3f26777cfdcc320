"""Serves Dagster's UI for the example: webserver and daemon together, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
WORKSPACE = HERE.parents[1] / "workspace.yaml"
HOME = HERE / ".dagster_home"
LOG = HOME / "ui.log"
START_SECONDS = 120


def prepare_home(home: Path = HOME) -> None:
    """Make the folder of the Dagster instance, with its settings."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text((HERE / "dagster.yaml").read_text("utf-8"), "utf-8")


def start(
    port: int, workspace: Path = WORKSPACE, home: Path = HOME
) -> list[subprocess.Popen[bytes]]:
    """Start the daemon and the webserver on one instance; their own log goes to a file."""
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONWARNINGS": "ignore",
    }
    daemon = ["dagster._daemon", "run", "--log-level", "warning"]
    webserver = ["dagster_webserver", "-h", "127.0.0.1", "-p", str(port)]
    webserver += ["--code-server-log-level", "warning"]
    with (home / LOG.name).open("wb") as log:
        return [
            subprocess.Popen(
                [sys.executable, "-m", *command, "-w", str(workspace)],
                env=environment,
                cwd=workspace.parent,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            for command in (daemon, webserver)
        ]


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """End what was started, the webserver first; insist after 20 seconds."""
    for process in reversed(processes):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 20
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    """Return whether somebody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def alive(processes: list[subprocess.Popen[bytes]]) -> bool:
    """Return whether none of the processes has ended."""
    return all(process.poll() is None for process in processes)


def wait_until_up(processes: list[subprocess.Popen[bytes]], port: int) -> bool:
    """Wait until the webserver answers, and say whether it does."""
    deadline = time.monotonic() + START_SECONDS
    while alive(processes) and time.monotonic() < deadline:
        if answers(port):
            return True
        time.sleep(0.3)  # noqa: TID251 - a supervisor waits
    return False


def serve(port: int) -> int:
    """Serve until Ctrl-C, or until one of the two processes ends by itself."""
    print("Starting Dagster", flush=True)
    processes = start(port)
    try:
        if wait_until_up(processes, port):
            print(
                f"Dagster: http://127.0.0.1:{port}   (Ctrl-C ends it; its log: {LOG})", flush=True
            )
        while alive(processes):
            time.sleep(0.5)  # noqa: TID251 - a supervisor waits
    except KeyboardInterrupt:
        print("\nEnding Dagster", flush=True)
        return 0
    finally:
        stop(processes)
    print("\n".join(LOG.read_text("utf-8", "replace").splitlines()[-20:]))
    print(f"Dagster ended by itself. The end of {LOG} is above.")
    return 1


def main() -> int:
    """Check the port, then serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=3000)
    port = parser.parse_args().port
    if answers(port):
        print(f"Port {port} is in use. Choose another one: make ui PORT={port + 1}")
        return 1
    # A shell that starts us in the background has Ctrl-C ignored, for our children too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    prepare_home()
    return serve(port)


if __name__ == "__main__":
    sys.exit(main())
