"""Delta tables at a version or an instant, and how SQL finds tables by their names."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from deltalake import DeltaTable

from datacoolie_core.errors import ReadError


@pytest.fixture
def lake(reading):
    def table(name: str, *ids: int) -> str:
        path = str(reading.root / "lake" / name)
        for number in ids:
            pl.DataFrame({"id": [number]}).write_delta(path, mode="append")
        return path

    return table


@pytest.fixture
def dated(reading, lake):
    """A table of three versions, committed on the first three days of 2024 at noon."""
    path = lake("t", 1, 2, 3)
    for version in range(3):
        log = reading.root / f"lake/t/_delta_log/{version:020}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        at = datetime(2024, 1, 1 + version, 12, tzinfo=UTC).timestamp()
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = int(at * 1000)
        log.write_text("\n".join(json.dumps(action) for action in actions))
        os.utime(log, (at, at))
    return path


def flow(reading, **given):
    return reading.flow("delta", base_path="lake", **given)


def refused(reading, dataflow, **request) -> ReadError:
    with pytest.raises(ReadError) as caught:
        reading.read(dataflow, **request)
    return caught.value


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"version": 1}, [1, 2]),
        ({"version": "1"}, [1, 2]),
        ({"versionAsOf": 0}, [1]),
        ({"timestamp": "2024-01-02T12:00:00Z"}, [1, 2]),
        ({"timestamp": "2024-01-02T11:59:59Z"}, [1]),
        ({"timestamp": "2024-01-02T14:00:00+02:00"}, [1, 2]),
        ({"timestamp": "2024-01-02 12:00:00"}, [1, 2]),
        ({"timestampAsOf": "2024-01-03"}, [1, 2]),
        ({"versionAsOf": "2024-01-03"}, [1, 2]),
        ({"timestamp_as_of": datetime(2024, 1, 3, 12)}, [1, 2, 3]),
        ({"timestamp": "2099-01-01"}, [1, 2, 3]),
    ],
)
def test_a_table_is_read_as_it_was(reading, dated, options, rows):
    frame, batch = reading.read(flow(reading, options=options))
    assert sorted(frame["id"]) == rows
    assert batch.source_action["version"] == len(rows) - 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": 7}, "the Delta table has no version 7, its newest is 2"),
        ({"version": -1}, "is no value of the read option 'version'"),
        ({"version": True}, "is no value of the read option 'version'"),
        ({"timestamp": "yesterday"}, "expected a date or a timestamp"),
        ({"timestamp": "2023-12-31"}, "the Delta table has nothing as old as 2023-12-31"),
        ({"version": 1, "timestamp": "2024-01-03"}, "both a version and a timestamp are given"),
        ({"verson": 1}, "has no read option 'verson'"),
    ],
)
def test_what_never_was_is_refused(reading, dated, options, said):
    """The library gives the first version for any instant before it."""
    error = refused(reading, flow(reading, options=options))
    assert said in error.message
    assert error.remedy
    assert not error.retryable


def test_the_source_s_own_option_takes_the_place_of_the_connection_s(reading, dated):
    own = {"configure": {"read_options": {"version": 1}}}
    found = flow(reading, options={"timestamp": "2024-01-01T12:00:00Z"}, source=own)
    assert sorted(reading.rows(found)) == [(1,), (2,)]


def test_a_version_that_was_cleaned_up_is_refused(reading, dated):
    table = DeltaTable(dated)
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    error = refused(reading, flow(reading, options={"version": 1}))
    assert (error.code, error.retryable) == ("missing_version", False)
    assert "files of version 1 are no longer there" in error.message


def test_a_query_reads_all_its_tables_as_of_one_instant(reading, dated, lake):
    lake("u", 1, 2, 3)
    query = "SELECT t.id FROM t JOIN t AS again ON t.id = again.id ORDER BY t.id"
    options = {"timestamp": "2024-01-02T13:00:00Z"}
    found = flow(reading, options=options, query=query)
    assert reading.rows(found, query=query) == [(1,), (2,)]
    later = datetime.now(UTC) + timedelta(days=1)
    query = "SELECT COUNT(*) AS n FROM u"
    found = flow(reading, options={"timestamp": later.isoformat()}, query=query)
    assert reading.rows(found, query=query) == [(3,)]


def test_a_version_number_says_nothing_about_a_query(reading, dated):
    error = refused(reading, flow(reading, options={"version": 1}, query="x"), query="SELECT 1")
    assert "a version is one table's own number" in error.message


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("orders 2024", '"orders 2024"'),
        ("sales/select", "sales.select"),
        ("sales/order lines", 'sales."order lines"'),
        ("a.b", '"a.b"'),
        ("été/日付", '"été"."日付"'),
        ('it"s', '"it""s"'),
        ("eu/sales/t", "eu.sales.t"),
    ],
)
def test_awkward_names_of_tables_are_found(reading, lake, folder, name):
    lake(folder, 1)
    query = f"SELECT id FROM {name}"
    assert reading.rows(flow(reading, query=query), query=query) == [(1,)]


def test_awkward_names_of_columns_are_read(reading):
    names = ["a b", "select", 'q"q', "été", "x.y", "Case"]
    path = str(reading.root / "lake/t")
    pl.DataFrame({name: [number] for number, name in enumerate(names)}).write_delta(path)
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    query = f"SELECT {listed} FROM t"
    frame, _ = reading.read(flow(reading, query=query), query=query)
    assert frame.columns == names


def test_a_missing_table_is_named_with_what_is_there(reading, lake):
    for name in ("silver/orders", "silver/lines", "people"):
        lake(name, 1)
    query = "SELECT * FROM silver.ordrs"
    error = refused(reading, flow(reading, query=query), query=query)
    assert "the query reads 'silver.ordrs'" in error.message
    assert error.remedy.endswith("Did you mean 'silver.orders'?")
    query = "SELECT * FROM warehouse"
    error = refused(reading, flow(reading, query=query), query=query)
    assert error.remedy.endswith("There are: 'people', 'silver.lines', 'silver.orders'.")


def test_a_missing_table_of_an_empty_lake_is_an_error_all_the_same(reading):
    query = "SELECT * FROM t"
    error = refused(reading, flow(reading, query=query), query=query)
    assert error.code == "missing_table"
    assert error.remedy.endswith("there are no tables.")


@pytest.mark.parametrize("name", ["../secret", "silver/../../secret", "..", ".secret"])
def test_a_name_does_not_lead_out_of_the_lake(reading, lake, name):
    lake("../secret", 1)
    lake("t", 1)
    query = f'SELECT * FROM "{name}"'
    assert refused(reading, flow(reading, query=query), query=query).code == "missing_table"
