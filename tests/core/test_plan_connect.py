"""``plan --connect``: sources and destinations answer and fit; ``plan`` writes nothing."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime

import polars as pl
import pytest
from deltalake import write_deltalake

from datacoolie_core import DataCoolieDriver, ReplayConfig
from datacoolie_core.errors import MetadataError


def tree(project):
    """Every file of the project with a hash of its content."""
    return {
        str(path.relative_to(project.root)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in sorted(project.root.rglob("*"))
    }


def connected(project, **given):
    with project.driver() as driver:
        plan = driver.plan(**given)
        return {
            step.dataflow.name: found
            for step in plan.steps
            if (found := driver.connect(plan).get(step.dataflow.dataflow_id)) is not None
        }


def rows(**columns):
    return pl.DataFrame(
        {"id": [1, 2], "ts": [datetime(2025, 1, 1), datetime(2025, 1, 2)], **columns}
    )


def test_what_fits_is_said_with_its_columns(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows())
    found = connected(project)["f"]
    assert found.error is None
    assert found.fit.columns["ts"] == "timestamp_ntz"
    project.run_one()
    project.write("t", "b.parquet", rows(v=["x", "y"]))
    found = connected(project)["f"]
    assert found.error is None
    assert found.notes == ("new columns: v",)


CHANGES = {
    "a type that changed": (
        {},
        lambda: rows().with_columns(pl.col("id").cast(pl.String)),
        "type_conflict",
        "'id'",
    ),
    "a key that is missing": (
        {"load_type": "merge_upsert", "merge_keys": ["key"]},
        rows,
        "missing_column",
        "'key'",
    ),
    "a partition column that is missing": (
        {"partition_columns": ["region"]},
        rows,
        "missing_column",
        "'region'",
    ),
    "a watermark column that is missing": (
        {"watermark": ["changed"]},
        rows,
        "missing_column",
        "'changed'",
    ),
    "an expression that is wrong": (
        {"transform": {"additional_columns": [{"column": "x", "expression": "nope + 1"}]}},
        rows,
        "missing_column",
        "nope",
    ),
    "a type that Delta lacks": (
        {},
        lambda: rows(at=[datetime(2025, 1, 1).time()] * 2),
        "unsupported_type",
        "'at'",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_does_not_fit_is_said_before_anything_runs(project, case):
    given, frame, code, told = CHANGES[case]
    write_deltalake(project.path(), rows())
    project.flow(**given)
    project.write("t", "a.parquet", frame())
    found = connected(project)["f"]
    assert found.error is not None
    assert found.error.code == code
    assert told in found.error.message
    assert "dataflow 'f'" in found.error.message


def test_a_source_that_is_not_there_is_an_error_unless_the_plan_makes_it(project):
    project.write("t", "a.parquet", rows())
    project.flow("bronze", table="bronze")
    project.flow("silver", source={"connection_name": "lake_in", "table": "bronze"}, table="silver")
    project.flow("lost", source={"connection_name": "lake_in", "table": "nowhere"}, table="lost")
    found = connected(project)
    assert found["silver"].error is None
    assert found["silver"].notes == ("its source is not there yet: bronze makes it",)
    assert found["lost"].error.code == "missing_table"
    alone = connected(project, include=["silver"])
    assert alone["silver"].error.code == "missing_table"


def test_a_secret_that_is_not_there_is_told_of_its_dataflow(project):
    project.write("t", "a.parquet", rows())
    project.flow("good", table="good")
    project.flow("bad", table="bad")
    document = project.document
    document["connections"][0]["secrets_ref"] = {"env:": ["base_path"]}
    document["connections"][0]["configure"]["base_path"] = "NO_SUCH_VARIABLE"
    document["connections"].append(
        {"name": "in2", "format": "parquet", "configure": {"base_path": "in"}}
    )
    document["dataflows"][0]["source"]["connection_name"] = "in2"
    (project.root / "m.json").write_text(json.dumps(document))
    with DataCoolieDriver("m.json", project_dir=str(project.root)) as driver:
        plan = driver.plan()
        found = driver.connect(plan)
    assert found["good"].error is None
    assert found["bad"].error.phase == "prepare"


def test_skipped_and_refused_steps_are_not_asked(project):
    project.flow("off", is_active=False, table="a")
    project.flow("refused", table="b")
    assert connected(project, replay=ReplayConfig(1, 2)) == {}


def test_chunks_that_can_not_be_compared_are_told(project):
    """W10."""
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows())
    found = connected(project, replay=ReplayConfig(1, 5, step=1))["f"]
    assert found.error.code == "bound_type"


def test_an_empty_folder_has_no_columns_to_check(project):
    project.flow()
    (project.root / "in/t").mkdir(parents=True)
    found = connected(project)["f"]
    assert found.error is None
    assert found.notes == ("the source is empty: its columns are not known",)


@pytest.mark.parametrize("loaded", [False, True])
def test_a_plan_writes_nothing_at_all(project, loaded):
    project.flow("a", watermark=["ts"], table="a", load_type="append")
    project.flow(
        "b",
        source={"connection_name": "lake_in", "table": None, "query": "SELECT * FROM a;"},
        table="b",
        load_type="merge_upsert",
        merge_keys=["id"],
        watermark=["ts"],
    )
    project.source_format = "csv"
    project.write("t", "a.csv", rows())
    if loaded:
        project.run()
    before = tree(project)
    with project.driver() as driver:
        for replay in (None, ReplayConfig("2025-01-01", "2025-01-03", {"days": 1})):
            plan = driver.plan(replay=replay)
            driver.connect(plan)
            driver.plan(full_refresh=True)
    assert tree(project) == before


def test_a_dry_run_opens_no_state_and_shows_rules(project):
    project.flow("a", watermark=["ts"], table="a")
    project.flow(
        "b", table="b", source={"connection_name": "lake_in", "table": None, "query": "lost/b.sql"}
    )
    state = project.root / ".datacoolie/state"
    state.mkdir(parents=True)
    (state / "a.json").write_text("{broken")
    before = tree(project)
    results = {one.dataflow.name: one for one in project.run(dry_run=True).dataflows}
    assert results["a"].reason == "dry run: ts from the saved watermark → now"
    assert (results["b"].status, results["b"].error.phase) == ("failed", "prepare")
    assert tree(project) == before


def test_a_dry_replay_shows_its_chunks_and_its_refusals(project):
    project.flow("a", watermark=["ts"], table="a")
    project.flow("b", table="b")
    before = tree(project)
    with project.driver() as driver:
        config = ReplayConfig("2025-01-01", "2025-03-01", {"months": 1})
        done = driver.run_replay(driver.metadata.dataflows, config, dry_run=True)
    first, second = done.dataflows
    assert (first.status, [one.window.key for one in first.chunks]) == (
        "skipped",
        ["2025-01", "2025-02"],
    )
    assert (second.status, second.error.code) == ("failed", "replay_refused")
    assert tree(project) == before


def test_state_that_can_not_be_read_is_told_of_its_dataflow(project):
    project.flow("a", watermark=["ts"], table="a")
    project.flow("b", watermark=["ts"], table="b")
    state = project.root / ".datacoolie/state"
    state.mkdir(parents=True)
    (state / "a.json").write_text("{broken")
    with project.driver() as driver:
        first, second = driver.plan().steps
    assert "a.json" in (first.trouble or "")
    assert second.trouble is None


def test_a_plan_is_run_with_what_is_true_when_each_dataflow_starts(project):
    """The plan was made before the first load; it does not load the same rows again."""
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", rows())
    with project.driver() as driver:
        plan = driver.plan()
        driver.run()
        (result,) = driver.run(plan).dataflows
    assert (result.status, project.ids()) == ("skipped", [1, 2])


def test_a_plan_of_a_replay_can_be_run_as_it_is(project):
    project.flow(watermark=["ts"])
    project.write("t", "a.parquet", rows())
    with project.driver() as driver:
        plan = driver.plan(replay=ReplayConfig("2025-01-01", "2025-01-03", {"days": 1}))
        (result,) = driver.run(plan).dataflows
    assert (result.run_kind, len(result.chunks)) == ("replay", 2)
    assert project.ids() == [1, 2]


def test_a_cycle_names_the_files_of_its_dataflows(project):
    """orch-cycle."""
    lake = {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}

    def reads(name, source):
        end = {"connection_name": "lake", "table": name}
        return {"name": name, "source": {**end, "table": source}, "destination": end}

    folder = project.root / "metadata"
    folder.mkdir()
    (folder / "a.json").write_text(
        json.dumps({"connections": [lake], "dataflows": [reads("a", "b")]})
    )
    (folder / "b.json").write_text(json.dumps({"dataflows": [reads("b", "a")]}))
    driver = DataCoolieDriver("metadata", project_dir=str(project.root))
    with pytest.raises(MetadataError) as caught:
        driver.plan()
    (problem,) = caught.value.problems
    assert problem.source == "metadata/b.json"
    assert "b -> a (metadata/a.json) -> b" in problem.message
