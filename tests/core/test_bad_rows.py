"""What happens to values that do not fit their hint: the three policies."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import polars as pl
import pytest
from deltalake import DeltaTable
from inline_snapshot import snapshot

from tests.core.quarantines import bad_ids, flow, put, quarantined, side


def failure(project):
    (result,) = project.run().dataflows
    assert result.status == "failed"
    return result.error


def test_fail_names_column_value_and_file_and_writes_nothing(project):
    flow(project, "fail")
    put(project, "a.csv", "1,10,1", "2,x,2")
    error = failure(project)
    assert (error.phase, error.code) == ("transform", "cast_failed")
    assert "'x' is no int32" in error.message
    assert "column 'v'" in error.place
    assert "a.csv" in error.place
    assert not [path for path in (project.root / "lake").rglob("*") if path.is_file()]


def test_null_makes_bad_values_null_and_counts_them_by_column(project):
    flow(project, "null")
    put(project, "a.csv", "1,x,1", "2,20,2", "y,1.5,3", "4,,4")
    result = project.run_one()
    assert project.table().rows() == [
        (1, None, dt.date(2025, 1, 1)),
        (2, 20, dt.date(2025, 1, 2)),
        (4, None, dt.date(2025, 1, 4)),
        (None, None, dt.date(2025, 1, 3)),
    ]
    assert result.rows["rows_nulled"] == 3
    assert result.rows["rows_rejected"] == 0
    assert result.bad_values == {"id": {"no int64": 1}, "v": {"no int32": 2}}
    (warning,) = result.warnings
    assert (warning.code, warning.message) == snapshot(
        (
            "cast_nulled",
            "3 bad values became null: 'id': 1 (no int64), 'v': 2 (no int32), such as 'y' in 'id'",
        )
    )
    assert not DeltaTable.is_deltatable(side(project))


def test_a_bad_value_that_became_null_gets_the_hints_default(project):
    hints = [{"column_name": "v", "data_type": "INT", "default_value": "7"}]
    flow(project, "null", watermark=[], transform={"schema_hints": hints})
    put(project, "a.csv", "1,x,1", "2,,2", "3,3,3")
    assert project.run_one().rows["rows_nulled"] == 1
    assert project.table()["v"].to_list() == [7, 7, 3]


def test_a_bad_watermark_that_became_null_is_one_without_a_value(project):
    flow(project, "null")
    put(project, "a.csv", "1,10,1", "2,20,never")
    result = project.run_one()
    assert project.table().rows()[1] == (2, 20, None)
    assert result.rows["rows_null_watermark"] == 1
    again = project.run_one()
    assert (again.status, project.ids()) == ("skipped", [1, 2])


def test_bad_merge_keys_that_became_null_are_one_key(project):
    flow(project, "null", load_type="merge_upsert", merge_keys=["id"], watermark=[])
    put(project, "a.csv", "x,1,1", "y,2,2", "3,3,3")
    assert failure(project).code == "duplicate_keys"


def test_quarantine_keeps_a_bad_row_as_it_was_read_and_loads_the_others(project):
    flow(project)
    path = put(project, "a.csv", "1,10,1", "2,x,2", "z,1.5,3", "4,40,4")
    result = project.run_one()
    assert project.ids() == [1, 4]
    rows = quarantined(project).sort("row")
    assert rows.select("column", "value", "reason").rows() == [
        ("v", "x", "no int32"),
        ("id", "z", "no int64"),
    ]
    assert rows["errors"].to_list()[1] == [
        {"column": "id", "value": "z", "reason": "no int64"},
        {"column": "v", "value": "1.5", "reason": "no int32"},
    ]
    assert [json.loads(one) for one in rows["row"]] == [
        {"id": "2", "v": "x", "ts": "2025-01-02"},
        {"id": "z", "v": "1.5", "ts": "2025-01-03"},
    ]
    assert set(rows["source_file"]) == {str(path)}
    assert set(rows["dataflow_id"]) == {"f"}
    assert set(rows["sequence"]) == {1}
    assert set(rows["run_id"]) == {result.state.run_id}
    assert rows["window"].to_list() == [None, None]
    assert result.rows["rows_read"] == 4
    assert result.rows["rows_rejected"] == 2
    assert result.rows["rows_nulled"] == 0
    assert result.watermark == {"ts": dt.date(2025, 1, 4)}


def test_a_quarantine_is_counted_warned_of_and_sampled(project):
    flow(project)
    put(project, "a.csv", *(f"{n},x,1" for n in range(30)), "99,1,never")
    result = project.run_one()
    assert result.bad_values == {
        "v": {"no int32": 30},
        "ts": {"no date: expected ISO 8601": 1},
    }
    assert len(result.bad_sample) == 10
    assert result.bad_sample[0]["column"] == "v"
    (warning,) = [one for one in result.warnings if one.code == "rows_quarantined"]
    assert warning.message.replace(str(project.root), "") == snapshot(
        "31 rows are in quarantine in /lake/_quarantine/o: 'v': 30 (no int32),"
        " 'ts': 1 (no date: expected ISO 8601), such as 'x' in 'v'"
    )
    entry = result.to_json()
    assert entry["rows_rejected"] == 31
    assert entry["bad_values"]["v"] == {"no int32": 30}


@pytest.mark.parametrize(
    ("kind", "good", "bad", "reason"),
    [
        ("TINYINT", ["1", "-128"], ["128", "1.0", "a"], "no int8"),
        ("DECIMAL(5,2)", ["1.50", "999.99"], ["1.555", "1000", "1e2"], "no decimal(5,2)"),
        ("DOUBLE", ["1e3", "inf"], ["1e999", "1,5"], "no float64"),
        ("BOOLEAN", ["yes", "0"], ["maybe", "1.5"], "no bool"),
        ("DATE", ["2025-01-31"], ["2025-02-31", "31.1.2025"], "no date: expected ISO 8601"),
        (
            "TIMESTAMP",
            ["2025-03-30T03:30:00", "2025-03-30T02:30:00Z"],
            ["2025-03-30T02:30:00"],
            "no time in Europe/Berlin: this time does not exist in Europe/Berlin",
        ),
        (
            "TIMESTAMP",
            ["2025-01-01T00:00:00.123456"],
            ["2025-01-01T00:00:00.1234567"],
            "no timestamp: it is finer than a microsecond, which is cut only where the hint has a"
            " format",
        ),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_ends_a_load_under_fail_is_what_is_bad_here(
    new_project, kind, good, bad, reason, alone
):
    """Types, overflow, digits, dates, zones: with others in the same file, and alone."""
    hints = [{"column_name": "v", "data_type": kind}]
    transform = {"schema_hints": hints, "configure": {"timestamp_timezone": "Europe/Berlin"}}
    for value in bad:
        project = new_project()
        lines = [f'{n},"{one}",1' for n, one in enumerate([value] if alone else [*good, value])]
        flow(project, "fail", watermark=[], transform=transform)
        put(project, "a.csv", *lines)
        assert failure(project).code == "cast_failed"
        flow(project, watermark=[], transform=transform)
        project.run_one()
        rows = quarantined(project)
        assert rows.select("value", "reason").rows() == [(value, reason)]
        assert len(project.ids()) == (0 if alone else len(good))


def test_typed_sources_have_bad_values_too(project):
    """Overflow, fractions and NaN of numbers; a row's text has its values as they were read."""
    project.flow(
        transform={"schema_hints": [{"column_name": "n", "data_type": "SMALLINT"}]},
        configure={"datacoolie": {"on_cast_error": "quarantine"}},
    )
    frame = pl.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "n": [1.0, 1.5, float("nan"), 70000.0],
            "at": [dt.datetime(2025, 1, 1, 12, tzinfo=dt.UTC)] * 4,
            "price": [Decimal("1.50"), None, None, None],
        }
    )
    project.write("t", "a.parquet", frame)
    project.run_one()
    assert project.ids() == [1]
    found = [json.loads(one) for one in quarantined(project)["row"]]
    assert sorted(one["id"] for one in found) == [2, 3, 4]
    # one chunk with a NaN has its floats as text: JSON has no NaN
    assert {str(one["n"]) for one in found} == {"1.5", "NaN", "70000.0"}
    assert found[0]["at"] == "2025-01-01T12:00:00+00:00"


def test_a_row_is_kept_as_it_was_before_its_values_were_cleaned(project):
    rules = [{"columns": ["v"], "operation": "trim"}]
    flow(project, transform={"value_rules": rules})
    put(project, "a.csv", "1, 10 ,1", "2, x ,2")
    project.run_one()
    assert project.table()["v"].to_list() == [10]
    ((value, row),) = quarantined(project).select("value", "row").rows()
    assert (value, json.loads(row)["v"]) == ("x", " x ")


def test_masked_columns_do_not_show_in_the_quarantine_nor_in_messages(project):
    rules = [{"columns": ["v"], "method": "nullify"}, {"columns": ["Name"], "method": "nullify"}]
    flow(project, transform={"masking_rules": rules})
    put(project, "a.csv", "1,secret,Ann,1", header="id,v,name,ts")
    result = project.run_one()
    ((value, row, errors),) = quarantined(project).select("value", "row", "errors").rows()
    assert value == "***"
    assert json.loads(row) == {"id": "1", "v": "***", "name": "***", "ts": "2025-01-01"}
    shown = [row, str(errors), str(result.bad_sample), str(result.warnings)]
    assert not any(secret in text for text in shown for secret in ("secret", "Ann"))


def test_a_bad_row_is_never_the_newest_of_its_key(project):
    transform = {"deduplicate_columns": ["id"], "latest_data_columns": ["ts"]}
    flow(project, transform=transform)
    put(project, "a.csv", "1,10,1", "1,x,2")
    project.run_one()
    assert project.table().rows() == [(1, 10, dt.date(2025, 1, 1))]
    assert bad_ids(project) == [(1, "1")]


def test_without_bad_rows_there_is_no_side_table(project):
    flow(project)
    put(project, "a.csv", "1,10,1")
    assert project.run_one().rows["rows_rejected"] == 0
    assert not (project.root / "lake" / "_quarantine").exists()


def test_another_table_in_the_place_of_the_quarantine_is_left_alone(project):
    flow(project)
    put(project, "a.csv", "1,x,1")
    pl.DataFrame({"a": [1]}).write_delta(side(project))
    error = failure(project)
    assert error.code == "not_a_quarantine"
    assert pl.read_delta(side(project)).rows() == [(1,)]
    assert not DeltaTable.is_deltatable(project.path())


def test_many_bad_rows_do_not_stay_in_memory(project, monkeypatch):
    from datacoolie_core.transforms import quarantine

    monkeypatch.setattr(quarantine, "_HELD", 1000)
    flow(project)
    put(project, "a.csv", *(f"{n},{'x' if n % 2 else n},{n % 28 + 1}" for n in range(20_000)))
    result = project.run_one()
    assert result.rows["rows_rejected"] == 10_000
    rows = quarantined(project)
    ids = {json.loads(one)["id"] for one in rows["row"]}
    assert (rows.height, len(ids)) == (10_000, 10_000)
    assert len(project.ids()) == 10_000
