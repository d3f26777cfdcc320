"""Stable hashes: slot 18, ``dc_hash_v1``."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Any

import polars as pl
import pytest
import xxhash
from hypothesis import given, strategies as st

from datacoolie_core.engines.stable_hash import hash_payload, stable_hash
from tests.core.transformed import problems, refused, rows, shaped, warned

FRAME = pl.DataFrame(
    {
        "t": ["ab", "Größe", "", None],
        "i": [-7, 0, 10**15, None],
        "b": [True, False, True, None],
        "d": [date(2024, 2, 29), date(1969, 12, 31), date(33, 4, 3), None],
    }
)


def hashed(*columns: str, algorithm: str = "sha256", target: str = "h", **configure) -> dict:
    rule = {"target_column": target, "columns": list(columns), "algorithm": algorithm}
    return {"transform": {"hash_columns": [rule], "configure": configure}}


def model(values: list[tuple[str, Any]]) -> bytes:
    """The bytes that are hashed, as the format's words say it; each value with its tag."""
    parts = ["DCH1;"]
    for tag, value in values:
        text = {True: "true", False: "false"}[value] if tag == "B" and value is not None else value
        if value is None:
            parts.append(f"{tag}N;")
        else:
            text = value.isoformat() if tag == "D" else str(text)
            parts.append(f"{tag}{len(text.encode())}:{text};")
    return "".join(parts).encode()


def signed(payload: bytes) -> int:
    return int.from_bytes(xxhash.xxh64_digest(payload, seed=42), "big", signed=True)


def test_the_bytes_that_are_hashed(reading):
    columns = dict(FRAME.schema)
    assert FRAME.select(hash_payload(columns)).to_series().to_list() == [
        "DCH1;S2:ab;I2:-7;B4:true;D10:2024-02-29;",
        "DCH1;S7:Größe;I1:0;B5:false;D10:1969-12-31;",
        "DCH1;S0:;I16:1000000000000000;B4:true;D10:0033-04-03;",
        "DCH1;SN;IN;BN;DN;",
    ]


# Made with Python's hashlib and with xxhash, seed 42: tables that are out there hold such values.
GOLDEN = [
    (
        {"t": "ab", "i": -7, "d": None},
        "3491c4931d92e28efa5720323147241534d2cf8e5cfe1529a812712343a9d29d",
        -2683132193772061162,
    ),
    (
        {"t": "Größe€"},
        "36742b6f5074993ce12e03c2b80e04e49c0a0a13d5f36c9c62be561cd856009a",
        -8105187077637655612,
    ),
    (
        {"b": True, "c": False, "d": date(2024, 2, 29), "e": None},
        "eced903198b5784d58f2a8f1d8461d2b70352bc1c1f93360ca505105d74dcf94",
        2790209217979252425,
    ),
    (
        {"t": "", "u": None},
        "8f4a4378ab62c809840ba7401bdf53e2c53bfdd35b5741eff6369e13c6b3607e",
        3159273664608587587,
    ),
]
TYPES = {"t": pl.String, "u": pl.String, "i": pl.Int32, "d": pl.Date}


@pytest.mark.parametrize(("values", "sha256", "xxhash64"), GOLDEN)
def test_hashes_never_change(reading, values, sha256, xxhash64):
    frame = pl.DataFrame({k: [v] for k, v in values.items()}, schema_overrides=_types(values))
    found = shaped(reading, frame, **hashed(*values))
    assert found["h"].to_list() == [sha256]
    found = shaped(reading, frame, **hashed(*values, algorithm="xxhash64"))
    assert found["h"].to_list() == [xxhash64]
    assert found.schema["h"] == pl.Int64


def _types(values: dict) -> dict:
    return {name: TYPES.get(name, pl.Boolean) for name in values}


VALUES = {
    pl.String(): ("S", st.none() | st.text(max_size=8)),
    pl.Int8(): ("I", st.none() | st.integers(-(2**7), 2**7 - 1)),
    pl.UInt64(): ("I", st.none() | st.integers(0, 2**64 - 1)),
    pl.Int64(): ("I", st.none() | st.integers(-(2**63), 2**63 - 1)),
    pl.Boolean(): ("B", st.none() | st.booleans()),
    pl.Date(): ("D", st.none() | st.dates()),
}


@given(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4), st.data())
def test_any_row_hashes_as_the_model_says(dtypes, data):
    drawn = [data.draw(st.lists(VALUES[one][1], min_size=3, max_size=3)) for one in dtypes]
    names = [f"c{index}" for index in range(len(dtypes))]
    schema = dict(zip(names, dtypes, strict=True))
    frame = pl.LazyFrame(dict(zip(names, drawn, strict=True)), schema=schema)
    found = frame.select(
        s=stable_hash(schema, "sha256")[0], x=stable_hash(schema, "xxhash64")[0]
    ).collect(engine="streaming")
    tags = [VALUES[one][0] for one in dtypes]
    payloads = [model(list(zip(tags, row, strict=True))) for row in zip(*drawn, strict=True)]
    assert found["s"].to_list() == [hashlib.sha256(one).hexdigest() for one in payloads]
    assert found["x"].to_list() == [signed(one) for one in payloads]


@given(st.lists(st.text("1;:SN", max_size=4), min_size=2, max_size=2, unique=True))
def test_columns_never_run_into_each_other(texts):
    first, second = texts
    frame = pl.LazyFrame({"a": [first, second], "b": [second, first]})
    found = frame.select(stable_hash(dict(frame.collect_schema()), "sha256")[0]).collect()
    assert found.to_series().n_unique() == 2


def test_the_width_of_a_number_and_the_kind_of_text_do_not_count(reading):
    narrow = pl.DataFrame({"i": [5], "t": ["x"]}, schema={"i": pl.Int8, "t": pl.Categorical})
    wide = pl.DataFrame({"i": [5], "t": ["x"]}, schema={"i": pl.UInt64, "t": pl.String})
    first, second = (shaped(reading, one, **hashed("i", "t"))["h"][0] for one in (narrow, wide))
    assert first == second
    swapped = shaped(reading, wide, **hashed("t", "i"))["h"][0]
    assert swapped != first


@pytest.mark.parametrize(
    "dtype",
    [
        pl.Float64,
        pl.Decimal(10, 2),
        pl.Datetime("us"),
        pl.Datetime("us", "UTC"),
        pl.Time,
        pl.Duration,
        pl.Binary,
        pl.List(pl.String),
        pl.Struct({"x": pl.Int64}),
        pl.Null,
    ],
)
def test_a_type_without_stable_text_is_refused_by_its_name(reading, dtype):
    frame = pl.DataFrame({"a": pl.Series([None], dtype=dtype)})
    message = refused(reading, frame, **hashed("A"))
    assert "transform.hash_columns[0].columns: 'a' is " in message
    assert str(frame.schema["a"]) in message
    assert "only text, whole numbers, booleans and dates can be hashed" in message


def test_hashes_see_cleaned_and_typed_values_and_stand_before_our_columns(reading):
    frame = pl.DataFrame({"id": [" 7 "], "__file_name": ["f"]})
    given = hashed("ID")
    given["transform"] |= {
        "value_rules": [{"operation": "trim", "columns": ["id"]}],
        "schema_hints": [{"column_name": "id", "data_type": "INT"}],
    }
    found = shaped(reading, frame, **given)
    assert found.columns[:3] == ["id", "h", "__file_name"]
    assert found["h"][0] == hashlib.sha256(b"DCH1;I1:7;").hexdigest()


def test_a_hash_may_take_the_place_of_its_own_input(reading):
    frame = pl.DataFrame({"mail": ["a@b"], "other": ["a@b"]})
    given = hashed("mail", target="MAIL")
    given["transform"]["hash_columns"].append({"target_column": "k", "columns": ["Mail"]})
    (row,) = rows(reading, frame, **given)
    digest = hashlib.sha256(b"DCH1;S3:a@b;").hexdigest()
    assert row == {"mail": digest, "other": "a@b", "k": digest}


def test_a_hash_can_be_the_key_of_a_merge(project):
    project.write("t", "1.parquet", pl.DataFrame({"no": ["a", "b", "a"], "at": [1, 1, 2]}))
    project.flow(
        **hashed("no", algorithm="xxhash64", target="key"),
        watermark=["at"],
        load_type="merge_upsert",
        merge_keys=["key"],
    )
    project.run_one()
    assert project.table(sort="no").select("no", "at").rows() == [("a", 2), ("b", 1)]
    project.write("t", "2.parquet", pl.DataFrame({"no": ["b"], "at": [3]}))
    project.run_one()
    assert project.table(sort="no").select("no", "at").rows() == [("a", 2), ("b", 3)]
    assert project.table()["key"].null_count() == 0


def test_a_hash_with_a_missing_input_is_refused_or_left_out_whole(reading):
    frame = pl.DataFrame({"a": [1]})
    assert "no column 'gone'" in refused(reading, frame, **hashed("a", "gone"))
    names, told = warned(reading, frame, **hashed("a", "gone", missing_column_policy="ignore"))
    assert names == ["a"]
    assert [code for code, _ in told] == ["missing_column", "hash_left_out"]
    assert "'h' is not made" in told[1][1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (hashed("a", "__file_name"), "columns: '__file_name' is a system column"),
        (hashed("a", target="__updated_by"), "it is the name of a system column"),
        (hashed("a", "A"), "'a' is listed twice"),
        (hashed("a", algorithm="md5"), "algorithm: "),
    ],
)
def test_a_hash_that_can_not_be_is_refused_when_the_metadata_is_loaded(reading, given, says):
    (problem,) = problems(reading, **given)
    assert problem.startswith("transform.hash_columns[0].")
    assert says in problem


def test_years_before_1000_have_four_digits_too():
    frame = pl.LazyFrame({"d": [date(1, 1, 1), datetime(9999, 12, 31).date()]})
    texts = frame.select(hash_payload({"d": pl.Date()})).collect().to_series().to_list()
    assert texts == ["DCH1;D10:0001-01-01;", "DCH1;D10:9999-12-31;"]
