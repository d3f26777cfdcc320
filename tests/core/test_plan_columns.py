"""Column names on their way to the destination."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from datacoolie_core.metadata.models import Dataflow
from datacoolie_core.plan.columns import NameMode, blocked_by, clean_name, destination_column


@pytest.mark.parametrize(
    ("name", "lower", "snake"),
    [
        ("Order ID", "order_id", "order_id"),
        ("orderId", "orderid", "order_id"),
        ("HTTPStatusCode", "httpstatuscode", "http_status_code"),
        ("Price (USD)", "price_usd", "price_usd"),
        ("  padded  ", "padded", "padded"),
        ("2nd", "_2nd", "_2nd"),
        ("__updated_at", "__updated_at", "__updated_at"),
        ("_Kept As Is", "_Kept As Is", "_Kept As Is"),
        ("Ünïcode Näme", "ünïcode_näme", "ünïcode_näme"),
        ("名前 1", "名前_1", "名前_1"),
        ("हिन्दी-नाम", "हिन्दी_नाम", "हिन्दी_नाम"),
        ("e\u0301te\u0301", "été", "été"),
        ("a__b", "a_b", "a_b"),
        ("!!!", "_", "_"),
        ("²x", "_²x", "_²x"),
    ],
)
def test_names_are_cleaned_and_every_script_keeps_its_letters(
    name: str, lower: str, snake: str
) -> None:
    """W53, W69."""
    assert clean_name(name) == lower
    assert clean_name(name, "snake") == snake
    assert clean_name(name, "none") == name


@given(st.text(max_size=20), st.sampled_from(["lower", "snake", "none"]))
def test_cleaning_twice_changes_nothing(name: str, mode: NameMode) -> None:
    once = clean_name(name, mode)
    assert clean_name(once, mode) == once


def flow(transform: dict[str, Any] | None = None, **destination: Any) -> Dataflow:
    lake = {"name": "lake", "connection_type": "lakehouse", "format": "delta"}
    return Dataflow.model_validate(
        {
            "name": "f",
            "source": {"connection": {"name": "files"}, "table": "t"},
            "destination": {"connection": lake, "table": "t", **destination},
            "transform": transform or {},
        }
    )


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ({}, "event_time"),
        ({"rename_columns": {"event TIME": "Loaded At"}}, "loaded_at"),
        ({"rename_columns": {"other": "x"}}, "event_time"),
        ({"select_columns": ["id", "EVENT TIME"]}, "event_time"),
        ({"drop_columns": ["id"]}, "event_time"),
        ({"configure": {"column_name_mode": "none"}}, "Event Time"),
        (
            {
                "value_rules": [{"operation": "trim", "columns": ["Event Time"]}],
                "schema_hints": [{"column_name": "event time", "data_type": "timestamp"}],
            },
            "event_time",
        ),
        ({"value_rules": [{"operation": "trim", "columns": ["id"]}]}, "event_time"),
    ],
)
def test_a_column_is_followed_through_what_keeps_its_values(
    transform: dict[str, Any], expected: str
) -> None:
    assert destination_column(flow(transform), "Event Time") == expected


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        ({"select_columns": ["id"]}, "select_columns leave it out"),
        ({"drop_columns": ["event time"]}, "drop_columns drop it"),
        (
            {"additional_columns": [{"column": "Event Time", "expression": "1"}]},
            "additional_columns compute it anew",
        ),
        (
            {"masking_rules": [{"method": "nullify", "columns": ["Event Time"]}]},
            "masking_rules hide it",
        ),
        (
            {"hash_columns": [{"target_column": "event time", "columns": ["id"]}]},
            "hash_columns write it",
        ),
        (
            {"value_rules": [{"operation": "trim", "columns": ["Event Time"]}]},
            "value_rules change it",
        ),
        (
            {
                "value_rules": [
                    {"operation": "fill_null", "columns": ["Event Time"], "value": "2025-01-01"}
                ],
                "schema_hints": [{"column_name": "Event Time", "data_type": "timestamp"}],
            },
            "value_rules change it",
        ),
    ],
)
def test_a_column_that_does_not_arrive_unchanged_is_not_followed(
    transform: dict[str, Any], reason: str
) -> None:
    assert destination_column(flow(transform), "Event Time") is None
    assert blocked_by(flow(transform), "Event Time") == reason


def test_columns_that_the_load_writes_itself_are_not_followed() -> None:
    assert destination_column(flow(), "__updated_at") is None
    assert destination_column(flow(), "__date_folder_partition__") is None
    assert destination_column(flow(), "__file_modification_time") == "__file_modification_time"
    scd2 = flow(load_type="scd2", merge_keys=["id"])
    assert destination_column(scd2, "__valid_from") is None
    assert destination_column(flow(), "__valid_from") == "__valid_from"


def test_a_partition_column_is_followed_unless_it_is_computed() -> None:
    plain = flow(partition_columns=[{"column": "day"}])
    computed = flow(partition_columns=[{"column": "day", "expression": "date(ts)"}])
    assert destination_column(plain, "day") == "day"
    assert destination_column(computed, "Day") is None
