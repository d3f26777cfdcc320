"""Projection and clean names: slots 85 and 90, and the order of columns."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from datacoolie_core.transforms.apply import apply
from tests.core.transformed import SYSTEM, context, problems, refused, rows, shaped, warned

CONTEXT = context()


def test_selected_columns_come_in_their_order_and_keep_the_system_columns(reading):
    frame = pl.DataFrame({"a": [1], "b": [2], "c": [3], "__file_name": ["f"]})
    transform = {"select_columns": ["C", "a"], "rename_columns": {"c": "Sea"}}
    found = shaped(reading, frame, transform=transform)
    assert found.columns == ["sea", "a", "__file_name", *SYSTEM]


def test_dropped_columns_are_gone(reading):
    frame = pl.DataFrame({"a": [1], "B": [2]})
    assert rows(reading, frame, transform={"drop_columns": ["b"]}) == [{"a": 1}]


@pytest.mark.parametrize("field", ["select_columns", "drop_columns"])
def test_a_projection_of_a_column_that_is_not_there_is_refused(reading, field):
    message = refused(reading, pl.DataFrame({"amount": [1]}), transform={field: ["amuont"]})
    assert f"transform.{field}: there is no column 'amuont'. Did you mean 'amount'?" in message


def test_a_rename_may_not_hide_another_column(reading):
    frame = pl.DataFrame({"a": [1], "B": [2]})
    message = refused(reading, frame, transform={"rename_columns": {"a": "b"}})
    assert "'a' can't be renamed to 'b': there is a column 'B'" in message


def test_two_columns_may_swap_their_names(reading):
    frame = pl.DataFrame({"a": [1], "b": [2]})
    flow = reading.flow()
    transform = flow.transform.model_copy(update={"rename_columns": {"a": "b", "b": "a"}})
    lazy, _ = apply(frame.lazy(), flow.model_copy(update={"transform": transform}), CONTEXT)
    assert lazy.collect().select("a", "b").rows() == [(2, 1)]


def test_names_keep_the_letters_of_every_script(reading):
    """W69."""
    frame = pl.DataFrame({"Ünïcode Näme": [1], "数量 (kg)": [2], "2nd": [3]})
    assert list(rows(reading, frame)[0]) == ["ünïcode_näme", "数量_kg", "_2nd"]


def test_names_that_become_one_are_refused(reading):
    frame = pl.DataFrame({"Order ID": [1], "order-id": [2]})
    message = refused(reading, frame)
    assert "the columns 'Order ID', 'order-id' would all be called 'order_id'" in message


def test_names_that_differ_in_case_only_are_refused_even_uncleaned(reading):
    frame = pl.DataFrame({"ID": [1], "id": [2]})
    none = {"configure": {"column_name_mode": "none"}}
    assert "would all be called" in refused(reading, frame, transform=none)


@pytest.mark.parametrize("key", ["Order ID", "order_id", "ORDER_ID"])
def test_a_key_may_be_written_as_in_the_source_or_as_in_the_table(reading, key):
    """W53."""
    frame = pl.DataFrame({"Order ID": [1]})
    assert rows(reading, frame, destination={"load_type": "merge_upsert", "merge_keys": [key]}) == [
        {"order_id": 1}
    ]


@pytest.mark.parametrize("field", ["select_columns", "drop_columns"])
def test_columns_that_are_not_there_are_left_out_where_the_policy_says_so(reading, field):
    transform = {field: ["A", "gone"], "configure": {"missing_column_policy": "ignore"}}
    names, told = warned(reading, pl.DataFrame({"a": [1], "b": [1]}), transform=transform)
    assert names == (["a"] if field == "select_columns" else ["b"])
    assert [text.partition(",")[0] for _, text in told] == [
        f"transform.{field}: there is no column 'gone'"
    ]


def test_a_selection_of_nothing_is_refused_whatever_the_policy(reading):
    transform = {"select_columns": ["gone"], "configure": {"missing_column_policy": "ignore"}}
    message = refused(reading, pl.DataFrame({"a": [1]}), transform=transform)
    assert "transform.select_columns: none of these columns is there" in message


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        ({"select_columns": ["a"], "drop_columns": ["b"]}, "not both"),
        ({"select_columns": ["a", "Key", "A"]}, "'a' is listed twice"),
        ({"select_columns": ["a"]}, "'key' is a merge key and must be selected too"),
        ({"drop_columns": ["KEY"]}, "'KEY' is a merge key and can't be dropped"),
        ({"drop_columns": ["__file_name"]}, "a system column and can't be dropped"),
        ({"rename_columns": {"a": "x", "b": "X"}}, "two columns are renamed to 'x'"),
        ({"rename_columns": {"a": "b", "b": "c"}}, "no chains or cycles"),
        ({"rename_columns": {"a": "a"}}, "it is renamed to itself"),
        ({"rename_columns": {"Key": "k"}}, "it is a merge key and can't be renamed"),
        ({"rename_columns": {"a": "__created_at"}}, "a system column can't be renamed or be"),
    ],
)
def test_a_projection_that_can_not_be_is_refused_when_the_metadata_is_loaded(
    reading, transform, says
):
    merge = {"load_type": "merge_upsert", "merge_keys": ["key"]}
    assert says in problems(reading, destination=merge, transform=transform)[0]


@pytest.mark.parametrize("selected", ["Order ID", "order_id"])
def test_a_key_may_be_selected_by_either_of_its_names(reading, selected):
    """W53: the metadata knows both, the data has one."""
    merge = {"load_type": "merge_upsert", "merge_keys": ["order_id"]}
    frame = pl.DataFrame({selected: [1], "b": [2]})
    transform = {"select_columns": [selected]}
    assert rows(reading, frame, destination=merge, transform=transform) == [{"order_id": 1}]


def test_a_merge_key_with_a_space_works_in_every_load(project):
    """W53."""
    project.flow(load_type="merge_upsert", merge_keys=["Order ID"], watermark=["Changed At"])
    for number in (1, 2):
        frame = pl.DataFrame({"Order ID": [1, number], "Changed At": [number] * 2, "v": "x"})
        project.write("t", f"{number}.parquet", frame.unique())
        project.run_one()
    assert project.table().rows() == [(1, 2, "x"), (2, 2, "x")]


@pytest.mark.parametrize(
    "names",
    [("na!e", "na%e"), ("User ID", "user_id"), ("%", "!"), ("É", "é"), ("E\u0301", "é")],
)
def test_names_that_collide_stop_a_load_before_anything_is_written(project, names):
    """Case se-names-collide-after-cleaning."""
    project.write("t", "1.parquet", pl.DataFrame({names[0]: [1], names[1]: [2]}))
    project.flow()
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert result.error.phase == "transform"
    assert all(f"'{name}'" in result.error.message for name in names)
    assert not Path(project.path()).exists()


def test_every_column_stands_where_the_format_says(reading):
    frame = pl.DataFrame(
        {
            "__file_path": ["p"],
            "__updated_by": ["x"],
            "a": [1],
            "__file_name": ["f"],
            "__file_modification_time": [datetime(2024, 1, 1, tzinfo=UTC)],
            "b": [2],
        }
    )
    destination = {
        "load_type": "scd2",
        "merge_keys": ["a"],
        "partition_columns": [{"column": "p", "expression": "a + 1"}],
    }
    transform = {
        "hash_columns": [{"target_column": "h", "columns": ["a"]}],
        "additional_columns": [{"column": "c", "expression": "a"}],
    }
    found = shaped(reading, frame, destination=destination, transform=transform)
    assert found.columns == [
        *("a", "b", "h", "c", "p"),
        *("__valid_from", "__valid_to", "__is_current"),
        *("__file_name", "__file_path", "__file_modification_time"),
        *SYSTEM,
    ]
