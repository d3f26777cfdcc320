"""Conversions: what goes in comes out again, or nothing is written and the reason is named."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from inline_snapshot import snapshot

from datacoolie_core.errors import MetadataError, SettingsError
from datacoolie_core.metadata.arrange import same
from datacoolie_core.metadata.convert import convert, write
from datacoolie_core.metadata.loader import load_metadata
from datacoolie_core.metadata.workbook import read_workbook
from datacoolie_core.metadata.yaml_text import write_yaml
from tests.core.workbooks import save

LAKE = {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}


def flow(name="orders", **more):
    end = {"connection_name": "lake", "table": name}
    return {"name": name, "source": end, "destination": {**end, "schema_name": "out"}, **more}


def put(root, document, name="m.json"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(document, str):
        path.write_text(document, "utf-8")
    else:
        path.write_bytes(json.dumps(document).encode())
    return path


def turned(root, to, document=None, **options):
    """Convert a document; return what was written: name → bytes."""
    source = put(root, document) if document is not None else root / "m.json"
    done = convert(str(source), str(root / "out"), to=to, project_dir=str(root), **options)
    return {uri.removeprefix(f"{root}/out/"): content for uri, content in done.files.items()}


def refused(root, to, document):
    with pytest.raises(MetadataError) as caught:
        turned(root, to, document)
    return [str(problem).replace(str(root), "ROOT") for problem in caught.value.problems]


# --- how it reads -------------------------------------------------------------------------------


def test_keys_come_in_an_order_that_reads_well(tmp_path):
    document = {
        "dataflows": [
            {
                "extensions": {"team": "x"},
                "configure": {"zeta": 1, "datacoolie": {"owners": ["ada"]}},
                "transform": {"schema_hints": [{"data_type": "int", "column_name": "id"}]},
                "destination": {"merge_keys": ["id", "line"], "table": "t", "connection_name": "a"},
                "source": {"query": "SELECT id\nFROM t\n", "connection_name": "lake"},
                "stage": "on",
                "name": "orders",
            }
        ],
        "connections": [{"configure": {"base_path": "lake"}, "format": "delta", "name": "lake"}],
    }
    ((name, content),) = turned(tmp_path, "yaml", document).items()
    assert name == "metadata.yaml"
    assert content.decode() == snapshot("""\
connections:
  - name: lake
    format: delta
    configure:
      base_path: lake
dataflows:
  - name: orders
    stage: 'on'
    source:
      connection_name: lake
      query: |
        SELECT id
        FROM t
    destination:
      connection_name: a
      table: t
      merge_keys: [id, line]
    transform:
      schema_hints:
        - {column_name: id, data_type: int}
    configure:
      datacoolie:
        owners: [ada]
      zeta: 1
    extensions:
      team: x
""")


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "on", "OFF", "y", "N", "1e5", "0o17", "017", "1_000", "12:30", "~", "null"],
)
def test_text_that_a_reader_of_yaml_would_take_for_something_else_is_quoted(text):
    assert write_yaml({"a": text, text: [text]}).count(f"'{text}'") == 3


def test_files_are_split_by_section_and_stage(tmp_path):
    document = {
        "connections": [LAKE],
        "dataflows": [
            flow("a", stage="bronze"),
            flow("b"),
            flow("c", stage="Bronze"),
            flow("d", stage="up & away .."),
            flow("e", stage="connections"),
            flow("f", stage="bronze"),
            flow("g", stage=".hidden"),
        ],
        "schema_hints": [
            {
                "connection_name": "lake",
                "table_name": "a",
                "hints": [{"column_name": "id", "data_type": "int"}],
            }
        ],
    }
    files = turned(tmp_path, "json", document, layout="split")
    held = {
        name: [one["name"] for one in json.loads(content).get("dataflows", [])]
        for name, content in files.items()
    }
    assert held == snapshot(
        {
            "connections.json": [],
            "schema_hints.json": [],
            "bronze.json": ["a", "f"],
            "dataflows.json": ["b"],
            "Bronze_2.json": ["c"],
            "up_away_.json": ["d"],
            "connections_2.json": ["e"],
            "hidden.json": ["g"],
        }
    )
    for name, content in files.items():
        put(tmp_path, content.decode(), f"read/{name}")
    there = load_metadata("read", project_dir=str(tmp_path))
    assert {one.name for one in there.dataflows} == set("abcdefg")


def test_a_folder_of_several_forms_becomes_one_file(tmp_path):
    save(tmp_path / "in/a.xlsx")
    put(tmp_path, {"dataflows": [{**flow("x"), "name": "x"}]}, "in/b.json")
    put(tmp_path, "# about\ndataflows:\n  - name: y # why\n", "in/c.yaml")
    done = convert("in", "out.yaml", to="yaml", project_dir=str(tmp_path))
    assert done.counts == {"connections": 2, "dataflows": 3, "schema_hints": 0}
    assert done.notes == ["comments are not carried over"]
    write(done)
    assert (tmp_path / "out.yaml").exists()


def test_what_stands_beside_the_sections_comes_along(tmp_path):
    document = {
        "$schema": "s.json",
        "extensions": {"team": "x"},
        "metadata": {"connections": [LAKE]},
    }
    ((_, content),) = turned(tmp_path, "yaml", document).items()
    assert yaml.safe_load(content) == {
        "$schema": "s.json",
        "extensions": {"team": "x"},
        "connections": [LAKE],
    }
    assert refused(tmp_path, "excel", document) == snapshot(
        ["metadata: extensions: a workbook has no place for extensions of a whole file."]
    )


# --- what can not be held -----------------------------------------------------------------------


def test_secrets_stay_references(tmp_path):
    """W72: the framework crashes on a workbook of connections with secrets_ref."""
    secret = {
        "name": "shop",
        "format": "sql",
        "configure": {"database_type": "sqlite", "password": "SHOP_PASSWORD"},
        "secrets_ref": {"env": ["password"]},
    }
    ((_, content),) = turned(tmp_path, "excel", {"connections": [secret]}).items()
    (row,) = read_workbook(content, "x.xlsx").content["connections"]
    assert row == secret


def test_what_a_workbook_can_not_hold_is_named_and_nothing_is_written(tmp_path):
    document = {
        "connections": [{**LAKE, "colour": "red"}, {**LAKE, "name": "x", "is_active": "false"}],
        "dataflows": [
            flow("long", description="x" * 32_768),
            flow("escaped", description="\x01" * 5_000),
            {**flow("inline"), "source": {"connection": LAKE, "table": "t"}},
            flow("number", group_number="1"),
            {**flow("deep"), "source": {"connection_name": "lake", "owner": "x"}},
            {**flow("list"), "destination": ["lake"]},
        ],
        "schema_hints": [
            {"connection_name": "lake", "table_name": "a", "hints": []},
            {
                "connection_name": "lake",
                "table_name": "b",
                "extensions": {"a": 1},
                "hints": [{"column_name": "id", "data_type": "int", "unit": "cm"}],
            },
        ],
    }
    assert refused(tmp_path, "excel", document) == snapshot(
        [
            "m.json:1: connection 'lake', colour: a workbook has no place for this in the sheet connections.",
            "m.json:1: dataflow 'long', description: 32,768 characters do not fit into a cell of a workbook, 32,767 do.",
            "m.json:1: dataflow 'escaped', description: 35,000 characters do not fit into a cell of a workbook, 32,767 do.",
            "m.json:1: dataflow 'inline', source.connection: a workbook can't hold an inline connection; move it to connections and name it.",
            "m.json:1: dataflow 'deep', source.owner: a workbook has no place for this in the sheet dataflows.",
            "m.json:1: dataflow 'list', destination: a workbook has no place for this in the sheet dataflows.",
            "m.json:1: schema_hints 'a', hints: a sheet has a row for each hint; without any nothing is left.",
            "m.json:1: schema_hints 'b', extensions: a workbook has no place for this in a table's schema hints.",
            "m.json:1: schema_hints 'b', hints[0].unit: a workbook has no place for this in the sheet schema_hints.",
        ]
    )
    assert not (tmp_path / "out").exists()


def test_what_only_comes_back_different_is_named_too(tmp_path):
    document = {
        "connections": [{**LAKE, "is_active": "false"}],
        "dataflows": [flow("number", group_number="1")],
    }
    assert refused(tmp_path, "excel", document) == snapshot(
        [
            "m.json:1: connection 'lake', is_active: a workbook can't hold this as it is.",
            "m.json:1: dataflow 'number', group_number: a workbook can't hold this as it is.",
        ]
    )


def test_numbers_and_text_that_no_file_can_hold_are_named(tmp_path):
    put(tmp_path, "connections:\n  - {name: a, configure: {x: .inf, y: .nan}}\n", "m.yaml")
    for to in ("json", "excel"):
        with pytest.raises(MetadataError, match="not finite"):
            convert("m.yaml", "out", to=to, project_dir=str(tmp_path))
    done = convert("m.yaml", "out", to="yaml", project_dir=str(tmp_path))
    assert same(
        yaml.safe_load(*done.files.values())["connections"][0]["configure"]["x"], float("inf")
    )
    for to in ("json", "yaml", "excel"):
        (problem,) = refused(tmp_path, to, {"connections": [{**LAKE, "catalog": "\ud800"}]})
        assert "half of a surrogate pair" in problem


def test_what_can_not_be_read_is_not_converted(tmp_path):
    put(tmp_path, "connections: [", "in/a.yaml")
    save(tmp_path / "in/b.xlsx", connections=[["name", "is_active"], ["x", "maybe"]])
    put(tmp_path, {"connection": [LAKE]}, "in/c.json")
    with pytest.raises(MetadataError) as caught:
        convert("in", "out", to="json", project_dir=str(tmp_path))
    assert [str(problem) for problem in caught.value.problems] == snapshot(
        [
            "in/a.yaml:2: broken YAML: while parsing a flow node did not find expected node content.",
            "in/c.json:1: connection: unknown key 'connection'. Did you mean 'connections'?",
            "in/c.json: holds none of the sections connections, dataflows and schema_hints.",
            "in/b.xlsx, sheet connections, row 2, column is_active: connection 'x', is_active: expected true or false, got text 'maybe'.",
        ]
    )


def test_files_that_differ_in_what_stands_beside_the_sections_are_refused(tmp_path):
    put(tmp_path, {"extensions": {"team": "y"}, "connections": []}, "in/a.json")
    put(tmp_path, {"extensions": {"team": "x"}, "connections": []}, "in/b.json")
    with pytest.raises(MetadataError, match="other files have another extensions"):
        convert("in", "out", to="json", project_dir=str(tmp_path))


# --- where it goes ------------------------------------------------------------------------------


def test_files_that_are_there_are_replaced_only_when_asked(tmp_path):
    put(tmp_path, {"connections": [LAKE]})
    put(tmp_path, "mine", "out.yaml")
    done = convert("m.json", "out.yaml", to="yaml", project_dir=str(tmp_path))
    with pytest.raises(
        SettingsError, match=re.escape("out.yaml. Give another place, or --overwrite")
    ):
        write(done)
    assert (tmp_path / "out.yaml").read_text() == "mine"
    write(done, overwrite=True)
    assert yaml.safe_load((tmp_path / "out.yaml").read_text()) == {"connections": [LAKE]}


def test_a_folder_with_other_metadata_is_refused(tmp_path):
    """It would be read as a whole, and every entry be there twice."""
    put(tmp_path, {"connections": [LAKE]}, "m/a.json")
    with pytest.raises(SettingsError, match=r"holds other metadata: a\.json"):
        convert("m", "m", to="yaml", layout="split", project_dir=str(tmp_path))
    done = convert("m", "m/b.yaml", to="yaml", project_dir=str(tmp_path))
    assert done.notes == ["the folder also holds a.json: read as a whole, it has both"]


@pytest.mark.parametrize(
    ("to", "name"), [("json", "o.json"), ("yaml", "o.yaml"), ("excel", "o.yaml")]
)
def test_overlays_come_along_as_text(tmp_path, to, name):
    patch = {
        "match": {"type": "connection", "where": {"name": "lake"}},
        "patch": {"configure": {"base_path": None}},
    }
    overlay = {"patches": [patch], "connections": [{"format": "csv", "name": "x"}]}
    put(tmp_path, {"connections": [LAKE]}, "m/a.json")
    put(tmp_path, overlay, "m/environments/dev/o.json")
    put(tmp_path, overlay, "m/environments/prod.json")
    write(convert("m", "out", to=to, layout="split", project_dir=str(tmp_path)))
    for path in (f"dev/{name}", f"prod/{name.replace('o.', 'prod.')}"):
        written = tmp_path / "out/environments" / path
        assert yaml.safe_load(written.read_text()) == overlay
    for environment in ("dev", "prod", None):
        one, other = (
            load_metadata(folder, project_dir=str(tmp_path), environment=environment)
            for folder in ("m", "out")
        )
        assert one.connections == other.connections


def test_overlays_beside_what_is_written_stay_where_they_are(tmp_path):
    put(tmp_path, {"connections": [LAKE]}, "m/a.json")
    put(tmp_path, {"connections": [LAKE]}, "m/environments/dev/o.yaml")
    done = convert("m", "m/all.xlsx", to="excel", project_dir=str(tmp_path))
    assert [uri.rpartition("/")[2] for uri in done.files] == ["all.xlsx"]
    assert "the overlays in environments stay as they are" in done.notes
