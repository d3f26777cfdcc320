"""A clock that jumps by years between runs, backwards and forwards, loses and doubles nothing."""

from __future__ import annotations

import os

import polars as pl
import pytest

from tests.faults.cases import Case
from tests.faults.kinds import LOADS, PLACES, document, pairs
from tests.faults.proof import RUN, lab_before, next_change, untouched

ALL = os.environ.get("FAULTS") == "all"
YEAR = 365 * 24 * 3600
JUMPS = [(0, -9), (9, -9), (-9, 9)]
"""Years off, for the struck run and for the one after it."""
FEW = [
    ("append, ties", "Delta"),
    ("append", "CSV"),
    ("append, look-back", "Delta, partitioned"),
    ("overwrite", "Parquet"),
    ("merge_upsert", "Delta"),
    ("merge_overwrite, replace_by_watermark", "Delta"),
    ("scd2", "Delta"),
]


def steady() -> list[tuple[str, str]]:
    """Loads whose rows hold no instant of a load."""
    return [one for one in pairs() if not LOADS[one[0]].from_load] if ALL else FEW


@pytest.mark.parametrize(("load", "place"), steady())
@pytest.mark.parametrize("years", JUMPS if ALL else JUMPS[:1])
def test_a_clock_that_jumps_changes_no_row(zygote, shared, tmp_path, load, place, years):
    case = Case(load, place, "next load", "", 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    lab = lab_before(zygote, right, tmp_path / "project", case)
    lab.run(RUN, clock=years[0] * YEAR)
    assert lab.content() == right.after
    next_change(kind, case.run, lab.source)
    lab.run(RUN, clock=years[1] * YEAR)
    assert lab.content() == right.end
    assert lab.record() == right.record
    ((result,),) = (one["dataflows"] for one in lab.run(RUN, clock=-years[1] * YEAR))
    reads_again = load in ("overwrite", "merge_overwrite, replace_by_watermark")
    assert result["status"] == ("succeeded" if reads_again else "skipped")
    assert lab.content() == right.end


@pytest.mark.parametrize("years", JUMPS if ALL else JUMPS[1:2])
@pytest.mark.parametrize("point", ["staged", "committing", "published", "committed"])
def test_a_clock_that_jumps_after_a_kill_changes_no_row(zygote, shared, tmp_path, point, years):
    """Files of a killed run are told by locks and names, not by their age."""
    place = "CSV" if point == "published" else "Delta"
    case = Case("append", place, "next load", point, 1, "new run", "file")
    right = untouched(zygote, shared, case)
    lab = lab_before(zygote, right, tmp_path / "project", case)
    lab.kill(RUN, point, clock=years[0] * YEAR)
    lab.run(RUN, clock=years[1] * YEAR)
    assert lab.content() == right.after
    next_change(LOADS["append"], case.run, lab.source)
    lab.run()
    assert lab.content() == right.end
    assert lab.record() == right.record


@pytest.mark.parametrize("years", JUMPS)
def test_history_that_is_valid_from_the_load_stays_in_order(lab, years):
    """``scd2_close_missing``: the instants are those of the clock, the intervals stay intervals."""
    kind = LOADS["scd2, close_missing"]
    lab.write(document(kind, PLACES["Delta"]))
    for change, off in zip(kind.changes, (0, *years), strict=True):
        change(lab.source)
        child = lab.start(RUN, clock=off * YEAR)
        assert child.wait() == 0, child.results
    frame = lab.rows().sort("id", "__valid_from")
    ended = frame.filter(pl.col("__valid_to").is_not_null())
    assert (ended["__valid_from"] <= ended["__valid_to"]).all()
    current = frame.filter("__is_current").select("id", "ts", "g", "v").sort("id")
    source = pl.read_parquet(lab.source / "*.parquet").sort("id")
    assert current.equals(source), (current, source)
    overlap = frame.with_columns(after=pl.col("__valid_from").shift(-1).over("id")).filter(
        pl.col("after") < pl.col("__valid_to")
    )
    assert overlap.is_empty()
