"""What a case must leave behind: the same as in a project that no fault touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from filelock import FileLock

from tests.faults.cases import Case
from tests.faults.harness import Lab, Zygote
from tests.faults.kinds import (
    FIRST_CHUNK,
    LOADS,
    PLACES,
    REPLAY,
    Load,
    Place,
    corrected,
    day,
    document,
    replay,
)

RUN = {"do": "run"}
MOST_RUNS = 3
"""How often a run is struck and repeated; each commits once for each of at most three chunks."""


@dataclass(frozen=True)
class Untouched:
    """A project just before the run that is struck, and what comes of it without a fault.

    Attributes:
        before: The folder of the project.
        stages: The contents that a reader may see at any instant of the run.
        after: The content after it.
        end: The content after one more load.
        record: The state then.
        sequence: Of the last load.
        reached: The points of the run.
    """

    before: Path
    stages: list[list[str]]
    after: list[str]
    end: list[str]
    record: dict[str, Any] | None
    sequence: int
    reached: dict[str, int]


STEPS: dict[str, dict[str, Any]] = {
    "first load": RUN,
    "next load": RUN,
    "replay": REPLAY,
    "full refresh": {"do": "refresh"},
    "backfill": replay(0, 10, 4, save_watermark=True),
    "watermark set": {"do": "set", "column": "ts", "value": day(6).isoformat()},
    "watermark reset": {"do": "reset"},
    "maintenance": {"do": "maintain", "short": True, "config": {"retention_hours": 0}},
}
"""What a child does for a kind of run; the last four are no part of the matrix."""

CHUNKS = {
    "replay": [FIRST_CHUNK],
    "backfill": [replay(0, 4, 4, save_watermark=True), replay(4, 8, 4, save_watermark=True)],
}
"""The steps that lead through what is between the chunks of a run."""

_AT_THE_BEGINNING = ("first load", "backfill")


def step_of(run: str, run_id: str | None = None) -> dict[str, Any]:
    """Return what a child does for a kind of run."""
    return {**STEPS[run], "run_id": run_id} if run_id else STEPS[run]


def prepare(lab: Lab, load: Load, place: Place, run: str) -> Lab:
    """Bring a project to where the run comes that will be struck."""
    lab.write(document(load, place))
    load.changes[0](lab.source)
    if run in _AT_THE_BEGINNING:
        return lab
    lab.run()
    if place.features:
        from deltalake import DeltaTable

        DeltaTable(str(lab.folder)).alter.set_table_properties(dict(place.features))
    load.changes[1](lab.source)
    if run != "next load":
        lab.run()
    if run in ("replay", "full refresh"):
        corrected(lab.source)
    return lab


def next_change(load: Load, run: str, source: Path) -> None:
    """Change the source once more, after the struck run."""
    load.changes[1 if run in _AT_THE_BEGINNING else 2](source)


def untouched(zygote: Zygote, shared: Path, case: Case) -> Untouched:
    """Return the case without its fault; made once, whoever asks first.

    Args:
        zygote: Forks the children.
        shared: A folder that all workers of the test run share.
        case: The case.
    """
    name = f"{case.load}-{case.place}-{case.run}".replace(" ", "_")
    root, known = shared / name, shared / f"{name}.json"
    with FileLock(shared / f"{name}.lock"):
        if not known.exists():
            document = _made(zygote, root, case)
            known.write_text(json.dumps(document))
    return Untouched(before=root, **json.loads(known.read_text()))


def _made(zygote: Zygote, root: Path, case: Case) -> dict[str, Any]:
    load, place = LOADS[case.load], PLACES[case.place]
    before = prepare(Lab(zygote, root), load, place, case.run)
    stages = [before.content(load.from_load)]
    between = before.copy(root.with_name(f"{root.name}.between"))
    for step in CHUNKS.get(case.run, ()):
        between.run(step)
        stages.append(between.content(load.from_load))
    lab = before.copy(root.with_name(f"{root.name}.whole"))
    child = lab.start(step_of(case.run))
    assert child.wait() == 0, child.log
    after = lab.content(load.from_load)
    next_change(load, case.run, lab.source)
    lab.run()
    return {
        "stages": [*stages, after],
        "after": after,
        "end": lab.content(load.from_load),
        "record": lab.record(),
        "sequence": lab.sequences()[0],
        "reached": child.reached,
    }


def lab_before(zygote: Zygote, right: Untouched, root: Path, case: Case) -> Lab:
    """Return a copy of the project just before the run, with the state where the case has it."""
    lab = Lab(zygote, right.before).copy(root)
    if case.store == "file":
        return lab
    moved = Lab(zygote, root, "sqlite:///state.db")
    record = lab.store().load("f")
    if record is not None:
        moved.store().save(record)
        rmtree(root / ".datacoolie" / "state")
    return moved


def prove(
    zygote: Zygote,
    shared: Path,
    root: Path,
    case: Case,
    strike: Callable[[Lab, dict[str, Any]], object] | None = None,
) -> dict[str, int]:
    """Strike a run, repeat it, and compare; return what is left over.

    Args:
        zygote: Forks the children.
        shared: A folder that all workers of the test run share.
        root: Where the project goes.
        case: The case.
        strike: Runs a step and kills it; by default at the case's point.

    Raises:
        AssertionError: A row is lost or doubled, or the state is another one.
    """
    load, step = LOADS[case.load], step_of(case.run, "the-run")
    right = untouched(zygote, shared, case)
    lab = lab_before(zygote, right, root, case)
    if strike is None:
        lab.kill(step, case.point, case.nth)
    else:
        strike(lab, step)
    assert lab.content(load.from_load) in right.stages, "a reader sees half a load"
    lab.run(step if case.repair == "same run id" else step_of(case.run))
    assert lab.content(load.from_load) == right.after
    next_change(load, case.run, lab.source)
    lab.run()
    assert lab.content(load.from_load) == right.end
    assert lab.record() == right.record
    state, table = lab.sequences()
    assert state == table
    assert right.sequence <= state <= right.sequence + 3 * MOST_RUNS
    return left_over(lab)


def left_over(lab: Lab) -> dict[str, int]:
    """Count files that no one will ever read; a reader of the folder must not see them."""
    states = lab.root / ".datacoolie" / "state"
    temporary = len(list(states.glob("*.tmp"))) + len(list(states.glob(".*.tmp")))
    if lab.is_table():
        from deltalake import DeltaTable

        table = DeltaTable(str(lab.folder))
        known = set(table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False))
        live = lab.seen()
        orphans = {one for one in lab.there() if one.endswith(".parquet")} - live - known
        return {"files": len(orphans), "temporary": temporary}
    assert lab.there() == lab.seen(), "a reader of the folder sees files that do not count"
    manifest = json.loads((lab.folder / "_datacoolie" / "_f.json").read_text())
    assert manifest["pending"] is None
    assert {one["path"] for one in manifest["files"]} == lab.seen()
    hidden = lab.folder / "_datacoolie" / "staging"
    return {"files": len(list(hidden.glob("*"))), "temporary": temporary}
