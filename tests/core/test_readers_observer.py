"""What an observer says does not depend on how the rows reach it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.batch import Observation, ReadRequest
from datacoolie_core.readers.boundary import BoundaryRows, Watched
from datacoolie_core.readers.observer import Observer
from datacoolie_core.readers.row_hash import fingerprint, row_hashes
from datacoolie_core.readers.watermark_columns import watermark_column
from datacoolie_core.state.record import Boundary

START = datetime(2024, 1, 1, tzinfo=UTC)


class Seen:
    """An observer and what it hands on, called as the engine calls it."""

    def __init__(self, flow, frame: pl.DataFrame, stored=None, **request):
        stored = stored or {}
        self.observation = Observation(candidate=dict(stored))
        watched = []
        for name in flow.source.watermark_columns:
            column = watermark_column(name, frame.lazy(), dict(frame.schema), flow)
            watched.append(Watched(column, name, stored.get(name)))
        read = ReadRequest(
            dataflow=flow, project_dir=".", stored=stored, track_boundary=True, **request
        )
        rows = BoundaryRows(watched, read, self.observation, fingerprint(dict(frame.schema)))
        self.observation.settle = rows.boundary
        self.observe = Observer(self.observation, watched, read, rows)

    def facts(self) -> tuple:
        seen = self.observation
        counts = (seen.rows_read, seen.rows_known, seen.rows_null_watermark, seen.rows_beyond_max)
        return (*counts, seen.candidate, seen.lowest, seen.boundary)


@pytest.fixture
def flow(reading):
    return reading.flow("parquet", watermark=["a", "b"])


def as_frame(rows) -> pl.DataFrame:
    moment = pl.Datetime("us", "UTC")
    values = [(n, None if a is None else START + timedelta(days=a), b) for n, a, b in rows]
    return pl.DataFrame(values, schema={"id": pl.Int64, "a": moment, "b": pl.Int64}, orient="row")


_VALUE = st.one_of(st.none(), st.integers(0, 4))
_ROWS = st.lists(st.tuples(st.integers(0, 3), _VALUE, _VALUE), max_size=25)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_ROWS, st.lists(st.integers(0, 25), max_size=6), st.integers(0, 9), st.booleans())
def test_pieces_in_any_order_are_seen_as_the_whole(flow, rows, cuts, seed, again):
    frame = as_frame(rows)
    stored = {"a": START + timedelta(days=2), "b": 2} if again else {}
    known = [row for row in rows if row[1:] in ((2, 2), (2, 0), (0, 2))][::2] if again else []
    boundary = Boundary(hashes=Counter(row_hashes(as_frame(known))))
    options = {"boundary": boundary, "max_watermark": START + timedelta(days=3)}
    whole, pieces = (Seen(flow, frame, stored, **options) for _ in range(2))
    expected = whole.observe(frame)

    edges = sorted({0, frame.height, *(cut for cut in cuts if cut < frame.height)})
    parts = [frame[low:high] for low, high in pairwise(edges)]
    order = pl.Series(range(len(parts))).sample(fraction=1, shuffle=True, seed=seed)
    passed = [pieces.observe(part) for part in (*(parts[index] for index in order), frame.clear())]

    assert pieces.facts() == whole.facts()
    assert Counter(row for part in passed for row in part.rows()) == Counter(expected.rows())
    assert whole.observation.rows_read == expected.height


def test_many_threads_lose_no_count(flow):
    frame = as_frame([(number % 7, number % 5, number % 3) for number in range(20_000)])
    seen, whole = Seen(flow, frame), Seen(flow, frame)
    whole.observe(frame)
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(seen.observe, frame.iter_slices(97)))
    assert sum(part.height for part in passed) == 20_000
    assert seen.facts() == whole.facts()


@pytest.mark.parametrize(("policy", "height"), [("include", 3), ("exclude", 2)])
def test_a_row_has_no_watermark_only_if_every_column_is_null(flow, policy, height):
    frame = as_frame([(1, None, None), (2, None, 1), (3, 1, None)])
    seen = Seen(flow, frame, null_watermark=policy)
    assert seen.observe(frame).height == height
    assert seen.observation.rows_null_watermark == 1


def test_a_row_without_a_watermark_can_stop_the_load(flow):
    frame = as_frame([(1, None, None)])
    with pytest.raises(ReadError, match=r"rows have no value \(null or NaN\) in a, b"):
        Seen(flow, frame, null_watermark="fail").observe(frame)
