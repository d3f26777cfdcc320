"""Other engines read what we write, change it, and our next load is still right.

DuckDB reads through its own delta extension where that is installed, else through delta-rs's Arrow
data set. Spark Connect is served by Sail, in this process, on the loopback address.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from datacoolie_core.plan.windows import Window

LOAD_TYPES = ["append", "overwrite", "merge_upsert", "merge_overwrite", "scd2", "window", "refresh"]
AWKWARD = ["unit price", "a.b", 'say "hi"', "naïve", "order", "Cap", "1st", "tick`s"]


def by_spark(spark, lake) -> pl.DataFrame:
    return pl.DataFrame(spark.read.format("delta").load(lake.uri).toArrow())


def by_duckdb(lake) -> pl.DataFrame:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            connection.execute("LOAD delta")
            source = connection.sql(f"FROM delta_scan('{lake.uri}')")
        except duckdb.Error:
            source = connection.from_arrow(lake.table.to_pyarrow_dataset())
        return source.pl()


def seen(frame: pl.DataFrame, columns: list[str]) -> list[str]:
    """Rows as text, in the order of the first column; instants by what they are in UTC."""

    def plain(value: Any) -> Any:
        if isinstance(value, datetime) and value.tzinfo:
            return value.astimezone(UTC).isoformat()
        if isinstance(value, float):
            return "nan" if math.isnan(value) else value + 0.0
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items()}
        return [plain(one) for one in value] if isinstance(value, list) else value

    rows = frame.select(columns).rows()
    return sorted(str(tuple(plain(value) for value in row)) for row in rows)


def check(spark, lake, columns: list[str] | None = None) -> None:
    """Every engine sees the same rows of the table."""
    ours = pl.scan_delta(lake.uri).collect()
    names = columns or ours.columns
    expected = seen(ours, names)
    assert seen(by_spark(spark, lake), names) == expected
    assert seen(by_duckdb(lake), names) == expected


def versions_of(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns that the transforms add for a history; changed rows begin later."""
    instant = pl.Datetime("us", "UTC")
    since = pl.datetime(2025, 1, 1, time_zone="UTC") + pl.duration(days=frame.width)
    return frame.with_columns(
        since.cast(instant).alias("__valid_from"),
        pl.lit(None, dtype=instant).alias("__valid_to"),
        pl.lit(value=True).alias("__is_current"),
    )


def load(lake, load_type, frame, **given):
    if load_type == "window":
        given |= {"mode": "replace_window", "window": Window("id", 2, 5)}
        frame = frame.filter(pl.col("id").is_between(2, 4))
    if load_type == "refresh":
        given |= {"mode": "replace_all"}
    kind = {"window": "append", "refresh": "append"}.get(load_type, load_type)
    keys = ("id",) if "merge" in kind or kind == "scd2" else ()
    if kind == "scd2":
        frame = versions_of(frame)
    return lake.load(frame, kind, keys=keys, **given)


FRAME = pl.DataFrame(
    {
        "id": [1, 2, 3],
        "part": ["a b", None, "c/d=%41"],
        "at": [datetime(2025, 1, 1, 12, tzinfo=UTC), None, datetime(1969, 1, 1, tzinfo=UTC)],
        "clock": [datetime(2025, 1, 1, 12, 0, 0, 123456), None, datetime(1, 1, 1)],
        "day": [date(2025, 1, 1), None, date(1900, 1, 1)],
        "dec": pl.Series([Decimal("1.50"), None, Decimal("-9.00")], dtype=pl.Decimal(38, 2)),
        "f": [1.5, math.nan, None],
        "b": [True, None, False],
        "bin": [b"\0x", None, b""],
        "l": [[1, None], None, []],
        "s": [{"a": 1, "b": [{"c": "x"}]}, None, {"a": None, "b": None}],
        "u": pl.Series([0, 255, None], dtype=pl.UInt8),
        "none": [None, None, None],
        **{name: ["x", None, "y"] for name in AWKWARD},
    }
)
PARTITIONS = [(), ("part",), ("day", "part", "dec", "b", "at", "unit price", "a.b", "tick`s")]


@pytest.mark.parametrize("partition_by", PARTITIONS, ids=len)
@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_every_engine_reads_the_same_after_each_load_type(spark, lake, load_type, partition_by):
    load(lake, load_type, FRAME, partition_by=partition_by)
    check(spark, lake)
    changed = FRAME.with_columns(id=pl.col("id") + 1, more=pl.lit(1.5), f=-pl.col("f"))
    load(lake, load_type, changed, partition_by=partition_by)
    check(spark, lake)


@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_statistics_let_other_engines_skip_only_what_they_may(spark, lake, load_type):
    """Files that a filter can't need are skipped by our statistics: never one that it needs."""
    for shift in (0, 3):
        load(lake, load_type, FRAME.with_columns(id=pl.col("id") + shift))
    spark_rows = spark.read.format("delta").load(lake.uri)
    ours = pl.scan_delta(lake.uri).collect()
    filters = {
        "at <= timestamp'1969-01-01 00:00:00'": pl.col("at") <= datetime(1969, 1, 1, tzinfo=UTC),
        "dec < 0": pl.col("dec") < 0,
        "day = date'2025-01-01'": pl.col("day") == date(2025, 1, 1),
        "f is null": pl.col("f").is_null(),
        "clock >= timestamp_ntz'2025-01-01 12:00:00.123456'": pl.col("clock")
        >= datetime(2025, 1, 1, 12, 0, 0, 123456),
        "part = 'c/d=%41'": pl.col("part") == "c/d=%41",
        "id > 3": pl.col("id") > 3,
    }
    for text, expression in filters.items():
        assert spark_rows.where(text).count() == ours.filter(expression).height, text


def rows_of(lake) -> list[tuple[Any, ...]]:
    return lake.rows("id", "v", "p")


def small(*ids, v):
    return pl.DataFrame({"id": list(ids), "v": [v] * len(ids), "p": [n % 2 for n in ids]})


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=len)
@pytest.mark.parametrize("load_type", ["append", "merge_upsert", "merge_overwrite", "window"])
def test_what_spark_changes_is_respected_by_the_next_load(spark, lake, load_type, partition_by):
    load(lake, load_type if load_type != "window" else "append", small(1, 2, 3, 4, v="a"),
         partition_by=partition_by)  # fmt: skip
    table = f"delta.`{lake.uri}`"
    spark.sql(f"DELETE FROM {table} WHERE id = 1").collect()
    spark.sql(f"UPDATE {table} SET v = 'spark' WHERE id = 2").collect()
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id + 2 AS id, 'merged' AS v, p FROM {table}"
        " WHERE id > 2) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = s.v"
        " WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    added = spark.sql("SELECT CAST(8 AS BIGINT) id, 'new' v, CAST(0 AS BIGINT) p")
    writer = added.write.format("delta").mode("append")
    (writer.partitionBy(*partition_by) if partition_by else writer).save(lake.uri)
    stored = [(2, "spark", 0), (3, "a", 1), (4, "a", 0), (5, "merged", 1), (6, "merged", 0)]
    stored.append((8, "new", 0))
    assert rows_of(lake) == stored

    result = load(lake, load_type, small(2, 3, 8, v="b"), partition_by=partition_by)
    ours = {
        "append": [(2, "b", 0), (3, "b", 1), (8, "b", 0), *stored],
        "window": [(2, "b", 0), (3, "b", 1), *stored[3:]],
    }
    merged = [(2, "b", 0), (3, "b", 1), *stored[2:5], (8, "b", 0)]
    assert rows_of(lake) == sorted(ours.get(load_type, merged))
    assert result.table_rows == len(rows_of(lake))
    check(spark, lake)


@pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite"])
def test_a_table_that_spark_made_is_merged_into(spark, lake, load_type):
    # a column that may be null: Sail can't read text of others' files in one that may not
    made = spark.sql(
        "SELECT CAST(id AS BIGINT) id, CASE WHEN id > 0 THEN 'a' END v, CAST(id % 2 AS BIGINT) p,"
        " TIMESTAMP'2025-01-01 00:00:00' at, CAST(1.5 AS DECIMAL(9,2)) `unit price`"
        " FROM range(1, 6)"
    )
    made.write.format("delta").partitionBy("p").save(lake.uri)
    batch = small(2, 3, 9, v="b").with_columns(
        pl.lit(datetime(2025, 1, 1, tzinfo=UTC)).alias("at"),
        pl.lit(Decimal("2.25"), pl.Decimal(5, 2)).alias("unit price"),
    )
    result = load(lake, load_type, batch)
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    assert rows_of(lake)[1:3] == [(2, "b", 0), (3, "b", 1)]
    assert len(rows_of(lake)) == 6
    check(spark, lake)
