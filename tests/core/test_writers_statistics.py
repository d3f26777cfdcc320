"""Statistics and partition values: what other readers skip files by must hold."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

import polars as pl
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st


def adds(lake, version: int | None = None):
    number = lake.table.version() if version is None else version
    log = lake.path / "_delta_log" / f"{number:020}.json"
    return [
        action["add"]
        for action in map(json.loads, log.read_text(encoding="utf-8").splitlines())
        if "add" in action
    ]


def statistics(lake):
    (add,) = adds(lake)
    return json.loads(add["stats"], parse_float=Decimal)


def test_statistics_are_those_of_the_protocol(lake):
    lake.load(
        pl.DataFrame(
            {
                "i": [3, None, 1],
                "s": ["a" * 40, "z" * 40, None],
                "d": [date(2026, 1, 2), date(2026, 1, 1), None],
                "ts": [datetime(2026, 1, 1, 0, 0, 0, 123456)] * 3,
                "z": [datetime(2026, 1, 1, 0, 0, 0, 123000, tzinfo=UTC)] * 3,
                "dec": pl.Series(["12345678901234567890.12", "-0.5", None]).cast(pl.Decimal(38, 2)),
                "b": [True, False, None],
                "bin": [b"x", None, None],
                "st": [{"a": 1}] * 3,
                "none": pl.Series([None] * 3, dtype=pl.Int64),
            }
        )
    )
    assert statistics(lake) == {
        "numRecords": 3,
        "minValues": {
            "i": 1,
            "s": "a" * 32,
            "d": "2026-01-01",
            "ts": "2026-01-01T00:00:00.123",
            "z": "2026-01-01T00:00:00.123Z",
            "dec": Decimal("-0.50"),
            "b": False,
        },
        "maxValues": {
            "i": 3,
            "s": "z" * 32 + "\U0010ffff",
            "d": "2026-01-02",
            "ts": "2026-01-01T00:00:00.124",
            "z": "2026-01-01T00:00:00.123Z",
            "dec": Decimal("12345678901234567890.12"),
            "b": True,
        },
        "nullCount": {
            "i": 1, "s": 1, "d": 1, "ts": 0, "z": 0, "dec": 1, "b": 1, "none": 3,
        },
    }  # fmt: skip


def test_a_float_column_with_nan_or_infinity_has_no_false_bound(lake):
    lake.load(
        pl.DataFrame(
            {
                "nan": [1.0, float("nan")],
                "inf": [1.0, float("inf")],
                "low": [float("-inf"), 2.0],
                "plain": [1.5, 2.5],
            }
        )
    )
    found = statistics(lake)
    assert found["minValues"] == {"plain": Decimal("1.5")}
    assert found["maxValues"] == {"plain": Decimal("2.5")}
    # delta-rs's own pyarrow data set takes a missing bound for an empty range, with its own files
    # as well; every other reader is right
    for column in ("nan", "inf"):
        assert pl.scan_delta(lake.uri).filter(pl.col(column) > 5).collect().height == 1
    assert lake.table.to_pyarrow_table(filters=[("plain", ">", 2.0)]).num_rows == 1


def test_only_the_first_columns_have_statistics_and_those_that_loads_search_by(lake):
    frame = pl.DataFrame({f"c{n}": [n] for n in range(40)} | {"id": [1], "__updated_at": [5]})
    lake.merge(frame)
    names = set(statistics(lake)["minValues"])
    assert names == {f"c{n}" for n in range(32)} | {"id", "__updated_at"}


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"delta.dataSkippingNumIndexedCols": "1"}, {"a"}),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {"a", "b", "c"}),
        ({"delta.dataSkippingNumIndexedCols": "0"}, set()),
        ({"delta.dataSkippingStatsColumns": "b,`c`"}, {"b", "c"}),
    ],
)
def test_the_tables_own_properties_say_which_columns(lake, configuration, expected):
    frame = pl.DataFrame({"a": [1], "b": [1], "c": [1]})
    write_deltalake(lake.uri, frame, configuration=configuration)
    lake.load(frame)
    assert set(statistics(lake)["minValues"]) == expected


def test_partition_values_are_written_as_the_protocol_encodes_them(lake):
    """pb-decimal-and-date-partition-types."""
    frame = pl.DataFrame(
        {
            "p": [Decimal("1.5")],
            "d": [date(2026, 1, 2)],
            "b": [True],
            "ts": [datetime(2026, 1, 2, 3, 4, 5)],
            "z": [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)],
            "n": [None],
            "v": [1],
        },
        schema_overrides={"p": pl.Decimal(10, 2), "n": pl.Int32},
    )
    lake.load(frame, partition_by=("p", "d", "b", "ts", "z", "n"))

    (add,) = adds(lake)
    assert add["partitionValues"] == {
        "p": "1.50",
        "d": "2026-01-02",
        "b": "true",
        "ts": "2026-01-02 03:04:05.000000",
        "z": "2026-01-02 03:04:05.000006",
        "n": None,
    }
    lake.load(frame.with_columns(v=pl.lit(2)), partition_by=())
    assert lake.table.to_pyarrow_table(filters=[("p", "=", Decimal("1.50"))]).num_rows == 2
    stored = pl.DataFrame(lake.table.to_pyarrow_table()).select(frame.columns)
    assert stored.drop("v").rows() == [frame.drop("v").row(0)] * 2


def test_partition_columns_have_no_statistics(lake):
    lake.load(pl.DataFrame({"p": [1], "v": [1]}), partition_by=("p",))
    assert set(statistics(lake)["nullCount"]) == {"v"}


VALUES = {
    "i": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    "s": st.one_of(st.none(), st.text(max_size=80)),
    "f": st.one_of(st.none(), st.floats()),
    "t": st.one_of(st.none(), st.datetimes()),
    "d": st.one_of(st.none(), st.dates()),
    "b": st.one_of(st.none(), st.booleans()),
}
SCHEMA = {
    "i": pl.Int64,
    "s": pl.String,
    "f": pl.Float64,
    "t": pl.Datetime("us", "UTC"),
    "d": pl.Date,
    "b": pl.Boolean,
}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), column=st.sampled_from(sorted(VALUES)))
def test_no_filter_ever_loses_a_row_by_statistics(lake, data, column):
    """Files are skipped by polars and by delta-rs; both must find every stored value."""
    lake.path = lake.path.parent / uuid4().hex
    kept = []
    for _ in range(2):
        values = data.draw(st.lists(VALUES[column], min_size=1, max_size=5))
        series = pl.Series(column, values, dtype=SCHEMA[column])
        kept.append(series)
        lake.load(series.to_frame())
    stored = pl.concat(kept)
    bound = data.draw(st.sampled_from(stored.to_list()))
    if bound is None:
        return
    literal = pl.lit(bound, dtype=SCHEMA[column])
    for condition in (
        pl.col(column) >= literal,
        pl.col(column) <= literal,
        pl.col(column) == literal,
    ):
        expected = stored.to_frame().filter(condition).height
        assert pl.scan_delta(lake.uri).filter(condition).collect().height == expected
    if column != "f":
        arrow = lake.table.to_pyarrow_table(filters=[(column, "=", bound)])
        assert arrow.num_rows == stored.to_frame().filter(pl.col(column) == literal).height


@pytest.mark.parametrize(
    "text", ["ü" * 63, "\U00020000" * 40, "a" + "€" * 50, "\U0010ffff" * 33, "x" * 64]
)
def test_long_text_is_found_whatever_its_characters(lake, text):
    lake.load(pl.DataFrame({"s": [text, "a"]}))
    found = statistics(lake)
    assert found["minValues"]["s"] == "a"
    assert found["maxValues"]["s"].encode() >= text[:32].encode()
    for value in (text, "a"):
        assert lake.table.to_pyarrow_table(filters=[("s", "=", value)]).num_rows == 1
        assert pl.scan_delta(lake.uri).filter(pl.col("s") == value).collect().height == 1


def test_the_end_of_all_time_is_found(lake):
    end = datetime.max.replace(tzinfo=UTC)
    lake.load(pl.DataFrame({"t": [end]}))
    assert lake.table.to_pyarrow_table(filters=[("t", "=", end)]).num_rows == 1
    assert pl.scan_delta(lake.uri).filter(pl.col("t") == end).collect().height == 1
