"""Types: what is stored as what, and what is refused with a way out."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.types import delta_name, stored_type, united


def test_unsigned_integers_keep_their_values(lake):
    """types-unsigned-overflow."""
    lake.load(
        pl.DataFrame(
            {
                "a": [0, 133, 200],
                "b": [1, 65_535, 3],
                "c": [1, 2, 3_000_000_000],
                "d": [0, 1, 2**64 - 1],
            },
            schema={"a": pl.UInt8, "b": pl.UInt16, "c": pl.UInt32, "d": pl.UInt64},
        )
    )
    assert lake.load(pl.DataFrame({"a": [1]}, schema={"a": pl.UInt8})).schema == {
        "a": "short",
        "b": "integer",
        "c": "long",
        "d": "decimal(20,0)",
    }
    assert (200, 3, 3_000_000_000, Decimal(2**64 - 1)) in lake.rows()


def test_wide_integers_are_decimals_if_they_fit(lake):
    lake.load(pl.DataFrame({"v": [2**100]}, schema={"v": pl.Int128}))
    assert lake.rows() == [(Decimal(2**100),)]
    with pytest.raises(WriteError, match=f"column 'v': {2**127 - 1} is not exact as decimal"):
        lake.load(pl.DataFrame({"v": [2**127 - 1]}, schema={"v": pl.Int128}))


def test_types_that_delta_lacks_are_named_all_at_once(lake):
    """types-time-duration-categorical."""
    frame = pl.DataFrame(
        {
            "at": [time(10, 30)],
            "took": [timedelta(seconds=5)],
            "grade": pl.Series(["A"], dtype=pl.Categorical),
            "deep": [{"x": [time(1)]}],
        }
    )
    with pytest.raises(WriteError) as raised:
        lake.load(frame)

    assert raised.value.code == "unsupported_type"
    for told in ("'at' is time", "'took' is duration", "'deep' is struct", "CAST(x AS VARCHAR)"):
        assert told in str(raised.value)
    assert "grade" not in str(raised.value)
    assert lake.asked == []


def test_categories_and_enums_are_text(lake):
    lake.load(
        pl.DataFrame(
            {"c": ["A", None], "e": ["x", "y"]},
            schema={"c": pl.Categorical, "e": pl.Enum(["x", "y"])},
        )
    )
    assert lake.rows() == [(None, "y"), ("A", "x")]


def test_a_column_without_any_value_is_text_until_told_otherwise(lake):
    """se-all-null-column, db-all-null-text-column-to-delta, W59."""
    lake.load(pl.DataFrame({"name": ["kim"], "gender": [None], "deep": [[{"x": None}]]}))
    result = lake.load(pl.DataFrame({"name": ["lee"], "gender": ["f"]}))
    assert result.schema == {
        "name": "string",
        "gender": "string",
        "deep": "array<struct<x:string>>",
    }

    lake.load(pl.DataFrame({"name": ["mo"], "n": [1]}))
    lake.load(pl.DataFrame({"name": [None], "gender": [None], "n": [None]}))
    assert lake.rows("name", "gender", "n") == [
        (None, None, None),
        ("kim", None, None),
        ("lee", "f", None),
        ("mo", None, 1),
    ]


def test_zones_are_converted_and_their_absence_is_kept(lake):
    lake.load(
        pl.DataFrame({"z": [datetime(2026, 1, 1)], "n": [datetime(2026, 1, 1)]}).with_columns(
            pl.col("z").dt.replace_time_zone("America/New_York")
        )
    )
    assert lake.rows() == [(datetime(2026, 1, 1, 5, tzinfo=UTC), datetime(2026, 1, 1))]
    assert [str(f.type) for f in lake.table.schema().fields] == [
        'PrimitiveType("timestamp")',
        'PrimitiveType("timestamp_ntz")',
    ]


def test_a_table_without_plain_timestamps_keeps_the_low_protocol(lake):
    lake.load(pl.DataFrame({"z": [datetime(2026, 1, 1, tzinfo=UTC)]}))
    assert lake.table.protocol().min_reader_version == 1


def test_nanoseconds_are_kept_if_they_are_whole_microseconds(lake):
    """types-nanoseconds-to-microseconds."""
    exact = pl.DataFrame({"ts": pl.Series([1_000, None, -2_000]).cast(pl.Datetime("ns"))})
    lake.load(exact)
    assert lake.rows()[1:] == [
        (datetime(1969, 12, 31, 23, 59, 59, 999998),),
        (datetime(1970, 1, 1, 0, 0, 0, 1),),
    ]

    lossy = pl.DataFrame({"id": [1, 2], "ts": pl.Series([1, 2]).cast(pl.Datetime("ns"))})
    with pytest.raises(
        WriteError, match=r"column 'ts': 1970-01-01 00:00:00.00000000[12] is not exact"
    ):
        lake.load(lossy)
    nested = pl.DataFrame({"s": [{"ts": 1}]}).cast({"s": pl.Struct({"ts": pl.Datetime("ns")})})
    with pytest.raises(WriteError, match="column 's'"):
        lake.load(nested)
    assert len(lake.rows()) == 3


def test_milliseconds_and_arrays_are_stored(lake):
    frame = pl.DataFrame(
        {"ms": [datetime(2026, 1, 1)], "a": [[1, 2]]},
        schema={"ms": pl.Datetime("ms"), "a": pl.Array(pl.UInt8, 2)},
    )
    lake.load(frame)
    assert lake.rows() == [(datetime(2026, 1, 1), [1, 2])]


def test_every_plain_type_comes_back(lake):
    frame = pl.DataFrame(
        {
            "i8": pl.Series([1], dtype=pl.Int8),
            "f32": pl.Series([0.5], dtype=pl.Float32),
            "b": [True],
            "bin": [b"\x00\xff"],
            "d": [date(9999, 12, 31)],
            "old": [date(1, 1, 1)],
            "dec": pl.Series([Decimal("-1.50")], dtype=pl.Decimal(38, 2)),
            "ts": [datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
            "t0": [datetime(1, 1, 1)],
            "s": [{"a": [{"b": None}]}],
        },
        strict=False,
    )
    lake.load(frame)
    lake.load(frame)
    (one, two) = lake.rows(sort=False)
    assert one == two
    assert one[:9] == frame.row(0)[:9]


def test_the_schema_after_each_load_type_is_that_of_the_frame(lake):
    frame = pl.DataFrame({"id": [1], "x": ["a"]})
    for load_type in ("append", "overwrite", "full_load", "merge_upsert"):
        lake.path = lake.path.parent / load_type
        for more in (frame, frame.with_columns(y=pl.lit(1.5)), frame.with_columns(z=pl.lit(1))):
            keys = ("id",) if load_type == "merge_upsert" else ()
            result = lake.load(more, load_type, keys=keys)
            stored = pl.Schema(lake.table.schema())
            assert set(stored) >= set(more.columns)
            assert result.schema == {name: delta_name(kind) for name, kind in stored.items()}
            assert lake.rows(*more.columns)


TYPES = st.sampled_from(
    [pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.UInt8(), pl.UInt32(), pl.Float32(), pl.Float64(),
     pl.Decimal(5, 2), pl.Decimal(20, 0), pl.String(), pl.Boolean(), pl.Date(), pl.Datetime("us"),
     pl.Datetime("ms", "UTC"), pl.Null()]
)  # fmt: skip


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(batch=TYPES, table=TYPES)
def test_a_type_that_fits_never_changes_a_value(batch, table):
    stored, kept = stored_type(batch), stored_type(table)
    assert stored is not None
    assert kept is not None
    if pl.Null() in (kept, batch) or united(stored, kept) is None:
        return
    small = pl.Series("v", [1, 0, None]).cast(pl.Int8)
    if not batch.is_numeric():
        assert stored == kept
        return
    values = small.cast(batch)
    assert values.cast(kept).cast(pl.Int8).to_list() == values.cast(pl.Int8).to_list()
    if kept != stored and not stored.is_decimal():
        assert united(kept, stored) is None
