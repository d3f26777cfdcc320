"""A watermark that is said is the way out, whatever keeps a run from going on."""

from __future__ import annotations

import shutil
import threading
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from datacoolie_core import create_driver
from datacoolie_core.errors import WatermarkError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.run.events import PhaseReached
from datacoolie_core.state.record import StateRecord
from datacoolie_core.state.values import decode, encode


def frame(*ids):
    return pl.DataFrame({"id": list(ids)})


@pytest.fixture
def loaded(project):
    """An append of ids 1 to 3, loaded once."""
    project.flow("f", watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2, 3))
    project.run_one()
    return project


def flow_of(driver):
    (flow,) = driver.metadata.dataflows
    return flow


def elsewhere(project, name, **options):
    """A driver of another machine: same source and lake, locks and state of its own."""
    document = project.document
    for connection in document["connections"]:
        base = project.root / connection["configure"]["base_path"]
        connection["configure"] = {**connection["configure"], "base_path": str(base)}
    home = project.root / name
    home.mkdir()
    return create_driver(
        metadata_from_documents([("x", document)]), project_dir=str(home), **options
    )


def clean_log(project):
    """Leave nothing of the dataflow in the table's log but its transaction."""
    table = DeltaTable(project.path())
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    table.cleanup_metadata()
    for entry in sorted((Path(project.path()) / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    shutil.rmtree(project.root / ".datacoolie")


@pytest.mark.parametrize("way", ["set", "reset"])
def test_a_foreign_change_that_stops_runs_is_accepted_by_saying_the_watermark(project, way):
    project.flow(
        "f",
        watermark=["id"],
        destination={"configure": {"datacoolie": {"on_foreign_change": "fail"}}},
    )
    project.write("t", "a.parquet", frame(1, 2, 3))
    project.run_one()
    DeltaTable(project.path()).delete("id = 2")
    assert project.run().failed == 1
    with project.driver() as driver:
        if way == "set":
            driver.watermarks.set(flow_of(driver), {"id": 3})
        else:
            driver.watermarks.reset(flow_of(driver))
    project.write("t", "b.parquet", frame(4))
    project.run_one()
    assert project.ids() == ([1, 3, 4] if way == "set" else [1, 2, 3, 4])


def test_a_cleaned_log_without_the_column_names_the_command_that_helps(project):
    """The log has the txn alone, the column is not in the table: the way out is `watermark set`."""
    project.flow("f", watermark=["ts"], transform={"drop_columns": ["ts"]})
    stamps = [datetime(2025, 1, 1), datetime(2025, 1, 2)]
    project.write("t", "a.parquet", frame(1, 2).with_columns(ts=pl.Series(stamps)))
    project.run_one()
    clean_log(project)
    (failed,) = project.run().dataflows
    assert "datacoolie watermark set" in failed.error.message
    with project.driver() as driver:
        assert "datacoolie watermark set" in driver.watermarks.show(flow_of(driver)).trouble
        driver.watermarks.set(flow_of(driver), {"ts": stamps[1]})
    later = frame(3).with_columns(ts=pl.Series([datetime(2025, 1, 3)]))
    project.write("t", "b.parquet", later)
    project.run_one()
    assert project.ids() == [1, 2, 3]


def test_values_said_on_several_machines_at_once_are_all_commits_of_their_own(loaded):
    """An overtaken one takes the next sequence: the last that is written wins."""
    drivers = [elsewhere(loaded, f"machine{number}") for number in range(4)]
    records: list[StateRecord] = []

    def say(driver, value):
        records.append(driver.watermarks.set(flow_of(driver), {"id": value}))

    threads = [
        threading.Thread(target=say, args=(driver, number)) for number, driver in enumerate(drivers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.sequence for one in records) == [2, 3, 4, 5]
    last = max(records, key=lambda one: one.sequence)
    with loaded.driver() as driver:
        assert driver.watermarks.show(flow_of(driver)).effective.watermark == last.watermark
    loaded.run_one()
    assert loaded.ids() == [1, 2, 3]


def test_a_run_that_is_overtaken_drops_its_batch_and_reads_again(loaded):
    """Reconciliation: the sequence exists with another run's id."""
    loaded.write("t", "b.parquet", frame(4, 5))
    overtaken = threading.Event()

    def listen(event):
        if isinstance(event, PhaseReached) and event.phase == "staged" and not overtaken.is_set():
            overtaken.set()
            loaded.write("t", "c.parquet", frame(6))
            with elsewhere(loaded, "other") as other:
                assert other.run().failed == 0

    (result,) = loaded.run(listeners=[listen]).dataflows
    assert overtaken.is_set()
    assert result.status != "failed"
    assert loaded.ids() == [1, 2, 3, 4, 5, 6]
    assert DeltaTable(loaded.path()).transaction_version("f") == 2


def test_set_lower_compares_with_the_rows_from_there_on_alone(loaded):
    """A file that holds only lower rows is not opened: it could be the table's greatest part."""
    (low,) = DeltaTable(loaded.path()).file_uris()
    loaded.write("t", "b.parquet", frame(4, 5, 6))
    loaded.run_one()
    Path(low.removeprefix("file://")).unlink()
    with loaded.driver() as driver:
        driver.watermarks.set(flow_of(driver), {"id": 4})
    loaded.write("t", "c.parquet", frame(4, 7))
    result = loaded.run_one()
    assert result.rows["rows_inserted"] == 2


@pytest.mark.parametrize("hint", ["date", "string", "timestamp"])
def test_set_lower_meets_rows_that_a_hint_has_changed(project, hint):
    """The destination's column does not order as the source's: nothing is doubled all the same."""
    project.flow(
        "f",
        watermark=["ts"],
        transform={"schema_hints": [{"column_name": "ts", "data_type": hint}]},
    )
    stamps = pl.Series([datetime(2025, 1, day, 5) for day in (1, 2, 3)])
    project.write("t", "a.parquet", frame(1, 2, 3).with_columns(ts=stamps))
    project.run_one()
    with project.driver() as driver:
        present = driver.watermarks.show(flow_of(driver)).effective.watermark["ts"]
        texts = {"date": "2025-01-02", "string": str(present).replace("-03", "-02")}
        text = texts.get(hint, "2025-01-02T05:00:00")
        value = driver.watermarks.parse(text, "ts", flow_of(driver))
        assert type(value) is type(present)
        driver.watermarks.set(flow_of(driver), {"ts": value})
    project.run_one()
    assert project.ids() == [1, 2, 3]


def test_a_store_of_the_same_load_that_says_another_watermark_does_not_agree(loaded):
    with loaded.driver() as driver:
        flow = flow_of(driver)
        assert driver.watermarks.show(flow).agrees
        stored = driver.store.load("f")
        driver.store.save(stored.evolve(watermark={"id": 2}))
        shown = driver.watermarks.show(flow)
    assert (shown.agrees, shown.effective.watermark) == (False, {"id": 3})


def test_a_reset_is_allowed_where_a_filter_says_which_rows_are_its_own(project):
    """As a full refresh is: only the dataflow's own rows of a shared table are replaced."""
    for name in ("x", "y"):
        project.flow(
            name,
            source_table=name,
            watermark=["id"],
            destination={"configure": {"datacoolie": {"replay_filter": f"g = '{name}'"}}},
        )
        project.write(name, "a.parquet", frame(1, 2).with_columns(g=pl.lit(name)))
    assert project.run().failed == 0
    with project.driver() as driver:
        driver.watermarks.reset(driver.graph.by_id["x"])
    assert project.run().failed == 0
    rows = project.table().sort("g", "id").rows()
    assert rows == [(1, "x"), (2, "x"), (1, "y"), (2, "y")]


# --- values


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("nan", "float"),
        ("inf", "float"),
        ("NaN", "decimal"),
        ("-Infinity", "decimal"),
        ("1_000", "int"),
        ("1.5", "int"),
        ("", "int"),
        ("yesterday", "date"),
        ("2025-13-01", "timestamp"),
        ("25:00", "time"),
    ],
)
def test_what_is_no_value_of_its_type_is_refused(loaded, text, kind):
    with loaded.driver() as driver, pytest.raises(WatermarkError, match=f"is no {kind}"):
        driver.watermarks.parse(text, "id", flow_of(driver), kind)


def test_an_instant_is_refused_where_the_values_have_no_zone(project):
    """wm-naive-meets-aware: nobody guesses the zone."""
    project.flow("f", watermark=["ts"])
    project.write("t", "a.parquet", frame(1).with_columns(ts=pl.Series([datetime(2025, 1, 1)])))
    project.run_one()
    with project.driver() as driver:
        with pytest.raises(WatermarkError, match="timestamp_timezone"):
            driver.watermarks.parse("2025-01-01T00:00:00Z", "ts", flow_of(driver))
        assert driver.watermarks.parse("2024-12-31", "ts", flow_of(driver)) == datetime(
            2024, 12, 31
        )


@pytest.mark.parametrize(("present", "text"), [(time(1, 2), "03:04"), (Decimal("1.5"), "2.25")])
def test_the_present_watermark_says_the_type(project, present, text):
    project.flow("f", watermark=["c"])
    with project.driver() as driver:
        driver.store.save(StateRecord("f", 1, {"c": present}))
        found = driver.watermarks.parse(text, "c", flow_of(driver))
    assert found == (time(3, 4) if isinstance(present, time) else Decimal("2.25"))


@pytest.mark.parametrize(
    "document",
    [
        {"__decimal__": "abc"},
        {"__decimal__": "NaN"},
        {"__date__": "x"},
        {"__binary__": "%"},
        [1],
        float("nan"),
        {"a": 1, "b": 2},
    ],
)
def test_a_stored_value_that_is_none_is_an_error_of_its_own(document):
    with pytest.raises(WatermarkError):
        decode(document)


def test_no_decimal_without_a_number_is_stored():
    with pytest.raises(WatermarkError, match="NaN"):
        encode(Decimal("NaN"))


def edit_newest_commit(project):
    """Break the state that the newest commit carries, as a hand in the log might."""
    newest = max((Path(project.path()) / "_delta_log").glob("*.json"))
    text = newest.read_text()
    assert '\\"state_watermark\\":' in text or '"state_watermark":' in text
    newest.write_text(text.replace("state_watermark", "state_watermerk"))
    for cached in newest.parent.glob(f".{newest.name}.crc"):
        cached.unlink()


def test_a_watermark_for_every_column_replaces_a_broken_state(loaded):
    edit_newest_commit(loaded)
    refused = loaded.run()
    assert refused.dataflows[0].error.code == "state_broken"
    assert "datacoolie watermark set" in refused.dataflows[0].error.message
    with create_driver(loaded.metadata, project_dir=str(loaded.root)) as driver:
        driver.watermarks.set(flow_of(driver), {"id": 3})
    loaded.write("t", "b.parquet", frame(4))
    loaded.run_one()
    assert sorted(loaded.ids()) == [1, 2, 3, 4]
