"""Group steps in the UI: selections, failures, repeats and interrupts do what a user expects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from playwright.sync_api import expect

from tests.ui.groups_project import STOP, Groups, served

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.ui, pytest.mark.xdist_group("ui"), pytest.mark.timeout(900)]

RAW = [f"raw/t{order}{index}" for order in range(2) for index in range(3)]
CLEAN = [f"clean/c{index}" for index in range(3)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    with served(tmp_path_factory.mktemp("groups")) as found:
        yield found


@pytest.fixture
def groups(project: Groups) -> Groups:
    project.forget()
    return project


def test_a_failure_is_shown_and_repeated_alone(groups: Groups, browser_pages: Any) -> None:
    groups.mark("break", "t01")
    first = groups.launch()
    assert groups.wait(first) == "FAILURE"
    good = [one for one in [*RAW, *CLEAN] if one not in ("raw/t01", "clean/c1")]
    assert groups.recorded(first) == sorted(good)

    page = browser_pages()
    page.set_default_timeout(60_000)
    page.add_locator_handler(page.get_by_role("button", name="Skip"), lambda button: button.click())
    page.goto(f"{groups.server.url}/runs/{first}")
    expect(page.get_by_text(re.compile("1 of 6 dataflows failed: raw/t01")).first).to_be_visible()
    page.goto(f"{groups.server.url}/assets/raw/t01?view=events")
    expect(page.get_by_text("t01 is broken").first).to_be_visible()
    page.close()

    groups.mark("break", "t01", on=False)
    groups.forget()
    second = groups.again(first, "FROM_FAILURE")
    assert groups.wait(second) == "SUCCESS"
    assert groups.recorded(second) == ["clean/c1", "raw/t01"]
    assert groups.asked == ["t01"]


def test_a_repeat_from_the_failed_asset_runs_what_depends_on_it(groups: Groups) -> None:
    groups.mark("break", "t02")
    first = groups.launch()
    assert groups.wait(first) == "FAILURE"
    groups.mark("break", "t02", on=False)
    second = groups.again(first, "FROM_ASSET_FAILURE")
    assert groups.wait(second) == "SUCCESS"
    assert groups.recorded(second) == ["clean/c2", "raw/t02"]


def test_a_selection_of_a_group_loads_that_alone_and_in_order(groups: Groups) -> None:
    run = groups.launch("raw/t12", "raw/t00", "clean/c0")
    assert groups.wait(run) == "SUCCESS"
    assert groups.recorded(run) == ["clean/c0", "raw/t00", "raw/t12"]
    assert groups.asked == ["t00", "t12"]


def test_a_run_that_is_terminated_keeps_what_was_loaded_and_can_be_resumed(groups: Groups) -> None:
    groups.mark("hold", "t01")
    run = groups.launch()
    groups.wait_until_asked("t01")
    while not {"t00", "t02"} <= set(groups.asked):
        pass
    groups.server.query(STOP, id=run)
    groups.mark("hold", "t01", on=False)
    assert groups.wait(run) == "CANCELED"
    kept = groups.recorded(run)
    assert set(kept) <= {"raw/t00", "raw/t01", "raw/t02"}
    again = groups.again(run, "FROM_FAILURE")
    assert groups.wait(again) == "SUCCESS"
    assert sorted({*kept, *groups.recorded(again)}) == sorted([*RAW, *CLEAN])
    for name in ("t00", "t01", "t02"):
        assert pl.read_delta(str(groups.folder / "lake/raw" / name)).height == 2
