"""Parquet and JSON lines: many files, one schema."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.union import widened


def refused(reading, flow, **request) -> str:
    with pytest.raises(ReadError) as caught:
        reading.read(flow, **request)
    return str(caught.value)


def test_a_column_that_only_a_later_parquet_file_has_is_kept(reading):
    """W26."""
    reading.write("t/a.parquet", pl.DataFrame({"id": [1]}))
    reading.write("t/b.PARQUET", pl.DataFrame({"late": ["x"], "id": [2]}))
    frame, _ = reading.read(reading.flow("parquet"))
    assert frame.to_dicts() == [{"id": 1, "late": None}, {"id": 2, "late": "x"}]


def test_integers_of_different_width_are_widened(reading):
    """parquet-int-width-drift."""
    reading.write("t/f1.parquet", pl.DataFrame({"id": [1, 2]}, schema={"id": pl.Int32}))
    reading.write("t/f2.parquet", pl.DataFrame({"id": [3_000_000_000]}))
    frame, _ = reading.read(reading.flow("parquet"))
    assert frame["id"].dtype == pl.Int64
    assert frame["id"].to_list() == [1, 2, 3_000_000_000]


def test_types_without_a_common_one_name_column_and_both_files(reading):
    one = reading.write("t/f1.parquet", pl.DataFrame({"id": [1]}))
    other = reading.write("t/f2.parquet", pl.DataFrame({"id": ["x"]}))
    assert refused(reading, reading.flow("parquet")) == (
        f"read, column 'id': its type is Int64 in {one} and String in {other}. Read the files with "
        "different types as different tables, or rewrite one of them."
    )


def test_an_integer_that_no_float_holds_is_not_changed_silently(reading):
    reading.write("t/f1.parquet", pl.DataFrame({"n": [2**53 + 1]}))
    reading.write("t/f2.parquet", pl.DataFrame({"n": [0.5]}))
    with pytest.raises(Exception, match=str(2**53 + 1)):
        reading.read(reading.flow("parquet"))


def test_small_integers_and_floats_are_united(reading):
    reading.write("t/f1.parquet", pl.DataFrame({"n": [7, None]}))
    reading.write("t/f2.parquet", pl.DataFrame({"n": [0.5]}))
    assert reading.rows(reading.flow("parquet")) == [(7.0,), (None,), (0.5,)]


def test_nested_columns_are_united_field_by_field(reading):
    reading.write("t/f1.parquet", pl.DataFrame({"s": [{"a": 1}], "l": [[1]]}))
    later = pl.DataFrame({"s": [{"b": "x", "a": 2}], "l": [[0.5]]})
    reading.write("t/f2.parquet", later)
    frame, _ = reading.read(reading.flow("parquet"))
    assert frame.to_dicts() == [
        {"s": {"a": 1, "b": None}, "l": [1.0]},
        {"s": {"a": 2, "b": "x"}, "l": [0.5]},
    ]


def test_instants_of_two_zones_become_utc(reading):
    moment = pl.Series("t", [datetime(2024, 1, 1, 12, tzinfo=UTC)])
    new_york = moment.dt.convert_time_zone("America/New_York")
    reading.write("t/f1.parquet", new_york.to_frame())
    reading.write("t/f2.parquet", moment.dt.convert_time_zone("Asia/Tokyo").to_frame())
    frame, _ = reading.read(reading.flow("parquet"))
    assert frame["t"].to_list() == [moment[0], moment[0]]


def test_a_broken_parquet_file_is_refused_by_name(reading):
    path = reading.write("t/f1.parquet", b"PAR1 and no more")
    message = refused(reading, reading.flow("parquet"))
    assert message.startswith(f"read, {path}: the file is no whole parquet file")


def test_hive_folders_keep_their_text(reading):
    """parquet-hive-code-zeros."""
    for code, number in (("01001", 1), ("01002", 2)):
        reading.write(f"ds/code={code}/a.parquet", pl.DataFrame({"id": [number]}))
    flow = reading.flow("parquet", "ds", connection={"use_hive_partitioning": True})
    assert reading.rows(flow) == [(1, "01001"), (2, "01002")]


def test_a_window_over_a_date_folder_reads_that_day(reading):
    """parquet-hive-date-filter."""
    from datacoolie_core.plan.windows import Window

    for day, value in ((25, 10), (26, 20), (27, 30)):
        reading.write(f"ds/DATE=2025-02-{day}/a.parquet", pl.DataFrame({"VALUE": [value]}))
    flow = reading.flow(
        "parquet", "ds", connection={"use_hive_partitioning": True}, hints={"DATE": "date"}
    )
    window = Window("date", date(2025, 2, 26), date(2025, 2, 27))
    assert reading.rows(flow, window=window) == [(20, "2025-02-26")]


def test_a_key_that_appears_late_is_not_lost(reading):
    """json-late-key, W26."""
    documents = [{"a": n, **({"b": n * 10} if n >= 100 else {})} for n in range(150)]
    lines = [json.dumps(document) for document in documents]
    reading.write("t/a.jsonl", "\n".join(lines))
    frame, _ = reading.read(reading.flow("jsonl"))
    assert frame["b"].drop_nulls().to_list() == [n * 10 for n in range(100, 150)]
    assert frame.height == 150


def test_a_number_that_becomes_text_is_text(reading):
    """json-int-then-text."""
    lines = [f'{{"code": {n}}}' for n in range(120)] + ['{"code": "7A"}']
    reading.write("t/a.jsonl", "\n".join(lines))
    frame, _ = reading.read(reading.flow("jsonl"))
    assert (frame["code"][0], frame["code"][-1]) == ("0", "7A")


def test_a_number_that_becomes_text_beyond_the_limit_is_refused(reading):
    path = reading.write("t/a.jsonl", '{"code": 1}\n' * 120 + '{"code": "7A"}\n')
    message = refused(reading, reading.flow("jsonl", options={"infer_schema_length": 100}))
    assert "'7A'" in message
    assert "column 'code'" in message
    assert str(path) in message


@pytest.mark.parametrize("names", [("one.jsonl", "two.jsonl"), ("two.jsonl", "one.jsonl")])
def test_an_optional_key_is_kept_in_either_order_of_files(reading, names):
    """json-files-with-and-without-key."""
    first, second = names
    reading.write(f"t/{first}", '{"k1": "v", "k2": ["x"]}\n')
    reading.write(f"t/{second}", '{"k1": "w"}\n')
    frame, _ = reading.read(reading.flow("jsonl"))
    assert frame.sort("k1").to_dicts() == [{"k1": "v", "k2": ["x"]}, {"k1": "w", "k2": None}]


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "json", "JSONL", "jsonl.gz"])
def test_json_lines_have_several_suffixes(reading, suffix):
    text = b'\n{"id": 1}\n\n{"id": 2}\n'
    reading.write(f"t/a.{suffix}", gzip.compress(text) if suffix.endswith("gz") else text)
    assert reading.rows(reading.flow("jsonl")) == [(1,), (2,)]


def test_json_lines_with_a_byte_order_mark_and_empty_files_are_read(reading):
    reading.write("t/a.jsonl", b'\xef\xbb\xbf{"id": 1}\n')
    reading.write("t/b.jsonl", "")
    assert reading.rows(reading.flow("jsonl")) == [(1,)]


@pytest.mark.parametrize("name", ["x[1].jsonl", "x*.jsonl"])
def test_pattern_characters_in_the_name_of_json_lines_are_characters(reading, name):
    reading.write("t/x1.jsonl", '{"id": "wrong"}\n')
    path = reading.write(f"t/{name}", '{"id": "right"}\n')
    batch = reading.open(reading.flow("jsonl", table=f"t/{name}"))
    frame = batch.frame.collect()
    batch.close()
    assert frame["id"].to_list() == ["right"]
    assert frame["__file_path"].to_list() == [str(path)]


@pytest.mark.parametrize("bad", ['{"id":', "[1]", "no"])
def test_a_broken_line_is_refused_with_file_and_line(reading, bad):
    path = reading.write("t/a.jsonl", f'{{"id": 1}}\n{bad}\n')
    message = refused(reading, reading.flow("jsonl"))
    assert message.startswith(f"read, {path}: line 2 is no JSON document")


def test_whole_documents_are_no_json_lines(reading):
    reading.write("t/a.jsonl", "{}")
    assert "multi_line can't be true" in refused(
        reading, reading.flow("jsonl", options={"multiLine": True})
    )


_TYPES = st.sampled_from(
    [
        *(pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.UInt8(), pl.UInt32(), pl.UInt64()),
        *(pl.Float32(), pl.Float64(), pl.String(), pl.Boolean(), pl.Date(), pl.Null()),
        *(pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("ms", "UTC"), pl.Decimal(10, 2)),
        *(pl.Decimal(38, 0), pl.List(pl.Int8()), pl.Struct({"a": pl.Int8()}), pl.Binary()),
    ]
)


@given(_TYPES, _TYPES)
def test_widening_does_not_depend_on_the_order_of_files(left, right):
    assert widened(left, right) == widened(right, left)


@given(_TYPES)
def test_widening_a_type_with_itself_or_with_nothing_changes_nothing(dtype):
    assert widened(dtype, dtype) == dtype
    assert widened(dtype, pl.Null()) == dtype


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (pl.UInt8(), pl.Int8(), pl.Int16()),
        (pl.UInt64(), pl.Int8(), None),
        (pl.Decimal(10, 2), pl.Decimal(12, 6), pl.Decimal(14, 6)),
        (pl.Decimal(38, 0), pl.Decimal(38, 2), None),
        (pl.Decimal(10, 2), pl.Int32(), pl.Decimal(12, 2)),
        (pl.Date(), pl.Datetime("us"), pl.Datetime("us")),
        (pl.Datetime("us"), pl.Datetime("us", "UTC"), None),
        (pl.Boolean(), pl.Int8(), None),
        (pl.String(), pl.Binary(), None),
    ],
)
def test_widening_loses_nothing(left, right, expected):
    assert widened(left, right) == expected


def test_a_decimal_read_from_two_files_keeps_its_value(reading):
    for name, scale in (("a", 2), ("b", 4)):
        value = pl.Series("d", ["1.25"]).cast(pl.Decimal(10, scale))
        reading.write(f"t/{name}.parquet", value.to_frame())
    assert reading.rows(reading.flow("parquet")) == [(Decimal("1.25"),)] * 2


def test_json_numbers_under_a_text_or_decimal_hint_keep_their_digits(new_project):
    from decimal import Decimal

    project = new_project()
    project.source_format = "jsonl"
    folder = project.root / "in/t"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text('{"code": 1001, "amount": 0.10}\n{"code": 7.5, "amount": 3}\n')
    project.flow(
        load_type="full_load",
        transform={
            "schema_hints": [
                {"column_name": "Code", "data_type": "string"},
                {"column_name": "amount", "data_type": "decimal(18,2)"},
            ]
        },
    )
    project.run_one()
    assert project.table().rows() == [("1001", Decimal("0.10")), ("7.5", Decimal("3.00"))]
