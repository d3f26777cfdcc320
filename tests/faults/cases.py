"""Every case of the matrix, and the sample of it that every test run takes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import cache
from itertools import cycle
from typing import TypeVar

from tests.faults.kinds import LOADS, PLACES, REPAIRS, RUNS, STORES, pairs

POINTS: dict[str, str] = {
    "preparing": "the dataflow was admitted and locked; nothing is read",
    "reading": "the bounds are known, the source is about to be opened",
    "staging": "the batch is about to be consumed",
    "rows-flowing": "the first rows are read, and on their way into a file",
    "file-opened": "the first file of the destination has its name",
    "next-file-opened": "some files are written, others are not",
    "files-written": "a set of files is written; no one knows them yet",
    "staged": "the batch is consumed",
    "columns-added": "Delta: the table has its new columns, and not their rows",
    "committing": "everything is ready, the commit is about to be tried",
    "claimed": "flat files: the manifest names the files that will come",
    "publishing": "flat files: the first file has its place, others do not",
    "published": "flat files: all files have their places, none of them counts",
    "entry-written": "Delta: the log has the entry, the writer does not know it yet",
    "committed": "the rows are durable, the state store knows nothing",
    "cleaned": "flat files: what was replaced is deleted",
    "saving": "the state is about to be saved",
    "state-written": "state file: the new text is in a temporary file, not synced",
    "state-synced": "state file: the temporary file is durable, not in its place",
    "state-renamed": "state file: in its place; the folder is not synced",
    "state-sent": "state in SQL: the statement was sent, and is not committed",
    "saved": "the state is saved, no one was told",
    "dataflow-finished": "the dataflow's result was told",
    "run-finished": "the run's result was told",
}
"""The instants at which a child is killed, in the order of a run, and what each means."""

ONCE = ("preparing", "file-opened", "next-file-opened", "dataflow-finished", "run-finished")
"""Points that do not come again with each chunk of a replay, or not in the same way."""

_FLAT = ("claimed", "publishing", "published", "cleaned")
_FILE = ("state-written", "state-synced", "state-renamed")


@dataclass(frozen=True)
class Case:
    """A run that is killed, and how it is repeated.

    Attributes:
        load: Key of :data:`LOADS`.
        place: Key of :data:`PLACES`.
        run: Of :data:`RUNS`.
        point: Of :data:`POINTS`.
        nth: Which time of it: a replay reaches most points once a chunk.
        repair: Of :data:`REPAIRS`.
        store: Of :data:`STORES`.
    """

    load: str
    place: str
    run: str
    point: str
    nth: int
    repair: str
    store: str

    @property
    def run_key(self) -> tuple[str, str, str]:
        """What is run, wherever it is struck."""
        return self.load, self.place, self.run

    def __str__(self) -> str:
        return "-".join(str(one) for one in astuple(self)).replace(" ", "_")


def runs_of(load: str, place: str) -> list[str]:
    """Return the kinds of run that a kind of load and a destination have."""
    given = list(RUNS)
    if not LOADS[load].replays:
        given.remove("replay")
    if PLACES[place].features:
        given.remove("first load")  # a table gets its features after its first load
    return given


def points_of(load: str, place: str, run: str, store: str = "file") -> list[str]:
    """Return the points that a run reaches."""
    flat = PLACES[place].flat
    absent = {"entry-written", "columns-added"} if flat else set(_FLAT)
    if not (LOADS[load].grows and run == "next load"):
        absent.add("columns-added")
    if merges_inside_the_library(load, place, run):
        absent |= {"file-opened", "next-file-opened", "files-written"}
    absent |= {"state-sent"} if store == "file" else set(_FILE)
    return [point for point in POINTS if point not in absent]


def merges_inside_the_library(load: str, place: str, run: str) -> bool:
    """Return whether delta-rs itself merges the rows, so that nothing of ours is staged."""
    kind = LOADS[load]
    if not PLACES[place].features or kind.replaces:
        return False
    return run != "full refresh" or kind.load_type == "scd2"


@cache
def all_cases() -> list[Case]:
    """Return every point of every run once; repairs and stores take turns."""
    return list(_turns())


def _turns() -> Iterator[Case]:
    turn = 0
    for load, place in pairs():
        for run in runs_of(load, place):
            stores = cycle(STORES)
            for point in POINTS:
                turn += 1
                fitting = [s for s in STORES if point in points_of(load, place, run, s)]
                if not fitting:
                    continue
                store = next(one for one in stores if one in fitting)
                again = run == "replay" and point not in ONCE
                repair = REPAIRS[turn % len(REPAIRS)]
                yield Case(load, place, run, point, 1 + (again and turn % 3 > 0), repair, store)


@cache
def sample() -> list[Case]:
    """Return few cases that have each pair of values that :func:`_pairs` asks for.

    A run that is struck at several points is prepared once, so few runs are chosen first.
    """
    everything = list(all_cases())
    random.Random(8).shuffle(everything)
    runs = _covering({case.run_key: _runs_of_case(case) for case in everything})
    wanted = {case: _pairs(case) for case in everything if case.run_key in runs}
    return sorted(_covering(wanted), key=str)


T = TypeVar("T")


def _covering(given: dict[T, frozenset[tuple[str, ...]]]) -> list[T]:
    """Return few keys whose values have together what all values have; greedy."""
    wanted = frozenset().union(*given.values())
    taken: list[T] = []
    for new in range(max(map(len, given.values())), 0, -1):
        for key, values in given.items():
            if len(wanted & values) >= new:
                taken.append(key)
                wanted -= values
    return taken


def _family(case: Case) -> str:
    kind = "flat" if PLACES[case.place].flat else "Delta"
    return f"{kind} {LOADS[case.load].load_type}"


def _runs_of_case(case: Case) -> frozenset[tuple[str, ...]]:
    """Return what the sample must have of runs."""
    load = _family(case) if PLACES[case.place].flat else case.load
    return frozenset(
        {
            ("place", case.place, load),
            ("run", case.run, case.load),
            ("run", case.run, _family(case)),
            ("run", case.run, case.place),
        }
    )


def _pairs(case: Case) -> frozenset[tuple[str, ...]]:
    """Return what the sample must have of cases."""
    kind = "flat" if PLACES[case.place].flat else "Delta"
    return frozenset(
        {
            *_runs_of_case(case),
            ("point", case.point, _family(case)),
            ("point", case.point, case.run, kind),
            ("run", case.run, case.repair, kind),
            ("repair", case.repair, case.point),
            ("store", case.store, case.point),
            ("store", case.store, case.run),
        }
    )


def chosen() -> list[Case]:
    """Return what this test run takes: the sample, or all with ``FAULTS=all``."""
    return all_cases() if os.environ.get("FAULTS") == "all" else sample()
