"""A run stands still at a point while another kind of run of its dataflow goes from start to end."""

from __future__ import annotations

import os
import re

import pytest

from tests.faults.cases import Case, points_of
from tests.faults.kinds import LOADS
from tests.faults.proof import RUN, STEPS, next_change, step_of, untouched
from tests.faults.test_beside import pair

ALL = os.environ.get("FAULTS") == "all"
POINTS = (
    *("reading", "next-file-opened", "staged", "committing", "claimed", "published"),
    *("entry-written", "committed", "saving", "saved"),
)
KINDS = [
    ("append", "Delta"),
    ("append, ties", "CSV"),
    ("append, look-back", "Parquet"),
    ("overwrite", "JSON"),
    ("merge_upsert", "Delta"),
    ("merge_overwrite, replace_by_watermark", "Delta, partitioned"),
    ("scd2", "Delta"),
]
RIVALS = {
    "next load": ("same run id", "replay", "full refresh", "watermark set", "watermark reset"),
    "replay": ("same run id", "next load", "watermark reset"),
    "full refresh": ("same run id", "next load", "watermark set"),
}
"""Run that stands still → what the other machine does meanwhile."""


def turns() -> list[tuple[str, str, str, str, str]]:
    found = [
        (load, place, run, point, rival)
        for load, place in KINDS
        for run, rivals in RIVALS.items()
        for rival in rivals
        if LOADS[load].watermark or not (run == "replay" or rival in ("replay", "watermark set"))
        for point in points_of(load, place, run)
        if point in POINTS
    ]
    staged = ("append, ties", "CSV", "next load", "staged", "full refresh")
    return found if ALL else [*found[:: len(found) // 9], staged]


@pytest.mark.parametrize(("load", "place", "run", "point", "rival"), turns())
def test_another_kind_of_run_meanwhile_loses_and_doubles_nothing(
    zygote, shared, tmp_path, load, place, run, point, rival
):
    case = Case(load, place, run, point, 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    two = pair(zygote, right, tmp_path)
    slow = two.one.pause(step_of(run, "the-run"), point)
    other = step_of(run, "the-run") if rival == "same run id" else STEPS.get(rival, RUN)
    two.other.run(other)
    slow.go_on()
    assert slow.wait() == 0, f"{slow.log}{slow.results}"
    two.one.run(step_of(run))
    two.one.run()
    assert _rows(two.one.content(kind.from_load)) == _rows(right.after)
    next_change(kind, run, two.one.source)
    two.one.run()
    assert _rows(two.one.content(kind.from_load)) == _rows(right.end)
    state, table = two.one.sequences()
    assert state == table


def _rows(content: list[str]) -> list[str]:
    """Return rows without the file of the source: a reset reads old ones from other files."""
    return sorted(re.sub(r"'__file_name': '[^']*', ", "", row) for row in content)
