"""Takes the pictures of docs/images from the real UI, over the example as the demo left it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from playwright.sync_api import TimeoutError, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = Path(__file__).parent / "images"
BROWSER = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

sys.path[:0] = [str(ROOT / "examples" / "flights"), str(ROOT)]
import ui  # noqa: E402

from tests.ui.large_project import make_large  # noqa: E402


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def shoot(page: Page, name: str, **options: Any) -> None:
    """Save what the page shows, once it has settled."""
    time.sleep(3)  # noqa: TID251 - the UI polls and animates
    IMAGES.mkdir(exist_ok=True)
    page.screenshot(path=IMAGES / f"{name}.png", **options)
    print(f"docs/images/{name}.png")


def skip_dialog(page: Page) -> None:
    """Close the dialog that an instance shows at the first visit."""
    with contextlib.suppress(TimeoutError):
        page.get_by_role("button", name="Skip").click(timeout=8_000)


def take(page: Page, url: str) -> None:
    """Take all pictures."""
    groups = ",".join(f"global@global:{stage}" for stage in ("bronze", "silver", "gold"))
    page.goto(f"{url}/asset-groups?expanded={urllib.parse.quote(groups)}")
    page.get_by_text("daily_delays", exact=True).last.wait_for()
    skip_dialog(page)
    page.mouse.move(700, 820)  # over nothing, so that no edge is lit
    shoot(page, "lineage", clip={"x": 542, "y": 110, "width": 853, "height": 736})
    page.goto(f"{url}/assets/bronze/flights?view=partitions")
    page.get_by_text("Materialized (12)").wait_for()
    page.get_by_text("2013-01", exact=True).first.click()
    # Below that comes the absolute path of the table, which is nobody's but this machine's.
    shoot(page, "partitions", clip={"x": 0, "y": 0, "width": 1440, "height": 758})
    page.goto(f"{url}/locations/flights/jobs/bronze_incremental/playground")
    page.get_by_role("button", name="Launch Run").wait_for()
    shoot(page, "launchpad")
    page.goto(f"{url}/assets/bronze/flights?view=overview")
    page.get_by_text("Row count").wait_for()
    shoot(page, "asset")


def take_bad_rows(page: Page, url: str) -> None:
    """Take the picture of a check that warns."""
    page.set_viewport_size({"width": 1640, "height": 900})
    page.goto(f"{url}/assets/bronze/orders?view=checks")
    page.get_by_text("n/a", exact=True).first.wait_for()
    skip_dialog(page)
    # the folder is this machine's; a reader's project is somewhere else
    page.evaluate(
        """() => document.querySelectorAll("td").forEach(cell => {
            if (cell.textContent.endsWith("/orders.csv")) cell.textContent = "/shop/orders.csv";
        })"""
    )
    shoot(page, "bad-rows", clip={"x": 240, "y": 0, "width": 1400, "height": 860})


def take_large(page: Page, url: str) -> None:
    """Take the picture of a thousand assets, one group of them unfolded."""
    page.goto(f"{url}/asset-groups?expanded=global%40global%3Abronze")
    skip_dialog(page)
    page.get_by_text("table_250", exact=True).filter(visible=True).first.wait_for()
    time.sleep(5)  # noqa: TID251 - the layout of a large graph takes its time
    shoot(page, "large-graph")


def make_bad_rows(folder: Path) -> Path:
    """Load the example of the page on bad rows; return its workspace file."""
    text = (Path(__file__).parent / "bad-rows.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(yaml|csv)\n(.*?)```", text, re.DOTALL))
    (folder / "orders.csv").write_text(blocks["csv"])
    (folder / "orders.yaml").write_text(
        "connections:\n"
        "  - {name: files, format: csv, configure: {base_path: .}}\n"
        "  - {name: lake, format: delta, configure: {base_path: lake}}\n" + blocks["yaml"]
    )
    (folder / "definitions.py").write_text(
        "from pathlib import Path\n"
        "from datacoolie_dagster import build_datacoolie_definitions\n"
        "HERE = Path(__file__).parent\n"
        "defs = build_datacoolie_definitions(HERE / 'orders.yaml', project_dir=HERE)\n"
    )
    workspace = folder / "workspace.yaml"
    workspace.write_text("load_from:\n  - python_file: definitions.py\n")
    ui.prepare_home(folder / "home")
    command = ["job", "execute", "-f", "definitions.py", "-j", "bronze"]
    environment = {**os.environ, "DAGSTER_HOME": str(folder / "home")}
    subprocess.run(
        [sys.executable, "-m", "dagster", *command], cwd=folder, env=environment, check=True
    )
    return workspace


def photograph(
    take_pictures: Callable[[Page, str], None],
    workspace: Path = ui.WORKSPACE,
    home: Path = ui.HOME,
) -> None:
    """Serve a workspace, and take pictures of it."""
    port = free_port()
    processes = ui.start(port, workspace, home)
    try:
        if not ui.wait_until_up(processes, port):
            sys.exit(f"Dagster did not start; see {home / ui.LOG.name}")
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(60_000)
            take_pictures(page, f"http://127.0.0.1:{port}")
            browser.close()
    finally:
        ui.stop(processes)


def main() -> int:
    """Take the pictures of the example as its demo left it, and of a load with bad rows."""
    wanted = set(sys.argv[1:]) or {"example", "bad-rows", "large"}
    if "example" in wanted:
        ui.prepare_home()
        photograph(take)
    if "bad-rows" in wanted:
        with TemporaryDirectory() as folder:
            photograph(take_bad_rows, make_bad_rows(Path(folder)), Path(folder) / "home")
    if "large" in wanted:
        with TemporaryDirectory() as folder:
            make_large(Path(folder))
            photograph(take_large, Path(folder) / "workspace.yaml", Path(folder) / "home")
    return 0


if __name__ == "__main__":
    sys.exit(main())
