"""The JSON Schema says what the loader says, of every key with every kind of value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError
from typer.testing import CliRunner

from datacoolie_core.cli.main import app
from datacoolie_core.metadata import connection, models, options, transform
from datacoolie_core.metadata.base import keys_of
from datacoolie_core.metadata.json_schema import metadata_schema

ROOT = Path(__file__).parents[2]
SCHEMA = metadata_schema()
LAKE = models.Connection.model_validate({"name": "lake", "format": "delta"})
END = {"connection_name": "lake", "table": "t"}
SMALLEST = {
    "Connection": {"name": "c"},
    "Dataflow": {"name": "f", "source": END, "destination": END},
    "SchemaHintGroup": {"table_name": "t", "connection_name": "c"},
    "Source": {"connection_name": "c"},
    "Destination": END,
    "SchemaHint": {"column_name": "a", "data_type": "int"},
    "AdditionalColumn": {"column": "a", "expression": "b"},
    "ValueRule": {"operation": "trim", "columns": ["a"]},
    "HashColumn": {"target_column": "a", "columns": ["b"]},
    "MaskingRule": {"method": "redact", "columns": ["a"]},
    "PartitionColumn": {"column": "a"},
    "ReplayOptions": {"start": "2024-01-01"},
    "CronOptions": {"cron": "* * * * *"},
}
VALUES = [
    None, "", " ", "x", "a,b", 5, 0, -1, 1.5, True, [], ["a"], [5], [{}], {"a": 1}, {}, {"a": "b"},
    "append", " APPEND ", "merge_upsert", "delta", "12", "batch", "keep", "days",
]  # fmt: skip


def model_of(name: str) -> type[BaseModel]:
    places = (models, transform, options, connection)
    return next(getattr(one, name) for one in places if hasattr(one, name))


def loads(model: type[BaseModel], raw: dict[str, object]) -> bool:
    try:
        model.model_validate(raw, context={"find_connection": find})
    except ValidationError:
        return False
    return True


def find(name: str) -> models.Connection:
    if not name.strip():
        raise PydanticCustomError("unknown_connection", "no connection")
    return LAKE


def is_told_later(key: str, value: object) -> bool:
    """Whether something else tells: a name by the entry, blank lists and mappings by their text."""
    blank = value is None or (isinstance(value, str) and not value.strip())
    return blank and key in ("name", "columns", "source", "destination")


@pytest.mark.parametrize("name", sorted(SCHEMA["$defs"]))
def test_schema_and_loader_agree_on_every_key(name):
    model, smallest = model_of(name), SMALLEST.get(name, {})
    validator = Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"})
    assert validator.is_valid(smallest)
    keys = [one for one in sorted(keys_of(model)) if one != "connection"]
    for key in [*keys, "unknown_key"]:
        for value in VALUES:
            raw = {**smallest, key: value}
            if not is_told_later(key, value):
                assert validator.is_valid(raw) == loads(model, raw), (key, value)
    for key in smallest.keys() - {"name"}:  # a dataflow without one is refused as an entry
        raw = {one: value for one, value in smallest.items() if one != key}
        assert validator.is_valid(raw) == loads(model, raw), key


def test_the_schema_is_one():
    for overlay in (False, True):
        Draft202012Validator.check_schema(metadata_schema(overlay=overlay))


def documents() -> list[Path]:
    found = [*ROOT.glob("examples/**/metadata/*.yaml")]
    return sorted([*found, *ROOT.glob("datacoolie_core/templates/**/metadata/*.yaml")])


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_the_files_of_the_examples_fit_and_name_the_schema(path):
    text = path.read_text("utf-8")
    Draft202012Validator(SCHEMA).validate(yaml.safe_load(text))
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    named = (path.parent / first.partition("=")[2]).resolve()
    assert named.exists() or named.name == "metadata.schema.json"


def test_an_overlay_may_have_patches_and_metadata_may_not():
    patch = {"match": {"type": "connection", "where": {"name": "lake"}}, "patch": {"configure": {}}}
    document = {"patches": [patch]}
    assert not Draft202012Validator(SCHEMA).is_valid(document)
    validator = Draft202012Validator(metadata_schema(overlay=True))
    assert validator.is_valid(document)
    assert not validator.is_valid({"patches": [{**patch, "path": 1}]})


def test_every_key_is_explained():
    silent = [
        f"{name}.{key}"
        for name, one in SCHEMA["$defs"].items()
        for key, made in one["properties"].items()
        if not made.get("description")
    ]
    assert silent == []


def test_the_command_prints_or_writes_it(tmp_path):
    printed = CliRunner().invoke(app, ["schema"])
    assert json.loads(printed.stdout) == SCHEMA
    path = tmp_path / "s.json"
    assert CliRunner().invoke(app, ["schema", "--overlay", "-o", str(path)]).exit_code == 0
    assert json.loads(path.read_text()) == metadata_schema(overlay=True)


def test_a_new_project_has_the_schema_that_its_files_name(tmp_path):
    assert CliRunner().invoke(app, ["init", str(tmp_path / "p")]).exit_code == 0
    assert json.loads((tmp_path / "p" / "metadata.schema.json").read_text()) == SCHEMA
    assert CliRunner().invoke(app, ["check", "--project-dir", str(tmp_path / "p")]).exit_code == 0
