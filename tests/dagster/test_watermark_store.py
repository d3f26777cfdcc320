"""State in asset metadata: which event counts, and that losing events loses nothing."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from datacoolie_core.errors import WatermarkError
from datacoolie_core.state.record import Boundary, StateRecord
from datacoolie_dagster.results import WATERMARK, state_document
from datacoolie_dagster.watermarks import AssetMetadataStateStore

KEY = dg.AssetKey(["raw", "events"])
KEYS = {"raw/events": KEY, "raw/other": dg.AssetKey(["raw", "other"])}


def record(sequence=1, dataflow_id="raw/events", **changes):
    watermark = {"at": datetime(2024, 1, sequence, tzinfo=UTC), "id": sequence}
    return StateRecord(dataflow_id, sequence, watermark=watermark, **changes)


def report(instance, state=None, key=KEY, **metadata):
    entries = dict(metadata)
    if state is not None:
        entries[WATERMARK] = dg.MetadataValue.json(state_document(state))
    instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata=entries))


def store(lake, ahead=()):
    return AssetMetadataStateStore(lake.instance, KEYS, ahead)


def test_a_record_survives_the_way_through_metadata(lake):
    saved = record(
        3,
        boundary=Boundary(compare=True, upto=datetime(2024, 2, 1, tzinfo=UTC)),
        covered_from={"at": datetime(2023, 1, 1, tzinfo=UTC)},
        table_id="t",
        table_version=7,
        run_id="r",
        updated_at="2024-01-01T00:00:00+00:00",
    )
    report(lake.instance, saved)
    assert store(lake).load("raw/events") == saved


def test_row_hashes_stay_out_of_metadata(lake):
    saved = record(boundary=Boundary(hashes={"ab" * 16: 2}, schema="s"))
    report(lake.instance, saved)
    (event,) = lake.events("raw/events")
    assert "abab" not in repr(event)
    assert store(lake).load("raw/events").boundary == Boundary(compare=True, ties_only=True)


def test_nothing_is_known_of_an_asset_without_events(lake):
    assert store(lake).load("raw/events") is None
    assert store(lake).load("unheard of") is None


def test_the_newest_event_counts(lake):
    for sequence in (1, 2, 3):
        report(lake.instance, record(sequence))
    assert store(lake).load("raw/events").sequence == 3


def test_events_that_others_report_are_passed_over(lake):
    report(lake.instance, record(2))
    for _ in range(45):  # more than a page
        report(lake.instance, note="by hand")
    lake.instance.report_runless_asset_event(dg.AssetObservation(KEY, metadata={"seen": 1}))
    assert store(lake).load("raw/events").sequence == 2


def test_a_record_of_another_dataflow_is_passed_over(lake):
    report(lake.instance, record(2))
    report(lake.instance, record(9, dataflow_id="the id before"))
    assert store(lake).load("raw/events").sequence == 2


def test_what_was_saved_in_this_run_comes_before_events(lake):
    report(lake.instance, record(1))
    mine = store(lake)
    saved = record(2, boundary=Boundary(hashes={"ab": 1}))
    mine.save(saved)
    assert mine.load("raw/events") == saved
    assert len(lake.events("raw/events")) == 1


def test_a_broken_record_names_the_asset_and_the_way_out(lake):
    report(lake.instance, **{WATERMARK: {"format": 1, "dataflow_id": "raw/events"}})
    with pytest.raises(WatermarkError, match=r"asset raw/events: .* is broken .*Wipe the asset"):
        store(lake).load("raw/events")


def test_a_record_of_a_newer_version_is_refused(lake):
    report(lake.instance, **{WATERMARK: {"format": 99, "dataflow_id": "raw/events"}})
    with pytest.raises(WatermarkError, match=r"format 99.*Upgrade"):
        store(lake).load("raw/events")


def test_all_watermarks_of_a_run_are_read_in_one_call(lake, monkeypatch):
    report(lake.instance, record(4))
    report(lake.instance, record(5, dataflow_id="raw/other"), key=KEYS["raw/other"])
    calls = []
    read = lake.instance.get_latest_materialization_events
    monkeypatch.setattr(
        lake.instance,
        "get_latest_materialization_events",
        lambda keys: calls.append(list(keys)) or read(keys),
    )
    batched = store(lake, ahead=["raw/events", "raw/other"])
    assert [batched.load(one).sequence for one in KEYS] == [4, 5]
    assert calls == [list(KEYS.values())]


# --- through real loads ---------------------------------------------------------------------


def test_a_run_goes_on_where_the_last_one_ended(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01", "2024-01-02")
    assert lake.materialize("raw/events").success
    lake.events_csv("2024-01-01", "2024-01-02", "2024-01-03")
    assert lake.materialize("raw/events").success
    assert lake.newest("raw/events")["datacoolie/rows_written"] == 1
    assert lake.ids("raw/events") == [1, 2, 3]


def test_rows_at_the_watermark_are_loaded_once_although_their_hashes_are_not_in_the_events(lake):
    lake.events_flow(replay=None)
    lake.csv("events", "1,2024-01-01T12:00:00Z", "1,2024-01-01T12:00:00Z")
    lake.materialize("raw/events")
    lake.csv("events", *["1,2024-01-01T12:00:00Z"] * 3, "2,2024-01-01T12:00:00Z")
    lake.materialize("raw/events")
    assert lake.ids("raw/events") == [1, 1, 1, 2]


def test_wiping_the_events_of_an_asset_loses_and_doubles_nothing(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01", "2024-01-02")
    lake.materialize("raw/events")
    lake.instance.wipe_assets([KEY])
    lake.events_csv("2024-01-01", "2024-01-02", "2024-01-03")
    assert lake.materialize("raw/events").success
    newest = lake.newest("raw/events")
    assert newest["datacoolie/recovered"] is True
    assert newest["datacoolie/rows_written"] == 1
    assert lake.ids("raw/events") == [1, 2, 3]


def test_an_instance_that_forgets_takes_up_from_the_table(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01")
    job = lake.definitions.resolve_job_def("raw")
    for _ in range(2):
        assert job.execute_in_process(instance=dg.DagsterInstance.ephemeral()).success
    assert lake.ids("raw/events") == [1]


def test_a_materialization_that_a_user_reports_does_not_start_the_load_again(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01")
    lake.materialize("raw/events")
    report(lake.instance, note="by hand")
    lake.materialize("raw/events")
    newest = lake.newest("raw/events")
    assert newest["datacoolie/status"] == "skipped"
    assert newest["datacoolie/recovered"] is False
