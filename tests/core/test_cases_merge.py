"""Merges as people met them: doubled keys, nulls in keys, odd names, drifting types, late rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType, StructType

MERGES = ("merge_upsert", "merge_overwrite")
NAMES = [
    "1inch", "order", "unit price", "a.b", 'say "hi"', "naïve", "tick`s", "select", "Größe €",
    "a/b", "a,b", "a=b", "a\tb", "x\ny", "it's", "日本", "😀", "Mixed Case", " lead", "trail ",
    "null", "$a", "%41", "a\\b", "^a", "(x)", "{y}",
]  # fmt: skip


@pytest.mark.parametrize("stored", ["7", "8"], ids=["stored key", "new key"])
def test_a_key_that_comes_twice_is_named_and_nothing_is_written(case, stored):
    """merge-source-key-twice-matched, merge-source-key-twice-new, W21."""
    case.load("merge_upsert", "shop", "id")
    case.put(f"shop,id,v\nx,{stored},old\n")
    case.works()
    case.put("shop,id,v\nx,7,b\nx,7,c\nx,9,d\n,4,e\n,4,f\n")
    error = case.fails()
    assert error.code == "duplicate_keys"
    for shown in ("2 keys", "shop='x', id='7' (2 rows)", "id='4'"):
        assert shown in error.message
    assert case.rows("id", "v") == [(stored, "old")]


@pytest.mark.parametrize("column", ["transform", "watermark"])
def test_of_a_key_that_comes_twice_the_newest_row_is_kept(case, column):
    """merge-source-key-twice-matched: an order decides, and null is the oldest."""
    given = {
        "transform": {"transform": {"latest_data_columns": ["seen"]}},
        "watermark": {"watermark": ["seen"], "own_source": {"null_watermark": "include"}},
    }[column]
    case.load("merge_upsert", "id", hints={"seen": "date"}, **given)
    case.put("id,seen,v\n1,2026-01-01,a\n")
    case.works()
    case.put("id,seen,v\n1,2026-01-03,c\n1,2026-01-02,b\n1,,n\n2,,m\n")
    case.works()
    assert case.rows("id", "v") == [("1", "c"), ("2", "m")]


@pytest.mark.parametrize("load_type", [*MERGES, "scd2"])
def test_nulls_in_a_key_are_one_value_and_do_not_grow_with_each_run(case, load_type):
    """merge-null-in-key, W20."""
    case.load(load_type, "campaign", "device")
    for clicks in (5, 5, 6):
        case.put(f"campaign,device,clicks\n10,,{clicks}\n,,{clicks}\n10,tv,1\n")
        result = case.works()
    assert result.rows["rows_unchanged"] == 1
    open_now = "__valid_to IS NULL" if load_type == "scd2" else "true"
    now = case.stored().sql(f"SELECT campaign, device, clicks FROM self WHERE {open_now}")
    expected = [("10", "tv", "1"), ("10", None, "6"), (None, None, "6")]
    assert sorted(now.rows(), key=repr) == sorted(expected, key=repr)


def test_a_hundred_thousand_clean_keys_merge_with_themselves(case):
    """merge-big-clean-batch."""
    keys = pl.DataFrame({"id": range(100_000), "v": range(100_000)})
    case.load("merge_upsert", "id")
    case.put(keys)
    case.works()
    case.put(keys.reverse().with_columns(v=pl.col("v") + 1))
    assert case.works().rows["rows_updated"] == 100_000
    stored = case.stored()
    assert stored.height == 100_000
    assert (stored["v"] - stored["id"]).unique().to_list() == [1]


@pytest.mark.parametrize("key", ["UserCode", "usercode", "USERCODE"])
@pytest.mark.parametrize(("names", "stored"), [("none", "UserCode"), ("lower", "usercode")])
def test_capitals_in_names_are_found_and_kept(case, key, names, stored):
    """merge-mixed-case-columns."""
    case.load("merge_upsert", key, names=names)
    case.put("UserCode,Amount\na,1\n")
    case.works()
    case.put("UserCode,Amount\na,2\nb,3\n")
    case.works()
    assert case.rows(stored, "Amount" if names == "none" else "amount") == [("a", "2"), ("b", "3")]


def test_a_column_that_changes_its_capitals_is_no_second_column(case):
    """merge-mixed-case-columns: most engines could not tell them apart."""
    case.load("merge_upsert", "UserCode", names="none")
    case.put("UserCode,Amount\na,1\n")
    case.works()
    case.put("UserCode,AMOUNT\na,2\n")
    assert "'Amount' and 'AMOUNT'" in case.fails().message
    assert case.rows("UserCode", "Amount") == [("a", "1")]


def odd(rows: int, plus: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {name: [100 * at + row for row in range(rows)] for at, name in enumerate(NAMES)}
    ).with_columns(id=pl.int_range(pl.len()) + plus)


@pytest.mark.parametrize(
    ("key", "load_type"),
    [*((name, "merge_upsert") for name in NAMES), ("tick`s", "merge_overwrite"), ("a.b", "scd2")],
)
def test_any_name_can_be_a_key_and_a_value(case, key, load_type):
    """merge-awkward-column-names."""
    case.load(load_type, key, names="none")
    case.put(odd(1))
    case.works()
    case.put(odd(2, plus=9))
    result = case.works()
    assert result.rows["rows_updated"] == 1
    stored = case.stored()
    if load_type == "scd2":
        stored = stored.filter("__is_current")
    assert [name for name in stored.columns if name in odd(1).columns] == odd(1).columns
    assert stored.select(odd(1).columns).sort("id").equals(odd(2, plus=9))


@pytest.mark.parametrize("name", ["*", "^a$", "^.*$"])
def test_a_name_that_the_engine_takes_for_many_columns_is_refused(case, name):
    """merge-awkward-column-names: refused before anything is written, whoever gives the name."""
    case.load("merge_upsert", "id", names="none")
    case.put(pl.DataFrame({"id": [1], name: [2], "a": [3]}))
    assert f"'{name}'" in case.fails().message
    case.put("id,a\n1,2\n")
    case.load("merge_upsert", "id", names="none", transform={"rename_columns": {"a": name}})
    assert f"'{name}'" in case.fails().message
    assert not case.root.joinpath("lake").exists()


TYPED = pl.DataFrame(
    {"id": [1], "text": ["a"], "double": [1.0], "date": [date(2026, 1, 1)], "flag": [True]}
).with_columns(
    int=pl.lit(1, pl.Int32), at=pl.lit(datetime(2026, 1, 1)), money=pl.lit(1).cast(pl.Decimal(6, 1))
)


BENT = [
    ("text", 99, ("string", "long")),
    ("id", 1.5, ("long", "double")),
    ("id", "1", ("long", "string")),
    ("int", 1.9, ("integer", "double")),
    ("int", 3_000_000_000, ("integer", "long")),
    ("double", 2**60 + 1, ("1152921504606846977", "double")),
    ("double", "1.5", ("double", "string")),
    ("date", datetime(2026, 1, 1, 2), ("date", "timestamp_ntz")),
    ("at", datetime(2026, 1, 1, tzinfo=UTC), ("timestamp_ntz", "timestamp")),
    ("flag", 1, ("boolean", "long")),
    ("text", b"x", ("string", "binary")),
    ("money", Decimal("12.34"), ("12.34", "decimal(6,1)")),
    ("money", Decimal("1234567.5"), ("1234567.5", "decimal(6,1)")),
]


@pytest.mark.parametrize("load_type", ["append", *MERGES, "scd2"])
def test_a_value_of_another_type_is_never_bent_to_fit(case, load_type):
    """merge-type-mismatch, types-decimal-wider-than-table, W19."""
    case.load(load_type, *([] if load_type == "append" else ["id"]))
    case.put(TYPED)
    case.works()
    before = case.rows()
    for column, value, told in BENT:
        case.put(TYPED.with_columns(pl.Series(column, [value])))
        message = case.fails().message
        assert [word for word in (f"'{column}'", *told) if word not in message] == []
    assert case.rows() == before


@pytest.mark.parametrize(
    ("stored", "batch", "rows"),
    [
        (Decimal("150.5"), Decimal("150.50"), 1),
        (Decimal("150.5"), Decimal("150.00"), 2),
        (Decimal("-0.5"), Decimal("-0.500"), 1),
    ],
)
@pytest.mark.parametrize("load_type", MERGES)
def test_a_decimal_key_is_the_same_with_more_zeros(case, load_type, stored, batch, rows):
    """types-decimal-merge-key."""
    case.load(load_type, "altitude")
    for value, scale, v in ((stored, 1, "old"), (batch, 3, "new")):
        kind = {"altitude": pl.Decimal(9, scale)}
        case.put(pl.DataFrame({"altitude": [value], "v": [v]}, schema_overrides=kind))
        case.works()
    assert case.stored()["v"].to_list().count("new") == 1
    assert case.stored().height == rows


def test_a_late_row_does_not_replace_a_newer_one(case):
    """merge-late-row-overwrites-newer; a null is older than any value."""
    case.load("merge_upsert", "name", transform={"latest_data_columns": ["ts"]})
    for ts, v, stale in (
        ("2022-12-02", "new", 0),
        ("2022-11-29", "old", 1),
        ("", "null", 1),
        ("2022-12-02", "equal", 0),
    ):
        case.put(f"name,ts,v\nk,{ts},{v}\n")
        assert case.works().rows["rows_stale"] == stale
    assert case.rows() == [("k", "2022-12-02", "equal")]


def test_without_an_order_the_last_writer_wins(case):
    """merge-late-row-overwrites-newer."""
    case.load("merge_upsert", "name")
    for ts in ("2022-12-02", "2022-11-29"):
        case.put(f"name,ts\nk,{ts}\n")
        case.works()
    assert case.rows() == [("k", "2022-11-29")]


# Tables that somebody else made

TEXT, LONG = PrimitiveType("string"), PrimitiveType("long")


def table(case, *fields: Field, rows: pl.DataFrame | None = None) -> None:
    DeltaTable.create(case.path(), Schema(list(fields)))
    if rows is not None:
        write_deltalake(case.path(), rows.to_arrow(), mode="append")


def test_a_new_column_is_added_to_an_empty_table(case):
    """merge-new-column, W18."""
    table(case, Field("code", TEXT), Field("idx", LONG))
    case.load("merge_upsert", "code", hints={"idx": "bigint"})
    case.put("code,date,idx\n12,2018,0\n23,2019,1\n")
    case.works()
    assert case.rows("code", "date", "idx") == [("12", "2018", 0), ("23", "2019", 1)]


@pytest.mark.parametrize("load_type", MERGES)
def test_rows_that_are_not_touched_do_not_fail_a_not_null_key(case, load_type):
    """merge-not-null-key."""
    rows = pl.DataFrame({"doc_id": ["A", "B"], "v": [1, 2]})
    table(case, Field("doc_id", TEXT, nullable=False), Field("v", LONG), rows=rows)
    case.load(load_type, "doc_id", hints={"v": "bigint", "pages": "bigint"})
    case.put("doc_id,v,pages\nA,9,3\n")
    case.works()
    expected = [("A", 9, 3), ("B", 2, None)]
    assert case.rows("doc_id", "v", "pages") == expected
    assert not DeltaTable(case.path()).schema().fields[0].nullable
    case.put("doc_id,v,pages\n,7,3\nC,7,3\n")
    assert "'doc_id'" in case.fails().message
    assert case.rows("doc_id", "v", "pages") == expected


@pytest.mark.parametrize("load_type", ["append", *MERGES])
def test_a_value_inside_a_struct_that_may_not_be_null_arrives(case, load_type):
    """merge-nested-not-null."""
    inner = StructType([Field("oid", TEXT, nullable=False)])
    table(case, Field("uid", TEXT, nullable=False), Field("params", inner))
    case.load(load_type, *([] if load_type == "append" else ["uid"]))
    case.put([{"uid": "u1", "params": {"oid": "42"}}, {"uid": "u2", "params": None}])
    case.works()
    expected = [("u1", {"oid": "42"}), ("u2", None)]
    assert case.rows("uid", "params") == expected
    case.put([{"uid": "u3", "params": {"oid": None}}, {"uid": "u4", "params": {"oid": "x"}}])
    assert "'params.oid'" in case.fails().message
    assert case.rows("uid", "params") == expected


def test_rows_that_say_deleted_go_and_are_never_added(case):
    """delete_when, on the first load too, and a null condition is not true."""
    case.load("merge_upsert", "id", own={"delete_when": "op = 'D'"})
    case.put("id,op\n1,I\n2,I\n3,D\n")
    case.works()
    case.put("id,op\n1,D\n2,\n9,D\n4,U\n")
    result = case.works()
    assert (result.rows["rows_deleted"], result.rows["rows_inserted"]) == (1, 1)
    assert case.rows() == [("2", None), ("4", "U")]
