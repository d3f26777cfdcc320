"""Projects with bad rows for the fault tests: what they load, and what must be left of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import DeltaTable
from filelock import FileLock

from tests.faults.harness import Lab, Zygote
from tests.faults.kinds import replay
from tests.faults.proof import step_of

FIRST = {
    "a.csv": [
        (1, 1, "10"),
        (2, 2, "bad2"),
        (3, 3, "30"),
        (4, 4, "bad4"),
        (4, 4, "bad4"),
        (5, 5, "5"),
        (6, 6, "6"),
        (7, 7, "bad7"),
        (8, 8, "8"),
        (9, None, "90"),
    ]
}
NEXT = {"b.csv": [(10, 9, "100"), (11, 8, "bad11"), (12, 10, "bad12"), (13, None, "1")]}
CORRECTED = {
    "a.csv": [
        (1, 1, "10"),
        (2, 2, "bad2"),
        (3, 3, "bad3"),
        (4, 4, "40"),
        (5, 5, "bad5"),
        (6, 6, "bad6"),
        (7, 7, "70"),
        (8, 8, "8"),
        (9, None, "90"),
    ]
}
LAST = {"c.csv": [(20, 11, "200"), (21, 11, "bad21")]}
"""File → rows of ``(id, day, v)``; without a day the watermark is bad, ``bad…`` is no number."""

LOADS: dict[str, dict[str, Any]] = {
    "append": {},
    "append, look-back": {"source": {"configure": {"backward_days": 3}}},
    "append, Parquet": {"form": "parquet"},
    "overwrite": {"load_type": "overwrite", "watermark": []},
    "overwrite, CSV": {"load_type": "overwrite", "watermark": [], "form": "csv"},
    "merge_upsert": {"load_type": "merge_upsert", "merge_keys": ["id"]},
    "scd2": {
        "load_type": "scd2",
        "merge_keys": ["id"],
        "configure": {"scd2_effective_column": "ts"},
    },
}
RUNS = ("first load", "next load", "replay", "full refresh")
REPLAY = replay(3, 9, 3)


def document(load: str, policy: str = "quarantine") -> dict[str, Any]:
    given = dict(LOADS[load])
    form, watermark = given.pop("form", "delta"), given.pop("watermark", ["ts"])
    source = {"connection_name": "in", "table": "t", **given.pop("source", {})}
    destination = {"connection_name": "lake", "table": "o", "load_type": "append", **given}
    if watermark:
        source["watermark_columns"] = watermark
    hints = [("id", "BIGINT"), ("ts", "TIMESTAMP"), ("v", "INT")]
    return {
        "connections": [
            {"name": "in", "format": "csv", "configure": {"base_path": "in"}},
            {"name": "lake", "format": form, "configure": {"base_path": "lake"}},
        ],
        "dataflows": [
            {
                "name": "f",
                "dataflow_id": "f",
                "source": source,
                "destination": destination,
                "transform": {
                    "schema_hints": [{"column_name": n, "data_type": kind} for n, kind in hints]
                },
                "configure": {"datacoolie": {"on_cast_error": policy}},
            }
        ],
    }


def put(lab: Lab, files: dict[str, list[tuple[int, int | None, str]]]) -> None:
    lab.source.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        lines = [
            f"{key},{'never' if at is None else f'2025-03-{1 + at:02}T00:00:00Z'},{v}"
            for key, at, v in rows
        ]
        (lab.source / name).write_text("\n".join(["id,ts,v", *lines]) + "\n")


def kept(lab: Lab) -> Counter[str]:
    """The rows in quarantine and how often each is there."""
    path = lab.root / "lake" / "_quarantine" / "o"
    if not DeltaTable.is_deltatable(str(path)):
        return Counter()
    return Counter(pl.read_delta(str(path))["row"])


def steps(lab: Lab, load: str, run: str) -> None:
    """Bring a project to where the run comes that will be struck."""
    lab.write(document(load))
    put(lab, FIRST)
    if run == "first load":
        return
    lab.run()
    if run == "next load":
        put(lab, NEXT)
    else:
        put(lab, CORRECTED)


@dataclass(frozen=True)
class Right:
    """A run without a fault: the project before it, and contents at its instants.

    Attributes:
        before: The folder of the project.
        contents: Destination and quarantine before the run, after each chunk, after it.
        end: Both after one more load.
        reached: The points of the run.
    """

    before: Path
    contents: list[tuple[list[str], dict[str, int]]]
    end: tuple[list[str], dict[str, int]]
    reached: dict[str, int]


def right(zygote: Zygote, shared: Path, load: str, run: str) -> Right:
    """Return a run without a fault; made once, whoever asks first."""
    name = f"bad-{load}-{run}".replace(" ", "_").replace(",", "")
    known = shared / f"{name}.json"
    with FileLock(shared / f"{name}.lock"):
        if not known.exists():
            known.write_text(json.dumps(_made(zygote, shared / name, load, run)))
    found = json.loads(known.read_text())
    return Right(shared / name, found["contents"], found["end"], found["reached"])


def _made(zygote: Zygote, root: Path, load: str, run: str) -> dict[str, Any]:
    before = Lab(zygote, root)
    steps(before, load, run)
    contents = [content(before)]
    if run == "replay":
        between = before.copy(root.with_name(f"{root.name}.between"))
        between.run(replay(3, 6, 3))
        contents.append(content(between))
    lab = before.copy(root.with_name(f"{root.name}.whole"))
    child = lab.start(step(run))
    assert child.wait() == 0, child.log
    contents.append(content(lab))
    put(lab, LAST)
    lab.run()
    return {"contents": contents, "end": content(lab), "reached": child.reached}


def step(run: str, run_id: str | None = None) -> dict[str, Any]:
    if run != "replay":
        return step_of(run, run_id)
    return {**REPLAY, "run_id": run_id} if run_id else REPLAY


def content(lab: Lab) -> tuple[list[str], dict[str, int]]:
    return [lab.content(), dict(kept(lab))]


def check_nothing_is_lost(lab: Lab, made: Right) -> None:
    """A reader of both tables sees each row of some instant of the run, at whatever instant."""
    loaded, there = lab.content(), kept(lab)
    fitting = [Counter(bad) for good, bad in made.contents if good == loaded]
    assert fitting, "a reader sees half a load"
    assert any(bad <= there for bad in fitting), "a bad row is nowhere"
