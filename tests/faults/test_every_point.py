"""A kill -9 at any named point of any kind of run loses no row and doubles no row.

``make faults`` runs every case; a normal test run takes a sample with each point, each kind of
load on each destination, and each kind of run (tests/faults/cases.py).
"""

from __future__ import annotations

import pytest

from tests.faults.cases import Case, all_cases, chosen, points_of
from tests.faults.kinds import STORES
from tests.faults.proof import lab_before, prove, step_of, untouched


@pytest.mark.parametrize("case", chosen(), ids=str)
def test_a_killed_run_that_is_repeated_leaves_what_no_fault_touched(
    zygote, shared, tmp_path, case, record_property
):
    left = prove(zygote, shared, tmp_path / "project", case)
    record_property("left_over", left)


def _runs() -> list[Case]:
    """One case of each run that a test run takes."""
    return list({(c.load, c.place, c.run): c for c in chosen()}.values())


@pytest.mark.parametrize(
    "case", _runs(), ids=lambda c: f"{c.load}-{c.place}-{c.run}".replace(" ", "_")
)
def test_a_run_reaches_the_points_of_the_matrix_and_no_others(zygote, shared, case):
    """So that no case is vacuous and no instant is forgotten."""
    reached = set(untouched(zygote, shared, case).reached)
    assert reached == set(points_of(case.load, case.place, case.run))


def test_a_run_with_its_state_in_sql_reaches_the_points_of_the_matrix(zygote, shared, tmp_path):
    case = Case("append", "Delta", "next load", "saved", 1, "new run", "sql")
    lab = lab_before(zygote, untouched(zygote, shared, case), tmp_path / "project", case)
    child = lab.start(step_of(case.run))
    assert child.wait() == 0, child.log
    assert set(child.reached) == set(points_of(case.load, case.place, case.run, "sql"))


def test_the_sample_has_every_point_and_every_store():
    for name in ("point", "load", "place", "run", "repair", "store"):
        everything = {getattr(case, name) for case in all_cases()}
        assert {getattr(case, name) for case in chosen()} == everything, name
    assert {case.store for case in all_cases()} == set(STORES)
