"""Takes the pictures of docs/images from the real UI, over the example as the demo left it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import sys
import time
import urllib.parse
from pathlib import Path
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
    from playwright.sync_api import Page

sys.path.insert(0, str(ROOT / "examples" / "flights"))
import ui  # noqa: E402


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


def main() -> int:
    """Serve the example, and take the pictures."""
    port = free_port()
    ui.prepare_home()
    processes = ui.start(port)
    try:
        if not ui.wait_until_up(processes, port):
            print(f"Dagster did not start; see {ui.LOG}")
            return 1
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(60_000)
            take(page, f"http://127.0.0.1:{port}")
            browser.close()
    finally:
        ui.stop(processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
