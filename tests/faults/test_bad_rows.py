"""A kill -9 at any instant of a load with bad rows loses none of them, and doubles none.

Destination and quarantine are two tables and two commits. After the run was repeated each row of
the source is in one of them, as often as the source has it; at the instant of the kill none that
was there is gone.
"""

from __future__ import annotations

import json
import os
import random

import pytest

from tests.faults import tracer
from tests.faults.harness import Lab
from tests.faults.kinds import REPAIRS
from tests.faults.proof import RUN
from tests.faults.quarantine_lab import (
    LAST,
    LOADS,
    NEXT,
    RUNS,
    check_nothing_is_lost,
    content,
    put,
    right,
    step,
)
from tests.faults.test_every_call import instants

ALL = os.environ.get("FAULTS") == "all"
NEW = ("quarantining", "quarantined")
SETTLED = ("settling", "settled")
OTHERS = (
    *("rows-flowing", "files-written", "staged", "committing", "entry-written", "committed"),
    *("claimed", "published", "saving", "saved", "dataflow-finished"),
)
SETTLES = [("overwrite", "next load"), ("overwrite, CSV", "next load")]


def points_of(load: str, run: str) -> list[str]:
    """The points that a run reaches, those of the quarantine first."""
    flat = "Parquet" in load or "CSV" in load
    absent = ("entry-written",) if flat else ("claimed", "published")
    # an scd2 load keeps what it has, also when it reads everything again
    again = run == "replay" or (run == "full refresh" and load != "scd2")
    settles = again or (load, run) in SETTLES
    others = [one for one in OTHERS if one not in absent]
    return [*NEW, *(SETTLED if settles else ()), *others]


def runs() -> list[tuple[str, str]]:
    found = [(load, run) for load in LOADS for run in RUNS]
    return [(load, run) for load, run in found if run != "replay" or "overwrite" not in load]


def cases() -> list[tuple[str, str, str, int, str]]:
    found = [
        (load, run, point, nth, REPAIRS[(index + nth) % 2])
        for load, run in runs()
        for index, point in enumerate(points_of(load, run))
        for nth in ((1, 2) if ALL or point in NEW + SETTLED else (1,))
        if nth == 1 or run == "replay"
    ]
    if ALL:
        return found
    chosen = random.Random(4).sample(found, 22)
    new = [one for one in found if one[2] in NEW + SETTLED]
    return sorted({*chosen, *random.Random(5).sample(new, 22)})


@pytest.mark.parametrize(("load", "run", "point", "nth", "repair"), cases())
def test_a_killed_load_that_is_repeated_keeps_each_row_once(
    zygote, shared, tmp_path, load, run, point, nth, repair
):
    made = right(zygote, shared, load, run)
    lab = Lab(zygote, made.before).copy(tmp_path / "project")
    lab.kill(step(run, "the-run"), point, nth)
    check_nothing_is_lost(lab, made)
    lab.run(step(run, "the-run" if repair == "same run id" else None))
    assert content(lab) == made.contents[-1]
    put(lab, LAST)
    lab.run()
    assert content(lab) == made.end


@pytest.mark.parametrize(("load", "run"), runs())
def test_a_load_with_bad_rows_reaches_the_points_of_the_quarantine(zygote, shared, load, run):
    """So that no case is vacuous."""
    reached = set(right(zygote, shared, load, run).reached)
    wanted = {one for one in points_of(load, run) if one in NEW + SETTLED}
    assert reached & {*NEW, *SETTLED} == wanted
    assert reached >= set(points_of(load, run))


@pytest.mark.parametrize("load", ["append", "merge_upsert", "append, Parquet"])
@pytest.mark.parametrize("point", ["quarantined", "committing", "committed"])
def test_another_run_than_the_one_that_died_keeps_each_row_once(
    zygote, shared, tmp_path, load, point
):
    """A full refresh dies, and a normal load comes: what the first has left is void."""
    made = right(zygote, shared, load, "full refresh")
    calm = Lab(zygote, made.before).copy(tmp_path / "calm")
    lab = Lab(zygote, made.before).copy(tmp_path / "project")
    lab.kill(step("full refresh"), point)
    lab.run()
    if point == "committed":
        assert content(lab) == made.contents[-1]
    else:
        calm.run()
        assert content(lab) == content(calm)
    for one in (lab, calm):
        put(one, NEXT)
        one.run()
        one.run(step("full refresh"))
    assert content(lab) == content(calm)


@pytest.mark.parametrize("load", ["append", "overwrite", "append, Parquet"])
def test_killed_again_and_again_it_ends_as_if_nothing_had_happened(zygote, shared, tmp_path, load):
    made = right(zygote, shared, load, "next load")
    lab = Lab(zygote, made.before).copy(tmp_path / "project")
    drawn = random.Random(load)
    points = [*points_of(load, "next load"), *SETTLED]
    for _ in range(24 if ALL else 6):
        lab.strike(RUN, drawn.choice(points))
        check_nothing_is_lost(lab, made)
    lab.run()
    assert content(lab) == made.contents[-1]
    put(lab, LAST)
    lab.run()
    assert content(lab) == made.end


@pytest.mark.skipif(bool(tracer.available()), reason=str(tracer.available()))
@pytest.mark.parametrize(
    ("load", "run"),
    [("append", "next load"), ("merge_upsert", "replay"), ("overwrite", "next load")],
)
def test_a_kill_before_any_change_of_a_file_keeps_each_row_once(
    zygote, shared, tmp_path, load, run
):
    made = right(zygote, shared, load, run)
    calls = Lab(zygote, made.before).copy(tmp_path / "traced").trace(step(run))
    for at in instants(calls):
        lab = Lab(zygote, made.before).copy(tmp_path / str(at))
        lab.trace(step(run, "the-run"), kill_at=at)
        check_nothing_is_lost(lab, made)
        lab.run(step(run, "the-run" if at % 2 else None))
        assert content(lab) == made.contents[-1], calls[at]


@pytest.mark.parametrize("load", ["append", "merge_upsert", "append, Parquet"])
@pytest.mark.parametrize("point", ["quarantining", "quarantined", "committing"])
def test_a_second_machine_meanwhile_loses_and_doubles_nothing(
    zygote, shared, tmp_path, load, point
):
    """One stands still with its rows in quarantine; the other loads them, and newer ones."""
    made = right(zygote, shared, load, "next load")
    one = Lab(zygote, made.before).copy(tmp_path / "one")
    # the other has its own project folder, and so its own locks; the lake and the source are shared
    other = Lab(zygote, tmp_path / "other", state=str(one.root / ".datacoolie" / "state"))
    for name in ("lake", "in"):
        (other.root / name).symlink_to(one.root / name)
    document = json.loads(one.metadata.read_text())
    for connection in document["connections"]:
        connection["configure"]["base_path"] = str(one.root / connection["configure"]["base_path"])
    one.write(document)
    other.write(document)
    slow = one.pause(RUN, point)
    put(one, LAST)
    other.run()
    slow.go_on()
    assert slow.wait() == 0, f"{slow.log}{slow.results}"
    one.run()
    assert content(one) == made.end
