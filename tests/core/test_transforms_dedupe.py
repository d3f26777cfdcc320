"""One row a key, the newest: slot 20."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.metadata.models import Transform
from datacoolie_core.transforms.dedupe import SLOT
from datacoolie_core.transforms.slots import Shaped
from tests.core.conftest import dataflow
from tests.core.transformed import context, refused, rows

KEYED = {"deduplicate_columns": ["K"], "latest_data_columns": ["TS"]}


def test_the_newest_row_of_a_key_stays(reading):
    frame = pl.DataFrame({"k": [1, 1, 2], "ts": [1, 2, 1], "v": ["old", "new", "only"]})
    found = rows(reading, frame, transform=KEYED)
    assert sorted((row["k"], row["v"]) for row in found) == [(1, "new"), (2, "only")]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_row_without_an_order_value_is_the_oldest(reading, nothing):
    """W23."""
    frame = pl.DataFrame(
        {"k": [1, 1, 2], "ts": [nothing, 5.0, nothing], "v": ["null", "five", "only"]}
    )
    found = rows(reading, frame, transform=KEYED)
    assert sorted((row["k"], row["v"]) for row in found) == [(1, "five"), (2, "only")]


def test_null_keys_are_one_key(reading):
    frame = pl.DataFrame({"k": [None, None], "ts": [1, 2]}, schema={"k": pl.Int64, "ts": pl.Int64})
    assert rows(reading, frame, transform=KEYED) == [{"k": None, "ts": 2}]


def test_ties_are_settled_by_the_other_columns_whatever_the_order_of_rows(reading):
    """W25."""
    frame = pl.DataFrame(
        {
            "k": [n % 7 for n in range(500)],
            "ts": [1] * 500,
            "v": list(range(500)),
            "n": [None] * 500,
        }
    )
    results = [
        sorted(tuple(row.values()) for row in rows(reading, frame.sample(fraction=1, shuffle=True, seed=seed), transform=KEYED))
        for seed in (1, 2, 3)
    ]  # fmt: skip
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 7


def test_rank_keeps_the_rows_that_tie(reading):
    """W24."""
    transform = {**KEYED, "configure": {"deduplicate_by_rank": True}}
    frame = pl.DataFrame({"k": [1, 1, 1, 2, 2], "ts": [5, 5, 4, None, None], "v": [1, 2, 3, 4, 5]})
    found = rows(reading, frame, transform=transform)
    assert sorted(row["v"] for row in found) == [1, 2, 4, 5]


def test_merge_keys_and_watermark_are_what_is_meant_without_more_words(reading):
    merge = {"load_type": "merge_upsert", "merge_keys": ["id"]}
    frame = pl.DataFrame({"id": [1, 1], "ts": [1, 2]})
    assert rows(reading, frame, destination=merge, watermark=["ts"]) == [{"id": 1, "ts": 2}]
    assert len(rows(reading, frame, destination=merge)) == 2


def test_numbers_in_text_are_ordered_as_numbers(reading):
    frame = pl.DataFrame({"k": [1, 1], "ts": ["9", "10"]})
    assert rows(reading, frame, transform=KEYED) == [{"k": 1, "ts": "10"}]


@pytest.mark.parametrize(
    ("dtype", "old", "new"),
    [
        (pl.Decimal(20, 2), Decimal("9.50"), Decimal("10.00")),
        (pl.Datetime("ns"), datetime(2024, 1, 1), datetime(2024, 1, 2)),
        (pl.Boolean, False, True),
        (pl.Enum(["low", "high"]), "low", "high"),
        (pl.String, "2024-01-31", "2024-02-01"),
        (pl.Float64, -math.inf, 0.0),
    ],
)
def test_every_type_that_has_an_order_says_what_is_newest(reading, dtype, old, new):
    ts = pl.Series([old, None, new, old], dtype=dtype)
    frame = pl.DataFrame({"k": [1, 1, 1, 1], "ts": ts, "v": ["old", "null", "new", "old"]})
    assert [row["v"] for row in rows(reading, frame, transform=KEYED)] == ["new"]


def test_later_order_columns_decide_where_earlier_ones_tie(reading):
    both = {"deduplicate_columns": ["k"], "latest_data_columns": ["day", "no"]}
    frame = pl.DataFrame({"k": [1] * 4, "day": [1, 2, 2, 2], "no": [9, 1, None, 2]})
    assert rows(reading, frame, transform=both) == [{"k": 1, "day": 2, "no": 2}]


NESTED = {
    "l": pl.Series([[1, 2], [1, 3], None]),
    "s": pl.Series([{"x": 1}, {"x": 2}, None]),
    "b": pl.Series([b"a", b"b", None]),
    "c": pl.Series(["a", "b", None], dtype=pl.Categorical),
}


@pytest.mark.parametrize("name", list(NESTED))
def test_ties_are_settled_by_columns_of_any_type(reading, name):
    """W25."""
    frame = pl.DataFrame({"k": [1, 1, 1], "ts": [1, 1, 1], name: NESTED[name]})
    kept = [rows(reading, frame[order], transform=KEYED) for order in ([0, 1, 2], [2, 1, 0])]
    assert kept[0] == kept[1]
    assert kept[0][0][name] == NESTED[name].to_list()[1]


ORDERS = st.none() | st.sampled_from([math.nan, -1.0, 0.0, 1.0, 2.5])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.none() | st.integers(0, 3),
            "x": ORDERS,
            "y": st.none() | st.sampled_from(["a", "9", "10", ""]),
            "v": st.none() | st.integers(0, 2),
        }
    ),
    max_size=12,
)
SCHEMA = {"k": pl.Int64, "x": pl.Float64, "y": pl.String, "v": pl.Int64}


def newest(row: dict[str, Any]) -> list[tuple[bool, Any]]:
    """What Python orders as the rule says: null and NaN are the oldest, numbers in text count."""
    x, y = row["x"], row["y"]
    number = float(y) if y and y.isdigit() else None
    given = ((None if x is None or math.isnan(x) else x, 0.0), (number, 0.0), (y, ""))
    return [(value is not None, nothing if value is None else value) for value, nothing in given]


def _kept(found: list[dict[str, Any]], **given: Any) -> list[dict[str, Any]]:
    transform = Transform(
        deduplicate_columns=("k",), latest_data_columns=("x", "y"), configure=given
    )
    flow = dataflow().model_copy(update={"transform": transform})
    frame = pl.DataFrame(found, schema=SCHEMA).lazy()
    return (
        SLOT.apply(Shaped(frame, dict(frame.collect_schema())), flow, context())
        .frame.collect(engine="streaming")
        .to_dicts()
    )


def _told(found: list[dict[str, Any]]) -> list[str]:
    return sorted(_text(row) for row in found)


def _text(row: dict[str, Any]) -> str:
    return str([row[name] for name in SCHEMA])


@given(ROWS, st.randoms())
def test_any_rows_leave_the_newest_of_each_key(found, random):
    """W23, W24, W25."""
    keys = {row["k"] for row in found}
    best = {key: max(newest(row) for row in found if row["k"] == key) for key in keys}
    tied = [row for row in found if newest(row) == best[row["k"]]]
    assert _told(_kept(found, deduplicate_by_rank=True)) == _told(tied)
    kept = _kept(found)
    assert len(kept) == len(keys)
    assert all(_text(row) in _told(tied) for row in kept)
    shuffled = list(found)
    random.shuffle(shuffled)
    assert _told(_kept(shuffled)) == _told(kept)


# What stands in for what is not given


@pytest.mark.parametrize(
    ("load_type", "own", "rows_left"),
    [
        ("merge_overwrite", {}, 2),
        ("merge_upsert", {}, 1),
        ("merge_overwrite", {"deduplicate_columns": ["id"]}, 1),
        ("merge_upsert", {"configure": {"deduplicate_by_rank": True}}, 2),
    ],
)
def test_merge_overwrite_keeps_ties_unless_keys_are_named(reading, load_type, own, rows_left):
    """W24: a key may stand for several rows there."""
    frame = pl.DataFrame({"id": [1, 1, 1], "ts": [2, 2, 1], "v": [1, 2, 3]})
    destination = {"load_type": load_type, "merge_keys": ["id"]}
    found = rows(reading, frame, destination=destination, watermark=["ts"], transform=own)
    assert len(found) == rows_left
    assert 3 not in [row["v"] for row in found]


@pytest.mark.parametrize("field", ["deduplicate_columns", "latest_data_columns"])
def test_a_missing_column_is_an_error_whatever_the_policy(reading, field):
    transform = {**KEYED, field: ["idd"], "configure": {"missing_column_policy": "ignore"}}
    frame = pl.DataFrame({"k": [1], "ts": [1], "id": [1]})
    message = refused(reading, frame, transform=transform)
    assert f"transform.{field}: there is no column 'idd'. Did you mean 'id'?" in message


def test_merge_keys_that_are_computed_later_are_left_to_the_writer(project):
    project.write("t", "1.parquet", pl.DataFrame({"no": ["a", "A"], "at": [1, 2]}))
    project.flow(
        watermark=["at"],
        load_type="merge_upsert",
        merge_keys=["key"],
        transform={"additional_columns": [{"column": "key", "expression": "LOWER(no)"}]},
    )
    project.run_one()
    assert project.table().select("key", "at").rows() == [("a", 2)]


def test_a_merge_key_by_its_name_in_the_table_is_a_key_here_too(reading):
    """W53."""
    frame = pl.DataFrame({"Order ID": [1, 1], "ts": [1, 2]})
    destination = {"load_type": "merge_upsert", "merge_keys": ["order_id"]}
    found = rows(reading, frame, destination=destination, watermark=["ts"])
    assert found == [{"order_id": 1, "ts": 2}]


# History


def at(day: int) -> datetime:
    return datetime(2024, 1, day, tzinfo=UTC)


def history(reading, frame, watermark, **given) -> list[Any]:
    destination = {
        "load_type": "scd2",
        "merge_keys": ["id"],
        "configure": {"scd2_effective_column": "changed"},
    }
    found = rows(reading, frame, destination=destination, watermark=watermark, **given)
    return sorted(row["v"] for row in found)


def test_rows_of_a_key_are_versions_where_the_watermark_tells_rows_apart(reading):
    """W15."""
    frame = pl.DataFrame({"id": [1, 1], "changed": [at(1), at(2)], "v": [1, 2]})
    assert history(reading, frame, ["changed"]) == [1, 2]
    assert history(reading, frame, []) == [1, 2]


def test_a_file_says_one_thing_of_a_key_where_the_watermark_tells_files_apart(reading):
    """The newest version in each file; files loaded together are versions beside each other."""
    frame = pl.DataFrame(
        {
            "id": [1, 1, 1, 2],
            "changed": [at(1), at(2), at(3), at(1)],
            "v": [1, 2, 3, 4],
            "__file_modification_time": [at(8), at(8), at(9), at(8)],
        }
    )
    assert history(reading, frame, ["__file_modification_time"]) == [2, 3, 4]
    every = {"deduplicate_columns": ["id", "changed"]}
    assert history(reading, frame, ["__file_modification_time"], transform=every) == [1, 2, 3, 4]
