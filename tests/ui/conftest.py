"""The flights example in a folder of its own, loaded by its demo and served to a browser."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

# A cold webserver on a busy machine takes its time; `expect` has a clock of its own.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)

ROOT = Path(__file__).parents[2]
MADE = shutil.ignore_patterns("lake", "data", ".dagster_home", ".datacoolie", "__pycache__")
BROWSER = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Demo:
    """A copy of the example, and what its two demo runs printed."""

    folder: Path
    first: str
    second: str

    @property
    def lake(self) -> Path:
        """Where its tables are."""
        return self.folder / "lake"

    @property
    def home(self) -> Path:
        """Where its Dagster instance is."""
        return self.folder / ".dagster_home"


def run_demo(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo of a copy of the example."""
    return subprocess.run(
        [sys.executable, str(folder / "demo.py")],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "COLUMNS": "150"},
        check=False,
    )


def copy_example(root: Path) -> Path:
    """Copy the example, without what its demo makes, to where a checkout has it."""
    folder = root / "examples" / "flights"
    shutil.copytree(ROOT / "examples" / "flights", folder, ignore=MADE)
    shutil.copy(ROOT / "workspace.yaml", root)
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The example after its demo ran twice."""
    folder = copy_example(tmp_path_factory.mktemp("checkout"))
    first, second = run_demo(folder), run_demo(folder)
    for done in (first, second):
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return Demo(folder, first.stdout, second.stdout)


@pytest.fixture(scope="session")
def broken_demo(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What the demo says when a source file is broken."""
    folder = copy_example(tmp_path_factory.mktemp("broken"))
    (folder / "data").mkdir()
    (folder / "data" / "weather.csv").write_text("origin,time_hour\nEWR,yesterday\n")
    return run_demo(folder)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class Server:
    """A running webserver and its daemon."""

    url: str
    log: Path

    def query(self, query: str, **variables: Any) -> Any:
        """Return the data of a GraphQL query."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]


def is_up(url: str) -> bool:
    """Return whether the webserver answers."""
    try:
        with urllib.request.urlopen(f"{url}/server_info", timeout=5):
            return True
    except OSError:
        return False


def wait_until_up(process: subprocess.Popen[bytes], server: Server) -> None:
    """Wait until the webserver that a process serves answers."""
    deadline = time.monotonic() + 120
    while not is_up(server.url):
        assert process.poll() is None, server.log.read_text("utf-8")
        assert time.monotonic() < deadline, server.log.read_text("utf-8")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.3)


@pytest.fixture(scope="session")
def server(demo: Demo) -> Iterator[Server]:
    """What ``make ui`` starts, on a free port."""
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", demo.home / "ui.log")
    command = [sys.executable, str(demo.folder / "ui.py"), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until_up(process, server)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(40)


def find_browser() -> str:
    """Return the browser's path; without one the test is skipped, but never in CI."""
    found = shutil.which("chromium")
    if found is None and os.environ.get("CI") != "true":
        pytest.skip("no chromium on the path; to run the UI tests: apt-get install chromium")
    assert found is not None, "CI needs chromium for the UI tests"
    return found


@pytest.fixture(scope="session")
def browser_pages() -> Iterator[Any]:
    """Yield a function that opens a page, as wide as a laptop's screen."""
    path = find_browser()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=BROWSER)
        yield lambda: browser.new_page(viewport={"width": 1440, "height": 900})
        browser.close()


@pytest.fixture
def page(browser_pages: Any, server: Server) -> Iterator[Page]:
    """A page of the UI; the dialog of a first visit is skipped as a user would."""
    page = browser_pages()
    page.set_default_timeout(PATIENCE_MS)
    page.add_locator_handler(page.get_by_role("button", name="Skip"), lambda button: button.click())
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(server.url)
    yield page
    page.close()
    assert errors == []
