"""Files and folders into metadata: which are read, in which order, and what they may hold."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import fsspec
import pytest
from inline_snapshot import snapshot

from datacoolie_core.errors import LifecycleError, MetadataError, SettingsError
from datacoolie_core.metadata.identity import id_from_name
from datacoolie_core.metadata.loader import load_metadata, metadata_from_documents
from datacoolie_core.metadata.providers import FileProvider

LAKE = {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}


def flow(name, **more):
    end = {"connection_name": "lake", "table": name}
    return {"name": name, "source": end, "destination": {**end, "schema_name": "out"}, **more}


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def load(root, *paths, **options):
    return load_metadata(paths or ["."], project_dir=str(root), **options)


def found(root, *paths, **options):
    with pytest.raises(MetadataError) as caught:
        load(root, *paths, **options)
    return [str(problem).replace(str(root), "ROOT") for problem in caught.value.problems]


def names(metadata):
    return [one.name for one in metadata.dataflows]


def test_a_folder_is_read_with_its_subfolders_in_an_order_that_ignores_case(tmp_path):
    write(
        tmp_path,
        {
            "Bronze/b.yml": {"dataflows": [flow("3")]},
            "bronze.json": {"dataflows": [flow("2")]},
            "a.YAML": {"connections": [LAKE], "dataflows": [flow("1")]},
            "silver/x/y.json": {"dataflows": [flow("4")]},
            "silver/query.sql": "SELECT 1",
            ".hidden/z.json": {"dataflows": [flow("no")]},
            ".hidden.json": {"dataflows": [flow("no")]},
        },
    )
    assert names(load(tmp_path)) == ["1", "2", "3", "4"]


def test_a_file_named_twice_is_read_once(tmp_path):
    write(tmp_path, {"m/a.json": {"connections": [LAKE], "dataflows": [flow("a")]}})
    assert names(load(tmp_path, "m", "m/a.json", str(tmp_path / "m"))) == ["a"]


def test_one_path_may_be_plain_text(tmp_path):
    write(tmp_path, {"a.json": {"connections": [LAKE], "dataflows": [flow("a")]}})
    assert names(load_metadata("a.json", project_dir=str(tmp_path))) == ["a"]


def test_metadata_is_read_from_other_storage():
    files = fsspec.filesystem("memory")
    document = {"connections": [LAKE], "dataflows": [flow("a")]}
    files.pipe_file("/meta-load/a.json", json.dumps(document).encode())
    assert names(load_metadata(["memory://meta-load"])) == ["a"]


def test_the_document_may_be_wrapped_and_carry_a_schema_and_extensions(tmp_path):
    document = {"connections": [LAKE], "dataflows": [flow("a")], "extensions": {"x": 1}}
    write(tmp_path, {"a.json": {"$schema": "https://example.org/s.json", "metadata": document}})
    assert names(load(tmp_path)) == ["a"]


def test_other_top_keys_are_errors_or_with_lenience_warnings(tmp_path):
    write(tmp_path, {"a.json": {"connections": [LAKE], "dataflow": [flow("a")]}})
    assert found(tmp_path) == snapshot(
        ["a.json:1: dataflow: unknown key 'dataflow'. Did you mean 'dataflows'?"]
    )
    assert [str(one) for one in load(tmp_path, strict=False).warnings] == snapshot(
        ["a.json:1: dataflow: unknown key 'dataflow', ignored. Did you mean 'dataflows'?"]
    )


def test_a_file_without_a_section_is_an_error(tmp_path):
    write(
        tmp_path,
        {"a.json": {"extensions": {}}, "b.yaml": "", "c.yaml": "- 1", "d.json": {"dataflows": {}}},
    )
    assert found(tmp_path) == snapshot(
        [
            "a.json: holds none of the sections connections, dataflows and schema_hints.",
            "b.yaml: expected a mapping with connections, dataflows or schema_hints.",
            "c.yaml: expected a mapping with connections, dataflows or schema_hints.",
            "d.json:1: dataflows: expected a list.",
        ]
    )


def test_a_missing_path_and_an_empty_folder_are_errors_even_in_quarantine(tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path, {"notes.txt": "hello"})
    assert found(tmp_path, "gone", "empty", "notes.txt", on_invalid="quarantine") == snapshot(
        [
            "gone: there is no such file or folder; relative paths start at the project root.",
            "empty: holds no metadata file (.json, .yaml, .yml, .xlsx).",
            "notes.txt: this kind of file can't be read; it must be one of .json, .yaml, .yml, .xlsx.",
        ]
    )


def test_a_spreadsheet_beside_the_files_is_read_and_a_broken_one_told(tmp_path):
    write(tmp_path, {"a.json": {"connections": [LAKE]}, "b.xlsx": "PK"})
    assert found(tmp_path) == snapshot(
        ["b.xlsx: is no .xlsx workbook, or a broken one: File is not a zip file."]
    )


def test_a_relative_path_of_a_connection_stays_as_written(tmp_path):
    write(tmp_path, {"a.json": {"connections": [LAKE], "dataflows": [flow("a")]}})
    assert load(tmp_path).dataflows[0].destination.connection.configure.base_path == "lake"


class TestSyntax:
    @pytest.mark.parametrize(
        ("name", "text", "line"),
        [
            ("a.json", '{\n "connections": [,]\n}', 2),
            ("a.yaml", "connections:\n  - name: a: b\n", 2),
            ("a.yaml", "connections:\n\t- name: a\n", 2),
            ("a.yaml", "connections:\n  - name: a\n    name: b\n", 3),
            ("a.yaml", "connections: []\n---\nconnections: []\n", 2),
            ("a.yaml", "connections:\n  - !python/none x\n", 2),
            ("a.yaml", "connections:\n  - *gone\n", 2),
            ("a.yaml", "connections:\n  - {<<: 5}\n", 2),
            ("a.yaml", "connections:\n  - {[a]: 5}\n", 2),
            ("a.yaml", "connections:\n  - !!int x\n", 2),
        ],
    )
    def test_broken_text_is_told_with_file_and_line(self, tmp_path, name, text, line):
        write(tmp_path, {name: text})
        (problem,) = found(tmp_path)
        assert problem.startswith(f"{name}:{line}: ")

    def test_a_key_given_twice_in_json_is_an_error(self, tmp_path):
        write(tmp_path, {"a.json": '{"connections": [], "connections": []}'})
        assert found(tmp_path) == snapshot(
            ["a.json:1: the key 'connections' is given twice in one mapping."]
        )

    def test_numbers_that_json_does_not_have_are_errors(self, tmp_path):
        write(tmp_path, {"a.json": '{"connections": [{"name": NaN}]}'})
        assert found(tmp_path) == snapshot(["a.json:1: broken JSON at column 27: NaN is not JSON."])

    def test_text_that_is_not_utf_8_is_an_error(self, tmp_path):
        (tmp_path / "a.yaml").write_bytes("connections:\n  - {name: Zürich}\n".encode("latin-1"))
        assert found(tmp_path) == snapshot(["a.yaml:2: this is not UTF-8 text."])

    def test_a_byte_order_mark_is_fine(self, tmp_path):
        (tmp_path / "a.json").write_bytes(
            b"\xef\xbb\xbf" + json.dumps({"connections": [LAKE]}).encode()
        )
        assert load(tmp_path).connections[0].name == "lake"

    def test_endless_nesting_is_an_error_not_a_crash(self, tmp_path):
        write(tmp_path, {"a.json": "[" * 100_000, "b.yaml": "[" * 100_000})
        assert len(found(tmp_path)) == 2


class TestFileProvider:
    def test_it_takes_a_path_or_a_base_path_but_not_both(self):
        for paths in ({}, {"config_path": "a", "metadata_base_path": "b"}):
            with pytest.raises(SettingsError, match="either config_path or metadata_base_path"):
                FileProvider(**paths)

    def test_it_loads_what_initialize_validated(self, tmp_path):
        write(tmp_path, {"m/a.json": {"connections": [LAKE], "dataflows": [flow("a")]}})
        provider = FileProvider(metadata_base_path="m", project_dir=str(tmp_path))
        with pytest.raises(LifecycleError, match=r"Call initialize\(\)"):
            provider.load()
        provider.initialize()
        (tmp_path / "m/a.json").unlink()
        assert names(provider.load()) == ["a"]


def test_metadata_travels_to_other_processes():
    metadata = metadata_from_documents([("a", {"connections": [LAKE], "dataflows": [flow("a")]})])
    assert pickle.loads(pickle.dumps(metadata)) == metadata


def test_ids_come_from_names_unless_they_are_given():
    metadata = metadata_from_documents(
        [("a", {"connections": [LAKE], "dataflows": [flow("orders"), flow("x", dataflow_id="y")]})]
    )
    assert [one.dataflow_id for one in metadata.dataflows] == [id_from_name("orders"), "y"]
    assert metadata.dataflows[0].dataflow_id == "7172410a-6350-5482-b4a1-c584648f28f7"


def test_loading_imports_no_engine_and_no_sql_parser_for_simple_metadata(tmp_path):
    simple = flow("a", transform={"filter_expression": "amount > 0 AND upper(name) <> 'X'"})
    write(tmp_path, {"a.yaml": {"connections": [LAKE], "dataflows": [simple]}})
    code = (
        "import sys; from datacoolie_core.metadata.loader import load_metadata; "
        f"load_metadata(['a.yaml'], project_dir={str(tmp_path)!r}); "
        "print([m for m in ('polars', 'deltalake', 'pyarrow', 'sqlglot', 'dagster', 'rapidfuzz') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
