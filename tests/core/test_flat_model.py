"""Random histories of a folder against a model of a few lines."""

from __future__ import annotations

import shutil

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from tests.core.flat_files import Files

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 4)),
        st.tuples(st.just("load"), st.none()),
        st.tuples(st.just("replay"), st.tuples(st.integers(0, 12), st.integers(1, 6))),
        st.tuples(st.just("forget"), st.none()),
        st.tuples(st.just("anew"), st.none()),
        st.tuples(st.just("left behind"), st.none()),
    ),
    min_size=3,
    max_size=9,
)


class History:
    """A source that grows and changes, a folder, and what the folder should hold."""

    def __init__(self, root, form, *, parted):
        self.files = Files(root, form=form)
        self.files.flow(watermark=["id"], partition_columns=["g"] if parted else [])
        self.source: dict[int, str] = {}
        self.expected: dict[int, str] = {}
        self.watermark = -1
        self.version = 0

    def write(self):
        rows = [(one, v, f"g{one % 3}") for one, v in self.source.items()]
        schema = {"id": pl.Int64, "v": pl.String, "g": pl.String}
        self.files.write("t", "a.parquet", pl.DataFrame(rows, schema=schema, orient="row"))

    def grow(self, count):
        start = len(self.source)
        self.source |= dict.fromkeys(range(start, start + count), "v0")

    def load(self, _):
        self.files.run_one()
        self.expected |= {i: v for i, v in self.source.items() if i > self.watermark}
        self.watermark = max([self.watermark, *self.source])

    def replay(self, window):
        """Values change in the window, one row goes; the newest row stays as it is."""
        start, end = window[0], window[0] + window[1]
        self.version += 1
        inside = [i for i in self.source if start <= i < end and i != max(self.source)]
        self.source |= dict.fromkeys(inside, f"v{self.version}")
        for gone in inside[:1]:
            del self.source[gone]
        self.write()
        self.files.replay(start, end, step=3)
        self.expected = {i: v for i, v in self.expected.items() if not start <= i < end}
        self.expected |= {i: v for i, v in self.source.items() if start <= i < end}

    def forget(self, _):
        shutil.rmtree(self.files.root / ".datacoolie", ignore_errors=True)

    def anew(self, _):
        self.files.run_one(full_refresh=True)
        self.expected = dict(self.source)
        self.watermark = max(self.source)

    def left_behind(self, _):
        left = self.files.folder() / "_datacoolie" / "staging" / "dead"
        left.mkdir(parents=True, exist_ok=True)
        (left / f"x.{self.files.form}").write_text("id\n77\n")


@pytest.mark.parametrize(("form", "parted"), [("parquet", False), ("csv", True), ("jsonl", False)])
@settings(max_examples=12)
@given(steps=STEPS)
def test_a_folder_holds_what_its_history_says(form, parted, steps, tmp_path_factory):
    history = History(tmp_path_factory.mktemp("history"), form, parted=parted)
    history.grow(3)
    history.write()
    history.load(None)
    for name, given_ in steps:
        getattr(history, name.replace(" ", "_"))(given_)
        history.write()
        assert dict(history.files.rows("id", "v")) == history.expected
        assert len(history.files.rows("id")) == len(history.expected)
    history.load(None)
    assert dict(history.files.rows("id", "v")) == history.expected
    assert history.files.names() == history.files.seen()
