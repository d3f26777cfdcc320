"""From the source's columns to the destination's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.apply import apply
from tests.core.transformed import NOW, SYSTEM, context, refused, rows, shaped, warned

CONTEXT = context()


# Types


def test_hints_type_the_columns_that_they_name_in_any_case(reading):
    frame = pl.DataFrame({"ID": ["1"], "Amount": ["2.50"], "note": ["x"]})
    found = rows(reading, frame, hints={"id": "INT", "amount": "DECIMAL(10,2)"})
    assert found == [{"id": 1, "amount": Decimal("2.50"), "note": "x"}]


def test_a_hint_for_a_column_that_is_not_there_is_told_with_the_name_meant(reading):
    """Hints may describe more than a file holds: no policy makes an error of it."""
    frame = pl.DataFrame({"amount": ["1"]})
    names, told = warned(reading, frame, hints={"amuont": "INT"})
    assert names == ["amount"]
    assert told == [
        (
            "missing_column",
            "transform.schema_hints: there is no column 'amuont', so it is left out. "
            "Did you mean 'amount'?",
        )
    ]


def test_missing_columns_can_be_ignored(reading):
    transform = {
        "configure": {"missing_column_policy": "ignore"},
        "drop_columns": ["gone"],
        "rename_columns": {"away": "x"},
    }
    frame = pl.DataFrame({"a": ["1"]})
    assert rows(
        reading, frame, hints={"b": "INT"}, transform={"schema_hints": [], **transform}
    ) == [{"a": "1"}]


def test_hints_can_be_switched_off(reading):
    off = {"use_schema_hint": False}
    assert rows(reading, pl.DataFrame({"a": ["1"]}), hints={"a": "INT"}, connection=off) == [
        {"a": "1"}
    ]


def test_a_default_value_stands_in_for_null(reading):
    """W65."""
    hints = {"a": {"data_type": "DECIMAL(10,2)", "default_value": "1.5"}}
    found = rows(reading, pl.DataFrame({"a": ["2", None]}), hints=hints)
    assert found == [{"a": Decimal("2.00")}, {"a": Decimal("1.50")}]


@pytest.mark.parametrize(
    "hint",
    [
        {"data_type": "DATE", "format": "yyyy-QQ"},
        {"data_type": "INT", "default_value": "many"},
        {"data_type": "DECIMAL(10,2)", "default_value": "1.234"},
    ],
)
def test_a_hint_that_can_not_be_applied_is_refused_before_anything_is_read(reading, hint):
    hint = {"column_name": "a", **hint}
    flow = reading.flow()
    from datacoolie_core.metadata.models import SchemaHint

    transform = flow.transform.model_copy(update={"schema_hints": (SchemaHint(**hint),)})
    with pytest.raises(TransformError, match="can't be applied"):
        apply(pl.LazyFrame({"a": ["x"]}), flow.model_copy(update={"transform": transform}), CONTEXT)


def test_local_times_become_instants_if_asked(reading):
    frame = pl.DataFrame({"t": [datetime(2024, 7, 1, 12)], "d": [date(2024, 7, 1)]})
    configure = {"convert_timestamp_ntz": True, "timestamp_timezone": "America/New_York"}
    found = rows(reading, frame, transform={"configure": configure})
    assert found == [{"t": datetime(2024, 7, 1, 16, tzinfo=UTC), "d": date(2024, 7, 1)}]
    assert rows(reading, frame) == frame.to_dicts()


# Computed columns and filter


def test_computed_columns_may_use_earlier_ones_and_replace_others(reading):
    columns = [
        {"column": "double", "expression": "Amount * 2"},
        {"column": "AMOUNT", "expression": "double + 1"},
    ]
    frame = pl.DataFrame({"amount": [2]})
    assert rows(reading, frame, transform={"additional_columns": columns}) == [
        {"amount": 5, "double": 4}
    ]


def test_names_in_another_case_are_found_inside_expressions(reading):
    frame = pl.DataFrame({"Order ID": [1, 2], "Kind": ["Kind", "b"], "kind_of": [1, 1]})
    transform = {"filter_expression": "kind = 'Kind' AND \"order id\" = kind_of"}
    assert rows(reading, frame, transform=transform) == [
        {"order_id": 1, "kind": "Kind", "kind_of": 1}
    ]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("amuont > 1", "there is no column 'amuont' in `amuont > 1`. Did you mean 'amount'?"),
        ("amount > > 1", "in `amount > > 1`. Correct the expression"),
        ("no_such_function(amount)", "no_such_function"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_place(reading, expression, says):
    flow = reading.flow()
    transform = flow.transform.model_copy(update={"filter_expression": expression})
    with pytest.raises(TransformError) as caught:
        apply(
            pl.LazyFrame({"amount": [1]}), flow.model_copy(update={"transform": transform}), CONTEXT
        )
    assert "transform.filter_expression: " in str(caught.value)
    assert says in str(caught.value)
    assert not caught.value.retryable


def test_an_expression_over_the_wrong_type_is_refused_before_anything_is_read(reading):
    columns = [{"column": "x", "expression": "paid + 1"}]
    frame = pl.DataFrame({"paid": [True]})
    message = refused(reading, frame, transform={"additional_columns": columns})
    assert message.startswith("transform, transform.additional_columns[0].expression: ")
    assert "boolean + int32: a value of type boolean is no number in `paid + 1`" in message


# System columns


def test_system_columns_stand_at_the_end_and_are_the_products_own(reading):
    frame = pl.DataFrame(
        {"__file_name": ["f"], "__Updated_By": ["somebody"], "__created_at": ["never"], "a": [1]}
    )
    found = shaped(reading, frame)
    assert found.columns == ["a", "__file_name", *SYSTEM]
    assert found.row(0) == (1, "f", NOW, NOW, "DataCoolie", "run-1")
    assert found.schema["__created_at"] == pl.Datetime("us", "UTC")


def test_system_columns_of_the_source_order_rows_before_they_are_replaced(reading):
    frame = pl.DataFrame({"id": [1, 1], "__updated_at": [2, 1], "v": ["new", "old"]})
    merge = {"load_type": "merge_upsert", "merge_keys": ["id"]}
    found = rows(reading, frame, destination=merge, watermark=["__updated_at"])
    assert found == [{"id": 1, "v": "new"}]


# Partitions


def test_partition_columns_are_computed_and_stand_before_the_system_columns(reading):
    partition = [{"column": "year", "expression": "EXTRACT(YEAR FROM day)"}]
    frame = pl.DataFrame({"day": [date(2024, 5, 1)], "__file_name": ["f"]})
    found = shaped(reading, frame, destination={"partition_columns": partition})
    assert found.columns == ["day", "year", "__file_name", *SYSTEM]
    assert found["year"].to_list() == [2024]


@pytest.mark.parametrize(
    "destination",
    [
        {"partition_columns": ["regin"]},
        {"load_type": "merge_upsert", "merge_keys": ["regin"]},
    ],
)
def test_a_key_that_is_not_in_the_data_is_refused_at_the_first_load(reading, destination):
    """W52."""
    message = refused(reading, pl.DataFrame({"region": [1]}), destination=destination)
    assert "there is no column 'regin' after the transforms. Did you mean 'region'?" in message


# The mechanism


def test_the_record_names_the_slots_that_did_something(reading):
    flow = reading.flow(
        hints={"a": "INT"},
        transform={
            "schema_hints": [{"column_name": "A b", "data_type": "INT"}],
            "filter_expression": "1 = 1",
        },
    )
    _, applied = apply(pl.LazyFrame({"A b": ["1"]}), flow, CONTEXT)
    assert applied == ("schema", "filter", "system", "names")


def test_nothing_is_computed_before_the_frame_is_consumed(reading):
    def exploding(_frame: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("computed")

    schema = {"k": pl.Int64, "ts": pl.Int64}
    frame = pl.LazyFrame({"k": [1], "ts": [1]}).map_batches(exploding, schema=schema)
    rules = {
        "deduplicate_columns": ["k"],
        "latest_data_columns": ["ts"],
        "value_rules": [{"operation": "fill_null", "columns": ["k"], "value": 0}],
        "hash_columns": [{"target_column": "h", "columns": ["k"]}],
        "masking_rules": [{"method": "nullify", "columns": ["ts"]}],
    }
    flow = reading.flow(hints={"k": "STRING"}, transform=rules)
    lazy, _ = apply(frame, flow, CONTEXT)
    with pytest.raises(AssertionError, match="computed"):
        lazy.collect()
