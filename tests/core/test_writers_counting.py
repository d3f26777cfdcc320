"""Counts and schemas of tables, without loading them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers import delta


def test_no_table_has_no_rows_and_no_schema(lake):
    assert delta.table_row_count(lake.uri) is None
    assert delta.read_schema(lake.uri) is None
    assert delta.count_windows(lake.uri, "t", [Window("t", 1, 2)]) == [0]


def test_rows_are_counted(lake):
    lake.load(pl.DataFrame({"id": [1, 2]}))
    lake.load(pl.DataFrame({"id": [3]}))
    assert delta.table_row_count(lake.uri) == 3
    assert delta.read_schema(lake.uri) == {"id": "long"}


def test_rows_are_counted_where_the_log_does_not_know_them(lake):
    import json

    lake.load(pl.DataFrame({"id": [1, 2]}))
    path = lake.path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    path.write_text("\n".join(json.dumps(action) for action in actions))
    assert delta.table_row_count(lake.uri) == 2


def test_windows_are_half_open_and_leave_nulls_out(lake):
    values = [date(2013, 1, 1), date(2013, 1, 31), date(2013, 2, 1), date(2014, 1, 1), None]
    lake.load(pl.DataFrame({"day": values}))
    windows = [
        Window("x", date(2013, 1, 1), date(2013, 2, 1)),
        Window("x", date(2013, 2, 1), date(2013, 3, 1)),
        Window("x", None, date(2013, 1, 31)),
        Window("x", date(2013, 2, 1), None),
        Window("x", None, None),
    ]
    assert delta.count_windows(lake.uri, "day", windows) == [2, 1, 1, 2, 4]
    assert delta.count_windows(lake.uri, "day", []) == []


def test_months_of_a_zone_count_instants(lake):
    lake.load(
        pl.DataFrame(
            {"t": [datetime(2013, 2, 1, 4, tzinfo=UTC), datetime(2013, 2, 1, 5, tzinfo=UTC)]}
        )
    )
    windows = [
        Window("t", datetime(2013, 1, 1, 5, tzinfo=UTC), datetime(2013, 2, 1, 5, tzinfo=UTC)),
        Window("t", datetime(2013, 2, 1), datetime(2013, 3, 1)),
    ]
    assert delta.count_windows(lake.uri, "t", windows, zone="America/New_York") == [1, 1]


def test_a_column_that_is_not_there_is_named(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    with pytest.raises(WriteError, match="no column 'day'"):
        delta.count_windows(lake.uri, "day", [Window("day", 1, 2)])


def test_partition_columns_are_counted(lake):
    lake.load(pl.DataFrame({"p": [1, 1, 2, None], "v": [1, 2, 3, 4]}), partition_by=("p",))
    assert delta.count_windows(lake.uri, "p", [Window("p", 1, 2), Window("p", 2, 3)]) == [2, 1]
