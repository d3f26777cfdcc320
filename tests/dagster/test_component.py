"""The component in a real dg project: scaffolded, checked, listed, loaded, changed."""

import json
import runpy
import subprocess

import dagster as dg
import polars as pl
import pytest
import yaml

from tests.dagster.component_project import BIN, DgProject

TYPE = "datacoolie_dagster.DataCoolieComponent"
OF_THE_COMPONENT = {"dagster/code_references", "dagster/component_origin"}


@pytest.fixture
def project(tmp_path) -> DgProject:
    return DgProject(tmp_path / "shop")


@pytest.fixture(scope="module")
def scaffolded(tmp_path_factory) -> DgProject:
    made = DgProject(tmp_path_factory.mktemp("scaffolded"))
    made.run("dg", "scaffold", "defs", TYPE, "ingest")
    return made


def keys(definitions: dg.Definitions) -> set[str]:
    return {one.key.to_user_string() for one in definitions.resolve_all_asset_specs()}


def spec(definitions: dg.Definitions, key: str) -> dg.AssetSpec:
    wanted = dg.AssetKey(key.split("/"))
    return next(one for one in definitions.resolve_all_asset_specs() if one.key == wanted)


def write(folder, *names: str, **changes) -> None:
    """Write metadata of dataflows that read CSV files below a folder."""
    connections = [
        {"name": "files", "format": "csv", "configure": {"base_path": "data"}},
        {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
    ]
    flows = [
        {
            "name": name,
            "stage": "bronze",
            "source": {"connection_name": "files", "table": f"{name}.csv"},
            "destination": {"connection_name": "lake", "table": name, "load_type": "full_load"},
            **changes,
        }
        for name in names
    ]
    folder.mkdir(parents=True, exist_ok=True)
    document = {"connections": connections, "dataflows": flows}
    (folder / "flows.yaml").write_text(yaml.safe_dump(document))


def test_what_scaffold_writes_is_right_for_every_check_of_dg(scaffolded):
    there = yaml.safe_load((scaffolded.defs / "ingest/defs.yaml").read_text())
    assert there == {"type": TYPE, "attributes": {"metadata": "metadata"}}
    assert "successfully" in scaffolded.run("dg", "check", "yaml")
    assert "loaded successfully" in scaffolded.run("dg", "check", "defs")
    listed = json.loads(scaffolded.run("dg", "list", "defs", "--json"))
    found = {one["asset_key"]: one for one in listed["assets"]}
    assert set(found) == {"bronze/customers", "files/customers", "silver/customers"}
    assert found["silver/customers"]["dependency_keys"] == ["bronze/customers"]
    assert found["silver/customers"]["group_name"] == "silver"
    assert {"bronze", "bronze_incremental", "silver"} <= {one["name"] for one in listed["jobs"]}
    scaffolded.run("dagster", "definitions", "validate")


def test_what_scaffold_writes_loads_into_tables_beside_it(scaffolded, lake):
    definitions = scaffolded.load()
    for job in ("bronze", "silver"):
        assert definitions.resolve_job_def(job).execute_in_process(instance=lake.instance).success
    tables = scaffolded.defs / "ingest" / "lake"
    assert pl.read_delta(str(tables / "bronze/customers")).height == 4
    assert sorted(pl.read_delta(str(tables / "silver/customers"))["id"]) == [1, 2, 3]


def test_scaffold_names_metadata_that_is_there_as_the_component_sees_it(project):
    write(project.root / "metadata", "orders")
    project.run("dg", "scaffold", "defs", TYPE, "a", "--metadata", "metadata", "--project-dir", ".")
    assert sorted(one.name for one in (project.defs / "a").iterdir()) == ["defs.yaml"]
    attributes = yaml.safe_load((project.defs / "a/defs.yaml").read_text())["attributes"]
    up = "../../../.."
    assert attributes == {"metadata": f"{up}/metadata", "project_dir": up}
    assert keys(project.load()) == {"bronze/orders", "files/orders.csv"}


def test_scaffold_writes_the_larger_example_and_python(project):
    params = json.dumps({"example": True})
    command = ("dg", "scaffold", "defs", TYPE, "py", "--format", "python", "--json-params", params)
    project.run(*command)
    assert {"gold/revenue", "bronze/orders"} <= keys(project.load())


def test_check_yaml_refuses_what_no_attribute_takes(project):
    write(project.component("a", granularty="group") / "metadata", "orders")
    assert "granularty" in project.run("dg", "check", "yaml", fails=True)


def test_wrong_metadata_is_told_whole(project):
    write(project.component("a") / "metadata", "orders", sourc={})
    with pytest.raises(Exception, match="Error while building") as caught:
        project.load()
    cause = caught.value.__cause__
    assert type(cause).__name__ == "MetadataError"
    assert "'sourc'" in str(cause)
    project.component("a", on_invalid="quarantine")
    assert "bronze/orders" in keys(project.load())


def own(metadata) -> dict[str, object]:
    return {key: one for key, one in metadata.items() if key not in OF_THE_COMPONENT}


def shape(definitions: dg.Definitions) -> dict[str, object]:
    """Return all that users see of definitions, without where they are written."""
    graph = definitions.resolve_asset_graph()
    specs = {}
    for one in definitions.resolve_all_asset_specs():
        specs[one.key] = one.replace_attributes(metadata=own(one.metadata))
    checks = {
        key: (one.description, one.blocking, own(one.metadata), list(one.additional_deps))
        for key in graph.asset_check_keys
        if (one := graph.get_check_spec(key))
    }
    jobs = {
        one.name: sorted(node.name for node in one.nodes)
        for one in definitions.resolve_all_job_defs()
    }
    resources = {key: one.model_dump() for key, one in (definitions.resources or {}).items()}
    return {"specs": specs, "checks": checks, "jobs": jobs, "resources": resources}


def test_component_workspace_file_and_python_give_the_same_definitions(project, tmp_path):
    from datacoolie_dagster import build_datacoolie_definitions

    plain = tmp_path / "plain"
    command = [str(BIN / "datacoolie"), "init", str(plain), "--example"]
    subprocess.run(command, check=True, capture_output=True)
    bronze = plain / "metadata/bronze.yaml"
    kept = "    configure:\n      datacoolie: {on_cast_error: quarantine}\n"
    bronze.write_text(bronze.read_text() + kept)
    workspace = yaml.safe_load((plain / "workspace.yaml").read_text())
    file = plain / workspace["load_from"][0]["python_file"]["relative_path"]
    by_workspace = runpy.run_path(str(file))["defs"]
    by_python = build_datacoolie_definitions(plain / "metadata", project_dir=plain)
    project.component("a", metadata=str(plain / "metadata"), project_dir=str(plain))
    seen = shape(project.load())
    assert len(seen["specs"]) == 6
    assert seen["checks"]
    assert "gold" in seen["jobs"]
    for name, value in shape(by_python).items():
        assert seen[name] == value, name
        assert shape(by_workspace)[name] == value, name


def test_translation_changes_assets_by_their_dataflow_and_merges_tags_and_metadata(project):
    translation = {
        "key_prefix": "shop",
        "group_name": "{{ dataflow.stage }}_{{ dataflow.load_type }}",
        "description": "{{ spec.description }} from {{ dataflow.source.connection.name }}",
        "tags": {"team": "core"},
        "metadata": {"shard": "{{ data.shard }}"},
        "kinds": ["duckdb"],
        "owners": ["team:shop"],
    }
    folder = project.component("a", translation=translation)
    write(folder / "metadata", "orders")
    (changed,) = (one for one in project.load().resolve_all_asset_specs() if len(one.key.path) == 3)
    assert changed.key == dg.AssetKey(["shop", "bronze", "orders"])
    assert changed.group_name == "bronze_full_load"
    assert changed.description.endswith("from files")
    assert changed.tags["team"] == "core"
    assert "datacoolie/dataflow_id" in changed.tags
    assert changed.metadata["shard"] in (0, "0")
    assert changed.metadata["datacoolie/load_type"] == "full_load"
    assert (changed.kinds, list(changed.owners)) == ({"duckdb"}, ["team:shop"])


def test_attributes_reach_the_definitions(project, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    attributes = {
        "run": {"max_workers": 3, "retry_count": 2, "on_upstream_failure": "block"},
        "state": "kept",
        "env": {"DB_PASSWORD": "{{ env.SHOP_PASSWORD }}"},
        "granularity": "group",
        "block_on_bad_rows": True,
    }
    folder = project.component("a", **attributes)
    quarantine = {"datacoolie": {"on_cast_error": "quarantine"}}
    write(folder / "metadata", "orders", "lines", group_number=1, configure=quarantine)
    definitions = project.load()
    resource = definitions.resources["datacoolie"]
    assert (resource.max_workers, resource.retry_count, resource.state) == (3, 2, "kept")
    assert resource.on_upstream_failure == "block"
    nodes = [node.name for node in definitions.resolve_job_def("bronze").nodes]
    assert [one for one in nodes if not one.endswith("_quarantine")] == ["group_1"]
    graph = definitions.resolve_asset_graph()
    assert [graph.get_check_spec(key).blocking for key in graph.asset_check_keys] == [True, True]
    assert "hunter2" not in repr(definitions)
    assert "hunter2" not in repr(definitions.resolve_all_asset_specs())


def test_a_run_setting_out_of_range_is_refused(project):
    write(project.component("a", run={"max_workers": 0}) / "metadata", "orders")
    with pytest.raises(Exception, match="Error while building") as caught:
        project.load()
    assert "max_workers is 0" in str(caught.value.__cause__)


def test_paths_start_at_the_nearest_settings_file_within_the_project(project, lake):
    folder = project.component("a", metadata=["flows", "more/flows.yaml"])
    write(folder / "flows", "orders")
    write(project.root / "more", "lines")
    text = yaml.safe_load((project.root / "more/flows.yaml").read_text())
    (project.root / "more/flows.yaml").write_text(yaml.safe_dump({"dataflows": text["dataflows"]}))
    (project.root / "datacoolie.toml").write_text("")
    (project.root / "data").mkdir()
    (project.root / "data/orders.csv").write_text("id\n1\n")
    (project.root / "data/lines.csv").write_text("id\n1\n2\n")
    done = project.load().resolve_job_def("bronze").execute_in_process(instance=lake.instance)
    assert done.success
    assert pl.read_delta(str(project.root / "lake/lines")).height == 2


@pytest.mark.parametrize("granularity", ["dataflow", "group"])
def test_two_components_of_the_same_settings_are_one_code_location(project, granularity):
    for number, name in enumerate(("a", "b")):
        folder = project.component(name, granularity=granularity)
        more = {"stage": f"stage_{name}", "group_number": number}
        write(folder / "metadata", name, f"{name}2", **more)
    definitions = project.load()
    assert {"stage_a/a", "stage_b/b"} <= keys(definitions)
    assert {"stage_a", "stage_b"} <= {job.name for job in definitions.resolve_all_job_defs()}


OURS = """\
from dataclasses import dataclass

import dagster as dg
from datacoolie_core.metadata.loader import load_metadata
from datacoolie_dagster import DataCoolieComponent


@dataclass(kw_only=True)
class Ours(DataCoolieComponent):
    prefix: str

    def load_metadata(self, context):
        return load_metadata(str(context.path / "elsewhere"), project_dir=str(self.root(context)))

    def get_asset_spec(self, data):
        spec = super().get_asset_spec(data)
        return spec.replace_attributes(key=spec.key.with_prefix(self.prefix))

    def get_source_asset_spec(self, data):
        spec = super().get_source_asset_spec(data)
        return spec.replace_attributes(key=spec.key.with_prefix(self.prefix))
"""


def test_a_subclass_decides_what_is_loaded_and_how_it_looks(project):
    (project.package / "ours.py").write_text(OURS)
    folder = project.component("a", f"{project.name}.ours.Ours", prefix="p")
    write(folder / "elsewhere", "orders")
    assert keys(project.load()) == {"p/bronze/orders", "p/files/orders.csv"}


def test_loading_again_sees_what_changed_and_nothing_else(project):
    folder = project.component("a")
    write(folder / "metadata", "orders")
    before = project.load()
    assert shape(before) == shape(project.load())
    write(folder / "metadata", "orders", "lines")
    assert "bronze/lines" in keys(project.load())
    assert spec(project.load(), "bronze/orders").code_version == (
        spec(before, "bronze/orders").code_version
    )
