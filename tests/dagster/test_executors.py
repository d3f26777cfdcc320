"""The same tables, watermarks and events from every executor, in both granularities."""

import json
import pickle

import dagster as dg
import pytest
from dagster_dask import dask_executor

from datacoolie_dagster import build_datacoolie_definitions
from tests.dagster.located import IN_PROCESS, MULTIPROCESS, definitions_of, execute, write

DASK = {
    "execution": {"config": {"cluster": {"local": {"n_workers": 1, "dashboard_address": None}}}}
}
EXECUTORS = {"in process": IN_PROCESS, "processes": MULTIPROCESS, "dask": DASK}


def fill(lake, granularity):
    lake.arguments["granularity"] = granularity
    lake.events_flow(replay=None, group_number=1)
    lake.events_csv("2024-01-05", "2024-02-05")
    lake.flow("names", group_number=1)
    lake.csv("names", "1,ana", header="id,name")
    for name in ("events", "names"):
        source = {"connection_name": "raw", "table": name}
        lake.flow(f"copy_{name}", source=source, group_number=2, stage="clean")


KEYS = ("raw/events", "raw/names", "clean/copy_events", "clean/copy_names")


@pytest.mark.parametrize("granularity", ["dataflow", "group"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_executor_gives_the_same(lake, executor, granularity):
    fill(lake, granularity)
    dask = executor == "dask"
    result = execute(lake, executor=EXECUTORS[executor], dask=dask)
    assert result.success
    assert {key: lake.rows(key).height for key in KEYS} == {
        "raw/events": 2, "raw/names": 1, "clean/copy_events": 2, "clean/copy_names": 1,
    }  # fmt: skip
    watermark = lake.newest("raw/events")["datacoolie/watermark"]["watermark"]
    assert "2024-02-05" in json.dumps(watermark)
    assert {lake.newest(key)["datacoolie/status"] for key in KEYS} == {"succeeded"}
    again = execute(lake, "raw/events", executor=IN_PROCESS) if not dask else None
    assert again is None or lake.rows("raw/events").height == 2


def test_metadata_can_be_pickled_and_definitions_made_again(lake):
    """Dagster's own definitions with dependencies can't be pickled: processes make them again."""
    fill(lake, "group")
    assert pickle.loads(pickle.dumps(lake.metadata)) == lake.metadata
    write(lake)
    made = [definitions_of(str(lake.root)) for _ in range(2)]
    specs = [sorted(one.resolve_all_asset_specs(), key=lambda s: s.key) for one in made]
    assert specs[0] == specs[1]


def test_an_executor_of_ones_own_is_used(lake):
    fill(lake, "group")
    mine = build_datacoolie_definitions(
        lake.metadata, project_dir=lake.root, granularity="group", executor=dask_executor
    )
    assert mine.executor is dask_executor
    assert lake.definitions.executor.name == "datacoolie"
    lake.arguments["granularity"] = "dataflow"
    assert lake.definitions.executor is None


def test_definitions_with_group_steps_can_be_merged_with_others(lake):
    fill(lake, "group")

    @dg.asset(deps=[dg.AssetKey(["clean", "copy_names"])])
    def report() -> None:
        return None

    merged = dg.Definitions.merge(lake.definitions, dg.Definitions(assets=[report]))
    job = dg.define_asset_job("everything", selection=dg.AssetSelection.all())
    everything = dg.Definitions.merge(merged, dg.Definitions(jobs=[job]))
    result = everything.resolve_job_def("everything").execute_in_process(instance=lake.instance)
    assert result.success
    assert result.get_step_success_events()[-1].step_key == "report"
