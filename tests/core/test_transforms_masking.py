"""Masking: slot 84."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.engines.buckets import bucket
from datacoolie_core.metadata.models import MaskingRule, Transform
from datacoolie_core.transforms.masking import SLOT
from datacoolie_core.transforms.slots import Shaped
from tests.core.conftest import dataflow
from tests.core.transformed import context, problems, refused, rows, shaped, warned


def masked(*given: dict, **configure) -> dict:
    listed = [{"columns": ["a"], **rule} for rule in given]
    return {"transform": {"masking_rules": listed, "configure": configure}}


def hidden(reading, values, dtype, **rule) -> list:
    frame = pl.DataFrame({"a": pl.Series(values, dtype=dtype)})
    found = shaped(reading, frame, **masked(rule))
    assert found.schema["a"] == frame.schema["a"]
    return found["a"].to_list()


# Text


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, ["********", "****", "*", "", None]),
        ({"keep_end": 4}, ["****efgh", "****", "*", "", None]),
        ({"keep_start": 2, "keep_end": 2}, ["ab****gh", "****", "*", "", None]),
        ({"keep_start": 3, "mask_char": "•"}, ["abc•••••", "123•", "•", "", None]),
        ({"keep_start": 8}, ["********", "****", "*", "", None]),
    ],
)
def test_both_ends_of_a_text_stay_and_its_length(reading, rule, expected):
    """W68. Text that its ends would show whole is hidden whole."""
    values = ["abcdefgh", "1234", "x", "", None]
    assert hidden(reading, values, pl.String, method="partial", **rule) == expected


def test_characters_are_counted_not_bytes(reading):
    values = ["Größe€", "日本語テキスト", "👍👍👍"]
    found = hidden(reading, values, pl.String, method="partial", keep_start=1, keep_end=1)
    assert found == ["G****€", "日*****ト", "👍*👍"]


@given(
    st.none() | st.text(max_size=12),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from(["*", "#", "é", "█"]),
)
def test_a_partly_hidden_text_shows_its_ends_or_nothing(text, start, end, char):
    rule = MaskingRule(
        method="partial", columns=("a",), keep_start=start, keep_end=end, mask_char=char
    )
    (found,) = _masked([rule], pl.Series([text], dtype=pl.String))
    if text is None:
        assert found is None
    elif len(text) <= start + end:
        assert found == char * len(text)
    else:
        middle = char * (len(text) - start - end)
        assert found == text[:start] + middle + text[len(text) - end :]


def _masked(rules: list[MaskingRule], values: pl.Series) -> list:
    flow = dataflow().model_copy(update={"transform": Transform(masking_rules=tuple(rules))})
    frame = pl.LazyFrame({"a": values})
    found = SLOT.apply(Shaped(frame, dict(frame.collect_schema())), flow, context()).frame
    assert found.collect_schema()["a"] == values.dtype
    return found.collect(engine="streaming")["a"].to_list()


# Any type


@pytest.mark.parametrize(
    ("dtype", "values", "value", "expected"),
    [
        (pl.String, ["x", "", None], "[hidden]", ["[hidden]", "[hidden]", None]),
        (pl.String, ["x"], 0, ["0"]),
        (pl.Int8, [5, None], -1, [-1, None]),
        (pl.Float64, [5.5, None], 0, [0.0, None]),
        (pl.Boolean, [True, None], False, [False, None]),
        (pl.Decimal(5, 2), [Decimal("1.23"), None], "9.99", [Decimal("9.99"), None]),
        (pl.Date, [date(2024, 5, 6), None], "1900-01-01", [date(1900, 1, 1), None]),
        (
            pl.Datetime("us", "UTC"),
            [datetime(2024, 5, 6, tzinfo=UTC), None],
            "1900-01-01",
            [datetime(1900, 1, 1, tzinfo=UTC), None],
        ),
    ],
)
def test_a_value_stands_in_for_every_value_and_the_type_stays(
    reading, dtype, values, value, expected
):
    assert hidden(reading, values, dtype, method="redact", value=value) == expected


@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Int8, pl.Date, pl.List(pl.Int64), pl.Decimal(9, 2)]
)
def test_nothing_is_left_and_the_type_stays(reading, dtype):
    frame = pl.DataFrame({"a": pl.Series([None], dtype=dtype), "b": [1]})
    found = shaped(reading, frame, **masked({"method": "nullify"}))
    assert found.schema["a"] == frame.schema["a"]
    assert rows(reading, pl.DataFrame({"a": ["x"]}), **masked({"method": "nullify"})) == [
        {"a": None}
    ]


# Numbers


@pytest.mark.parametrize(
    ("dtype", "size", "values", "expected"),
    [
        (pl.Int64, 10, [27, 30, 0, -1, -10, -11, None], [20, 30, 0, -10, -10, -20, None]),
        (pl.Int64, 10.0, [27], [20]),
        (pl.Int8, 10, [127, -120, -128], [120, -120, -128]),
        (pl.Int8, 1000, [127, -1], [0, -128]),
        (pl.UInt64, 1000, [2**64 - 1], [2**64 - 616]),
        (pl.Int64, 3, [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 2]),
        (pl.Float64, 10, [27.5, -0.5, 30.0, None], [20.0, -10.0, 30.0, None]),
        (pl.Float64, 0.1, [0.3, 0.29, 1.1, -0.31, 2.675], [0.3, 0.2, 1.1, -0.4, 2.6]),
        (pl.Float64, 0.5, [math.inf, -math.inf, 1e300], [math.inf, -math.inf, 1e300]),
        (pl.Float32, 10, [27.5, -0.5], [20.0, -10.0]),
    ],
)
def test_a_number_becomes_the_lower_end_of_its_bucket(reading, dtype, size, values, expected):
    found = hidden(reading, values, dtype, method="numeric_bucket", bucket_size=size)
    assert found == expected


@pytest.mark.parametrize(
    ("size", "values", "expected"),
    [
        (100, ["99.99", "100", "-0.01", None], ["0.00", "100.00", "-100.00", None]),
        (0.5, ["-1.25", "12.49"], ["-1.50", "12.00"]),
        (0.01, ["-1.25"], ["-1.25"]),
        (1000, ["-1.25", "999.99"], ["-999.99", "0.00"]),
    ],
)
def test_decimals_are_exact(reading, size, values, expected):
    def decimals(texts):
        return [None if text is None else Decimal(text) for text in texts]

    dtype = pl.Decimal(5, 2)
    found = hidden(reading, decimals(values), dtype, method="numeric_bucket", bucket_size=size)
    assert found == decimals(expected)


def test_not_a_number_stays_what_it_is(reading):
    (found,) = hidden(reading, [math.nan], pl.Float64, method="numeric_bucket", bucket_size=10)
    assert math.isnan(found)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 2**63 - 1))
def test_whole_numbers_of_any_size_are_exact(values, size):
    frame = pl.LazyFrame({"a": pl.Series(values, dtype=pl.Int64)})
    found = frame.select(bucket(pl.col("a"), pl.Int64(), size).alias("a")).collect()
    expected = [max(value // size * size, -(2**63)) for value in values]
    assert found["a"].to_list() == expected


@given(
    st.lists(st.decimals(-9999, 9999, places=2), min_size=1),
    st.decimals("0.01", 500, places=2),
)
def test_decimals_of_any_size_are_exact(values, size):
    frame = pl.LazyFrame({"a": pl.Series(values, dtype=pl.Decimal(12, 2))})
    found = frame.select(bucket(pl.col("a"), pl.Decimal(12, 2), float(size)).alias("a"))
    expected = [(value / size).to_integral_value("ROUND_FLOOR") * size for value in values]
    assert found.collect()["a"].to_list() == expected


# Dates

MOMENT = datetime(2024, 5, 17, 13, 45, 59, 999)


@pytest.mark.parametrize(
    ("unit", "day", "moment"),
    [
        ("year", date(2024, 1, 1), datetime(2024, 1, 1)),
        ("month", date(2024, 5, 1), datetime(2024, 5, 1)),
        ("day", date(2024, 5, 17), datetime(2024, 5, 17)),
        ("HOUR", date(2024, 5, 17), datetime(2024, 5, 17, 13)),
    ],
)
def test_dates_and_times_are_shortened(reading, unit, day, moment):
    rule = {"method": "date_truncate", "unit": unit}
    assert hidden(reading, [MOMENT.date(), None], pl.Date, **rule) == [day, None]
    assert hidden(reading, [MOMENT, None], pl.Datetime("us"), **rule) == [moment, None]
    aware = pl.Datetime("ms", "UTC")
    found = hidden(reading, [MOMENT.replace(tzinfo=UTC)], aware, **rule)
    assert found == [moment.replace(tzinfo=UTC)]
    old = hidden(reading, [date(1930, 5, 17)], pl.Date, **rule)
    assert old == [day.replace(year=1930)]


# What can't be


@pytest.mark.parametrize(
    ("dtype", "rule", "says"),
    [
        (pl.Int64, {"method": "redact", "value": "invalid"}, "'invalid' is no value of type Int64"),
        (pl.Int64, {"method": "partial"}, "it hides text, the column is Int64"),
        (pl.String, {"method": "numeric_bucket", "bucket_size": 1}, "it groups numbers"),
        (pl.Int64, {"method": "numeric_bucket", "bucket_size": 2.5}, "must be whole, not 2.5"),
        (
            pl.Decimal(9, 2),
            {"method": "numeric_bucket", "bucket_size": 0.001},
            "bucket_size 0.001 has more digits",
        ),
        (pl.String, {"method": "date_truncate", "unit": "day"}, "it shortens dates"),
    ],
)
def test_a_method_that_does_not_fit_the_type_is_refused(reading, dtype, rule, says):
    frame = pl.DataFrame({"a": pl.Series([None], dtype=dtype)})
    message = refused(reading, frame, **masked(rule))
    assert message.startswith("transform, transform.masking_rules[0]: 'a' can't be masked with ")
    assert says in message


@pytest.mark.parametrize(
    ("rule", "field", "says"),
    [
        ({"method": "redact"}, "[0].value", "method redact needs it"),
        ({"method": "numeric_bucket"}, "[0].bucket_size", "needs it"),
        ({"method": "numeric_bucket", "bucket_size": 0}, "[0].bucket_size", "more than 0"),
        ({"method": "date_truncate"}, "[0].unit", "needs it"),
        ({"method": "date_truncate", "unit": "week"}, "[0].unit", "week"),
        ({"method": "partial", "mask_char": "**"}, "[0].mask_char", "one character"),
        ({"method": "partial", "mask_char": ""}, "[0].mask_char", "one character"),
        ({"method": "partial", "keep_end": -1}, "[0].keep_end", "0"),
        ({"method": "nullify", "columns": ["__file_path"]}, "[0].columns", "a system column"),
        ({"method": "nullify", "columns": ["b", "B"]}, "", "masked more than once"),
    ],
)
def test_a_rule_that_can_not_work_is_refused_when_the_metadata_is_loaded(
    reading, rule, field, says
):
    (problem,) = problems(reading, **masked(rule))
    assert problem.startswith(f"transform.masking_rules{field}: ")
    assert says in problem


@pytest.mark.parametrize("column", ["Order ID", "order_id", "ORDER ID"])
def test_a_key_can_not_be_masked_by_any_of_its_names(reading, column):
    """W53."""
    destination = {"load_type": "merge_upsert", "merge_keys": ["order_id"]}
    rule = {"method": "nullify", "columns": [column]}
    (problem,) = problems(reading, destination=destination, **masked(rule))
    assert "is a merge key and can't be masked" in problem
    destination = {"partition_columns": [{"column": "Order ID"}]}
    (problem,) = problems(reading, destination=destination, **masked(rule))
    assert "is a partition column and can't be masked" in problem


def test_a_column_that_is_not_there_is_refused_or_told(reading):
    rule = {"method": "nullify", "columns": ["gone", "A"]}
    frame = pl.DataFrame({"a": [1]})
    assert "transform.masking_rules[0].columns: there is no column 'gone'" in refused(
        reading, frame, **masked(rule)
    )
    ignored = masked(rule, missing_column_policy="ignore")
    names, told = warned(reading, frame, **ignored)
    assert (names, [code for code, _ in told]) == (["a"], ["missing_column"])
    assert rows(reading, frame, **ignored) == [{"a": None}]


# Among the other slots


def test_partitions_filters_and_computed_columns_see_what_is_hidden_later(reading):
    transform = masked({"method": "date_truncate", "unit": "year"})["transform"] | {
        "additional_columns": [{"column": "m", "expression": "EXTRACT(MONTH FROM a)"}],
        "filter_expression": "EXTRACT(DAY FROM a) = 17",
        "rename_columns": {"a": "born"},
    }
    frame = pl.DataFrame({"a": [MOMENT.date(), date(2024, 1, 1)]})
    assert rows(reading, frame, transform=transform) == [{"born": date(2024, 1, 1), "m": 5}]


def test_a_computed_column_can_be_masked(reading):
    transform = masked({"method": "partial", "columns": ["b"], "keep_end": 1})["transform"] | {
        "additional_columns": [{"column": "b", "expression": "CONCAT(a, '-7')"}],
    }
    assert rows(reading, pl.DataFrame({"a": ["x"]}), transform=transform) == [
        {"a": "x", "b": "**7"}
    ]


def test_a_bad_value_of_a_masked_column_is_not_told(project):
    project.write("t", "1.parquet", pl.DataFrame({"pin": ["12x34"]}))
    rule = {"method": "redact", "columns": ["PIN"], "value": 0}
    hint = {"column_name": "pin", "data_type": "INT"}
    project.flow(transform={"masking_rules": [rule], "schema_hints": [hint]})
    (result,) = project.run().dataflows
    assert "column 'pin'" in result.error.message
    assert "the value (masked) is no int32" in result.error.message
    assert "12x34" not in str(result.error)
