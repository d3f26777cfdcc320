"""Ctrl-C and a polite request to end, at each phase of a run from the command line."""

from __future__ import annotations

import os
import signal
from time import sleep

import pytest

from tests.faults.cases import Case, points_of
from tests.faults.kinds import LOADS
from tests.faults.proof import lab_before, left_over, next_change, untouched

ALL = os.environ.get("FAULTS") == "all"
KINDS = [
    ("append", "Delta"),
    ("append", "CSV"),
    ("overwrite", "Parquet"),
    ("merge_upsert", "Delta"),
    ("scd2", "Delta"),
]
INTERRUPTED = 130
DRAINED = {"committing", "claimed", "published", "committed", "saving", "saved"}
"""Where no query runs any more, and the load is ended before the process ends."""


def turns() -> list[tuple[str, str, str, str]]:
    found = [
        (load, place, point, name)
        for load, place in KINDS
        for point in points_of(load, place, "next load")
        if point not in ("dataflow-finished", "run-finished")  # the command line is another
        for name in ("SIGINT", "SIGTERM")
    ]
    return found if ALL else found[::17]


@pytest.mark.parametrize(("load", "place", "point", "name"), turns())
def test_a_signal_at_any_point_loses_and_doubles_nothing(
    zygote, shared, tmp_path, load, place, point, name
):
    """Ctrl-C drains what runs, but polars ends a query of its own at once; a request to end is
    taken at once, like a kill.
    """
    case = Case(load, place, "next load", point, 1, "new run", "file")
    kind, right = LOADS[load], untouched(zygote, shared, case)
    lab = lab_before(zygote, right, tmp_path / "project", case)
    child = lab.start(command(lab), fault={"point": point, "action": name})
    status = child.wait()
    ends = {"SIGINT": [INTERRUPTED], "SIGTERM": [-signal.SIGTERM, 128 + signal.SIGTERM]}
    assert status in ends[name], child.log
    assert lab.content(kind.from_load) in (right.stages[0], right.after)
    if name == "SIGINT":
        assert not lab.root.joinpath("lake/o/_datacoolie/staging").exists()
        assert DRAINED.isdisjoint({point}) or lab.content(kind.from_load) == right.after
    lab.run()
    assert lab.content(kind.from_load) == right.after
    next_change(kind, case.run, lab.source)
    lab.run()
    assert lab.content(kind.from_load) == right.end
    assert lab.record() == right.record
    left_over(lab)


def command(lab) -> dict[str, object]:
    where = ["--metadata", str(lab.metadata), "--project-dir", str(lab.root)]
    return {"do": "cli", "arguments": ["run", *where]}


@pytest.mark.parametrize("place", ["Delta", "CSV"])
def test_an_impatient_ctrl_c_does_no_harm(zygote, shared, tmp_path, place):
    case = Case("append", place, "next load", "staged", 1, "new run", "file")
    right = untouched(zygote, shared, case)
    lab = lab_before(zygote, right, tmp_path / "project", case)
    child = lab.pause(command(lab), "staged")
    for _ in range(4):
        child.signal(signal.SIGINT)
        sleep(0.15)
    child.go_on()
    assert child.wait() in (INTERRUPTED, -signal.SIGINT), child.log
    assert lab.content() in (right.stages[0], right.after)
    lab.run()
    assert lab.content() == right.after
    assert lab.sequences()[0] == lab.sequences()[1]


def test_ctrl_c_in_a_replay_keeps_the_chunks_that_are_done(zygote, shared, tmp_path):
    case = Case("append", "Delta", "replay", "committing", 1, "new run", "file")
    right = untouched(zygote, shared, case)
    lab = lab_before(zygote, right, tmp_path / "project", case)
    child = lab.start(
        {
            "do": "cli",
            "arguments": [
                *("replay", "--metadata", str(lab.metadata), "--project-dir", str(lab.root)),
                *("--start", "2025-03-04", "--end", "2025-03-10", "--every", "3d"),
            ],
        },
        fault={"point": "committing", "action": "SIGINT"},
    )
    assert child.wait() == INTERRUPTED, child.log
    assert lab.content() == right.stages[1]
    lab.run({"do": "replay", "start": "2025-03-04", "end": "2025-03-10", "days": 3, "column": "ts"})
    assert lab.content() == right.after
