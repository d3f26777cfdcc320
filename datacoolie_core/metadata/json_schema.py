"""The format as JSON Schema, so that an editor completes, explains and checks metadata.

It is made of the models. It says what a document may look like; what only the whole of the metadata
tells (names that exist, SQL, load types of a format) is said by ``datacoolie check``.
"""

from __future__ import annotations

import json
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import AliasChoices, BaseModel, BeforeValidator, StringConstraints
from pydantic_core import PydanticUndefined

from datacoolie_core.metadata import coercions
from datacoolie_core.metadata.models import Connection, Dataflow, SchemaHintGroup

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ENTRIES = {"connections": Connection, "dataflows": Dataflow, "schema_hints": SchemaHintGroup}
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NULL = {"type": "null"}
_OBJECT_TEXT = {"type": "string", "pattern": r"^\s*(\{[\s\S]*)?$"}
_LIST_TEXT = {"type": "string", "pattern": r"^\s*([\[{][\s\S]*)?$"}

Schema = dict[str, Any]


def metadata_schema(*, overlay: bool = False) -> Schema:
    """Return the JSON Schema of a metadata document.

    Args:
        overlay: Whether it is one of an environment, which may have ``patches`` too.
    """
    definitions: Schema = {}
    document: Schema = {
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "metadata": {"$ref": "#"},
            **{name: _entries(name, model, definitions) for name, model in _ENTRIES.items()},
            "extensions": {"type": "object", "description": "Free for you; nothing reads it."},
        },
        "additionalProperties": False,
    }
    if overlay:
        document["properties"]["patches"] = _PATCHES
    title = "An environment's changes of DataCoolie metadata" if overlay else "DataCoolie metadata"
    return {"$schema": DIALECT, "title": title, **document, "$defs": definitions}


def schema_text(*, overlay: bool = False) -> str:
    """Return the schema as the text of a file; the argument is that of `metadata_schema`."""
    return json.dumps(metadata_schema(overlay=overlay), indent=2, ensure_ascii=False) + "\n"


_PATCHES: Schema = {
    "type": "array",
    "description": "Changes of entries that are there, in order.",
    "items": {
        "type": "object",
        "required": ["match", "patch"],
        "additionalProperties": False,
        "properties": {
            "match": {
                "type": "object",
                "required": ["type", "where"],
                "additionalProperties": False,
                "description": "Which entries.",
                "properties": {
                    "type": {"enum": ["connection", "dataflow", "schema_hint"]},
                    "where": {
                        "type": "object",
                        "description": "Field to the value that it has, or to a list of values.",
                    },
                    "extensions": {"type": "object"},
                },
            },
            "patch": {
                "type": "object",
                "description": "Mappings are merged, all else is replaced, null removes.",
            },
            "extensions": {"type": "object"},
        },
    },
}


def _entries(name: str, model: type[BaseModel], definitions: Schema) -> Schema:
    text = {"connections": "Places.", "dataflows": "Loads.", "schema_hints": "Types of tables."}
    return {"type": "array", "description": text[name], "items": _reference(model, definitions)}


def _reference(model: type[BaseModel], definitions: Schema) -> Schema:
    if model.__name__ not in definitions:
        definitions[model.__name__] = {}  # its own fields may lead back to it
        definitions[model.__name__] = _model(model, definitions)
    return {"$ref": f"#/$defs/{model.__name__}"}


def _model(model: type[BaseModel], definitions: Schema) -> Schema:
    properties: Schema = {}
    needed: list[Schema] = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        keys = [str(one) for one in alias.choices] if isinstance(alias, AliasChoices) else [name]
        made = _field(field, definitions)
        properties.update(dict.fromkeys(keys, made))
        if field.is_required():
            needed.append({"anyOf": [_given(key) for key in keys]})
    if model is Dataflow:
        needed.append({"anyOf": [_given(key) for key in ("name", "dataflow_id")]})
    found: Schema = {
        "type": "object",
        "description": (model.__doc__ or "").strip().split("\n")[0],
        "properties": properties,
        "additionalProperties": model.model_config.get("extra") == "allow",
    }
    return {**found, "allOf": needed} if needed else found


def _given(key: str) -> Schema:
    return {"required": [key], "properties": {key: {"not": _NULL}}}


def _field(field: FieldInfo, definitions: Schema) -> Schema:
    found = _typed(field.annotation, list(field.metadata), definitions)
    if field.validation_alias is not None:
        # a connection by its name; the other key may be null
        found = {"anyOf": [{"type": "string", "pattern": r"\S"}, found, _NULL]}
    if not field.is_required():
        found = _or_null(found)
    if field.description:
        found = {"description": " ".join(field.description.replace("``", "").split()), **found}
    default = field.default
    if default is not PydanticUndefined and isinstance(default, str | int | float | bool):
        found = {**found, "default": default} if default != "" else found
    return found


def _or_null(found: Schema) -> Schema:
    if _NULL in found.get("anyOf", ()):
        return found
    return (
        {"anyOf": [*found["anyOf"], _NULL]}
        if set(found) == {"anyOf"}
        else {"anyOf": [found, _NULL]}
    )


def _typed(annotation: Any, metadata: list[Any], definitions: Schema) -> Schema:
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [*metadata, *more]
    coerced = {one.func for one in metadata if isinstance(one, BeforeValidator)}
    found = _plain(annotation, definitions, case_matters=coercions.lower not in coerced)
    _constrain(found, metadata)
    return _coerced(found, coerced)


def _plain(annotation: Any, definitions: Schema, *, case_matters: bool = True) -> Schema:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        parts = [_typed(one, [], definitions) for one in arguments if one is not type(None)]
        if not case_matters:
            parts = [
                _plain(one, definitions, case_matters=False)
                for one in arguments
                if one is not type(None)
            ]
        nullable = type(None) in arguments
        if len(parts) == 1 and not nullable:
            return parts[0]
        return {"anyOf": [*parts, *([_NULL] if nullable else [])]}
    if origin is Literal:
        return _words([str(one) for one in arguments], case_matters=case_matters)
    if origin is tuple:
        return {"type": "array", "items": _typed(arguments[0], [], definitions)}
    if origin is dict:
        values = arguments[1]
        more: Any = True if values is Any else _typed(values, [], definitions)
        return {"type": "object", "additionalProperties": more}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _reference(annotation, definitions)
    kind = next((text for one, text in _SCALARS.items() if one is annotation), None)
    return {} if kind is None else {"type": kind}


def _words(words: list[str], *, case_matters: bool) -> Schema:
    if case_matters:
        return {"enum": words}
    either = ["".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in one) for one in words]
    return {
        "anyOf": [{"enum": words}, {"type": "string", "pattern": rf"^\s*({'|'.join(either)})\s*$"}]
    }


def _constrain(found: Schema, metadata: list[Any]) -> None:
    """Add bounds of numbers and lengths to the parts of a schema that they are about."""
    targets = [one for one in found.get("anyOf", [found]) if one != _NULL]
    for bounds in map(_bounds, metadata):
        for target in targets:
            target.update(bounds)
    for one in targets:
        if one.get("type") == "array" and "minLength" in one:
            one["minItems"] = one.pop("minLength")


def _bounds(constraint: Any) -> Schema:
    if isinstance(constraint, Ge):
        return {"minimum": constraint.ge}
    if isinstance(constraint, Gt):
        return {"exclusiveMinimum": constraint.gt}
    if isinstance(constraint, Le):
        return {"maximum": constraint.le}
    if isinstance(constraint, MaxLen):
        return {"maxLength": constraint.max_length}
    if isinstance(constraint, StringConstraints) and constraint.strip_whitespace:
        return {"pattern": r"\S"}
    if isinstance(constraint, MinLen | StringConstraints) and constraint.min_length:
        return {"minLength": constraint.min_length}
    return {}


def _coerced(found: Schema, coerced: set[Any]) -> Schema:
    """Return a schema that takes what the format takes beside the type itself."""
    if coerced & {coercions.to_list, coercions.to_columns}:
        item: Schema = found.get("items", {})
        texts = {"type": "string"} if item.get("type") == "string" else _LIST_TEXT
        if coercions.to_columns in coerced:
            found = {**found, "items": {"anyOf": [{"type": "string"}, item]}}
            texts = {"type": "string"}
        return {"anyOf": [found, texts, *([] if item.get("type") == "string" else [item])]}
    if coercions.to_object in coerced:
        return {"anyOf": [found, _OBJECT_TEXT]}
    if coercions.to_secrets_ref in coerced:
        names: Schema = {
            "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]
        }
        return {"anyOf": [{"type": "object", "additionalProperties": names}, _OBJECT_TEXT, _NULL]}
    if coercions.digits_to_int in coerced:
        return {"anyOf": [*found["anyOf"], {"type": "string", "pattern": r"^\s*[0-9]+\s*$"}]}
    return found
