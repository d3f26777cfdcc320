"""A graph of a thousand assets in a browser: it opens, unfolds, and finds one of them."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.ui.groups_project import served
from tests.ui.large_project import make_large

pytestmark = [pytest.mark.ui, pytest.mark.xdist_group("ui"), pytest.mark.timeout(900)]


def test_a_thousand_assets_stay_usable(browser_pages: Any, tmp_path: Any) -> None:
    with served(tmp_path, make_large) as found:
        page = browser_pages()
        page.set_default_timeout(120_000)
        page.add_locator_handler(
            page.get_by_role("button", name="Skip"), lambda button: button.click()
        )
        url = found.server.url
        page.goto(f"{url}/asset-groups")
        expect(page.get_by_text("Materialize all (1,000)").first).to_be_visible()
        expect(page.get_by_text("500 assets").first).to_be_visible()
        page.goto(f"{url}/asset-groups?expanded=global%40global%3Abronze")
        expect(page.get_by_text("table_250", exact=True).filter(visible=True).first).to_be_visible()
        page.get_by_placeholder("Jump to…").click()
        page.keyboard.type("silver/table_123")
        page.keyboard.press("Enter")
        page.goto(f"{url}/assets/silver/table_123?view=lineage&lineageScope=upstream")
        expect(page.get_by_text("table_123", exact=True).filter(visible=True).first).to_be_visible()
        page.goto(f"{url}/assets/bronze/table_250?view=overview")
        expect(page.get_by_text("and 99 more of that order").first).to_be_visible()
        page.close()
