"""Types from hints: exact, or an error that names column and value."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.engines.bad_value import BadValue, Trouble
from datacoolie_core.engines.casts import Cast, cast_expression
from datacoolie_core.engines.date_patterns import engine_pattern
from datacoolie_core.metadata.hint_types import parse_type


def cast(values, name: str, *, dtype=None, pattern=None, zone=None) -> list:
    series = pl.Series("c", values, dtype=dtype)
    given_cast = Cast("c", parse_type(name), pattern, zone)
    expression = cast_expression(given_cast, series.dtype)
    frame = series.to_frame()
    whole = frame.select(expression)["c"]
    streamed = frame.lazy().select(expression).collect(engine="streaming")["c"]
    assert whole.equals(streamed)
    return whole.to_list()


def trouble(values, name: str, **options) -> Trouble:
    with pytest.raises(BadValue) as caught:
        cast(values, name, **options)
    found = BadValue.trouble(caught.value)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (["1", "-2", None], "INT", [1, -2, None]),
        (["1.5", "1e3"], "DOUBLE", [1.5, 1000.0]),
        (["2.34", "1.5", "7", None], "DECIMAL(10,2)", [Decimal("2.34"), Decimal("1.50"), 7, None]),
        (["2.3400"], "DECIMAL(10,2)", [Decimal("2.34")]),
        ([2.35, 1.1], "DECIMAL(10,2)", [Decimal("2.35"), Decimal("1.10")]),
        ([1.0, 2.0], "INT", [1, 2]),
        ([5], "DECIMAL(10,2)", [Decimal(5)]),
        (["true", "F", " YES ", "0", None], "BOOLEAN", [True, False, True, False, None]),
        ([0, 1, None], "BOOLEAN", [False, True, None]),
        (["on", "Off", "2", "-1", "00", "1.0", "0."], "BOOLEAN", [True, False, True, True, False, True, False]),
        ([0.0, 1.0, None], "BOOLEAN", [False, True, None]),
        ([Decimal("0.00"), Decimal("7.00")], "BOOLEAN", [False, True]),
        ([True], "INT", [1]),
        ([5, None], "STRING", ["5", None]),
        (["2020-02-29"], "DATE", [date(2020, 2, 29)]),
        (["10:30", "11:00:01.5"], "TIME", [time(10, 30), time(11, 0, 1, 500_000)]),
        ([None, None], "INT", [None, None]),
        ([date(2020, 1, 1)], "TIMESTAMP", [datetime(2020, 1, 1, tzinfo=UTC)]),
        ([datetime(2020, 1, 1, 5)], "DATE", [date(2020, 1, 1)]),
        ([datetime(2020, 1, 1, 5, tzinfo=UTC)], "TIMESTAMP_NTZ", [datetime(2020, 1, 1, 5)]),
        (["2020-01-01T05:00", "2020-01-01 05:00:01"], "TIMESTAMP_NTZ", [datetime(2020, 1, 1, 5), datetime(2020, 1, 1, 5, 0, 1)]),
    ],
)  # fmt: skip
def test_values_that_fit_get_their_type(values, name, expected):
    """W58."""
    assert cast(values, name) == expected


@pytest.mark.parametrize(
    ("values", "name", "value"),
    [
        (["2.345"], "DECIMAL(10,2)", "2.345"),
        (["1.00", "1.005"], "DECIMAL(10,2)", "1.005"),
        (["1e-3"], "DECIMAL(10,2)", "1e-3"),
        (["123456789.5"], "DECIMAL(10,2)", "123456789.5"),
        ([2.345], "DECIMAL(10,2)", "2.345"),
        ([1.5], "INT", "1.5"),
        ([float("nan")], "INT", "nan"),
        ([2**53 + 1], "DOUBLE", str(2**53 + 1)),
        (["maybe"], "BOOLEAN", "maybe"),
        (["2.5"], "BOOLEAN", "2.5"),
        (["1e3"], "BOOLEAN", "1e3"),
        ([0.5], "BOOLEAN", "0.5"),
        ([float("nan")], "BOOLEAN", "nan"),
        (["01/02/2003"], "DATE", "01/02/2003"),
        (["2023-02-29"], "DATE", "2023-02-29"),
        (["x"], "TIMESTAMP", "x"),
        (["2020-01-01T05:00Z"], "TIMESTAMP_NTZ", "2020-01-01T05:00Z"),
        (["25:00"], "TIME", "25:00"),
    ],
)
def test_a_value_that_does_not_fit_is_named_and_never_rounded(values, name, value):
    """W58, W65."""
    found = trouble(values, name)
    assert (found.column, found.value) == ("c", value)


@pytest.mark.parametrize("name", ["INT", "TINYINT"])
def test_text_and_numbers_that_do_not_fit_an_integer_are_named(name):
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"in column 'c'.*\[\"x\"\]"):
        cast(["x"], name)
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"in column 'c'.*\[3000000000\]"):
        cast([3_000_000_000], name)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("02/01/2003", "dd/MM/yyyy", datetime(2003, 1, 2, tzinfo=UTC)),
        ("2.1.2003 5:03", "d.M.yyyy H:mm", datetime(2003, 1, 2, 5, 3, tzinfo=UTC)),
        ("20030102 050307", "yyyyMMdd HHmmss", datetime(2003, 1, 2, 5, 3, 7, tzinfo=UTC)),
        ("2003-01-02T05:03:07.123", "yyyy-MM-dd'T'HH:mm:ss.SSS", datetime(2003, 1, 2, 5, 3, 7, 123_000, tzinfo=UTC)),
        ("2003-01-02T05:03:07+0200", "yyyy-MM-dd'T'HH:mm:ssZ", datetime(2003, 1, 2, 3, 3, 7, tzinfo=UTC)),
        ("2003-01-02T05:03:07+02:00", "yyyy-MM-dd'T'HH:mm:ssXXX", datetime(2003, 1, 2, 3, 3, 7, tzinfo=UTC)),
        ("Jan 2 2003 05:03 PM", "MMM d yyyy hh:mm a", datetime(2003, 1, 2, 17, 3, tzinfo=UTC)),
        ("02|01|2003", "%d|%m|%Y", datetime(2003, 1, 2, tzinfo=UTC)),
        ("2003-01-02 12:00:00.999", "%Y-%m-%d %H:%M:%S.%f", datetime(2003, 1, 2, 12, 0, 0, 999_000, tzinfo=UTC)),
        ("2003-01-02 12:00:00,9", "%Y-%m-%d %H:%M:%S,%f", datetime(2003, 1, 2, 12, 0, 0, 900_000, tzinfo=UTC)),
        ("20030102120000999", "%Y%m%d%H%M%S%f", datetime(2003, 1, 2, 12, 0, 0, 999_000, tzinfo=UTC)),
        ("2003-01-02 12:00:00,12 +02:00", "yyyy-MM-dd HH:mm:ss,SS XXX", datetime(2003, 1, 2, 10, 0, 0, 120_000, tzinfo=UTC)),
        ("2 Jan 2003 12:00:00.000001", "%d %b %Y %T%.f", datetime(2003, 1, 2, 12, 0, 0, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_patterns_are_javas_or_the_percent_form(text, pattern, expected):
    assert cast([text], "TIMESTAMP", pattern=pattern) == [expected]


def test_a_letter_without_a_meaning_is_refused():
    with pytest.raises(ValueError, match="'Q' in the pattern 'yyyy-Q' has no meaning"):
        engine_pattern("yyyy-Q")


def test_text_in_several_iso_forms_becomes_instants():
    texts = ["2013-01-01T05:00:00Z", "2013-01-01T05:00:00+02:00", "2013-01-01 05:00:00", "2013-01-01", None]  # fmt: skip
    five = datetime(2013, 1, 1, 5, tzinfo=UTC)
    assert cast(texts, "TIMESTAMP") == [
        five,
        five.replace(hour=3),
        five,
        five.replace(hour=0),
        None,
    ]


def test_times_without_a_zone_are_times_of_the_declared_zone():
    ten = datetime(2013, 1, 1, 10, tzinfo=UTC)
    assert cast(["2013-01-01 05:00:00"], "TIMESTAMP", zone="America/New_York") == [ten]
    assert cast([datetime(2013, 1, 1, 5)], "TIMESTAMP", zone="America/New_York") == [ten]
    assert cast([ten], "DATE", zone="Pacific/Auckland") == [date(2013, 1, 1)]
    assert cast([ten], "TIMESTAMP_NTZ", zone="America/New_York") == [datetime(2013, 1, 1, 5)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2011-03-13 02:55:00", "this time does not exist in America/New_York"),
        ("2022-11-06 01:30:00", "this time exists twice in America/New_York"),
    ],
)
def test_a_local_time_without_one_meaning_is_refused(text, reason):
    """dst-gap-local-time, dst-repeated-hour."""
    found = trouble([text], "TIMESTAMP", zone="America/New_York")
    assert (found.value, found.reason) == (text, reason)
    neighbours = ["2011-03-13 01:55:00", "2011-03-13 03:05:00"]
    assert cast(neighbours, "TIMESTAMP", zone="America/New_York") == [
        datetime(2011, 3, 13, 6, 55, tzinfo=UTC),
        datetime(2011, 3, 13, 7, 5, tzinfo=UTC),
    ]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (pl.Int64(), "TIMESTAMP"),
        (pl.Duration("us"), "DATE"),
        (pl.List(pl.Int64()), "INT"),
        (pl.Struct({"a": pl.Int64()}), "BINARY"),
        (pl.Date(), "BOOLEAN"),
        (pl.Date(), "INT"),
    ],
)
def test_a_type_without_a_way_to_the_other_is_refused_before_anything_is_read(dtype, name):
    with pytest.raises(ValueError, match="can't become"):
        cast_expression(Cast("c", parse_type(name)), dtype)


@given(st.decimals(min_value=-(10**6), max_value=10**6, places=4))
def test_a_decimal_is_exact_or_refused(value):
    exact = value == round(value, 2)
    if exact:
        assert cast([str(value)], "DECIMAL(12,2)") == [round(value, 2)]
    else:
        assert trouble([str(value)], "DECIMAL(12,2)").value == str(value)


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_an_iso_text_is_the_instant_that_python_reads(moment):
    expected = moment.replace(tzinfo=UTC)
    for text in (moment.isoformat(), moment.isoformat(" "), moment.isoformat() + "Z"):
        assert cast([text], "TIMESTAMP") == [expected]
