"""``run_replay``: one configuration for many dataflows, order, failures, interrupts, kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading
from datetime import UTC, datetime

import polars as pl
import pytest

from datacoolie_core import ReplayConfig
from datacoolie_core.errors import SettingsError
from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.run.events import ChunkFinished, DataflowFinished, PhaseReached

STEPS = ReplayConfig(0, 6, step=2)


def rows(*ids, tag="1"):
    return pl.DataFrame({"id": list(ids), "tag": [tag] * len(ids)})


def run_replay(project, replay, *, listeners=(), config=None, **given):
    with project.driver(listeners, **(config or {})) as driver:
        return driver.run_replay(driver.metadata.dataflows, replay, **given)


def by_name(result):
    return {one.dataflow.name: one for one in result.dataflows}


def test_one_dataflow_that_can_not_be_replayed_leaves_the_others_alone(project):
    project.flow("good", watermark=["id"], table="good")
    project.flow("bare", table="bare")
    project.flow("hidden", watermark=["id"], table="h", transform={"drop_columns": ["id"]})
    project.flow("off", watermark=["id"], table="off", is_active=False)
    project.write("t", "a.parquet", rows(*range(6)))
    found = by_name(run_replay(project, STEPS))
    assert {name: one.status for name, one in found.items()} == {
        "good": "succeeded",
        "bare": "failed",
        "hidden": "failed",
        "off": "skipped",
    }
    assert found["bare"].error.code == found["hidden"].error.code == "replay_refused"
    assert "watermark_columns" in found["bare"].error.message
    assert project.ids("good") == list(range(6))
    assert not (project.root / "lake/h").exists()


def test_a_range_that_makes_no_sense_stops_the_whole_call(project):
    project.flow(watermark=["id"])
    with pytest.raises(SettingsError, match="not before"):
        run_replay(project, ReplayConfig(5, 1))


def test_chunks_may_be_given_ready_cut(project):
    """The form that keeps partitions and chunks the same."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", rows(*range(6)))
    windows = generate_chunks(0, 6, step=2, column="id")[1:]
    (result,) = run_replay(project, {"f": windows}, save_watermark=True).dataflows
    assert [one.window.key for one in result.chunks] == ["2", "4"]
    assert result.watermark == {"id": 5}
    assert project.ids() == [2, 3, 4, 5]


def test_the_first_chunk_that_fails_ends_its_dataflow_and_keeps_the_earlier_ones(project):
    hints = {"schema_hints": [{"column_name": "tag", "data_type": "int"}]}
    project.flow("breaks", watermark=["id"], table="a", transform=hints)
    project.flow("holds", watermark=["id"], table="b")
    project.write("t", "a.parquet", pl.concat([rows(0, 1), rows(2, 3, tag="x"), rows(4, 5)]))
    found = by_name(run_replay(project, STEPS))
    assert [one.status for one in found["breaks"].chunks] == ["succeeded", "failed"]
    assert found["breaks"].status == "failed"
    assert found["breaks"].error.code == "cast_failed"
    assert project.ids("a") == [0, 1]
    assert project.ids("b") == list(range(6))


def test_a_replay_that_failed_goes_on_with_all_its_chunks(project):
    """Nothing marks a chunk as done: the same call loads the whole range again."""
    hints = {"schema_hints": [{"column_name": "tag", "data_type": "int"}]}
    project.flow(watermark=["id"], transform=hints)
    project.write("t", "a.parquet", pl.concat([rows(0, 1), rows(2, 3, tag="x"), rows(4, 5)]))
    assert run_replay(project, STEPS).has_failures
    project.write("t", "a.parquet", rows(*range(6)))
    (result,) = run_replay(project, STEPS).dataflows
    assert [one.rows["rows_read"] for one in result.chunks] == [2, 2, 2]
    assert project.ids() == list(range(6))


@pytest.fixture
def chain(project):
    """bronze → silver by lineage, and a pair of one group."""
    project.flow("bronze", watermark=["id"], table="bronze")
    silver = {"connection_name": "lake_in", "table": "bronze"}
    project.flow("silver", watermark=["id"], table="silver", source=silver)
    project.flow("late", watermark=["id"], table="late", group_number=1, execution_order=2)
    project.flow("early", watermark=["id"], table="early", group_number=1, execution_order=1)
    project.write("t", "a.parquet", rows(*range(6)))
    return project


def test_with_order_all_chunks_of_what_comes_first_are_done_first(chain):
    seen = []

    def listen(event):
        if isinstance(event, ChunkFinished | DataflowFinished):
            seen.append((type(event).__name__, event.result.dataflow.name))

    config = ReplayConfig(0, 6, step=2, respect_order=True)
    result = run_replay(chain, config, listeners=[listen])
    assert result.succeeded == 4
    for first, then in (("bronze", "silver"), ("early", "late")):
        assert seen.index(("DataflowFinished", first)) < seen.index(("ChunkFinished", then))
    assert chain.ids("silver") == list(range(6))


def test_without_order_they_run_beside_each_other(chain):
    """Two that would wait for each other's end meet in the middle."""
    meeting = threading.Barrier(2, timeout=60)

    def listen(event):
        if isinstance(event, PhaseReached) and event.phase == "reading":
            names = {"early", "late"}
            if event.dataflow.name in names and event.window.key == "0":
                meeting.wait()

    result = run_replay(chain, STEPS, listeners=[listen])
    assert by_name(result)["late"].status == by_name(result)["early"].status == "succeeded"


@pytest.mark.parametrize("policy", ["continue", "block"])
def test_with_order_the_policy_for_failed_upstreams_holds(chain, policy):
    """orch-after-a-failed-upstream."""
    chain.flows[0]["transform"] = {"drop_columns": ["id"]}
    config = ReplayConfig(0, 6, step=2, respect_order=True)
    found = by_name(run_replay(chain, config, config={"on_upstream_failure": policy}))
    assert found["bronze"].status == "failed"
    if policy == "continue":
        assert found["silver"].stale_upstream == ("bronze",)
    else:
        assert (found["silver"].status, found["silver"].reason) == (
            "skipped",
            "upstream failed: bronze",
        )


def test_stop_on_error_leaves_the_rest_pending(chain):
    chain.flows = [one for one in chain.flows if one["name"] in ("early", "late")]
    chain.flows[1]["transform"] = {"drop_columns": ["id"]}
    config = ReplayConfig(0, 6, step=2, respect_order=True)
    found = by_name(run_replay(chain, config, config={"stop_on_error": True}))
    assert (found["early"].status, found["late"].status) == ("failed", "pending")


def test_ctrl_c_ends_a_replay_after_the_running_chunk(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", rows(*range(6)))
    ended = []

    def listen(event):
        if isinstance(event, ChunkFinished):
            ended.append(event.result.window.key)
            if len(ended) == 1:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                stopping.wait(30)
        elif isinstance(event, DataflowFinished):
            results.append(event.result)

    results = []
    stopping = threading.Event()
    with project.driver([listen]) as driver:
        make = driver._context

        def context(run_id, **given):
            made = make(run_id, **given)
            threading.Thread(target=lambda: (made.stopping.wait(30), stopping.set())).start()
            return made

        driver._context = context
        with pytest.raises(KeyboardInterrupt):
            driver.run_replay(driver.metadata.dataflows, STEPS)
    (result,) = results
    assert ended == ["0"]
    assert (result.status, len(result.chunks)) == ("pending", 1)
    assert "1 of 3 chunks" in result.reason
    assert project.ids() == [0, 1]
    run_replay(project, STEPS)
    assert project.ids() == list(range(6))


def test_an_open_range_ends_with_the_running_chunk(project):
    project.flow(watermark=["ts"])
    frame = pl.DataFrame({"id": [1, 2], "ts": [datetime(2020, 5, 1), datetime(2020, 7, 1)]})
    project.write("t", "a.parquet", frame)
    (result,) = run_replay(project, ReplayConfig("2020-01-01", None, {"years": 1})).dataflows
    keys = [one.window.key for one in result.chunks]
    assert keys[0] == "2020"
    assert keys[-1] == str(datetime.now(UTC).year)
    assert project.ids() == [1, 2]


KILLED = textwrap.dedent("""
    import os, signal, sys
    from datacoolie_core import DataCoolieDriver, ReplayConfig
    from datacoolie_core.run.events import PhaseReached

    def killer(event):
        here = isinstance(event, PhaseReached) and event.window is not None
        if here and (event.window.key, event.phase) == (sys.argv[2], sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)

    with DataCoolieDriver(sys.argv[1], project_dir=os.getcwd(), listeners=[killer]) as driver:
        config = ReplayConfig(0, 6, step=2, save_watermark=sys.argv[4] == "save")
        result = driver.run_replay(driver.metadata.dataflows, config, run_id="one")
    sys.exit(1 if result.has_failures else 0)
""")


def launch(project, key, phase, save):
    (project.root / "m.json").write_text(json.dumps(project.document))
    arguments = [sys.executable, "-c", KILLED, "m.json", key, phase, save]
    return subprocess.run(arguments, cwd=project.root, timeout=120, check=False).returncode


@pytest.mark.parametrize(
    ("load_type", "key", "phase", "save"),
    [
        ("append", "2", "reading", "keep"),
        ("append", "2", "committed", "save"),
        ("append", "4", "staged", "save"),
        ("merge_upsert", "2", "committed", "keep"),
    ],
)
def test_a_kill_between_and_inside_chunks_and_the_same_run_again(
    project, load_type, key, phase, save
):
    keys = ["id"] if load_type == "merge_upsert" else []
    project.flow(watermark=["id"], load_type=load_type, merge_keys=keys)
    project.write("t", "a.parquet", rows(*range(8)))
    assert launch(project, key, phase, save) == -signal.SIGKILL
    assert launch(project, "none", "none", save) == 0
    assert project.ids() == list(range(6))
    project.run_one()
    assert project.ids() == list(range(8))
