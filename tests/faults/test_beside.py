"""A run that stands still at a point, while another process does something to the same table."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pytest
from deltalake import DeltaTable

from tests.faults.cases import Case, points_of
from tests.faults.harness import Lab
from tests.faults.kinds import LOADS
from tests.faults.proof import RUN, left_over, next_change, step_of, untouched

ALL = os.environ.get("FAULTS") == "all"
RIVALS = [
    ("append", "Delta"),
    ("append, ties", "CSV"),
    ("overwrite", "Parquet"),
    ("merge_upsert", "Delta"),
    ("merge_overwrite, replace_by_watermark", "Delta, partitioned"),
    ("scd2", "Delta"),
]
ENDS = ("goes on", "is killed")


@dataclass
class Pair:
    """Two machines with one destination and one state, so that no lock keeps them apart."""

    one: Lab
    other: Lab


def pair(zygote, right, root) -> Pair:
    from shutil import copytree

    copytree(right.before, root / "one")
    (root / "other").mkdir()
    for name in ("lake", "in", "metadata.json"):
        (root / "one" / name).exists() or (root / "one" / name).mkdir()
        (root / "other" / name).symlink_to(root / "one" / name)
    state = str(root / "one" / ".datacoolie" / "state")
    return Pair(Lab(zygote, root / "one", state), Lab(zygote, root / "other", state))


def sampled(turns: list) -> list:
    return turns if ALL else turns[::15]


@pytest.mark.parametrize(
    ("load", "place", "point", "end"),
    sampled(
        [
            (load, place, point, end)
            for load, place in RIVALS
            for point in points_of(load, place, "next load")
            for end in ENDS
        ]
    ),
)
def test_two_machines_that_run_one_dataflow_lose_and_double_nothing(
    zygote, shared, tmp_path, load, place, point, end
):
    """One stands still at a point while the other one runs from start to end."""
    case = Case(load, place, "next load", point, 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    two = pair(zygote, right, tmp_path)
    slow = two.one.pause(RUN, point)
    two.other.run()
    assert two.other.content(kind.from_load) == right.after
    if end == "goes on":
        slow.go_on()
        assert slow.wait() == 0, slow.log
    else:
        slow.signal(signal.SIGKILL)
        slow.wait()
    assert two.one.content(kind.from_load) == right.after
    next_change(kind, case.run, two.one.source)
    two.one.run()
    assert two.one.content(kind.from_load) == right.end
    assert two.one.record() == right.record
    left_over(two.one)


@pytest.mark.parametrize("place", ["Delta", "CSV"])
@pytest.mark.parametrize("point", ["preparing", "staged", "committed", "saved"])
def test_a_second_run_on_one_machine_is_told_that_the_first_one_runs(
    zygote, shared, tmp_path, place, point
):
    case = Case("append", place, "next load", point, 1, "new run", "file")
    right = untouched(zygote, shared, case)
    lab = Lab(zygote, right.before).copy(tmp_path / "project")
    slow = lab.pause(RUN, point)
    ((result,),) = (one["dataflows"] for one in lab.run())
    assert result["status"] == "skipped"
    assert "already running" in result["reason"]
    assert str(slow.pid) in result["reason"]
    slow.go_on()
    assert slow.wait() == 0
    assert lab.content() == right.after


def test_a_killed_run_leaves_no_lock_behind(zygote, shared, tmp_path):
    case = Case("append", "Delta", "next load", "staged", 1, "new run", "file")
    right = untouched(zygote, shared, case)
    lab = Lab(zygote, right.before).copy(tmp_path / "project")
    lab.kill(RUN, "staged")
    assert (lab.root / ".datacoolie/locks/f.owner").read_text()
    ((result,),) = (one["dataflows"] for one in lab.run())
    assert result["status"] == "succeeded"


UPKEEP = ["append", "merge_upsert", "merge_overwrite", "scd2", "overwrite"]
BEFORE_COMMIT = ["reading", "next-file-opened", "staged", "committing"]


@pytest.mark.parametrize("load", UPKEEP)
@pytest.mark.parametrize("point", BEFORE_COMMIT if ALL else ["committing"])
@pytest.mark.parametrize("how", ["ours", "optimize", "vacuum, lite"])
def test_maintenance_beside_a_load_takes_nothing_from_it(
    zygote, shared, tmp_path, load, point, how
):
    case = Case(load, "Delta", "next load", point, 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    two = pair(zygote, right, tmp_path)
    slow = two.one.pause(RUN, point)
    _maintain(two.other, how)
    assert two.one.content(kind.from_load) == right.stages[0]
    slow.go_on()
    assert slow.wait() == 0, f"{slow.log}\n{slow.results}"
    assert two.one.content(kind.from_load) == right.after
    next_change(kind, case.run, two.one.source)
    two.one.run()
    assert two.one.content(kind.from_load) == right.end


def _maintain(lab: Lab, how: str) -> None:
    if how == "ours":
        lab.run({"do": "maintain"})
    elif how == "optimize":
        DeltaTable(str(lab.folder)).optimize.compact()
    else:
        DeltaTable(str(lab.folder)).vacuum(dry_run=False)


@pytest.mark.parametrize("load", [*UPKEEP, "append, ties"])
@pytest.mark.parametrize("point", ["file-opened", *BEFORE_COMMIT] if ALL else ["committing"])
def test_a_vacuum_without_retention_never_breaks_the_table(zygote, shared, tmp_path, load, point):
    """It takes the files of loads that run: nobody should do that, somebody will."""
    case = Case(load, "Delta", "next load", point, 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    two = pair(zygote, right, tmp_path)
    slow = two.one.pause(RUN, point)
    DeltaTable(str(two.one.folder)).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
    )
    slow.go_on()
    slow.wait()
    ((result,),) = (one["dataflows"] for one in slow.results)
    if result["status"] == "failed":
        assert result["error"]["code"] != "internal_error", result["error"]
        assert two.one.content(kind.from_load) == right.stages[0]
        two.one.run()
    assert two.one.content(kind.from_load) == right.after
    next_change(kind, case.run, two.one.source)
    two.one.run()
    assert two.one.content(kind.from_load) == right.end


@pytest.mark.parametrize("load", UPKEEP if ALL else UPKEEP[:2])
@pytest.mark.parametrize("point", ["file-opened", "entry-written"])
@pytest.mark.parametrize("end", ENDS)
def test_a_load_beside_maintenance_that_stands_still_is_whole(
    zygote, shared, tmp_path, load, point, end
):
    case = Case(load, "Delta", "next load", point, 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    two = pair(zygote, right, tmp_path)
    upkeep = two.other.pause({"do": "maintain"}, point)
    two.one.run(step_of("next load"))
    assert two.one.content(kind.from_load) == right.after
    if end == "goes on":
        upkeep.go_on()
        assert upkeep.wait() == 0, f"{upkeep.log}\n{upkeep.results}"
    else:
        upkeep.signal(signal.SIGKILL)
        upkeep.wait()
    assert two.one.content(kind.from_load) == right.after
    next_change(kind, case.run, two.one.source)
    two.one.run()
    assert two.one.content(kind.from_load) == right.end
