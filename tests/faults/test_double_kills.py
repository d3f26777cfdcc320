"""The repeat of a killed run is killed as well, elsewhere; the third one makes all good."""

from __future__ import annotations

import os
import random

import pytest

from tests.faults.cases import Case, points_of
from tests.faults.kinds import STORES
from tests.faults.proof import prove

RUNS = [
    ("append", "Delta", "first load"),
    ("append, ties", "Delta", "next load"),
    ("append", "CSV", "next load"),
    ("append, look-back", "Parquet", "replay"),
    ("overwrite", "JSON lines", "full refresh"),
    ("merge_upsert", "Delta, partitioned", "next load"),
    ("merge_overwrite, replace_by_watermark", "Delta", "replay"),
    ("scd2", "Delta", "replay"),
    ("append", "JSON", "backfill"),
    ("merge_upsert", "Delta", "backfill"),
    ("scd2, close_missing", "Delta", "next load"),
]
RECOVERY = ("recovering", "recovered")
"""Points of the run that adopts what the destination knows and the store does not."""


def turns() -> list[tuple[str, str, str, str, str, str, str]]:
    """Each run with each first point; the second one is drawn, the same each time."""
    draw = random.Random(4)
    every = os.environ.get("FAULTS") == "all"
    found = []
    for load, place, run in RUNS:
        store = draw.choice(STORES)
        points = points_of(load, place, run, store)
        for first in points:
            found += [
                (load, place, run, store, first, second, draw.choice("on"))
                for second in draw.sample([*points, *RECOVERY], 3)
            ]
        found.append((load, place, run, store, "committed", "recovering", "n"))
        found.append((load, place, run, store, "saving", "recovered", "n"))
    return found if every else draw.sample(found, 16)


@pytest.mark.parametrize("turn", turns(), ids=lambda turn: "-".join(turn).replace(" ", "_"))
def test_two_kills_in_a_row_lose_and_double_nothing(zygote, shared, tmp_path, turn):
    load, place, run, store, first, second, repair = turn
    case = Case(load, place, run, first, 1, "same run id" if repair == "o" else "new run", store)

    def strike(lab, step):
        lab.kill(step, first)
        again = step if repair == "o" else {**step, "run_id": "the-second-run"}
        lab.strike(again, second)

    prove(zygote, shared, tmp_path / "project", case, strike)


@pytest.mark.parametrize("place", ["Delta", "CSV"])
def test_a_run_that_is_killed_while_it_recovers_recovers_again(zygote, shared, tmp_path, place):
    case = Case("append", place, "next load", "committed", 1, "new run", "file")

    def strike(lab, step):
        lab.kill(step, "committed")
        for point in ("recovering", "recovered", "recovering"):
            struck = lab.strike({"do": "run"}, point)
            # once the state is saved there is nothing to recover
            assert struck == (point != "recovering" or lab.sequences()[0] != lab.sequences()[1])
            if point == "recovered":
                assert lab.sequences()[0] == lab.sequences()[1]

    prove(zygote, shared, tmp_path / "project", case, strike)
