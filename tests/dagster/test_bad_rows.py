"""Bad rows in Dagster: counts in the metadata, and a check of the newest load."""

import json

import dagster as dg
import pytest

from datacoolie_dagster.checks import CHECK

QUARANTINE = {"on_cast_error": "quarantine"}


def evaluation(result, key="raw/events"):
    """The check's evaluation in a run."""
    (found,) = [
        one
        for one in result.get_asset_check_evaluations()
        if one.asset_key == dg.AssetKey(key.split("/"))
    ]
    return found


def table(entry):
    return [record.data for record in entry.value.records]


@pytest.fixture
def events(lake):
    """Events of which one has no date and one no number."""
    lake.events_flow(replay=None, options=QUARANTINE)
    lake.csv("events", "1,2024-01-05T00:00:00Z", "x,2024-02-05T00:00:00Z", "y,soon", "4,late")
    return lake


def test_a_load_with_bad_rows_says_how_many_and_why(events):
    events.execute("raw")
    newest = events.newest("raw/events")
    assert (newest["datacoolie/rows_rejected"], newest["datacoolie/rows_nulled"]) == (3, 0)
    assert newest["datacoolie/bad_values"]["columns"] == {
        "id": {"no int32": 2},
        "at": {"no timestamp: expected ISO 8601": 2},
    }
    assert "rows_quarantined" in newest["datacoolie/warnings"]


def test_values_that_became_null_are_counted_in_the_metadata(lake):
    lake.events_flow(replay=None, options={"on_cast_error": "null"})
    lake.csv("events", "x,2024-01-05T00:00:00Z")
    lake.execute("raw")
    newest = lake.newest("raw/events")
    assert (newest["datacoolie/rows_rejected"], newest["datacoolie/rows_nulled"]) == (0, 1)
    assert newest["datacoolie/bad_values"] == {"columns": {"id": {"no int32": 1}}, "sample": []}
    assert not list(lake.definitions.asset_checks or ())


def test_the_check_warns_with_counts_and_a_sample_and_blocks_nothing(events):
    events.flow("after", source={"connection_name": "raw", "table": "events"}, stage="clean")
    result = events.execute("raw")
    assert result.success
    found = evaluation(result)
    assert (found.check_name, found.passed, found.blocking) == (CHECK, False, False)
    assert found.severity == dg.AssetCheckSeverity.WARN
    assert found.description == "3 rows are in quarantine"
    assert found.metadata["datacoolie/rows_rejected"].value == 3
    assert table(found.metadata["datacoolie/bad_values"]) == [
        {"column": "at", "reason": "no timestamp: expected ISO 8601", "values": 2},
        {"column": "id", "reason": "no int32", "values": 2},
    ]
    rows = table(found.metadata["datacoolie/sample"])
    assert [(one["column"], one["value"]) for one in rows] == [
        ("id", "x"),
        ("id", "y"),
        ("at", "late"),
    ]
    assert json.loads(rows[0]["row"]) == {"id": "x", "at": "2024-02-05T00:00:00Z"}
    assert rows[0]["source_file"].endswith("events.csv")


def test_the_check_passes_when_the_newest_load_is_clean(events):
    events.execute("raw")
    events.csv("events", "1,2024-01-05T00:00:00Z", "5,2024-03-05T00:00:00Z")
    found = evaluation(events.execute("raw"))
    assert (found.passed, found.description) == (True, "no row was quarantined")


def test_the_check_warns_as_long_as_the_source_shows_a_bad_row(events):
    """The row is in quarantine once, and it still is not in the table."""
    events.execute("raw")
    found = evaluation(events.execute("raw"))
    assert (found.passed, found.description) == (False, "2 rows are in quarantine")


def test_the_sample_is_limited_and_shows_no_masked_column(lake):
    hints = [
        {"column_name": "id", "data_type": "int"},
        {"column_name": "phone", "data_type": "bigint"},
    ]
    transform = {
        "schema_hints": hints,
        "masking_rules": [{"columns": ["phone"], "method": "nullify"}],
    }
    lake.flow("people", options=QUARANTINE, transform=transform)
    lake.csv("people", "0,0", *(f"{n},secret{n}" for n in range(1, 40)), header="id,phone")
    found = evaluation(lake.execute("raw"), "raw/people")
    assert found.metadata["datacoolie/rows_rejected"].value == 39
    rows = table(found.metadata["datacoolie/sample"])
    assert (len(rows), {one["value"] for one in rows}) == (10, {"***"})
    assert "secret" not in str(found) + str(lake.newest("raw/people"))


def test_the_check_counts_every_partition_of_a_run(lake):
    lake.events_flow(options=QUARANTINE)
    lake.csv("events", "x,2024-01-05", "2,2024-01-06", "y,2024-02-05", "z,2024-02-06")
    assert lake.materialize("raw/events", partitions=("2024-01", "2024-02")).success
    counts = {
        event.partition: event.metadata["datacoolie/rows_rejected"].value
        for event in lake.events("raw/events")
    }
    assert counts == {"2024-01": 1, "2024-02": 2}
    (check,) = build_checks(lake)
    found = run_check(lake, check)
    assert (found.passed, found.description) == (False, "3 rows are in quarantine")


def test_the_check_of_an_asset_that_was_never_loaded_passes(events):
    (check,) = build_checks(events)
    found = run_check(events, check)
    assert (found.passed, found.description) == (True, "nothing was loaded yet")


def test_the_check_sees_what_the_incremental_job_loads(lake):
    lake.events_flow(options=QUARANTINE)
    lake.csv("events", "x,2024-01-05", "2,2024-01-06")
    assert lake.incremental().success
    (check,) = build_checks(lake)
    assert run_check(lake, check).description == "1 row is in quarantine"


def test_only_dataflows_with_a_quarantine_have_the_check(events):
    events.flow("plain")
    (check,) = build_checks(events)
    assert set(check.check_keys) == {dg.AssetCheckKey(dg.AssetKey(["raw", "events"]), CHECK)}


def build_checks(lake):
    return list(lake.definitions.asset_checks)


def run_check(lake, check):
    """Execute one check by itself, as the asset's page does."""
    key = next(iter(check.check_keys))
    selection = dg.AssetSelection.checks(key)
    job = dg.define_asset_job("one_check", selection=selection)
    definitions = dg.Definitions.merge(lake.definitions, dg.Definitions(jobs=[job]))
    result = definitions.resolve_job_def("one_check").execute_in_process(instance=lake.instance)
    (found,) = result.get_asset_check_evaluations()
    return found


def test_a_blocking_check_holds_up_what_is_downstream(events):
    events.flow("after", source={"connection_name": "raw", "table": "events"}, stage="clean")
    events.arguments["block_on_bad_rows"] = True
    definitions = events.definitions
    result = run(events, definitions)
    assert not result.success
    assert evaluation(result).severity == dg.AssetCheckSeverity.ERROR
    assert [one.asset_key.to_user_string() for one in materialized(result)] == ["raw/events"]
    events.csv("events", "1,2024-01-05T00:00:00Z", "5,2024-03-05T00:00:00Z")
    result = run(events, definitions)
    assert result.success
    assert {one.asset_key.to_user_string() for one in materialized(result)} == {
        "raw/events",
        "clean/after",
    }


def run(lake, definitions):
    job = dg.define_asset_job("all", selection=dg.AssetSelection.all())
    merged = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job]))
    all_of_it = merged.resolve_job_def("all")
    return all_of_it.execute_in_process(instance=lake.instance, raise_on_error=False)


def materialized(result):
    return result.get_asset_materialization_events()
