"""The driver: order, failures, retries, policies, records, its life."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from datacoolie_core.driver import DataCoolieDriver
from datacoolie_core.errors import LifecycleError, SelectionError
from datacoolie_core.run.events import (
    DataflowFinished,
    DataflowStarted,
    PhaseReached,
    RetryScheduled,
)


def frame(*ids):
    return pl.DataFrame({"id": list(ids)}, schema={"id": pl.Int64})


def chain(project, **more):
    """Customer, Product → Order → OrderItem → OrderSummary ← Calendar, as groups and depends_on."""
    needs = {
        "Customer": [],
        "Product": [],
        "Calendar": [],
        "Order": ["Customer"],
        "OrderItem": ["Order", "Product"],
        "OrderSummary": ["Order", "OrderItem", "Calendar"],
    }
    for name, upstream in needs.items():
        project.write(name, "a.parquet", frame(1))
        project.flow(
            name,
            source_table=name,
            table=name.lower(),
            load_type="full_load",
            configure={"datacoolie": {"depends_on": upstream, **more}},
        )


def break_flow(project, name):
    for path in (project.root / "in" / name).iterdir():
        path.write_bytes(b"no parquet")


def test_nothing_starts_before_what_it_waits_for(project):
    chain(project)
    events = []
    project.run(listeners=[events.append])
    order = []
    for event in events:
        if isinstance(event, DataflowStarted):
            order.append(("start", event.dataflow.name))
        elif isinstance(event, DataflowFinished):
            order.append(("end", event.result.dataflow.name))
    for first, then in [
        ("Customer", "Order"),
        ("Order", "OrderItem"),
        ("Calendar", "OrderSummary"),
    ]:
        assert order.index(("end", first)) < order.index(("start", then))


def test_buckets_of_a_group_run_one_after_the_other(project):
    for number in range(6):
        name = f"f{number}"
        project.write(name, "a.parquet", frame(1))
        project.flow(
            name, source_table=name, table=name, group_number=0, execution_order=number // 2 or None
        )
    events = []
    project.run(listeners=[events.append])
    ends, started = set(), []
    for event in events:
        if isinstance(event, DataflowFinished):
            ends.add(event.result.dataflow.name)
        elif isinstance(event, DataflowStarted):
            started.append((event.dataflow.name, frozenset(ends)))
    for name, before in started:
        bucket = int(name[1:]) // 2
        assert before >= {f"f{number}" for number in range(bucket * 2)}


def test_after_a_failed_upstream_the_default_goes_on_and_says_so(project):
    """W44, orch-after-a-failed-upstream: continue."""
    chain(project)
    break_flow(project, "Order")
    result = project.run()
    by_name = {one.dataflow.name: one for one in result.dataflows}
    assert (result.status, result.failed, result.succeeded) == ("failed", 1, 5)
    assert by_name["OrderItem"].stale_upstream == ("Order",)
    assert by_name["OrderSummary"].stale_upstream == ("Order",)
    assert by_name["Calendar"].stale_upstream == ()


def test_block_skips_what_depends_on_a_failure_and_nothing_else(project):
    """orch-after-a-failed-upstream: block."""
    chain(project)
    break_flow(project, "Order")
    result = project.run(config={"on_upstream_failure": "block"})
    by_name = {one.dataflow.name: one for one in result.dataflows}
    assert by_name["OrderItem"].status == "skipped"
    assert by_name["OrderItem"].reason == "upstream failed: Order"
    assert by_name["OrderSummary"].status == "skipped"
    assert by_name["Calendar"].status == "succeeded"
    assert result.status == "failed"


def test_a_dataflows_own_policy_wins(project):
    chain(project, on_upstream_failure="block")
    break_flow(project, "Customer")
    assert project.run().skipped == 3


def test_stop_on_error_starts_nothing_new_and_leaves_the_rest_pending(project):
    chain(project)
    break_flow(project, "Customer")
    result = project.run(config={"stop_on_error": True, "max_workers": 1})
    assert result.failed == 1
    assert result.pending >= 3
    assert result.status == "failed"
    assert {one.reason for one in result.dataflows if one.status == "pending"} == {
        "stopped after a failure"
    }


def test_what_cannot_change_by_itself_is_not_retried(project):
    """retry-permanent-error."""
    project.flow(transform={"select_columns": ["idd"]})
    project.write("t", "a.parquet", frame(1))
    (result,) = project.run(config={"retry_count": 5, "retry_delay": 10}).dataflows
    assert (result.status, len(result.attempts)) == ("failed", 1)
    assert result.error.phase == "transform"
    assert "'idd'" in result.error.message
    assert "'id'" in result.error.message


def test_what_can_heal_is_retried_with_delays_that_double(project):
    project.flow()
    project.write("t", "a.parquet", frame(1))
    (project.root / ".datacoolie").mkdir()
    blocker = project.root / ".datacoolie/state"
    blocker.write_text("in the way")
    seen = []

    def heal(event):
        if isinstance(event, RetryScheduled):
            seen.append(event.delay_seconds)
            if len(seen) == 2:
                blocker.unlink()

    (result,) = project.run(listeners=[heal], config={"retry_count": 5}).dataflows
    assert seen == [5, 10]
    assert (result.status, len(result.attempts)) == ("succeeded", 3)
    assert project.ids() == [1]


def test_without_retries_of_our_own_nothing_is_tried_twice(project):
    project.flow(configure={"datacoolie": {"retry_count": 3}})
    project.write("t", "a.parquet", frame(1))
    (project.root / ".datacoolie").mkdir()
    (project.root / ".datacoolie/state").write_text("in the way")
    (result,) = project.run(config={"retry_count": 5, "retries": False}).dataflows
    assert len(result.attempts) == 1


def test_a_busy_dataflow_is_skipped_and_says_who_holds_it(project):
    project.flow()
    project.write("t", "a.parquet", frame(1))
    held, go_on = threading.Event(), threading.Event()

    def hold(event):
        if isinstance(event, PhaseReached) and event.phase == "staged":
            held.set()
            go_on.wait(30)

    thread = threading.Thread(target=lambda: project.run(listeners=[hold]))
    thread.start()
    assert held.wait(30)
    (second,) = project.run().dataflows
    go_on.set()
    thread.join()
    assert second.status == "skipped"
    assert second.reason.startswith("already running")
    assert "process" in second.reason
    assert project.ids() == [1]


def test_an_inactive_dataflow_or_connection_is_skipped_with_its_reason(project):
    project.flow(is_active=False)
    project.write("t", "a.parquet", frame(1))
    (result,) = project.run().dataflows
    assert result.status == "skipped"
    assert "inactive" in result.reason
    assert not Path(project.path()).exists()


def test_a_missing_folder_fails_and_names_the_path(project):
    """W60."""
    project.flow()
    (result,) = project.run().dataflows
    assert (result.status, result.error.phase) == ("failed", "read")
    assert str(project.root / "in" / "t") in result.error.message


def test_an_unknown_stage_is_refused_with_what_was_probably_meant(project):
    project.flow(stage="bronze")
    with pytest.raises(SelectionError, match="bronze"):
        project.run(stages="bronce")


def test_a_dry_run_touches_nothing(project):
    project.flow()
    project.write("t", "a.parquet", frame(1))
    (result,) = project.run(dry_run=True).dataflows
    assert (result.status, result.reason) == ("skipped", "dry run")
    assert not Path(project.path()).exists()
    assert not (project.root / ".datacoolie").exists()


def test_two_dataflows_that_append_to_one_table_keep_their_own_state(project):
    for name in ("a", "b"):
        project.write(name, "x.parquet", frame(1) if name == "a" else frame(5))
        project.flow(name, source_table=name, watermark=["id"])
    assert project.run().succeeded == 2
    assert project.run().skipped == 2
    assert project.ids() == [1, 5]


def test_after_a_restore_the_lost_rows_are_loaded_again(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    project.write("t", "b.parquet", frame(2))
    project.run_one()
    DeltaTable(project.path()).restore(0)
    result = project.run_one()
    assert project.ids() == [1, 2]
    assert "table_restored" in [one.code for one in result.warnings]
    assert project.run_one().status == "skipped"


def test_a_foreign_overwrite_warns_and_the_load_goes_on(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    write_deltalake(project.path(), frame(100), mode="overwrite", schema_mode="overwrite")
    project.write("t", "b.parquet", frame(3))
    result = project.run_one()
    assert "foreign_change" in [one.code for one in result.warnings]
    assert project.ids() == [3, 100]


def test_a_foreign_overwrite_can_reload_everything(project):
    project.flow(
        watermark=["id"],
        destination={"configure": {"datacoolie": {"on_foreign_change": "reload"}}},
    )
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    write_deltalake(project.path(), frame(100), mode="overwrite", schema_mode="overwrite")
    project.run_one()
    assert project.ids() == [1, 2]


def test_a_table_that_was_dropped_is_loaded_from_the_beginning(project):
    import shutil

    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    shutil.rmtree(project.path())
    result = project.run_one()
    assert project.ids() == [1, 2]
    assert "table_gone" in [one.code for one in result.warnings]


def test_a_table_that_others_compact_is_no_foreign_change(project):
    project.flow(watermark=["id"])
    for number in range(3):
        project.write("t", f"{number}.parquet", frame(number))
        project.run_one()
    DeltaTable(project.path()).optimize.compact()
    result = project.run_one()
    assert (result.status, result.warnings) == ("skipped", ())
    assert project.ids() == [0, 1, 2]


@pytest.mark.parametrize("load_type", ["append", "full_load", "merge_upsert"])
def test_a_column_that_appears_is_added_and_filled(project, load_type):
    """W18."""
    keys = ["id"] if load_type == "merge_upsert" else []
    project.flow(load_type=load_type, merge_keys=keys, watermark=["id"])
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    project.write("t", "b.parquet", frame(2).with_columns(extra=pl.lit("x")))
    project.run_one()
    table = project.table()
    assert "extra" in table.columns
    assert table.filter(pl.col("id") == 2)["extra"].to_list() == ["x"]


def test_a_listener_that_breaks_changes_nothing(project):
    project.flow()
    project.write("t", "a.parquet", frame(1))

    def broken(event):
        raise RuntimeError("hook")

    (result,) = project.run(listeners=[broken]).dataflows
    assert result.status == "succeeded"


def test_a_closed_driver_takes_no_work(project):
    driver = project.driver()
    driver.close()
    driver.close()
    with pytest.raises(LifecycleError, match="closed"):
        driver.run()


def test_a_busy_driver_takes_no_second_operation(project):
    project.flow()
    project.write("t", "a.parquet", frame(1))
    caught = []

    def meddle(event):
        if isinstance(event, DataflowStarted):
            for call in (driver.run, driver.close):
                try:
                    call()
                except LifecycleError as error:
                    caught.append(str(error))

    driver = project.driver([meddle])
    driver.run()
    assert len(caught) == 2
    driver.close()


def test_an_interrupt_drains_what_runs_and_reaches_the_caller(project):
    chain(project)
    seen = []

    class Stop(KeyboardInterrupt):
        pass

    def interrupt(event):
        seen.append(event)
        if isinstance(event, DataflowStarted) and event.dataflow.name == "Customer":
            import _thread

            _thread.interrupt_main()
            time.sleep(0.3)

    with project.driver([interrupt], max_workers=1) as driver:
        with pytest.raises(KeyboardInterrupt):
            driver.run()
        result = seen[-1].result
        assert (result.interrupted, result.status) == (True, "interrupted")
        assert result.running == 0
        assert result.pending >= 3
    assert driver.run is not None


def test_a_missing_secret_fails_in_preparation_with_the_variables_name(project):
    project.flow()
    project.write("t", "a.parquet", frame(1))
    document = project.document
    document["connections"][0]["configure"]["password"] = "PASSWORD"
    document["connections"][0]["secrets_ref"] = {"env:NO_SUCH_": ["password"]}
    from datacoolie_core.metadata.loader import metadata_from_documents

    metadata = metadata_from_documents([("test.json", document)])
    with DataCoolieDriver(metadata, project_dir=str(project.root)) as driver:
        (result,) = driver.run().dataflows
    assert (result.status, result.error.phase) == ("failed", "prepare")
    assert "NO_SUCH_PASSWORD" in result.error.message
    assert result.attempts == ()
