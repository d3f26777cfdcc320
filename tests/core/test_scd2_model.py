"""History against a naive model: one list of breakpoints for each key, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
from hypothesis import given, settings, strategies as st

from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.scd2_chain import chain
from datacoolie_core.writers.scd2_events import Rules
from datacoolie_core.writers.scd2_missing import close_missing
from datacoolie_core.writers.scd2_stored import concerned, known_rows
from datacoolie_core.writers.spill import ROW, Batch

INSTANT = pl.Datetime("us", "UTC")
START = datetime(2025, 1, 1, tzinfo=UTC)
SCHEMA = pl.Schema(
    {
        "id": pl.Int64(),
        "v": pl.String(),
        "__valid_from": INSTANT,
        "__valid_to": INSTANT,
        "__is_current": pl.Boolean(),
        "__created_at": INSTANT,
        "__updated_at": INSTANT,
    }
)
RULES = Rules(keys=("id",), compared=("v",))
TICK = timedelta(microseconds=1)


def at(day):
    return START + timedelta(days=day)


@dataclass
class Model:
    """Key → instant → value; ``None`` ends the key. Rules as docs/scd2.md has them."""

    keys: dict = field(default_factory=dict)

    def load(self, events, *, snapshot=None):
        """Apply a batch of (key, instant, value), values being 1-tuples."""
        newest = {}
        for key, instant, value in sorted(events, key=lambda one: one[1]):
            self._say(key, instant, value)
            newest[key] = (instant, value)
        if snapshot is not None:
            self._snapshot(snapshot, newest)
        for key, points in self.keys.items():
            self.keys[key] = normal(points)

    def _say(self, key, instant, value):
        points = self.keys.setdefault(key, {})
        earlier = [one for one in points if one <= instant]
        if not earlier or points[max(earlier)] != value or max(earlier) == instant:
            points[instant] = value

    def _snapshot(self, now, newest):
        for key, points in self.keys.items():
            last = max(points)
            if key not in newest and points[last] is not None:
                points[max(now, last + TICK)] = None
            if key in newest and points[last] is None and newest[key][0] < last:
                points[max(now, last + TICK)] = newest[key][1]

    def versions(self):
        rows = []
        for key, points in self.keys.items():
            order = sorted(points)
            for one, after in zip(order, [*order[1:], None], strict=True):
                if points[one] is not None:
                    rows.append((key, points[one][0], one, after, after is None))
        return sorted(rows, key=str)


def normal(points):
    kept, before = {}, None
    for instant in sorted(points):
        if points[instant] != before:
            kept[instant] = before = points[instant]
    return kept


def rows_of(events, load):
    rows = [(key, value[0], instant, None, True, load, load) for key, instant, value in events]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").with_row_index(ROW)


@dataclass
class Table:
    """What the product's pure part makes of the same batches."""

    frame: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    loads: int = 0

    def load(self, events, *, snapshot=None, settle=False):
        self.loads += 1
        rules = Rules(keys=("id",), compared=("v",), snapshot=snapshot)
        unique = list(dict.fromkeys(events))
        rows = rows_of(unique, at(1000 + self.loads))
        batch = Batch(rows.lazy(), rows.height, SCHEMA, tuple(SCHEMA))
        old = self.frame.with_columns(pl.lit("f").alias(FILE)).lazy()
        if settle:
            repeated = rows.group_by("id").len().filter(pl.col("len") > 1).select("id")
            batch = batch.without(known_rows(old, batch, repeated, rules))
        met = concerned(old, batch, rules)
        parts = [chain(met, batch.frame.collect(), rules)]
        if snapshot is not None:
            everything = Batch(rows.lazy(), rows.height, SCHEMA, tuple(SCHEMA))
            parts.append(close_missing(old, everything, ["id"], snapshot, {}))
        for part in parts:
            names = ["id", "__valid_from"]
            kept = self.frame.join(part.going, on=names, how="anti", nulls_equal=True)
            assert kept.height + part.going.height == self.frame.height
            assert part.coming.height == part.inserted + part.updated
            assert part.going.height == part.updated + part.deleted
            self.frame = pl.concat([kept, part.coming.select(list(SCHEMA))])
        return parts[0]

    def versions(self):
        named = ["id", "v", "__valid_from", "__valid_to", "__is_current"]
        return sorted(self.frame.select(named).rows(), key=str)


def check_invariants(versions):
    by_key = {}
    for key, _, since, until, current in versions:
        assert until is None or since < until
        assert current == (until is None)
        by_key.setdefault(key, []).append((since, until))
    for spans in by_key.values():
        spans.sort()
        assert sum(until is None for _, until in spans) <= 1
        for (_, until), (since, _) in pairwise(spans):
            assert until is not None
            assert until <= since


KEYS = st.sampled_from([None, 1, 2])
VALUES = st.sampled_from([None, "a", "b"]).map(lambda one: (one,))
EVENTS = st.tuples(KEYS, st.integers(0, 6).map(at), VALUES)
"""Few keys, instants and values, so that everything meets everything."""


def one_per_instant(events):
    return list({(key, instant): (key, instant, value) for key, instant, value in events}.values())


BATCHES = st.lists(st.lists(EVENTS, max_size=6).map(one_per_instant), min_size=1, max_size=5)


@given(BATCHES, st.booleans())
@settings(max_examples=80)
def test_any_batches_in_any_order_give_what_the_model_gives(batches, settle):
    model, table = Model(), Table()
    for batch in batches:
        model.load(batch)
        table.load(batch, settle=settle)
        assert table.versions() == model.versions()
        check_invariants(table.versions())


@given(BATCHES, st.booleans())
@settings(max_examples=80)
def test_snapshots_close_and_reopen_keys_as_the_model_does(batches, settle):
    model, table = Model(), Table()
    for number, batch in enumerate(batches):
        now = at(number * 2)
        model.load(batch, snapshot=now)
        table.load(batch, snapshot=now, settle=settle)
        assert table.versions() == model.versions()
        check_invariants(table.versions())
        held = {key for key, *_ in batch}
        assert {row[0] for row in table.versions() if row[4]} == held


@given(BATCHES)
@settings(max_examples=50)
def test_a_batch_that_is_loaded_again_changes_nothing(batches):
    """W13."""
    table = Table()
    for batch in batches:
        table.load(batch)
        before = table.frame
        again = table.load(batch)
        assert (again.inserted, again.updated, again.deleted) == (0, 0, 0)
        assert table.frame.equals(before)


@given(st.lists(EVENTS, max_size=10).map(one_per_instant), st.randoms())
@settings(max_examples=50)
def test_events_that_arrive_in_time_order_give_one_table_however_they_are_cut(events, random):
    """Repeats do no harm, and a replay of everything in the end neither."""
    ordered = sorted(events, key=lambda one: one[1])
    whole, cut = Table(), Table()
    whole.load(ordered)
    while ordered:
        size = random.randint(1, len(ordered))
        part, ordered = ordered[:size], ordered[size:]
        for _ in range(random.randint(1, 2)):
            cut.load(part)
    assert cut.versions() == whole.versions()
    cut.load(sorted(events, key=lambda one: one[1]))
    assert cut.versions() == whole.versions()


@st.composite
def never_twice(draw):
    """Events of keys whose values never come back: 0, 0, 1, 2, 2, …"""
    events = []
    for key in (1, 2):
        days = sorted(draw(st.sets(st.integers(0, 8), max_size=5)))
        value = 0
        for day in days:
            value += draw(st.integers(0, 1))
            events.append((key, at(day), (str(value),)))
    return events


@given(never_twice(), st.randoms())
@settings(max_examples=80)
def test_values_that_never_come_back_give_one_table_in_any_order(events, random):
    whole, cut = Table(), Table()
    whole.load(events)
    repeats = random.choices(events, k=3) if events else []
    shuffled = random.sample(events, len(events)) + repeats
    while shuffled:
        size = random.randint(1, len(shuffled))
        cut.load(shuffled[:size])
        shuffled = shuffled[size:]
    assert cut.versions() == whole.versions()


@given(st.lists(EVENTS, max_size=10).map(one_per_instant), st.randoms())
@settings(max_examples=50)
def test_a_replay_of_all_events_heals_what_their_order_of_arrival_lost(events, random):
    whole, cut = Table(), Table()
    whole.load(events)
    for one in random.sample(events, len(events)):
        cut.load([one])
    days = sorted({instant for _, instant, _ in events})
    for day in days:
        cut.load([one for one in events if one[1] == day])
    assert cut.versions() == whole.versions()


def test_a_stored_version_keeps_its_creation_and_an_untouched_one_everything():
    table = Table()
    table.load([(1, at(0), ("a",)), (2, at(0), ("x",))])
    table.load([(1, at(2), ("b",))])
    seen = {
        row[:2]: row[2:]
        for row in table.frame.select("id", "v", "__created_at", "__updated_at").rows()
    }
    assert seen[1, "a"] == (at(1001), at(1002))
    assert seen[1, "b"] == (at(1002), at(1002))
    assert seen[2, "x"] == (at(1001), at(1001))


def test_what_is_stored_twice_or_open_twice_is_put_right_when_its_key_is_loaded():
    """W13, W14: tables that another tool has written."""
    broken = [
        (1, "a", at(0), at(31), False, at(0), at(0)),
        (1, "b", at(31), None, True, at(0), at(0)),
        (1, "c", at(14), None, True, at(0), at(0)),
        (1, "c", at(14), None, True, at(0), at(0)),
    ]
    rows = pl.DataFrame(broken, schema=SCHEMA, orient="row").with_columns(pl.lit("f").alias(FILE))
    done = chain(rows, rows_of([(1, at(31), ("b",))], at(0)), RULES)
    stays = rows.join(done.going, on=["id", "__valid_from"], how="anti")
    table = pl.concat([stays.select(list(SCHEMA)), done.coming.select(list(SCHEMA))])
    named = table.sort("__valid_from").select("v", "__valid_from", "__valid_to", "__is_current")
    assert named.rows() == [
        ("a", at(0), at(14), False),
        ("c", at(14), at(31), False),
        ("b", at(31), None, True),
    ]
