"""What SQL in the metadata means: nulls, names, types, zones, and what is refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.engines.bad_value import BadValue, Trouble
from datacoolie_core.engines.polars_sql import columns_in, condition, typed_expression
from datacoolie_core.errors import TransformError
from tests.core.evaluated import INSTANT, kind, value


def refused(written: str, **columns: pl.DataType) -> TransformError:
    with pytest.raises(TransformError) as caught:
        typed_expression(written, columns, place="transform.x")
    return caught.value


# Nulls


def test_three_valued_logic_is_that_of_sql():
    frame = pl.DataFrame({"a": [True, False, None] * 3, "b": [True] * 3 + [False] * 3 + [None] * 3})
    assert value("a AND b", frame) == [True, False, None, False, False, False, None, False, None]
    assert value("a OR b", frame) == [True, True, True, True, False, None, True, None, None]
    assert value("NOT a", frame)[:3] == [False, True, None]


def test_in_with_a_null_is_true_or_unknown_and_never_false():
    frame = pl.DataFrame({"a": [1, 2, None]})
    assert value("a IN (1, NULL)", frame) == [True, None, None]
    assert value("a NOT IN (1, NULL)", frame) == [False, None, None]
    kept = frame.filter(condition("a NOT IN (1, NULL)", frame.schema, place="p"))
    assert kept.height == 0


def test_null_safe_comparisons_take_nulls_for_values():
    frame = pl.DataFrame({"a": [1, 1, None], "b": [1, None, None]})
    assert value("a <=> b", frame) == [True, False, True]
    assert value("a IS DISTINCT FROM b", frame) == [False, True, False]
    assert value("a = b", frame) == [True, None, None]


def test_concat_ws_leaves_nulls_out_and_concat_does_not():
    frame = pl.DataFrame({"a": ["x", None], "b": ["y", "z"]})
    assert value("concat_ws('-', a, b)", frame) == ["x-y", "z"]
    assert value("a || b", frame) == ["xy", None]


# Names


@pytest.mark.parametrize("written", ["`Order ID` + 1", '"order id" + 1', "`order id` + `N`"])
def test_awkward_names_stand_in_backticks_or_double_quotes_in_any_case(written):
    assert value(written, pl.DataFrame({"Order ID": [1], "n": [1]})) == [2]


def test_a_name_of_the_very_same_case_is_preferred():
    assert value("ID", pl.DataFrame({"id": [1], "ID": [2]})) == [2]


@pytest.mark.parametrize("name", ["a.b", "tick`s", 'say "hi"', "naïve", "order", "date", "1st"])
def test_any_name_can_be_written(name):
    written = "`" + name.replace("`", "``") + "` * 2"
    assert value(written, pl.DataFrame({name: [3]})) == [6]


def test_a_text_in_double_quotes_is_refused_with_the_way_to_write_it():
    error = refused('status = "new"', status=pl.String())
    assert "there is no column 'new'" in str(error)
    assert "A text stands in single quotes: 'new'." in str(error)


def test_a_pattern_may_stand_in_double_quotes_because_no_column_can():
    frame = pl.DataFrame({"t": [datetime(2024, 1, 5, 3, 4)]})
    written = "date_format(t, \"yyyy-MM-dd'T'HH:mm\")"
    assert value(written, frame) == ["2024-01-05T03:04"]
    assert value('s LIKE "a%"', pl.DataFrame({"s": ["ab"]})) == [True]


def test_fields_of_structs_and_elements_of_lists_are_found():
    frame = pl.DataFrame({"ev": [{"Place": {"n": 7}, "tags": ["x", "y"]}]})
    assert value("ev.place.N", frame) == [7]
    assert value("EV.tags[1]", frame) == ["y"]
    assert value("element_at(ev.tags, -1)", frame) == ["y"]
    assert refused("ev.plaice", ev=frame.schema["ev"]).code == "missing_column"


def test_a_call_of_array_is_a_list_whatever_is_taken_from_it():
    assert value("array(7, 8)[1]") == [8]


def test_the_columns_of_an_expression_are_told_as_written():
    assert columns_in("date_trunc('day', `Event Time`) > Limit_1 AND ev.x = 1") == [
        "Event Time",
        "Limit_1",
        "ev",
    ]
    assert columns_in("a > >") == []


# Texts and numbers


def test_a_quote_in_a_text_is_doubled_or_escaped():
    assert value("'it''s'") == value(r"'it\'s'") == ["it's"]


def test_a_backslash_reaches_a_pattern_whether_it_is_doubled_or_not():
    frame = pl.DataFrame({"s": ["a1", "b"]})
    assert value(r"s RLIKE '\d'", frame) == value(r"s RLIKE '\\d'", frame) == [True, False]


def test_the_classes_of_patterns_are_ascii_as_in_java():
    frame = pl.DataFrame({"s": ["٣", "3", "ä"]})
    assert value(r"s RLIKE '^\d$'", frame) == [False, True, False]
    assert value(r"s RLIKE '^[\w-]$'", frame) == [False, True, False]


@pytest.mark.parametrize("pattern", [r"(?=a)b", r"(a)\\1", "a("])
def test_a_pattern_that_can_not_be_matched_is_refused(pattern):
    assert "the pattern" in str(refused(f"s RLIKE '{pattern}'", s=pl.String()))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("s LIKE '50\\%'", [True, False]), ("s LIKE '50!%' ESCAPE '!'", [True, False]),
     ("s LIKE '50_'", [True, True]), ("s LIKE ANY ('x', '50x')", [False, True]),
     ("s NOT LIKE '%x'", [True, False]), ("s ILIKE '50X'", [False, True])],
)  # fmt: skip
def test_like_knows_escapes(written, expected):
    assert value(written, pl.DataFrame({"s": ["50%", "50x"]})) == expected


def test_a_text_beside_a_number_is_read_as_a_number():
    """Not as text, where '9' is above '100'."""
    frame = pl.DataFrame({"amount": ["9", "199.99", " 100.5 ", None]})
    assert value("amount > 100", frame) == [False, True, True, None]
    assert value("amount * 2", frame) == [18.0, 399.98, 201.0, None]
    assert value("amount IN (9, 100.5)", frame) == [True, False, True, None]
    big = pl.DataFrame({"a": ["9007199254740993"], "b": [9007199254740992]})
    assert value("a = b", big) == [False]


def test_a_text_beside_a_date_is_read_as_a_date():
    frame = pl.DataFrame({"d": [date(2024, 1, 5)], "s": ["2024-01-05"]})
    assert value("d >= '2024-01-05'", frame) == [True]
    assert value("d = s", frame) == [True]
    assert value("d < '2024-01-05 00:00:01'", frame) == [True]
    assert "'soon' is no date" in str(refused("d > 'soon'", d=pl.Date()))


def test_a_text_that_is_no_number_stops_the_load_with_its_value():
    frame = pl.DataFrame({"amount": ["9", "many"]})
    with pytest.raises(BadValue) as caught:
        value("amount > 100", frame)
    assert BadValue.trouble(caught.value) == Trouble("amount", "many", "float64")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("i + 1", pl.Int32()), ("i8 + 1", pl.Int32()), ("i8 + i8", pl.Int8()), ("u + u", pl.Int64()),
        ("l * i", pl.Int64()), ("i / 2", pl.Float64()), ("i DIV 2", pl.Int64()), ("i * 1.5", pl.Decimal(13, 1)),
        ("x * 1.5", pl.Float64()), ("d + 1", pl.Decimal(11, 2)), ("d * d", pl.Decimal(21, 4)),
        ("d / d", pl.Decimal(23, 13)), ("d * x", pl.Float64()), ("CAST(d AS DOUBLE) * 2", pl.Float64()),
        ("1", pl.Int32()), ("3000000000", pl.Int64()), ("1.50", pl.Decimal(3, 2)), ("1e3", pl.Float64()),
        ("'a'", pl.String()), ("DATE '2024-01-01'", pl.Date()), ("TIMESTAMP '2024-01-01'", INSTANT),
        ("CASE WHEN i > 0 THEN i ELSE d END", pl.Decimal(12, 2)), ("coalesce(i, x)", pl.Float64()),
        ("year(day)", pl.Int32()), ("date_trunc('month', day)", INSTANT), ("trunc(day, 'MM')", pl.Date()),
        ("day + 1", pl.Date()), ("day + INTERVAL 1 HOUR", INSTANT), ("round(d, 1)", pl.Decimal(10, 1)),
        ("floor(x)", pl.Int64()), ("CAST(i AS DECIMAL(12,2))", pl.Decimal(12, 2)), ("NULL", pl.Null()),
    ],
)  # fmt: skip
def test_types_are_those_of_spark(written, expected):
    columns = {"i": pl.Int32(), "i8": pl.Int8(), "u": pl.UInt32(), "l": pl.Int64()}
    columns |= {"x": pl.Float64(), "d": pl.Decimal(10, 2), "day": pl.Date()}
    assert kind(written, **columns) == expected


@pytest.mark.parametrize("column", [pl.Int8(), pl.Int32(), pl.Int64()])
@pytest.mark.parametrize("sign", ["+", "*"])
def test_whole_numbers_never_overflow_in_silence(column, sign):
    top = {8: 2**7, 32: 2**31, 64: 2**63}[int(str(column)[3:])] - 1
    frame = pl.DataFrame({"a": [1, top]}, schema={"a": column})
    with pytest.raises(BadValue) as caught:
        value(f"a {sign} a", frame)
    found = BadValue.trouble(caught.value)
    assert found is not None
    assert (found.column, found.target) == ("a", f"int{str(column)[3:]}")
    assert found.value == str(2 * top if sign == "+" else top * top)
    assert "too large" in (found.reason or "")


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_remainders_and_whole_quotients_are_those_of_truncation(a, b):
    frame = pl.DataFrame({"a": [a, -a], "b": [b, -b]})
    whole = abs(a) // b * (1 if a >= 0 else -1)
    assert value("a DIV b", frame) == [whole, whole]
    assert value("a % b", frame) == [a - whole * b, -(a - whole * b)]
    assert value("a = (a DIV b) * b + a % b", frame) == [True, True]


@pytest.mark.parametrize(
    ("written", "expected"),
    [("round(2.675D, 2)", 2.68), ("round(1.005D, 2)", 1.01), ("round(-2.5D)", -3.0),
     ("bround(2.5D)", 2.0), ("round(2.345, 2)", Decimal("2.35")), ("round(15, -1)", 20),
     ("CAST('2.345' AS DECIMAL(10,2))", Decimal("2.35")), ("CAST(1.005D AS DECIMAL(10,2))", Decimal("1.01")),
     ("CAST(2.7 AS INT)", 2), ("CAST(-2.7D AS INT)", -2), ("CAST(1e20 AS STRING)", "1.0E20"),
     ("CAST(0.00012D AS STRING)", "1.2E-4"), ("CAST(1234567.5D AS STRING)", "1234567.5")],
)  # fmt: skip
def test_numbers_are_rounded_and_shown_as_spark_does(written, expected):
    assert value(written) == [expected]


def test_division_by_zero_stops_the_load_unless_it_is_foreseen():
    frame = pl.DataFrame({"a": [1, None], "b": [0, 0]})
    with pytest.raises(BadValue, match="division by zero"):
        value("a / b", frame)
    assert value("a / nullif(b, 0)", frame) == [None, None]
    assert value("try_divide(a, b)", frame) == [None, None]
    assert value("CASE WHEN b <> 0 THEN a / b END", frame) == [None, None]


# What is not needed may not fail


@pytest.mark.parametrize(
    "written",
    [
        "CASE WHEN s RLIKE '^[0-9]+$' THEN CAST(s AS INT) ELSE 0 END",
        "IF(s RLIKE '^[0-9]+$', CAST(s AS INT), 0)",
        "CASE WHEN s NOT RLIKE '^[0-9]+$' THEN 0 ELSE CAST(s AS INT) END",
        "coalesce(try_cast(s AS INT), 0 * length(s), CAST(s AS INT))",
    ],
)
def test_only_rows_that_reach_a_branch_can_fail_in_it(written):
    assert value(written, pl.DataFrame({"s": ["12", "x"]})) == [12, 0]


def test_what_and_rules_out_is_not_asked_any_further():
    frame = pl.DataFrame({"s": ["12", "x", None]})
    assert value("s RLIKE '^[0-9]+$' AND CAST(s AS INT) > 5", frame) == [True, False, None]
    assert value("s NOT RLIKE '^[0-9]+$' OR CAST(s AS INT) > 50", frame) == [False, True, None]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [("INT", "x"), ("DOUBLE", "1,5"), ("DECIMAL(5,1)", "12345.6"), ("DATE", "5.1.2024"),
     ("TIMESTAMP", "soon"), ("BOOLEAN", "maybe")],
)  # fmt: skip
def test_a_cast_stops_the_load_and_a_try_cast_gives_null(kind, bad):
    frame = pl.DataFrame({"s": [bad]})
    with pytest.raises(BadValue) as caught:
        value(f"CAST(s AS {kind})", frame)
    assert bad in str(caught.value)
    assert value(f"TRY_CAST(s AS {kind})", frame) == [None]


# What is refused


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("upper(n", "it can't be read"),
        ("no_such(n)", "there is no function 'no_such'"),
        ("date_trunk('day', n)", "Did you mean 'date_trunc'?"),
        ("sum(n)", "it looks at many rows"),
        ("n + (SELECT 1)", "a query can't stand inside an expression"),
        ("explode(n)", "it would change the number of rows"),
        ("uuid()", "a load must be repeatable"),
        ("row_number() OVER (ORDER BY n)", "looks at many rows"),
        ("hash(n)", "could not be the same as those of Spark"),
        ("nul(n)", "there is no function 'nul'"),
        ("day - day", "Use datediff(end, start)"),
        ("day AND n > 1", "a value of type date stands where a condition is needed"),
        ("flag + 1", "a value of type boolean is no number"),
        ("coalesce(n, 'x')", "int64 and string, which have no type in common"),
        ("date_trunc('fortnight', day)", "'fortnight' is no unit of time"),
        ("to_date(s, 'yyyy-QQ')", "'QQ' in the pattern 'yyyy-QQ' has no meaning"),
        ("split_part(s, s, 1)", "the separator must be a constant text"),
        ("CAST(day AS INT)", "a value of type date can't become int32"),
        ("sha2(s, 100)", "100 bits"),
        ("n AT TIME ZONE 'UTC'", "from_utc_timestamp"),
        ("xxhash64(n)", "only the hash of a text"),
    ],
)
def test_what_has_no_meaning_is_refused_before_anything_is_read(written, says):
    columns = {"n": pl.Int64(), "day": pl.Date(), "flag": pl.Boolean(), "s": pl.String()}
    error = refused(written, **columns)
    assert says in str(error)
    assert f"in `{written}`" in str(error)
    assert str(error).startswith("transform, transform.x: ")
    assert not error.retryable


def test_a_condition_must_be_one():
    with pytest.raises(TransformError, match="gives int64, not true or false"):
        condition("n + 1", {"n": pl.Int64()}, place="p")


def test_a_column_of_an_unknown_type_is_taken_as_it_is():
    columns = {"a": pl.Unknown()}
    assert typed_expression("upper(a)", columns, place="p")[1] == pl.Unknown()
