"""Whatever is loaded, loaded again or corrected: each source row is in one of the two tables."""

from __future__ import annotations

import json
from collections import Counter

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from datacoolie_core.plan.replay_config import ReplayConfig
from tests.core.quarantines import flow, put, quarantined

VALUES = st.sampled_from(["1", "2", "x", "1.5", ""])
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([True, True, True, False]), VALUES), max_size=5
)
"""``(days after the newest, whether the day can be read, v)`` of the rows of a file."""
OPS = st.lists(
    st.one_of(
        ROWS.map(lambda rows: ("rows", rows)),
        st.just(("run", None)),
        st.just(("full refresh", None)),
        st.tuples(st.just("replay"), st.integers(0, 4)),
        st.tuples(st.just("correct"), st.integers(0, 30)),
    ),
    min_size=2,
    max_size=8,
)


class World:
    """A source of files, and what was done with it."""

    def __init__(self, project, load_type):
        self.project = project
        keyed = {"merge_keys": ["id"]} if load_type == "merge_upsert" else {}
        flow(project, load_type=load_type, **keyed)
        self.files: list[list[list[str]]] = []
        self.day, self.ids, self.loaded = 1, 0, 0

    def rows(self, rows):
        """Add a file; days never go back, so that the watermark leaves no row behind."""
        found = []
        for days, readable, value in rows:
            self.day = min(28, self.day + days)
            self.ids += 1
            at = f"2025-01-{self.day:02}" if readable else "soon"
            found.append([str(self.ids), value, at])
        if found:
            self.files.append(found)
            self._write(len(self.files) - 1)

    def correct(self, which):
        """Correct a loaded bad value at the source, and replay its day."""
        bad = [
            (file, row)
            for file, rows in enumerate(self.files[: self.loaded])
            for row in rows
            if row[1] in ("x", "1.5") and row[2] != "soon"
        ]
        if not bad:
            return
        file, row = bad[which % len(bad)]
        row[1] = "7"
        self._write(file)
        self._replay(int(row[2][-2:]), 1)

    def replay(self, days):
        if self.loaded:
            self._replay(max(1, self.day - days), days + 1)

    def run(self, **options):
        if self.files:
            self.project.run_one(**options)
            self.loaded = len(self.files)
            self.check(self.files)

    def check(self, files):
        wanted = Counter(tuple(row) for rows in files for row in rows)
        found = Counter(self._loaded()) + Counter(self._kept())
        assert found == wanted
        bad = {row for row in wanted if row[1] in ("x", "1.5") or row[2] == "soon"}
        assert set(self._kept()) == bad

    def _replay(self, first, days):
        start, end = f"2025-01-{first:02}", f"2025-01-{min(31, first + days):02}"
        chunks = ReplayConfig(start, end, {"days": 2}, chunk_column="ts")
        with self.project.driver() as driver:
            (result,) = driver.run_replay(driver.metadata.dataflows, chunks).dataflows
        assert result.status != "failed", result.error.message
        # the replay may have loaded rows of files that no run has seen: a run comes after them
        self.run()

    def _loaded(self):
        frame = pl.read_delta(self.project.path()).select("id", "v", "ts").cast(pl.String)
        return frame.fill_null("").rows()

    def _kept(self):
        rows = (json.loads(one) for one in quarantined(self.project)["row"])
        return [(row["id"], row["v"] or "", row["ts"]) for row in rows]

    def _write(self, number):
        put(self.project, f"{number}.csv", *(",".join(row) for row in self.files[number]))


@pytest.mark.parametrize("load_type", ["append", "merge_upsert"])
@given(ops=OPS)
@settings(max_examples=25)
def test_each_source_row_is_in_the_table_or_in_its_quarantine_once(
    tmp_path_factory, load_type, ops
):
    from tests.conftest import Project

    world = World(Project(tmp_path_factory.mktemp("model")), load_type)
    for name, argument in [*ops, ("run", None)]:
        if name == "rows":
            world.rows(argument)
        elif name == "replay":
            world.replay(argument)
        elif name == "correct":
            world.correct(argument)
        else:
            world.run(full_refresh=name == "full refresh")
