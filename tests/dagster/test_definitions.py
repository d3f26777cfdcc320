"""A code location: it loads cleanly, in any process, and says what is wrong with the metadata."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import dagster as dg
import pytest

from datacoolie_core.errors import MetadataError
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_dagster import DataCoolieResource, build_datacoolie_definitions

CODE = """
import os
import dagster as dg
from pathlib import Path
from datacoolie_dagster import build_datacoolie_definitions

defs = build_datacoolie_definitions("flows", project_dir=Path(__file__).parent)


def job():
    return defs.resolve_job_def("raw")
"""


@pytest.fixture
def location(lake):
    """A project with a module of definitions, as a user writes one."""
    lake.events_flow()
    lake.flow("names")
    lake.events_csv("2024-01-10", "2024-02-10", "2024-03-10", "2024-04-10")
    lake.csv("names", "1,ana", header="id,name")
    (lake.root / "flows").mkdir()
    (lake.root / "flows" / "all.json").write_text(json.dumps(lake.document))
    (lake.root / "code_location.py").write_text(CODE)
    return lake


def python(lake, code):
    """Run code in a process of its own, in the project's folder."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=lake.root,
        env={**os.environ, "DAGSTER_HOME": str(lake.home), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_code_location_loads_without_a_warning_and_without_the_engine(location):
    done = python(
        location,
        """
        import sys, warnings
        warnings.simplefilter("error")
        import dagster as dg
        import code_location
        dg.Definitions.validate_loadable(code_location.defs)
        heavy = {"polars", "deltalake", "pyarrow", "pandas"} & set(sys.modules)
        print("heavy:", sorted(heavy))
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "heavy: []" in done.stdout


def test_steps_run_in_processes_of_their_own_and_a_retried_run_resumes(location):
    """The multiprocess executor imports the definitions again in every step."""
    location.csv("events", "1,2024-01-10T00:00:00Z", "x,2024-02-10T00:00:00Z")
    run = """
        import dagster as dg, sys
        import code_location
        instance = dg.DagsterInstance.local_temp({home!r})
        months = {{
            "dagster/asset_partition_range_start": "2024-01",
            "dagster/asset_partition_range_end": "2024-04",
        }}
        parent = {parent!r}
        again = parent and dg.ReexecutionOptions(parent_run_id=parent)
        result = dg.execute_job(
            dg.reconstructable(code_location.job),
            instance=instance,
            tags={{**months, **({{"dagster/retry_number": "1"}} if parent else {{}})}},
            reexecution_options=again or None,
        )
        print("run", result.run_id, result.success)
    """
    home = str(location.home)
    first = python(location, run.format(home=home, parent=None))
    run_id, outcome = first.stdout.split("run ")[-1].split()
    assert outcome == "False", first.stderr
    assert location.marked("raw/events") == ["2024-01"]
    assert location.marked("raw/names") == [None]
    location.events_csv("2024-01-10", "2024-02-10")
    second = python(location, run.format(home=home, parent=run_id))
    assert second.stdout.split()[-1] == "True", second.stderr
    chunks = location.marked("raw/events")[1:4]
    assert chunks == ["2024-02", "2024-03", "2024-04"]
    assert set(location.statuses("raw/events").values()) == {"materialized"}


def test_wrong_metadata_is_said_whole_when_the_location_loads(location):
    location.dataflows[0]["destination"]["load_typ"] = "append"
    location.dataflows[1]["source"]["connection_name"] = "landng"
    (location.root / "flows" / "all.json").write_text(json.dumps(location.document))
    done = python(location, "import code_location")
    assert done.returncode != 0
    assert "flows/all.json" in done.stderr
    assert "Did you mean 'load_type'?" in done.stderr
    assert "Did you mean 'landing'?" in done.stderr


def test_paths_and_a_loaded_scope_give_the_same(location):
    by_path = build_datacoolie_definitions(
        [location.root / "flows" / "all.json"], project_dir=location.root
    )
    keys = {spec.key for spec in by_path.resolve_all_asset_specs()}
    assert keys == {spec.key for spec in location.definitions.resolve_all_asset_specs()}


def test_definitions_can_be_merged_with_ones_own(location):
    @dg.asset(deps=[dg.AssetKey(["raw", "events"])])
    def report():
        return None

    merged = dg.Definitions.merge(location.definitions, dg.Definitions(assets=[report]))
    graph = merged.resolve_asset_graph()
    assert dg.AssetKey(["raw", "events"]) in graph.get(dg.AssetKey("report")).parent_keys


def test_the_run_config_becomes_the_resource(location):
    location.arguments["run_config"] = DataCoolieRunConfig(max_workers=2, retry_count=3)
    resource = location.definitions.resources["datacoolie"]
    assert isinstance(resource, DataCoolieResource)
    assert resource.run_config(retries=True) == DataCoolieRunConfig(max_workers=2, retry_count=3)
    assert resource.run_config(retries=False).retries is False


def test_one_broken_dataflow_does_not_stop_the_others(location):
    broken = dict(location.dataflows[1], name="broken", dataflow_id="raw/broken")
    broken["destination"] = {"connection_name": "raw", "load_type": "full_load"}
    location.dataflows.append(broken)
    (location.root / "flows" / "all.json").write_text(json.dumps(location.document))
    with pytest.raises(MetadataError):
        build_datacoolie_definitions("flows", project_dir=location.root)
    definitions = build_datacoolie_definitions(
        "flows", project_dir=location.root, on_invalid="quarantine"
    )
    job = definitions.resolve_job_def("raw")
    names, bad = dg.AssetKey(["raw", "names"]), dg.AssetKey(["raw", "broken"])
    run = job.execute_in_process(
        instance=location.instance, raise_on_error=False, asset_selection=[names, bad]
    )
    assert not run.success
    assert "destination.table" in location.failure(run).description
    assert location.marked("raw/names") == [None]
    spec = next(one for one in definitions.resolve_all_asset_specs() if one.key == bad)
    assert "destination.table" in spec.description
    incremental = definitions.resolve_job_def("raw_incremental").execute_in_process(
        instance=location.instance, raise_on_error=False
    )
    assert "raw/broken" in location.failure(incremental).description
    assert location.rows("raw/events").height == 4
