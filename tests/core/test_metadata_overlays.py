"""Environments: what they add, replace and patch, and where problems are told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
import yaml
from inline_snapshot import snapshot

from datacoolie_core.driver import DataCoolieDriver
from datacoolie_core.errors import MetadataError, SettingsError
from datacoolie_core.metadata.loader import load_metadata
from datacoolie_core.metadata.overlays import merged
from datacoolie_core.metadata.providers import FileProvider
from tests.core.workbooks import CONNECTIONS, save, workbook

BASE = """\
connections:
  - {name: files, format: csv, configure: {base_path: in, read_options: {sep: ";", header: true}}}
  - {name: lake, connection_id: L1, format: delta, configure: {base_path: lake}}
dataflows:
  - name: orders
    stage: bronze
    source: {connection_name: files, table: orders}
    destination: {connection_name: lake, table: orders, merge_keys: [id, line]}
  - name: items
    stage: bronze
    source: {connection_name: files, table: items}
    destination: {connection_name: lake, table: items}
  - name: orders
    dataflow_id: silver/orders
    stage: silver
    source: {connection_name: lake, table: orders}
    destination: {connection_name: lake, table: silver_orders}
schema_hints:
  - connection_name: files
    table_name: orders
    hints: [{column_name: id, data_type: int}]
"""


def write(root, files):
    for name, content in {"m/all.yaml": BASE, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        path.write_text(text)


def load(root, environment="dev", *paths, **options):
    return load_metadata(paths or ["m"], project_dir=str(root), environment=environment, **options)


def overlay(root, content, **options):
    """Load with one overlay of the environment dev."""
    write(root, {"m/environments/dev/o.yaml": content})
    return load(root, **options)


def patched(root, match, patch):
    return overlay(root, {"patches": [{"match": match, "patch": patch}]})


def found(root, content, **options):
    with pytest.raises(MetadataError) as caught:
        overlay(root, content, **options)
    return [str(problem) for problem in caught.value.problems]


def connection(metadata, name):
    return next(one for one in metadata.connections if one.name == name)


def flow(metadata, label):
    return next(one for one in metadata.dataflows if one.label == label)


class TestWhichFiles:
    def test_environments_are_no_part_of_the_metadata_itself(self, tmp_path):
        write(tmp_path, {"m/environments/dev/o.yaml": "nonsense", "m/x/environments/a.yaml": "x"})
        assert len(load(tmp_path, None).dataflows) == 3

    def test_an_unknown_environment_is_told_with_those_that_are_there(self, tmp_path):
        write(
            tmp_path,
            {"m/environments/dev/o.yaml": BASE, "m/environments/prod/x/o.json": "{}"},
        )
        with pytest.raises(SettingsError) as caught:
            load(tmp_path, "dve")
        assert str(caught.value) == snapshot(
            "m/environments: there is no environment 'dve'. There are: dev, prod."
        )
        assert caught.value.code == "unknown_environment"

    def test_without_any_environment_it_says_where_they_are_read_from(self, tmp_path):
        write(tmp_path, {})
        with pytest.raises(SettingsError) as caught:
            load(tmp_path, "dev")
        assert str(caught.value) == snapshot(
            "m/environments: there is no environment 'dev'. There are none: overlays are read from a folder environments/dev."
        )

    def test_an_environment_may_be_one_file_and_changes_nothing_if_it_says_nothing(self, tmp_path):
        write(
            tmp_path,
            {
                "m/environments/dev.yaml": {"connections": [{"name": "x", "format": "csv"}]},
                "m/environments/prod/README.md": "As it is.",
            },
        )
        assert connection(load(tmp_path, "dev"), "x")
        assert load(tmp_path, "prod").connections == load(tmp_path, None).connections

    def test_the_environments_of_a_file_are_beside_it(self, tmp_path):
        patch = {"match": {"type": "connection", "where": {}}, "patch": {"is_active": False}}
        write(tmp_path, {"m/environments/dev/o.json": json.dumps({"patches": [patch]})})
        metadata = load(tmp_path, "dev", "m/all.yaml")
        assert [one.is_active for one in metadata.connections] == [False, False]

    def test_all_files_of_an_environment_count_in_an_order_that_ignores_case(self, tmp_path):
        def patch(path):
            where = {"type": "connection", "where": {"name": "lake"}}
            return {"patches": [{"match": where, "patch": {"configure": {"base_path": path}}}]}

        write(
            tmp_path,
            {
                "m/environments/dev/B.yaml": patch("second"),
                "m/environments/dev/a.yaml": patch("first"),
                "m/environments/prod/z.yaml": patch("never"),
            },
        )
        assert connection(load(tmp_path), "lake").configure.base_path == "second"

    def test_overlays_are_read_from_other_storage(self):
        files = fsspec.filesystem("memory")
        files.pipe_file("/meta-env/all.yaml", BASE.encode())
        files.pipe_file(
            "/meta-env/environments/dev/o.yaml", b"connections: [{name: x, format: csv}]"
        )
        metadata = load_metadata("memory://meta-env", environment="dev")
        assert connection(metadata, "x")
        assert len(load_metadata("memory://meta-env").connections) == 2

    def test_an_overlay_may_be_a_workbook(self, tmp_path):
        write(tmp_path, {})
        save(tmp_path / "m/environments/dev/o.xlsx", workbook(connections=CONNECTIONS[:2]))
        assert connection(load(tmp_path), "files").configure.read_options == {}


class TestSections:
    def test_an_entry_of_the_same_name_is_replaced_whole_and_in_its_place(self, tmp_path):
        metadata = overlay(
            tmp_path,
            {"connections": [{"name": "files", "format": "csv", "configure": {"base_path": "x"}}]},
        )
        assert [one.name for one in metadata.connections] == ["files", "lake"]
        assert connection(metadata, "files").configure.base_path == "x"
        assert connection(metadata, "files").configure.read_options == {}

    def test_a_new_entry_is_added(self, tmp_path):
        metadata = overlay(
            tmp_path,
            {
                "dataflows": [
                    {
                        "name": "more",
                        "source": {"connection_name": "files", "table": "more"},
                        "destination": {"connection_name": "lake", "table": "more"},
                    }
                ]
            },
        )
        assert [one.label for one in metadata.dataflows][-1] == "more"

    def test_an_entry_that_is_replaced_by_its_name_keeps_its_id(self, tmp_path):
        """State is kept under the id: another environment must not start from the beginning."""
        metadata = overlay(
            tmp_path,
            {
                "connections": [
                    {"name": "lake", "format": "delta", "configure": {"base_path": "x"}}
                ],
                "dataflows": [
                    {
                        "name": "orders",
                        "stage": "silver",
                        "source": {"connection_name": "L1", "table": "other"},
                        "destination": {"connection_name": "lake", "table": "o"},
                    }
                ],
            },
        )
        assert connection(metadata, "lake").connection_id == "L1"
        silver = flow(metadata, "silver/orders")
        assert (silver.dataflow_id, silver.source.table) == ("silver/orders", "other")
        assert flow(metadata, "bronze/orders").source.table == "orders"

    def test_hints_of_the_same_table_are_replaced(self, tmp_path):
        hints = {"connection_name": "files", "table_name": "ORDERS", "hints": []}
        hints["hints"] = [{"column_name": "id", "data_type": "string"}]
        metadata = overlay(tmp_path, {"schema_hints": [hints]})
        (hint,) = flow(metadata, "bronze/orders").transform.schema_hints
        assert hint.data_type == "string"

    def test_two_overlays_of_one_entry_are_a_duplicate(self, tmp_path):
        entry = {"name": "files", "format": "csv"}
        write(tmp_path, {"m/environments/dev/a.yaml": {"connections": [entry]}})
        assert found(tmp_path, {"connections": [entry]}) == snapshot(
            [
                "m/environments/dev/o.yaml:2: connection 'files', connection_id: m/environments/dev/a.yaml has a connection of this name too; rename one, or give one a connection_id.",
                "m/all.yaml:7: dataflow 'bronze/orders', source.connection_name: 'files' is ambiguous, connections in m/environments/dev/a.yaml and m/environments/dev/o.yaml have that name; give the id.",
                "m/all.yaml:11: dataflow 'bronze/items', source.connection_name: 'files' is ambiguous, connections in m/environments/dev/a.yaml and m/environments/dev/o.yaml have that name; give the id.",
                "m/all.yaml:19: schema_hints 'orders', connection_name: 'files' is ambiguous, connections in m/environments/dev/a.yaml and m/environments/dev/o.yaml have that name; give the id.",
            ]
        )


class TestPatches:
    def test_mappings_are_merged_lists_replaced_and_null_removes(self, tmp_path):
        metadata = patched(
            tmp_path,
            {"type": "connection", "where": {"name": "files"}},
            {"configure": {"read_options": {"sep": ",", "header": None}, "date": "x"}},
        )
        files = connection(metadata, "files").configure
        assert (files.base_path, files.read_options) == ("in", {"sep": ","})
        metadata = patched(
            tmp_path,
            {"type": "dataflow", "where": {"dataflow_id": "silver/orders"}},
            {"destination": {"merge_keys": ["id"]}, "transform": {"drop_columns": ["x"]}},
        )
        silver = flow(metadata, "silver/orders")
        assert silver.destination.merge_keys == ("id",)
        assert silver.destination.table == "silver_orders"
        assert flow(metadata, "bronze/orders").destination.merge_keys == ("id", "line")

    @pytest.mark.parametrize(
        ("where", "changed"),
        [
            ({}, ["bronze/orders", "bronze/items", "silver/orders"]),
            ({"stage": "bronze"}, ["bronze/orders", "bronze/items"]),
            ({"name": "orders", "stage": "bronze"}, ["bronze/orders"]),
            ({"name": ["items", "other"]}, ["bronze/items"]),
            ({"source.connection_name": "lake"}, ["silver/orders"]),
            ({"source": {"connection_name": "lake"}}, ["silver/orders"]),
            ({"group_number": None, "stage": "silver"}, ["silver/orders"]),
            ({"destination.merge_keys": ["id", "line"]}, ["bronze/orders"]),
            ({"dataflow_id": "7172410a-6350-5482-b4a1-c584648f28f7"}, ["bronze/orders"]),
        ],
    )
    def test_where_names_fields_and_their_values(self, tmp_path, where, changed):
        match = {"type": "dataflow", "where": where}
        metadata = patched(tmp_path, match, {"description": "changed"})
        assert [one.label for one in metadata.dataflows if one.description] == changed

    @pytest.mark.parametrize("kind", ["schema_hint", "schema_hints", "Schema_Hints"])
    def test_hints_can_be_patched_and_types_may_be_plural(self, tmp_path, kind):
        match = {"type": kind, "where": {"table_name": "orders"}}
        metadata = patched(
            tmp_path, match, {"hints": [{"column_name": "id", "data_type": "bigint"}]}
        )
        (hint,) = flow(metadata, "bronze/orders").transform.schema_hints
        assert hint.data_type == "bigint"

    def test_configure_that_is_json_text_is_merged_too(self, tmp_path):
        write(
            tmp_path,
            {
                "m/x.json": json.dumps(
                    {
                        "connections": [
                            {
                                "name": "x",
                                "format": "csv",
                                "configure": '{"base_path": "a", "b": 1}',
                            }
                        ]
                    }
                )
            },
        )
        metadata = patched(
            tmp_path,
            {"type": "connection", "where": {"name": "x"}},
            {"configure": {"base_path": "c"}},
        )
        assert connection(metadata, "x").configure.base_path == "c"
        assert connection(metadata, "x").configure.model_extra == {"b": 1}

    def test_a_patch_sees_what_the_overlay_added_and_what_patches_before_it_did(self, tmp_path):
        def patch(where, change):
            return {"match": {"type": "connection", "where": where}, "patch": change}

        metadata = overlay(
            tmp_path,
            {
                "patches": [
                    patch({"name": "x"}, {"catalog": "main"}),
                    patch({"catalog": "main"}, {"database": "shop"}),
                ],
                "connections": [{"name": "x", "format": "delta"}],
            },
        )
        assert connection(metadata, "x").database == "shop"

    def test_the_metadata_of_other_environments_is_left_as_it_was(self, tmp_path):
        """A patch makes new mappings: nothing that was read is changed in place."""
        match = {"type": "connection", "where": {"name": "files"}}
        patched(tmp_path, match, {"configure": {"read_options": {"sep": "|"}}})
        base = connection(load(tmp_path, None), "files")
        assert base.configure.read_options == {"sep": ";", "header": True}


class TestProblems:
    def test_a_patch_that_matches_nothing_is_an_error_that_says_what_was_meant(self, tmp_path):
        def patch(kind, **where):
            return {"match": {"type": kind, "where": where}, "patch": {"is_active": False}}

        content = {
            "patches": [
                patch("dataflow", name="ordrs"),
                patch("connection", name="files", format="delta"),
                patch("dataflow", **{"source.tabel": "orders"}),
                patch("connection", **{"configure.password": "S3cr3t!"}),
            ]
        }
        assert found(tmp_path, content) == snapshot(
            [
                "m/environments/dev/o.yaml:5: patches[0].match.where.name: no dataflow has 'ordrs' there. Did you mean 'orders'?",
                "m/environments/dev/o.yaml:10: patches[1].match.where: no connection matches; no entry has all of these together.",
                "m/environments/dev/o.yaml:17: patches[2].match.where.source.tabel: no dataflow has 'orders' there.",
                "m/environments/dev/o.yaml:23: patches[3].match.where.configure.password: no connection has '***' there.",
            ]
        )

    def test_broken_patches_are_all_told_with_their_lines(self, tmp_path):
        content = """\
patches:
  - match: {type: dataflow, wher: {name: orders}}
    patch: {stage: x}
  - match: {type: job, where: {}}
    patch: {}
  - patch: [1]
  - nonsense
  - match: {type: dataflow, where: {name: items}}
    patch:
      stage: x
      name: goods
      dataflow_id: y
"""
        assert found(tmp_path, content) == snapshot(
            [
                "m/environments/dev/o.yaml:2: patches[0].match.where: it is required.",
                "m/environments/dev/o.yaml:2: patches[0].match.wher: unknown key 'wher'. Did you mean 'where'?",
                "m/environments/dev/o.yaml:4: patches[1].match.type: expected one of connection, dataflow, schema_hint, got text 'job'.",
                "m/environments/dev/o.yaml:6: patches[2].match: it is required.",
                "m/environments/dev/o.yaml:6: patches[2].patch: expected a mapping, got a list.",
                "m/environments/dev/o.yaml:7: patches[3]: expected a mapping with match and patch.",
                "m/environments/dev/o.yaml:11: patches[4].patch.name: a patch can't change what tells entries apart; replace the whole entry.",
                "m/environments/dev/o.yaml:12: patches[4].patch.dataflow_id: a patch can't change what tells entries apart; replace the whole entry.",
            ]
        )

    def test_what_a_patch_breaks_is_told_at_the_patch_and_the_rest_where_it_was(self, tmp_path):
        write(tmp_path, {"m/more.yaml": "\ndataflows:\n  - {name: bad, colour: red}\n"})
        content = """\
patches:
  - match: {type: dataflow, where: {stage: bronze}}
    patch:
      destination:
        load_type: upsert
  - match: {type: dataflow, where: {name: bad}}
    patch:
      source: {connection_name: filse}
connections:
  - name: lake
    format: csvv
"""
        assert found(tmp_path, content) == snapshot(
            [
                "m/environments/dev/o.yaml:11: connection 'lake', format: expected one of delta, iceberg, parquet, csv, json, jsonl, avro, excel, sql, api, function, got text 'csvv'. Did you mean 'csv'?",
                "m/environments/dev/o.yaml:5: dataflow 'bronze/orders', destination.load_type: expected one of append, overwrite, full_load, merge_upsert, merge_overwrite, scd2, got text 'upsert'. Did you mean 'merge_upsert'?",
                "m/environments/dev/o.yaml:5: dataflow 'bronze/items', destination.load_type: expected one of append, overwrite, full_load, merge_upsert, merge_overwrite, scd2, got text 'upsert'. Did you mean 'merge_upsert'?",
                "m/environments/dev/o.yaml:8: dataflow 'bad', source.connection_name: no connection 'filse'. Did you mean 'files'?",
                "m/more.yaml:3: dataflow 'bad', destination: it is required.",
                "m/more.yaml:3: dataflow 'bad', colour: unknown key 'colour'.",
            ]
        )

    def test_a_patch_repairs_what_is_broken(self, tmp_path):
        save(
            tmp_path / "m/x.xlsx",
            workbook(connections=[["name", "format", "is_active"], ["x", "csv", "maybe"]]),
        )
        metadata = patched(
            tmp_path, {"type": "connection", "where": {"name": "x"}}, {"is_active": False}
        )
        assert connection(metadata, "x").is_active is False

    def test_patches_belong_into_an_environment(self, tmp_path):
        write(tmp_path, {"m/p.yaml": "patches: []"})
        with pytest.raises(MetadataError) as caught:
            load(tmp_path, None)
        assert [str(problem) for problem in caught.value.problems] == snapshot(
            [
                "m/p.yaml:1: patches: unknown key 'patches'; it belongs into a file in environments/NAME.",
                "m/p.yaml: holds none of the sections connections, dataflows and schema_hints.",
            ]
        )

    def test_a_dataflow_that_a_patch_breaks_is_quarantined_alone(self, tmp_path):
        content = {
            "patches": [
                {
                    "match": {"type": "dataflow", "where": {"name": "items"}},
                    "patch": {"destination": {"load_type": "upsert"}},
                }
            ]
        }
        metadata = overlay(tmp_path, content, on_invalid="quarantine")
        assert [one.label for one in metadata.dataflows] == ["bronze/orders", "silver/orders"]
        assert [one.label for one in metadata.invalid] == ["bronze/items"]

    @pytest.mark.parametrize(
        "content",
        [
            {"patches": [{"match": {"type": "dataflow", "where": {"name": "x"}}, "patch": {}}]},
            {"patch": []},
            "patches: [",
        ],
    )
    def test_an_overlay_that_can_not_be_applied_stops_all_even_in_quarantine(
        self, tmp_path, content
    ):
        """The rest would run as it does elsewhere: development would write into production."""
        assert len(found(tmp_path, content, on_invalid="quarantine")) >= 1


def test_a_merge_patch_is_that_of_the_standard():
    """The examples of RFC 7396."""
    for target, patch, result in [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]:
        assert merged(target, patch) == result


LAKE_DEV = {
    "patches": [
        {
            "match": {"type": "connection", "where": {"name": "lake"}},
            "patch": {"configure": {"base_path": "lake_dev"}},
        }
    ]
}


class TestFrontDoors:
    def test_the_driver_and_its_provider_take_an_environment(self, tmp_path):
        write(tmp_path, {"m/environments/dev/o.yaml": LAKE_DEV})
        provider = FileProvider("m", project_dir=str(tmp_path), environment="dev")
        for given in (
            {"metadata": "m", "environment": "dev"},
            {"metadata_base_path": "m", "environment": "dev"},
            {"metadata_provider": provider},
        ):
            with DataCoolieDriver(project_dir=str(tmp_path), **given) as driver:
                lake = connection(driver.metadata, "lake")
                assert lake.configure.base_path == "lake_dev"
        with DataCoolieDriver("m", project_dir=str(tmp_path)) as driver:
            assert connection(driver.metadata, "lake").configure.base_path == "lake"

    def test_every_command_takes_the_flag_over_the_variable_over_the_file(self, tmp_path):
        """As what every command shows or does with the paths of the environment's tables."""
        prod = json.dumps(LAKE_DEV).replace("lake_dev", "lake_prod")
        write(tmp_path, {"m/environments/dev/o.yaml": LAKE_DEV, "m/environments/prod/o.json": prod})
        (tmp_path / "datacoolie.toml").write_text('metadata = ["m"]\nenv = "dev"\n')
        (tmp_path / "in/orders").mkdir(parents=True)
        (tmp_path / "in/orders/a.csv").write_text("id;line\n1;1\n")

        def call(*arguments, **variables):
            return subprocess.run(
                [str(Path(sys.executable).with_name("datacoolie")), *arguments],
                cwd=tmp_path,
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=False,
            )

        only = ("--select", "bronze/orders")
        assert call("run", *only).returncode == 0
        assert (tmp_path / "lake_dev/orders").is_dir()
        assert call("run", *only, DATACOOLIE_ENV="prod").returncode == 0
        assert (tmp_path / "lake_prod/orders").is_dir()
        shown = call("watermark", "show", *only, "--env", "prod", "--json", DATACOOLIE_ENV="x")
        assert shown.returncode == 0, shown.stderr
        for command in (
            ("check",),
            ("plan", *only),
            ("replay", *only, "--start", "1", "--end", "2", "--step", "1", "--dry-run"),
            ("maintain", "--dry-run"),
            ("watermark", "reset", "bronze/orders", "--yes"),
        ):
            done = call(*command, "--env", "prdo", DATACOOLIE_ENV="dev")
            assert done.returncode == 3, command
            assert "Did you mean 'prod'?" in done.stderr, command
        assert not (tmp_path / "lake").exists()
