"""Errors, not kills: the process goes on, tries again or clears up, and must clear up nothing else."""

from __future__ import annotations

import os

import pytest

from tests.faults.cases import Case, points_of
from tests.faults.kinds import LOADS, PLACES, STORES, pairs
from tests.faults.proof import lab_before, left_over, next_change, step_of, untouched

ALL = os.environ.get("FAULTS") == "all"
SEAMS = (
    *("rows-flowing", "file-opened", "next-file-opened", "files-written", "columns-added"),
    *("publishing", "entry-written", "state-written", "state-synced", "state-renamed"),
    "state-sent",
)
"""Points at which the system or a store can answer with an error."""


def turns() -> list[tuple[Case, int]]:
    """Each seam of each kind of load, given up at once and tried again."""
    found = [
        (Case(load, place, run, point, 1, "new run", store), retries)
        for load, place in pairs()
        if place in ("Delta", "Delta, change feed", "CSV")
        for run in ("next load", "replay", "full refresh")
        if run != "replay" or LOADS[load].replays
        for store in STORES
        for point in points_of(load, place, run, store)
        if point in SEAMS and (store == "file" or point == "state-sent")
        for retries in (0, 2)
    ]
    return found if ALL else found[:: len(found) // 12]


@pytest.mark.parametrize(("case", "retries"), turns(), ids=str)
def test_an_error_anywhere_is_told_or_made_good(zygote, shared, tmp_path, case, retries):
    """Also when the commit took place, and only its answer was lost."""
    kind, right = LOADS[case.load], untouched(zygote, shared, case)
    lab = lab_before(zygote, right, tmp_path / "project", case)
    step = {**step_of(case.run, "the-run"), "config": {"retry_count": retries}}
    child = lab.start(step, fault={"point": case.point, "action": "error"})
    child.wait()
    (result,) = child.results[0]["dataflows"]
    assert lab.content(kind.from_load) in right.stages
    if retries or result["status"] == "succeeded":
        assert result["status"] == "succeeded", result["error"]
        assert lab.content(kind.from_load) == right.after
    else:
        assert result["error"]["code"] != "internal_error", result["error"]
    lab.run(step_of(case.run))
    assert lab.content(kind.from_load) == right.after
    next_change(kind, case.run, lab.source)
    lab.run()
    assert lab.content(kind.from_load) == right.end
    assert lab.record() == right.record
    left = left_over(lab)
    assert not left["temporary"]
    # what fails in the process clears up behind itself
    assert PLACES[case.place].features or not left["files"]
