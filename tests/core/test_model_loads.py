"""Any course of loads, replays, resets, failures and foreign writes against a naive model.

The model is a list of rows. It knows nothing of files, commits or states: what it holds after each
step is what the table has to hold.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.plan.windows import Window

SCHEMA = {"id": pl.Int64, "d": pl.Date, "v": pl.String}
DAY = [date(2025, 1, 1) + timedelta(days=n) for n in range(5)]
LOOK_BACK = timedelta(days=2)

Row = tuple[Any, ...]


def newest(rows: list[Row], *, ties: bool) -> list[Row]:
    """One row a key, the newest; or all that are equally new."""
    best: dict[Any, list[Row]] = {}
    for row in rows:
        best.setdefault(row[0], []).append(row)
    kept: list[Row] = []
    for group in best.values():
        last = max(row[1] for row in group)
        latest = [row for row in group if row[1] == last]
        # of equally new rows the one with the highest values, a null below all
        latest.sort(key=lambda row: (row[2] is not None, row[2] or ""))
        kept.extend(latest if ties else latest[-1:])
    return kept


@dataclass
class Model:
    """What a source and its table hold, as plain lists."""

    source: list[Row] = field(default_factory=list)
    table: list[Row] = field(default_factory=list)
    watermark: date | None = None
    loaded: bool = False

    def since(self, lower: date | None) -> list[Row]:
        return [row for row in self.source if lower is None or row[1] >= lower]

    def between(self, lower: date, upper: date) -> list[Row]:
        return [row for row in self.source if lower <= row[1] < upper]

    def outside(self, lower: date, upper: date) -> list[Row]:
        return [row for row in self.table if not lower <= row[1] < upper]

    def seen(self, rows: list[Row]) -> None:
        known = [row[1] for row in rows] + ([self.watermark] if self.watermark else [])
        self.watermark = max(known, default=None)

    def load(self) -> None:
        batch = self.since(self.watermark)
        self.apply(batch)
        self.seen(batch)

    def replay(self, lower: date, upper: date) -> None:
        self.apply(self.between(lower, upper))

    def refresh(self) -> None:
        self.table, self.watermark = self.shaped(self.source), None
        self.seen(self.source)

    def shaped(self, rows: list[Row]) -> list[Row]:
        return list(rows)

    def apply(self, batch: list[Row]) -> None:
        raise NotImplementedError


class Append(Model):
    def apply(self, batch: list[Row]) -> None:
        # a row of the source is there once, however often it is read
        self.table += list((Counter(batch) - Counter(self.table)).elements())

    def replay(self, lower: date, upper: date) -> None:
        self.table = self.outside(lower, upper) + self.between(lower, upper)


class Overwrite(Model):
    def load(self) -> None:
        if self.source:
            self.table = list(self.source)

    def replay(self, lower: date, upper: date) -> None:
        self.table = self.outside(lower, upper) + self.between(lower, upper)


class MergeUpsert(Model):
    def shaped(self, rows: list[Row]) -> list[Row]:
        return newest(rows, ties=False)

    def apply(self, batch: list[Row]) -> None:
        for row in self.shaped(batch):
            stored = [one for one in self.table if one[0] == row[0]]
            if any(one[1] > row[1] for one in stored):
                continue
            self.table = [one for one in self.table if one[0] != row[0]] + [row]


class MergeOverwrite(Model):
    def shaped(self, rows: list[Row]) -> list[Row]:
        return newest(rows, ties=True)

    def apply(self, batch: list[Row]) -> None:
        keys = {row[0] for row in batch}
        self.table = [one for one in self.table if one[0] not in keys] + self.shaped(batch)


class MergeOverwriteWindow(MergeOverwrite):
    def load(self) -> None:
        if self.watermark is None:
            super().load()
            return
        lower = self.watermark - LOOK_BACK
        batch = self.since(lower)
        self.seen(batch)
        past = self.watermark + timedelta(days=1)
        self.table = self.outside(lower, past) + self.shaped(batch)

    def replay(self, lower: date, upper: date) -> None:
        self.table = self.outside(lower, upper) + self.shaped(self.between(lower, upper))


MODELS: dict[str, tuple[type[Model], dict[str, Any]]] = {
    "append": (Append, {"load_type": "append", "watermark": ["d"]}),
    "overwrite": (Overwrite, {"load_type": "overwrite"}),
    "merge_upsert": (
        MergeUpsert,
        {"load_type": "merge_upsert", "merge_keys": ["id"], "watermark": ["d"]},
    ),
    "merge_overwrite": (
        MergeOverwrite,
        {"load_type": "merge_overwrite", "merge_keys": ["id"], "watermark": ["d"]},
    ),
    "merge_overwrite by watermark": (
        MergeOverwriteWindow,
        {
            "load_type": "merge_overwrite",
            "merge_keys": ["id"],
            "watermark": ["d"],
            "source": {"configure": {"backward": {"days": LOOK_BACK.days}}},
            "destination": {"configure": {"replace_by_watermark": True}},
        },
    ),
}

ROW = st.tuples(
    st.sampled_from([None, 1]),
    st.sampled_from(DAY),
    st.sampled_from([None, "a", "b"]),
)
STEP = st.one_of(
    st.tuples(st.just("arrive"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.just("vanish"), st.sampled_from(DAY)),
    st.tuples(st.just("arrive and load"), st.lists(ROW, min_size=1, max_size=3)),
    st.tuples(st.just("load"), st.booleans()),
    st.tuples(st.just("replay"), st.tuples(st.sampled_from(DAY), st.integers(1, 3), st.booleans())),
    st.tuples(st.just("refresh"), st.just(None)),
    st.tuples(st.just("foreign append"), st.sampled_from(DAY)),
    st.tuples(st.just("foreign delete"), st.sampled_from(DAY)),
)


@dataclass
class Course:
    """A project and its model, step by step."""

    project: Any
    model: Model
    foreign: int = 100

    def take(self, name: str, given: Any) -> None:
        getattr(self, name.replace(" ", "_"))(given)

    def arrive(self, rows: list[Row]) -> None:
        self.model.source = [*self.model.source, *rows]

    def arrive_and_load(self, rows: list[Row]) -> None:
        self.arrive(rows)
        self.load(loses_state=False)

    def vanish(self, day: date) -> None:
        self.model.source = [row for row in self.model.source if row[1] != day]

    def load(self, loses_state: bool) -> None:
        self.run(lambda driver: driver.run(), loses_state)
        self.model.load()

    def replay(self, given: tuple[date, int, bool]) -> None:
        first, days, loses_state = given
        windows = [
            Window("d", first + timedelta(days=n), first + timedelta(days=n + 1), str(n))
            for n in range(days)
        ]
        self.run(
            lambda driver: driver.run_replay(driver.metadata.dataflows, {"f": windows}),
            loses_state,
        )
        for window in windows:
            self.model.replay(window.lower, window.upper)

    def refresh(self, _nothing: None) -> None:
        self.run(lambda driver: driver.run(full_refresh=True), loses_state=False)
        self.model.refresh()

    def run(self, action: Any, loses_state: bool) -> None:
        """Run; with ``loses_state`` as if the process died before it had saved the state."""
        source = pl.DataFrame(self.model.source, schema=SCHEMA, orient="row")
        self.project.write("t", "a.parquet", source)
        state, before = (self.project.root / ".datacoolie", self.project.root / "before")
        shutil.rmtree(before, ignore_errors=True)
        if state.exists():
            shutil.copytree(state, before)
        with self.project.driver() as driver:
            (result,) = action(driver).dataflows
        assert result.status != "failed", result.error
        if loses_state:
            shutil.rmtree(state, ignore_errors=True)
            if before.exists():
                before.rename(state)

    def foreign_append(self, day: date) -> None:
        if not self.there:
            return
        self.foreign += 1
        row = (self.foreign, day, "theirs")
        frame = pl.DataFrame([row], schema=SCHEMA, orient="row")
        write_deltalake(self.project.path(), frame, mode="append", schema_mode="merge")
        self.model.table.append(row)

    def foreign_delete(self, day: date) -> None:
        # what ties with the watermark may be loaded again or not: nobody is wrong there
        low = self.model.watermark is None or day < self.model.watermark
        if not (self.there and low):
            return
        DeltaTable(self.project.path()).delete(f"d = '{day}'")
        self.model.table = [row for row in self.model.table if row[1] != day]

    @property
    def there(self) -> bool:
        return DeltaTable.is_deltatable(self.project.path())

    def check(self) -> None:
        stored = self.project.table().rows() if self.there else []
        assert Counter(stored) == Counter(self.model.table)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEP, min_size=5, max_size=10), partitioned=st.booleans())
@pytest.mark.parametrize("name", MODELS)
def test_any_course_of_events_leaves_what_a_list_would_hold(new_project, name, steps, partitioned):
    make, flow = MODELS[name]
    project = new_project()
    partitions = [{"column": "d"}] if partitioned else []
    project.flow(**flow, partition_columns=partitions)
    course = Course(project, make())
    for step, given_ in [*steps, ("load", True), ("load", False)]:
        course.take(step, given_)
        course.check()
