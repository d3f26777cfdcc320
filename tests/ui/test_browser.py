"""The UI as a user sees it: a real webserver and daemon, a real browser, the mouse."""

from __future__ import annotations

import re
import urllib.parse
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.ui.conftest import Server

pytestmark = [pytest.mark.ui, pytest.mark.xdist_group("ui"), pytest.mark.timeout(900)]

STAGES = ("bronze", "silver", "gold")
# Two stages have a table of planes and one of flights.
NODES = {
    "airlines": 1,
    "airports": 1,
    "planes": 2,
    "weather": 1,
    "flights": 2,
    "daily_delays": 1,
    "delay_by_weather": 1,
}
RUN_SECONDS = 180


def test_the_graph_shows_the_assets_of_all_three_stages(page: Page, server: Server) -> None:
    unfolded = ",".join(f"global@global:{stage}" for stage in STAGES)
    page.goto(f"{server.url}/asset-groups?expanded={urllib.parse.quote(unfolded)}")
    for name, count in NODES.items():
        node = page.get_by_text(name, exact=True).filter(visible=True)
        expect(node).to_have_count(count)


def test_the_asset_page_shows_row_count_and_watermark(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/assets/bronze/flights?view=overview")
    expect(page.get_by_text("336,776").first).to_be_visible()
    expect(page.get_by_text("datacoolie/watermark_value").first).to_be_visible()
    expect(page.get_by_text("All flights that left New York in 2013").first).to_be_visible()


def test_the_partition_page_shows_twelve_green_months(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/assets/bronze/flights?view=partitions")
    expect(page.get_by_text("Materialized (12)")).to_be_visible()
    expect(page.get_by_text("Failed (0)")).to_be_visible()
    page.get_by_text("2013-01", exact=True).first.click()
    expect(page.get_by_text("27004").first).to_be_visible()


def test_the_incremental_job_is_started_by_mouse(page: Page, server: Server) -> None:
    page.get_by_role("link", name="Jobs").first.click()
    page.get_by_role("link", name="bronze_incremental").first.click()
    page.get_by_role("tab", name="Launchpad").click()
    page.get_by_role("button", name="Launch Run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    run_id = re.search(r"/runs/([0-9a-f-]{36})", page.url)
    assert run_id is not None
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=RUN_SECONDS * 1000)
    query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status jobName } } }"
    found = server.query(query, id=run_id[1])["runOrError"]
    assert found == {"status": "SUCCESS", "jobName": "bronze_incremental"}


def test_no_asset_is_shown_as_out_of_date_for_inputs_that_it_saw(server: Server) -> None:
    query = "{ assetNodes { assetKey { path } staleCauses { category reason } } }"
    nodes = server.query(query)["assetNodes"]
    unseen = [
        ("/".join(node["assetKey"]["path"]), cause["reason"])
        for node in nodes
        for cause in node["staleCauses"]
        if cause["category"] == "DEPENDENCIES"
    ]
    assert len(nodes) == 14
    assert unseen == []
