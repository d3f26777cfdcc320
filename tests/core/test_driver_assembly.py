"""What a driver is given: inference, conflicts, explicit lists; nothing is read before they fit."""

from __future__ import annotations

import inspect
import json
import threading

import polars as pl
import pytest
from hypothesis import given, strategies as st

import datacoolie_core
from datacoolie_core import (
    DataCoolieDriver,
    DataCoolieRunConfig,
    FileProvider,
    JobDistributor,
    LocalPlatform,
    PolarsEngine,
    create_driver,
)
from datacoolie_core.errors import LifecycleError, MetadataError, SettingsError
from datacoolie_core.plan.selection import shard_of
from datacoolie_core.run.events import DataflowFinished, DataflowStarted


def frame(*ids):
    return pl.DataFrame({"id": list(ids)})


def on_disk(project, folder="metadata"):
    (project.root / folder).mkdir(parents=True, exist_ok=True)
    (project.root / folder / "all.json").write_text(json.dumps(project.document))
    return str(project.root)


@pytest.fixture
def small(project):
    project.flow("a", stage="bronze", table="a")
    project.flow("b", stage="silver", table="b")
    project.write("t", "x.parquet", frame(1, 2))
    return project


@pytest.fixture(params=[DataCoolieDriver, create_driver])
def make(request):
    """Both ways to a driver follow the same rules."""
    return request.param


def test_a_metadata_folder_makes_a_provider(small, make):
    root = on_disk(small)
    with make(metadata_base_path="metadata", project_dir=root) as driver:
        assert driver.run(stage=["bronze"]).succeeded == 1
        assert {one.name for one in driver.metadata.dataflows} == {"a", "b"}


def test_an_artifact_folder_alone_holds_the_metadata(small, make):
    root = on_disk(small, "artifact/metadata")
    with make(artifact_base_path="artifact", project_dir=root) as driver:
        assert {one.name for one in driver.metadata.dataflows} == {"a", "b"}


def test_without_any_metadata_explicit_dataflows_still_run(small, make):
    flows = small.metadata.dataflows
    with make(project_dir=str(small.root)) as driver:
        assert driver.run().total == 0
        result = driver.run(dataflows=[flows[0]])
    assert result.succeeded == 1
    assert small.ids("a") == [1, 2]


def test_an_explicit_list_is_taken_as_given(small, make):
    """No stage and no shard filter, and the caller's own copies count."""
    with small.driver(job_num=2, job_index=0) as driver:
        copies = [
            one.model_copy(update={"description": "changed"}) for one in small.metadata.dataflows
        ]
        result = driver.run(dataflows=copies, stages="bronze")
    assert result.total == 2
    assert {one.dataflow.description for one in result.dataflows} == {"changed"}


def test_an_inactive_dataflow_of_an_explicit_list_is_skipped_with_its_reason(small):
    small.flow("a", stage="bronze", table="a", is_active=False)
    with small.driver() as driver:
        (result,) = driver.run(dataflows=driver.metadata.dataflows[-1:]).dataflows
    assert (result.status, "inactive" in result.reason) == ("skipped", True)


def test_a_provider_of_the_callers_own_is_used(small, make):
    root = on_disk(small)
    provider = FileProvider("metadata", project_dir=root)
    with make(metadata_provider=provider, project_dir=root) as driver:
        assert len(driver.metadata.dataflows) == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (lambda p: {"metadata": "metadata", "metadata_provider": p["config"]}, "metadata"),
        (lambda _: {"metadata": "metadata", "metadata_base_path": "metadata"}, "metadata"),
        (lambda p: {"metadata_base_path": "metadata", "metadata_provider": p["config"]}, "config"),
        (lambda p: {"metadata_base_path": "other", "metadata_provider": p["base"]}, "reads"),
        (lambda p: {"metadata_base_path": "metadata", "metadata_provider": p["own"]}, "no folder"),
        (lambda p: {"metadata_provider": p["sql"], "sql_base_path": "other"}, "SQL"),
        (lambda _: {"engine": PolarsEngine(LocalPlatform()), "platform": LocalPlatform()}, "plat"),
    ],
)
def test_arguments_that_contradict_each_other_fail_before_anything_is_read(
    small, make, arguments, named
):
    class Own:
        def initialize(self):
            raise AssertionError("read")

        def load(self):
            raise AssertionError("read")

    root = str(small.root)
    providers = {
        "config": FileProvider("nowhere", project_dir=root),
        "base": FileProvider(metadata_base_path="metadata", project_dir=root),
        "sql": FileProvider("nowhere", project_dir=root, sql_base_path="sql"),
        "own": Own(),
    }
    with pytest.raises(SettingsError) as caught:
        make(project_dir=root, **arguments(providers))
    assert caught.value.code == "conflicting_arguments"
    assert named in str(caught.value)


def test_what_is_said_twice_in_the_same_way_is_no_conflict(small, make):
    root = on_disk(small)
    platform = LocalPlatform()
    provider = FileProvider(
        metadata_base_path="metadata", project_dir=root, sql_base_path=["sql1", "sql2"]
    )
    driver = make(
        engine=PolarsEngine(platform),
        platform=platform,
        metadata_provider=provider,
        metadata_base_path=f"{root}/metadata",
        sql_base_path=[f"{root}/sql2/", "sql1"],
        project_dir=root,
    )
    driver.close()


def test_a_driver_that_was_made_has_validated_inactive_entries_too(small, make):
    small.flow("c", is_active=False, load_type="nonsense")
    root = on_disk(small)
    with pytest.raises(MetadataError, match="nonsense"):
        make(metadata_base_path="metadata", project_dir=root)


def test_a_provider_reads_nothing_before_it_is_initialized():
    provider = FileProvider("nowhere")
    with pytest.raises(LifecycleError):
        provider.load()


def test_a_secret_provider_serves_sources_without_a_prefix(small):
    document = small.document
    document["connections"][0]["configure"]["token"] = "the-key"
    document["connections"][0]["secrets_ref"] = {"vault": ["token"]}
    asked = []

    class Vault:
        def get_secret(self, source, key):
            asked.append((source, key))
            return "value"

    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("x", document)])
    with create_driver(scope, project_dir=str(small.root), secret_provider=Vault()) as driver:
        assert driver.run(stages="bronze").succeeded == 1
    assert asked == [("vault", "the-key")]


def test_the_platform_gives_secrets_by_default(small, monkeypatch):
    document = small.document
    document["connections"][0]["configure"]["token"] = "KEY"
    document["connections"][0]["secrets_ref"] = {"DC_TEST_": ["token"]}
    from datacoolie_core.metadata.loader import metadata_from_documents

    scope = metadata_from_documents([("x", document)])
    with create_driver(scope, project_dir=str(small.root)) as driver:
        failed = driver.run(stages="bronze").dataflows[0]
        assert failed.error.phase == "prepare"
        assert "DC_TEST_KEY" in failed.error.message
        assert failed.attempts == ()
        monkeypatch.setenv("DC_TEST_KEY", "x")
        assert driver.run(stages="bronze").succeeded == 1


def test_artifact_queries_are_read_below_the_artifact_root(small):
    small.flow("s", table="s")
    with small.driver() as driver:
        driver.run(stages="bronze")
    root = small.root
    (root / "artifact" / "sql").mkdir(parents=True)
    (root / "artifact" / "sql" / "all rows.txt").write_text("SELECT id FROM a")
    small.flow(
        "q",
        table="q",
        source={"connection_name": "lake_in", "query": "artifact:/sql/all rows.txt"},
    )
    small.flows[-1]["source"].pop("table")
    with create_driver(
        small.metadata, artifact_base_path="artifact", project_dir=str(root)
    ) as driver:
        text = driver._work._query()(driver.graph.by_id["q"])
    assert text == "SELECT id FROM a"


@pytest.mark.parametrize(
    "values",
    [
        {"job_num": 0},
        {"job_index": 1},
        {"max_workers": 0},
        {"retry_count": -1},
        {"retention_hours": -1},
        {"job_id": " "},
        {"run_attributes": [1]},
        {"run_attributes": {"x": object()}},
    ],
)
def test_settings_out_of_range_are_refused(values):
    with pytest.raises(SettingsError):
        DataCoolieRunConfig(**values)


def test_load_dataflows_keeps_what_may_run_of_this_jobs_share(small):
    small.flow("c", stage="bronze", is_active=False)
    with small.driver() as driver:
        assert [one.name for one in driver.load_dataflows("bronze")] == ["a"]
        assert len(driver.load_dataflows()) == 2
    found = []
    for index in range(3):
        with small.driver(job_num=3, job_index=index) as driver:
            found += [one.name for one in driver.load_dataflows(["bronze", "silver"])]
    assert sorted(found) == ["a", "b"]


@given(st.lists(st.tuples(st.text(min_size=1), st.none() | st.integers())), st.integers(1, 9))
def test_each_dataflow_belongs_to_exactly_one_job(flows, jobs):
    for identifier, group in flows:
        owner = shard_of(identifier, group, jobs)
        assert 0 <= owner < jobs
        if group is not None:
            assert owner == group % jobs


@pytest.mark.parametrize(
    ("identifier", "job"),
    [("abc", 2), ("flow-1", 3), ("fca29d2a-6fc7-50ba-9a82-3ed910c6b50e", 3)],
)
def test_shards_are_those_of_the_framework(project, identifier, job):
    project.flow("x", dataflow_id=identifier)
    (flow,) = project.metadata.dataflows
    assert JobDistributor(4, job).owns(flow)
    assert JobDistributor(4, job).distribute([flow]) == [flow]
    assert not JobDistributor(4, (job + 1) % 4).owns(flow)


def test_a_distributor_of_an_impossible_job_is_refused():
    with pytest.raises(SettingsError):
        JobDistributor(2, 2)


def test_both_ways_to_a_driver_know_the_same_arguments():
    assert "metadata_base_path" in inspect.signature(DataCoolieDriver).parameters
    with pytest.raises(TypeError):
        create_driver(nonsense=1)


def test_the_public_names_of_the_design_are_there():
    wanted = (
        "DataCoolieDriver create_driver DataCoolieRunConfig ReplayConfig ExecutionResult"
        " JobDistributor ParallelExecutor RetryHandler FileProvider ExecutionLogger SystemLogger"
    )
    for name in wanted.split():
        assert getattr(datacoolie_core, name).__name__ == name


def test_a_dry_run_of_the_config_opens_no_state_and_writes_nothing(small):
    state = small.root / "state-that-must-not-be"
    with small.driver(state=str(state), dry_run=True) as driver:
        result = driver.run()
    assert (result.skipped, result.failed) == (2, 0)
    assert not state.exists()
    assert not (small.root / "lake").exists()


def test_max_workers_caps_dataflows_over_all_groups(project):
    """Independent ones, groups and tied orders together."""
    running, most = set(), []
    guard = threading.Lock()

    def watch(event):
        with guard:
            if isinstance(event, DataflowStarted):
                running.add(event.dataflow.name)
                most.append(len(running))
            elif isinstance(event, DataflowFinished):
                running.discard(event.result.dataflow.name)

    project.write("t", "x.parquet", frame(1))
    for number in range(9):
        project.flow(f"f{number}", table=f"f{number}", group_number=[None, 1, 2][number % 3])
    with project.driver([watch], max_workers=2) as driver:
        assert driver.run().succeeded == 9
    assert max(most) == 2
