"""``run_maintenance`` and ``datacoolie maintain``: results, options, and other people's loads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
import yaml
from deltalake import DeltaTable

from datacoolie_core.errors import LifecycleError, SelectionError
from datacoolie_core.run import maintain as maintaining
from datacoolie_core.run.events import MaintenanceFinished, PhaseReached, RunStarted, TargetFinished
from datacoolie_core.state.stores import FileStateStore

BIN = Path(sys.executable).with_name("datacoolie")


def load(project, turns=3, first=0, name="f", **given):
    """Several loads of one row each into the dataflow's table."""
    given = {"watermark": ["id"], **given}
    project.flow(name, **given)
    folder = given.get("source_table", "t")
    flow = next(one for one in project.metadata.dataflows if one.name == name)
    for n in range(first, first + turns):
        project.write(folder, f"{n}.parquet", pl.DataFrame({"id": [n], "v": [n]}))
        with project.driver() as driver:
            result = driver.run(dataflows=[flow])
        assert result.status == "succeeded", result.errors


def maintain(project, listeners=(), config=None, **options):
    with project.driver(listeners, **(config or {})) as driver:
        return driver.run_maintenance(**options)


def named(result, name):
    return next(one for one in result.targets[0].operations if one.name == name)


def test_every_operation_says_what_it_did_and_the_load_goes_on(project):
    load(project, 4)
    events = []
    result = maintain(project, [events.append])
    assert (result.status, result.total, result.succeeded) == ("succeeded", 1, 1)
    (target,) = result.targets
    assert [(one.name, one.status) for one in target.operations] == [
        (name, "succeeded") for name in ("compact", "vacuum", "checkpoint", "log_cleanup")
    ]
    assert (target.metric("files_added"), target.metric("files_removed")) == (1, 4)
    assert target.metric("bytes_saved") > 0
    assert all(one.duration_seconds > 0 for one in target.operations)
    phases = [one.phase for one in events if isinstance(one, PhaseReached)]
    assert phases == ["staging", "staged", "committing", "committed", "deleting", "cleaned"]
    kinds = [type(one) for one in events if not isinstance(one, PhaseReached)]
    assert kinds == [RunStarted, TargetFinished, MaintenanceFinished]
    assert events[-1].result is result

    load(project, 1, first=4)
    assert project.ids() == [0, 1, 2, 3, 4]


def test_compaction_and_clean_up_can_be_left_out(project):
    load(project)
    one = maintain(project, do_cleanup=False).targets[0]
    assert [o.name for o in one.operations] == ["compact"]
    two = maintain(project, do_compact=False).targets[0]
    assert [o.name for o in two.operations] == ["vacuum", "checkpoint", "log_cleanup"]
    three = maintain(project, do_compact=False, do_cleanup=False)
    assert (three.status, three.skipped) == ("succeeded", 1)


def test_a_dry_run_touches_nothing(project):
    load(project)
    before = sorted(Path(project.path()).rglob("*"))
    result = maintain(project, dry_run=True)
    assert (result.status, result.skipped) == ("succeeded", 1)
    assert result.targets[0].reason == "dry run"
    assert "3 files" in named(result, "compact").message
    assert sorted(Path(project.path()).rglob("*")) == before


def test_a_table_that_is_not_there_is_skipped(project):
    project.flow("f")
    (target,) = maintain(project).targets
    assert (target.status, target.reason) == ("skipped", "the table is not there")


def test_nothing_selected_is_a_success_with_a_message(project):
    project.flow("f")
    result = maintain(project, connection="in")
    assert (result.status, result.total) == ("succeeded", 0)
    assert result.message == "no table is selected"


def test_a_failure_leaves_the_other_tables_alone(project):
    load(project, name="a", table="a")
    load(project, name="b", table="b")
    log = Path(project.path("a")) / "_delta_log"
    for path in log.glob("*.json"):
        path.write_text("{broken")
    result = maintain(project)
    assert [(one.dataflow.name, one.status) for one in result.targets] == [
        ("a", "failed"),
        ("b", "succeeded"),
    ]
    assert (result.status, list(result.errors)) == ("failed", ["a"])
    assert result.targets[0].error.code == "table_broken"
    assert "dataflow 'a'" in result.errors["a"]


def test_a_secret_of_the_source_is_not_needed(project):
    load(project)
    document = project.document
    document["connections"][0]["secrets_ref"] = {"env:NOT_SET_": ["base_path"]}
    project.__class__ = type("Secret", (type(project),), {"document": document})
    assert maintain(project).status == "succeeded"


def test_a_list_of_dataflows_is_taken_as_it_is(project):
    for n in range(4):
        load(project, 1, name=f"f{n}", table=f"t{n}")
    flows = [one for one in project.metadata.dataflows if one.name in ("f1", "f2")]
    config = {"job_num": 4, "job_index": 0}
    result = maintain(project, config=config, dataflows=[*flows, *flows])
    assert [one.dataflow.name for one in result.targets] == ["f1", "f2"]
    shards = [
        maintain(project, config={"job_num": 4, "job_index": n}, dry_run=True) for n in range(4)
    ]
    assert sorted(one.dataflow.name for part in shards for one in part.targets) == [
        "f0",
        "f1",
        "f2",
        "f3",
    ]


def test_patterns_choose_the_tables_that_dataflows_write(project):
    load(project, 1, name="a", table="a", stage="bronze")
    load(project, 1, name="b", table="b", stage="silver")
    result = maintain(project, include=["silver/*"])
    assert [one.dataflow.name for one in result.targets] == ["b"]
    with pytest.raises(SelectionError, match="gold"):
        maintain(project, include=["gold/x"])


def test_options_that_other_formats_know_do_not_fail_a_delta_table(project):
    """W73; what nobody knows is told."""
    configure = {
        "compact_options": {"rewrite_data_files": True, "rewrite_manifests": False},
        "cleanup_options": {
            "expire_snapshots": True,
            "remove_orphan_files": True,
            "retentoin_hours": 5,
        },
    }
    load(project, destination={"configure": configure})
    (target,) = maintain(project).targets
    assert target.status == "succeeded"
    codes = [one.code for one in target.warnings]
    assert codes == ["option_without_effect"] * 3 + ["unknown_option"]
    assert "Did you mean 'retention_hours'?" in target.warnings[-1].message


def test_a_destinations_own_options_win(project):
    configure = {
        "compact_options": {"zorder_columns": ["v"]},
        "cleanup_options": {
            "retention_hours": "0",
            "allow_short_retention": "true",
            "checkpoint": False,
            "log_cleanup": False,
        },
    }
    load(project, destination={"configure": configure})
    result = maintain(project, config={"retention_hours": 300})
    assert result.targets[0].operations[0].name == "zorder"
    assert named(result, "vacuum").details["retention_hours"] == 0
    assert named(result, "vacuum").files_removed == 3
    assert {named(result, name).status for name in ("checkpoint", "log_cleanup")} == {"skipped"}
    assert project.ids() == [0, 1, 2]


@pytest.mark.parametrize(
    "configure",
    [
        {"compact_options": {"target_size": "big"}},
        {"compact_options": {"zorder_columns": 5}},
        {"cleanup_options": {"retention_hours": -1}},
        {"cleanup_options": {"retention_hours": "nan"}},
        {"cleanup_options": {"retention_hours": True}},
        {"cleanup_options": {"checkpoint": "perhaps"}},
    ],
)
def test_a_value_that_makes_no_sense_fails_its_table_and_names_the_field(project, configure):
    load(project, 1, destination={"configure": configure})
    (target,) = maintain(project).targets
    ((where, (key, _)),) = ((a, *b.items()) for a, b in configure.items())
    assert (target.status, target.error.code) == ("failed", "bad_option")
    assert f"destination.configure.{where}.{key}" in target.error.message
    assert target.operations == ()


def test_a_week_asked_for_is_as_long_as_the_table_says(project):
    load(project)
    DeltaTable(project.path()).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 30 days"}
    )
    result = maintain(project)
    assert (named(result, "vacuum").details["retention_hours"], result.targets[0].warnings) == (
        720,
        (),
    )
    short = maintain(project, config={"retention_hours": 200})
    assert named(short, "vacuum").details["mode"] == "lite"
    assert short.targets[0].warnings[0].code == "short_retention_refused"


def test_state_is_right_after_log_and_state_were_cleaned(project):
    """Only the ``txn`` is left: the destination's own maximum counts."""
    import os

    load(project, 4)
    table = DeltaTable(project.path())
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 1 days"})
    maintain(project)
    for path in (Path(project.path()) / "_delta_log").iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert named(maintain(project), "log_cleanup").files_removed > 3
    shutil.rmtree(project.root / ".datacoolie/state")
    load(project, 1, first=4)
    assert project.ids() == [0, 1, 2, 3, 4]
    state = FileStateStore(str(project.root / ".datacoolie/state")).load("f")
    assert dict(state.watermark) == {"id": 4}


def test_a_table_under_maintenance_elsewhere_is_skipped(project):
    load(project)
    seen = []

    def beside(event):
        if isinstance(event, RunStarted):
            return
        if isinstance(event, TargetFinished) and not seen:
            seen.append(1)

    real = maintaining.operations

    def slow(options, **wanted):
        if threading.current_thread() is not threading.main_thread() and not seen:
            seen.append(maintain(project).targets[0])
        return real(options, **wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintaining, "operations", slow)
        assert maintain(project, [beside]).status == "succeeded"
    assert seen[0].status == "skipped"
    assert "already being maintained" in seen[0].reason


def test_one_operation_at_a_time(project):
    project.flow("f")
    raised = []

    def again(event):
        if isinstance(event, MaintenanceFinished):
            with pytest.raises(LifecycleError) as caught:
                driver.run_maintenance()
            raised.append(caught.value)

    driver = project.driver([again])
    driver.run_maintenance()
    driver.close()
    with pytest.raises(LifecycleError, match="closed"):
        driver.run_maintenance()
    assert len(raised) == 1


@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_drains_what_runs_and_leaves_the_rest_pending(project, workers):
    for n in range(4):
        load(project, 2, name=f"f{n}", table=f"t{n}")
    events = []

    def strike(event):
        events.append(event)
        if isinstance(event, RunStarted):
            raise_once.append(1)

    raise_once = []
    real = maintaining.wait

    def interrupted(*given, **how):
        if raise_once:
            raise_once.clear()
            raise KeyboardInterrupt
        return real(*given, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintaining, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            maintain(project, [strike], {"max_workers": workers})
    result = events[-1].result
    assert (result.status, result.pending) == ("interrupted", 4 - workers)
    assert {one.reason for one in result.targets if one.status == "pending"} == {"interrupted"}


def test_stop_on_error_begins_nothing_new(project):
    for n in range(3):
        load(project, 1, name=f"f{n}", table=f"t{n}")
    shutil.rmtree(Path(project.path("t0")) / "_delta_log")
    (Path(project.path("t0")) / "_delta_log").write_text("no folder")
    result = maintain(project, config={"max_workers": 1, "stop_on_error": True})
    assert [one.status for one in result.targets] == ["failed", "pending", "pending"]
    assert result.status == "failed"


def call(project, *arguments):
    (project.root / "metadata").mkdir(exist_ok=True)
    (project.root / "metadata/all.yaml").write_text(yaml.safe_dump(project.document))
    return subprocess.run(
        [str(BIN), "maintain", *arguments],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_line_maintains_and_tells(project):
    load(project)
    done = call(project, "--json", "--retention-hours", "0")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["version"], document["status"]) == (1, "succeeded")
    assert document["counts"] == {
        "total": 1,
        "succeeded": 1,
        "failed": 0,
        "skipped": 0,
        "running": 0,
        "pending": 0,
    }
    (target,) = document["targets"]
    assert (target["name"], target["files_added"], target["error"]) == ("f", 1, None)
    assert [one["name"] for one in target["operations"]] == [
        "compact",
        "vacuum",
        "checkpoint",
        "log_cleanup",
    ]
    # maint-vacuum-too-eager
    assert "168" in done.stderr
    assert "retention" in done.stderr
    assert project.path() in done.stderr


def test_exit_codes_of_the_command_line(project):
    load(project)
    people = call(project, "--dry-run", "--table", "o")
    assert (people.returncode, "would become" in people.stdout) == (0, True)
    assert call(project, "--connection", "lak").returncode == 2
    nothing = call(project, "--connection", "in")
    assert (nothing.returncode, "no table is selected" in nothing.stdout) == (0, True)
    for path in (Path(project.path()) / "_delta_log").glob("*.json"):
        path.write_text("{broken")
    assert call(project).returncode == 1
