"""Whole lives, drawn: loads, replays and upkeep, most of them struck, and old copies put back.

Whatever happened before, two runs without a fault leave what one load of the source leaves.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.faults.cases import POINTS, points_of
from tests.faults.harness import Lab
from tests.faults.kinds import LOADS, PLACES, document, put, replay, rows
from tests.faults.proof import STEPS
from tests.faults.test_errors import SEAMS
from tests.faults.test_processes import ended_well, source, together, write

ALL = os.environ.get("FAULTS") == "all"
KINDS = [
    ("append", "Delta"),
    ("merge_upsert", "Delta"),
    ("append", "CSV"),
    ("scd2", "Delta"),
    ("merge_upsert", "Delta, partitioned"),
    ("overwrite", "JSON"),
    ("append", "Parquet, partitioned"),
    ("overwrite", "Delta"),
]
EVENTS = {
    "rows": 5,
    "run": 7,
    "replay": 3,
    "full refresh": 1,
    "watermark reset": 1,
    "maintenance": 2,
    "state lost": 1,
    "old state": 1,
    "restore": 1,
    "optimize": 1,
}
"""What can happen, and how often."""
LENGTH = 14
LIVES = range(200 if ALL else 3)


@dataclass
class Life:
    """A project and what has happened to it."""

    lab: Lab
    load: str
    draw: random.Random
    days: int = 1
    keys: int = 0
    files: int = 0
    told: list[str] = field(default_factory=list)
    last: dict[str, Any] | None = None

    @property
    def table(self) -> DeltaTable | None:
        return DeltaTable(str(self.lab.folder)) if self.lab.is_table() else None

    def goes_on(self, event: str) -> None:
        """Let something happen."""
        {
            "rows": self.rows,
            "state lost": self.forget,
            "old state": self.swap_state,
            "restore": self.restore,
            "optimize": self.optimize,
        }.get(event, lambda: self.run(event))()

    def rows(self) -> None:
        """New rows: new keys, some twice, for what is appended; else new versions of few keys."""
        added = self.load in ("append", "overwrite")
        values = []
        for _ in range(self.draw.randint(1, 9)):
            self.days += self.draw.randint(0, 1) if added else self.draw.randint(1, 2)
            self.keys += 1
            key = max(1, self.keys - self.draw.choice([0, 0, 0, 1, 2]))
            value = f"v{self.draw.randint(0, 2)}"
            values.append((key if added else self.draw.randint(1, 8), self.days, value))
        self.files += 1
        more = {} if self.draw.random() < 0.7 else {"w": values[0][2]}
        frame = rows(*values)
        for name, value in more.items():
            import polars as pl

            frame = frame.with_columns(pl.lit(value).alias(name))
        put(self.lab.source, f"{self.files:03}.parquet", frame)
        self.told.append(f"rows {values} {more}")

    def run(self, event: str) -> None:
        """Run something; most runs are struck, some are the last one again."""
        step = self.last if self.last and self.draw.random() < 0.2 else self.step(event)
        if step is None:
            return
        self.last = step if "run_id" in step else self.last
        fault = self.fault() if self.draw.random() < 0.65 else None
        child = self.lab.start(step, fault=fault)
        status = child.wait()
        self.told.append(f"{step} {fault} → {status}")
        failed = fault is not None and fault["action"] == "error"
        assert status in (0, -signal.SIGKILL, *([1] if failed else [])), (
            f"{child.log}{self.lab._errors(child)}"
        )

    def step(self, event: str) -> dict[str, Any] | None:
        name = {"run_id": f"run{len(self.told)}"}
        if event == "maintenance":
            return STEPS[event] if self.table else None
        if event == "watermark reset":
            return STEPS[event] if self.lab.folder.exists() else None
        if event != "replay":
            return {**STEPS.get(event, {"do": "run"}), **name}
        if not LOADS[self.load].watermark:
            return None
        start = self.draw.randint(0, self.days)
        end = start + self.draw.randint(1, self.days + 2)
        return {**replay(start, end, self.draw.randint(1, 9)), **name}

    def fault(self) -> dict[str, Any]:
        point = self.draw.choice([*POINTS, "recovering", "recovered"])
        error = point in SEAMS and self.draw.random() < 0.3
        nth = self.draw.choice([1, 1, 1, 2, 3])
        return {"point": point, "nth": nth, "action": "error" if error else "SIGKILL"}

    @property
    def kept_state(self):
        if self.lab.state:
            return self.lab.root / "state.db"
        return self.lab.root / ".datacoolie" / "state" / "f.json"

    def forget(self) -> None:
        self.kept_state.unlink(missing_ok=True)
        self.told.append("state lost")

    def swap_state(self) -> None:
        """Keep a copy of the state, or put it back."""
        kept = self.lab.scratch / "old-state"
        if kept.exists():
            self.kept_state.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(kept, self.kept_state)
            self.told.append("old state put back")
        elif self.kept_state.exists():
            shutil.copy(self.kept_state, kept)
            self.told.append("state copied")

    def restore(self) -> None:
        table = self.table
        if table is not None and table.version() > 0:
            to = self.draw.randint(max(0, table.version() - 4), table.version() - 1)
            with suppress(DeltaError):  # maintenance took its files
                table.restore(to)
            self.told.append(f"restored to {to} of {table.version()}")

    def optimize(self) -> None:
        if self.table is not None:
            self.table.optimize.compact()
            self.told.append("optimized")


@pytest.mark.parametrize("seed", LIVES)
def test_whatever_happened_two_runs_without_a_fault_make_it_good(zygote, tmp_path, seed):
    draw = random.Random(seed)
    load, place = KINDS[seed % len(KINDS)]
    kind = LOADS[load]
    state = draw.choice([None, "sqlite:///state.db"])
    life = Life(Lab(zygote, tmp_path / "life", state), load, draw)
    life.lab.write(document(kind, PLACES[place]))
    life.rows()
    try:
        for event in draw.choices([*EVENTS], [*EVENTS.values()], k=LENGTH):
            life.goes_on(event)
        life.lab.run()
        life.lab.run()
        fresh = Lab(zygote, tmp_path / "fresh").write(document(kind, PLACES[place]))
        shutil.copytree(life.lab.source, fresh.source)
        fresh.run()
        assert life.lab.content(kind.from_load) == fresh.content(kind.from_load)
        mine, right = life.lab.record(), fresh.record()
        for name in ("watermark", "boundary"):
            assert mine[name] == right[name]
    except AssertionError as error:
        error.add_note("\n".join(life.told))
        raise


@pytest.mark.parametrize("seed", range(60 if ALL else 2))
def test_kills_among_several_processes_in_a_row_lose_and_double_nothing(lab, seed):
    """Three dataflows of one place; in each turn one or two of them are killed somewhere."""
    draw = random.Random(seed)
    form = ("csv", "delta", "parquet", "jsonl")[seed % 4]
    merges = ("append", "merge_upsert", "merge_overwrite") if form == "delta" else ("append",)
    paths = write(lab, [draw.choice(merges) for _ in range(3)], form)
    points = points_of("append, ties", "Delta" if form == "delta" else "CSV", "next load")
    for turn in range(1, 5):
        for number in range(3):
            values = [(1000 * number + 10 * turn + n, turn, "v") for n in range(6)]
            put(source(lab, number), f"{turn}.parquet", rows(*values))
        struck = draw.sample(range(3), draw.randint(1, 2))
        faults = {
            f"f{n}": {"point": draw.choice(points), "action": "SIGKILL"} for n in sorted(struck)
        }
        for number, child in enumerate(together(lab, paths, **faults)):
            ends = (-signal.SIGKILL, 0) if number in struck else (0,)
            assert child.wait() in ends, child.log
        ids = lab.rows()["id"] if lab.seen() else []
        assert len(ids) == len(set(ids))
    ended_well(together(lab, paths))
    assert sorted(map(int, lab.rows()["id"])) == sorted(
        1000 * p + 10 * t + n for p in range(3) for t in range(1, 5) for n in range(6)
    )
    assert form == "delta" or lab.there() == lab.seen()
