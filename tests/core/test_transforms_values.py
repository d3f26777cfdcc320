"""Value rules: slot 5."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.metadata.patterns import pattern_problem
from datacoolie_core.metadata.transform import ValueRule
from datacoolie_core.transforms.slots import Shaped
from datacoolie_core.transforms.values import cleaned
from tests.core.transformed import column, problems, refused, rows, shaped, warned


def rules(*given: dict, **configure) -> dict:
    listed = [{"columns": ["a"], **rule} for rule in given]
    return {"transform": {"value_rules": listed, "configure": configure}}


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        ({"operation": "trim"}, [" \t\n x y\u00a0", "", None], ["x y", "", None]),
        ({"operation": "case", "mode": "lower"}, ["ÀB", "x", None], ["àb", "x", None]),
        ({"operation": "CASE", "mode": "Upper"}, ["straße", None], ["STRASSE", None]),
        (
            {"operation": "regex_replace", "pattern": "[^0-9]+"},
            ["+84 912-345", "", None],
            ["84912345", "", None],
        ),
        (
            {"operation": "regex_replace", "pattern": "(a)(b)?", "replacement": "<$1\\1${2}$$>"},
            ["ab-a", None],
            ["<$1\\1${2}$$>-<$1\\1${2}$$>", None],
        ),
        (
            {"operation": "regex_replace", "pattern": "-", "replacement": "$0"},
            ["1-2-3"],
            ["1$02$03"],
        ),
        ({"operation": "empty_to_null"}, ["", " ", "x", None], [None, " ", "x", None]),
        ({"operation": "fill_null", "value": "?"}, ["", None], ["", "?"]),
        ({"operation": "fill_null", "value": ""}, ["x", None], ["x", ""]),
        (
            {"operation": "map", "mapping": {"A": "active", "I": "inactive"}},
            ["A", "I", "X", "a", None],
            ["active", "inactive", "X", "a", None],
        ),
        (
            {"operation": "map", "mapping": {"A": "I", "I": "A"}, "on_unmapped": "null"},
            ["A", "I", "X", None],
            ["I", "A", None, None],
        ),
    ],
)
def test_each_rule_changes_text_and_leaves_null_to_fill_null(reading, rule, values, expected):
    assert column(reading, values, pl.String, **rules(rule)) == expected


@pytest.mark.parametrize(
    ("dtype", "value", "filled"),
    [
        (pl.Int8, 7, 7),
        (pl.Int64, 7.0, 7),
        (pl.UInt64, 2**64 - 1, 2**64 - 1),
        (pl.Float64, 1, 1.0),
        (pl.Boolean, False, False),
        (pl.String, 0, "0"),
        (pl.String, True, "true"),
        (pl.Decimal(10, 2), 0.1, Decimal("0.10")),
        (pl.Decimal(38, 2), "123456789012345678901.5", Decimal("123456789012345678901.50")),
        (pl.Date, "2024-02-29", date(2024, 2, 29)),
        (pl.Datetime("ms"), "2024-02-29 10:00", datetime(2024, 2, 29, 10)),
    ],
)
def test_null_is_filled_with_a_value_of_the_columns_own_type(reading, dtype, value, filled):
    rule = {"operation": "fill_null", "value": value}
    found = shaped(reading, pl.DataFrame({"a": pl.Series([None], dtype=dtype)}), **rules(rule))
    assert found["a"].to_list() == [filled]
    assert found.schema["a"] == dtype


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pl.Int64, "invalid"),
        (pl.Int64, "7"),
        (pl.Int64, True),
        (pl.Int64, 1.5),
        (pl.Int8, 300),
        (pl.UInt8, -1),
        (pl.Boolean, 1),
        (pl.Float64, "1"),
        (pl.Decimal(5, 2), 1000),
        (pl.Decimal(5, 2), "1.005"),
        (pl.Decimal(5, 2), "many"),
        (pl.Decimal(5, 2), float("inf")),
        (pl.Date, "yesterday"),
        (pl.Date, 5),
        (pl.Binary, "x"),
        (pl.List(pl.Int64), 1),
        (pl.Duration, "1d"),
    ],
)
def test_a_value_that_the_type_does_not_have_is_refused(reading, dtype, value):
    frame = pl.DataFrame({"a": pl.Series([None], dtype=dtype)})
    message = refused(reading, frame, **rules({"operation": "fill_null", "value": value}))
    assert "transform.value_rules[0].value: 'a' can't be filled: " in message
    assert f"is no value of type {frame.schema['a']}" in message


@pytest.mark.parametrize("operation", ["trim", "case", "regex_replace", "empty_to_null", "map"])
def test_a_rule_for_text_on_another_type_is_refused(reading, operation):
    rule = {"operation": operation, "mode": "lower", "pattern": "x", "mapping": {"a": "b"}}
    frame = pl.DataFrame({"a": [1]})
    assert refused(reading, frame, **rules(rule)) == (
        f"transform, transform.value_rules[0]: {operation} changes text, but 'a' is Int64. "
        "Take the column out of the rule; value rules come before schema hints."
    )


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["A", " b "])])
def test_categories_are_text(reading, dtype):
    rule = {"operation": "trim"}
    assert column(reading, ["A", " b ", None], dtype, **rules(rule)) == ["A", "b", None]
    fill = {"operation": "fill_null", "value": "new"}
    assert column(reading, ["A", None], dtype, **rules(fill)) == ["A", "new"]


def test_a_column_that_is_all_null_is_left_alone_until_it_is_filled(reading):
    assert column(reading, [None], pl.Null, **rules({"operation": "trim"})) == [None]
    fill = {"operation": "fill_null", "value": 5}
    assert column(reading, [None], pl.Null, **rules(fill)) == [5]


def test_rules_go_by_order_then_as_listed(reading):
    fill = {"operation": "fill_null", "value": "filled"}
    empty = {"operation": "empty_to_null"}
    assert column(reading, [""], **rules(fill, empty)) == [None]
    assert column(reading, [""], **rules({**fill, "order": 20}, {**empty, "order": 10})) == [
        "filled"
    ]
    assert column(reading, [""], **rules({**empty, "order": 5}, {**fill, "order": 5})) == ["filled"]
    assert column(reading, [""], **rules(fill, {**empty, "order": 99})) == ["filled"]


def test_values_are_cleaned_before_they_are_typed(reading):
    """W58: what is left is what the hint sees, and what an error shows."""
    given = rules({"operation": "regex_replace", "pattern": "[^0-9]"})
    given["transform"]["schema_hints"] = [{"column_name": "a", "data_type": "BIGINT"}]
    frame = pl.DataFrame({"a": ["0912-345-678"]})
    assert rows(reading, frame, **given) == [{"a": 912345678}]


def test_the_value_rules_of_a_column_do_not_hide_the_file_of_a_bad_value(project):
    """W58."""
    project.source_format = "csv"
    project.write("t", "good.csv", pl.DataFrame({"id": [" 1 "]}))
    project.write("t", "bad.csv", pl.DataFrame({"id": [" many "]}))
    project.flow(
        transform={
            "value_rules": [{"operation": "trim", "columns": ["id"]}],
            "schema_hints": [{"column_name": "id", "data_type": "INT"}],
        }
    )
    (result,) = project.run().dataflows
    assert result.error.phase == "transform"
    assert "column 'id', " in result.error.message
    assert "bad.csv: the value 'many' is no int32" in result.error.message


# Missing columns


def test_a_column_that_is_not_there_is_refused_or_told(reading):
    rule = {"operation": "trim", "columns": ["A", "gone"]}
    frame = pl.DataFrame({"a": [" x "]})
    message = refused(reading, frame, **rules(rule))
    assert "transform.value_rules[0].columns: there is no column 'gone'. There are: 'a'" in message
    names, told = warned(reading, frame, **rules(rule, missing_column_policy="ignore"))
    assert names == ["a"]
    assert told == [
        (
            "missing_column",
            "transform.value_rules[0].columns: there is no column 'gone', so it is left out. "
            "There are: 'a'.",
        )
    ]
    assert rows(reading, frame, **rules(rule, missing_column_policy="ignore")) == [{"a": "x"}]


def test_the_runs_record_counts_the_columns_that_are_not_there(project):
    project.write("t", "1.parquet", pl.DataFrame({"id": [1]}))
    project.flow(
        transform={
            "value_rules": [{"operation": "trim", "columns": ["gone"]}],
            "masking_rules": [{"method": "nullify", "columns": ["away", "off"]}],
            "schema_hints": [{"column_name": "idd", "data_type": "INT"}],
            "configure": {"missing_column_policy": "ignore"},
        }
    )
    told = [notice.message for notice in project.run_one().warnings]
    assert [text.partition(":")[0] for text in told] == [
        "transform.value_rules[0].columns",
        "transform.schema_hints",
        "transform.masking_rules[0].columns",
    ]
    assert "no column 'idd', so it is left out. Did you mean 'id'?" in told[1]
    assert "no column 'away', 'off', so" in told[2]


# The patterns


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"operation": "regex_replace", "pattern": r"\w"}, r"\w is not supported"),
        ({"operation": "regex_replace", "pattern": "(?i)a"}, "inline flags"),
        ({"operation": "regex_replace", "pattern": "a(?=b)"}, "no lookaround"),
        ({"operation": "regex_replace", "pattern": "(?P<x>a)"}, "named groups"),
        ({"operation": "regex_replace", "pattern": r"(a)\1"}, "no back-references"),
        ({"operation": "regex_replace", "pattern": "a*+"}, "possessive"),
        ({"operation": "regex_replace", "pattern": "[a&&b]"}, "set operations"),
        ({"operation": "regex_replace", "pattern": "(a+)+"}, "a repeated group"),
        ({"operation": "regex_replace", "pattern": "a{"}, r"must be written \{"),
        ({"operation": "regex_replace", "pattern": "a{,3}"}, r"must be written \{"),
        ({"operation": "regex_replace", "pattern": "a[b"}, "not a regular expression"),
        ({"operation": "regex_replace", "pattern": ""}, "it is empty"),
        ({"operation": "regex_replace", "pattern": "a" * 4097}, "4096"),
        ({"operation": "map", "mapping": {}}, "operation map needs it"),
        ({"operation": "fill_null"}, "operation fill_null needs it"),
    ],
)
def test_a_rule_that_can_not_work_is_refused_when_the_metadata_is_loaded(reading, rule, says):
    (problem,) = problems(reading, **rules(rule))
    assert problem.startswith("transform.value_rules[0].")
    assert says in problem


def test_a_pattern_too_big_for_the_engine_is_refused_before_anything_is_read(reading):
    rule = {"operation": "regex_replace", "pattern": "[^a]{1000}" * 100}
    message = refused(reading, pl.DataFrame({"a": ["x"]}), **rules(rule))
    assert "transform.value_rules[0].pattern: the pattern can't be used" in message


PIECES = st.sampled_from([*"ab1.|()*+?{}é-_", "(?:", "[^0-9]", "[a-c]", "[]a]", "[-a]"]) | (
    st.sampled_from(["{2}", "{1,}", r"\.", r"\$", r"\-", r"\/", r"\t", r"\\"])
)


@given(
    st.lists(PIECES, min_size=1, max_size=6).map("".join),
    st.text("ab1.é-_ x", max_size=12),
    st.sampled_from(["", "X", "$1", "${a}", "\\1", "$$"]),
)
def test_a_pattern_of_the_subset_means_the_same_here_and_in_another_engine(
    pattern, text, replacement
):
    """Except where it matches nothing: engines differ in where nothing is."""
    if pattern_problem(pattern):
        return
    rule = ValueRule(
        operation="regex_replace", columns=("a",), pattern=pattern, replacement=replacement
    )
    found = _cleaned([rule], [text])
    assert found is not None
    if all(match.group() for match in re.finditer(pattern, text)):
        assert found == [re.sub(pattern, lambda _: replacement, text)]


def _cleaned(value_rules: list[ValueRule], values: list[str | None]) -> list[str | None]:
    from datacoolie_core.metadata.models import Transform
    from tests.core.conftest import dataflow

    flow = dataflow().model_copy(update={"transform": Transform(value_rules=tuple(value_rules))})
    frame = pl.LazyFrame({"a": pl.Series(values, dtype=pl.String)})
    return cleaned(Shaped(frame, {"a": pl.String()}), flow).frame.collect()["a"].to_list()


MODEL = {
    "trim": lambda _rule, text: text.strip(),
    "case": lambda rule, text: text.upper() if rule.mode == "upper" else text.lower(),
    "empty_to_null": lambda _rule, text: text or None,
    "map": lambda rule, text: rule.mapping.get(text, text if rule.on_unmapped == "keep" else None),
}


@given(
    st.lists(
        st.builds(
            ValueRule,
            operation=st.sampled_from([*MODEL, "fill_null"]),
            columns=st.just(("a",)),
            order=st.integers(0, 3),
            mode=st.sampled_from(["lower", "upper"]),
            value=st.sampled_from(["", "x", " Y "]),
            mapping=st.dictionaries(st.sampled_from(["", "x", "Y"]), st.text("xY ", max_size=2)),
            on_unmapped=st.sampled_from(["keep", "null"]),
        ),
        max_size=5,
    ),
    st.lists(st.none() | st.text("xY \t", max_size=3), min_size=1, max_size=5),
)
def test_any_list_of_rules_does_what_the_rules_do_one_after_the_other(value_rules, values):
    def expected(value: str | None) -> str | None:
        for rule in sorted(value_rules, key=lambda one: one.order):
            if rule.operation == "fill_null":
                value = rule.value if value is None else value
            elif value is not None:
                value = MODEL[rule.operation](rule, value)
        return value

    assert _cleaned(value_rules, values) == [expected(value) for value in values]
