"""A kill -9 before any single call to the system that changes a file loses and doubles nothing.

No list of instants is complete, so this asks the system for them: a tracer stops a run at every
open, write, sync, link, rename and delete below the project's folder, and kills it there.
"""

from __future__ import annotations

import os

import pytest

from tests.faults import tracer
from tests.faults.cases import Case
from tests.faults.kinds import LOADS, PLACES, REPAIRS, STORES
from tests.faults.proof import lab_before, prove, step_of, untouched

ALL = os.environ.get("FAULTS") == "all"
FEW = 9
"""Instants of each run in a sample."""
SAMPLE = [
    ("append", "Delta", "first load"),
    ("append, ties", "CSV", "next load"),
    ("overwrite", "Parquet, partitioned", "next load"),
    ("merge_upsert", "Delta, partitioned", "next load"),
    ("merge_overwrite, replace_by_watermark", "Delta", "replay"),
    ("scd2", "Delta", "next load"),
    ("append", "Delta", "backfill"),
    ("append", "Delta", "watermark reset"),
    ("append", "CSV", "watermark set"),
    ("merge_upsert", "Delta", "maintenance"),
]
_WITHOUT_EFFECT = ("fsync", "fdatasync", "flock")


def traced_runs() -> list[tuple[str, str, str, str]]:
    """Every kind of load and of destination in a next load, and the other runs for some."""
    runs = SAMPLE if not ALL else _all_runs()
    return [(*run, STORES[turn % len(STORES)]) for turn, run in enumerate(runs)]


def _all_runs() -> list[tuple[str, str, str]]:
    plain = [
        (load, place, "next load")
        for load, kind in LOADS.items()
        for place, where in PLACES.items()
        if (kind.flat or not where.flat) and (not where.flat or "," not in load)
    ]
    others = [
        (load, place, run)
        for run in ("first load", "replay", "backfill", "full refresh")
        for load, place in (
            *(("append", one) for one in ("Delta", "Parquet, partitioned", "JSON")),
            *(("overwrite", one) for one in ("Delta, partitioned", "CSV")),
            ("merge_upsert", "Delta"),
            ("merge_overwrite", "Delta, partitioned"),
            ("scd2", "Delta"),
        )
    ]
    commands = [
        (load, place, run)
        for load in ("append", "merge_upsert", "scd2")
        for place in (
            "Delta",
            "Delta, partitioned",
            *(("Parquet", "CSV") if load == "append" else ()),
        )
        for run in ("watermark set", "watermark reset", "maintenance")
        if place.startswith("Delta") or run != "maintenance"
    ]
    return list(dict.fromkeys([*SAMPLE, *plain, *others, *commands]))


def instants(calls: list[str]) -> list[int]:
    """Return the calls before which to kill: those where the disk is not as before the last one."""
    apart = [at for at in range(len(calls)) if not calls[at - 1].startswith(_WITHOUT_EFFECT)]
    if ALL or len(apart) <= FEW:
        return apart
    telling = [at for at in apart if calls[at - 1].startswith(("rename", "link", "unlink"))]
    rest = [at for at in apart if at not in telling]
    chosen = [*telling[: FEW // 3], *telling[-FEW // 3 :], *rest[:: len(rest) // (FEW // 3)]]
    return sorted(set(chosen))


@pytest.fixture(scope="module")
def tracing():
    reason = tracer.available()
    if reason:
        pytest.skip(reason)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("load", "place", "run", "store"), traced_runs())
def test_no_instant_of_a_run_is_a_bad_one_to_die(
    tracing, zygote, shared, tmp_path, load, place, run, store, record_property
):
    case = Case(load, place, run, "any call", 0, REPAIRS[0], store)
    right = untouched(zygote, shared, case)
    whole = lab_before(zygote, right, tmp_path / "whole", case)
    calls = whole.trace(step_of(run))
    assert calls
    struck = instants(calls)
    for turn, at in enumerate(struck):
        case = Case(load, place, run, calls[at], at, REPAIRS[turn % len(REPAIRS)], store)
        try:
            prove(
                zygote,
                shared,
                tmp_path / str(at),
                case,
                lambda lab, step, at=at: lab.trace(step, at),
            )
        except AssertionError as error:
            error.add_note(f"killed before call {at}: {calls[at]} (after {calls[at - 1]})")
            raise
    record_property("instants", len(struck))
