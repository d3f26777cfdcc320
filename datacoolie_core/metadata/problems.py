"""Validation errors of the models, said in the words of the metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.base import keys_of
from datacoolie_core.metadata.options import home_of


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong within one entry.

    Attributes:
        field: The path of the field inside the entry.
        message: What is wrong, a phrase without a full stop.
        suggestion: The name probably meant.
        severity: A warning does not stop a run.
        kind: ``unknown_key`` for what ``strict: false`` forgives.
    """

    field: str | None
    message: str
    suggestion: str | None = None
    severity: Literal["error", "warning"] = "error"
    kind: str = "error"


SYNONYMS = {
    "lookback": "backward",
    "look_back": "backward",
    "primary_key": "merge_keys",
    "primary_keys": "merge_keys",
    "unique_key": "merge_keys",
    "keys": "merge_keys",
    "cursor": "watermark_columns",
    "incremental_column": "watermark_columns",
    "where": "filter_expression",
    "mode": "load_type",
    "write_mode": "load_type",
    "load_mode": "load_type",
    "enabled": "is_active",
    "active": "is_active",
    "type": "connection_type",
    "path": "configure.base_path",
    "base_path": "configure.base_path",
    "sql": "query",
    "id": "dataflow_id",
}


_LOOK_BACKS = ("lookback", "look_back")


@dataclass(frozen=True)
class _Place:
    path: str
    owner: type[BaseModel] | None
    union: bool


def findings(error: ValidationError, model: type[BaseModel]) -> list[Finding]:
    """Return what a validation error says, one finding for each field.

    Args:
        error: What pydantic raised for one entry.
        model: The model that was validated.
    """
    placed = [
        (_locate(model, item["loc"]), cast("Mapping[str, Any]", item)) for item in error.errors()
    ]
    deeper = {place.path for place, _ in placed if not place.union}
    result: dict[str, Finding] = {}
    for place, item in placed:
        if place.union and any(_inside(path, place.path) for path in deeper):
            continue
        found = _finding(place, item, private=_is_private(model, place.path))
        before = result.get(place.path)
        if place.union and before is not None:
            found = _either(before, found)
        result[place.path if place.union else f"{place.path} {found.kind}"] = found
    return list(result.values())


def _inside(path: str, outer: str) -> bool:
    return path.startswith((f"{outer}.", f"{outer}["))


def _either(first: Finding, second: Finding) -> Finding:
    # a union reports each of its members: "expected text, got X" and "expected a number, got X"
    left, _, got = first.message.partition(", got ")
    right = second.message.partition(", got ")[0].removeprefix("expected ")
    if right in left:
        return first
    return Finding(first.field, f"{left} or {right}, got {got}")


def _locate(model: type[BaseModel], loc: tuple[int | str, ...]) -> _Place:
    here: Any = model
    owner: type[BaseModel] | None = None
    path = ""
    union = False
    for step in loc:
        members = _members(here)
        union = len(members) > 1
        if union:
            here = next((m for m in members if _tag(m) == step), None)
            continue
        here = members[0] if members else None
        owner = here if isinstance(here, type) and issubclass(here, BaseModel) else None
        if step != "[key]":
            path += f"[{step}]" if isinstance(step, int) else f".{step}"
        here = _into(here, step)
    return _Place(path.lstrip("."), owner, union)


def _members(annotation: Any) -> list[Any]:
    annotation = _bare(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return [_bare(item) for item in get_args(annotation) if item is not type(None)]
    return [annotation]


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _tag(annotation: Any) -> str:
    origin = get_origin(annotation)
    return "literal" if origin is Literal else getattr(origin or annotation, "__name__", "")


def _into(annotation: Any, step: int | str) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            alias = field.validation_alias
            if name == step or (isinstance(alias, AliasChoices) and step in alias.choices):
                return field.annotation
        return None
    args = get_args(annotation)
    return args[-1 if get_origin(annotation) is dict else 0] if args else None


def _finding(place: _Place, item: Mapping[str, Any], *, private: bool) -> Finding:
    kind: str = item["type"]
    if kind == "extra_forbidden":
        return _unknown_key(place)
    if kind == "literal_error":
        return _not_one_of(place, item)
    if kind == "unknown_connection":
        name = item["ctx"]["name"]
        suggestion = nearest(name, item["ctx"]["known"])
        return Finding(place.path, item["msg"], suggestion, kind=kind)
    if kind == "missing" and place.path.endswith(".connection"):
        return Finding(f"{place.path}_name", "it is required")
    if kind in _EXPECTED:
        hint = _HINTS.get((kind, item["input"].__class__), "")
        got = _show(item["input"], secret=private)
        return Finding(place.path, f"expected {_EXPECTED[kind]}, got {got}{hint}")
    return Finding(place.path or None, _say(item), kind=kind)


def _unknown_key(place: _Place) -> Finding:
    prefix, _, key = place.path.rpartition(".")
    if key == "connection_name":
        return Finding(place.path, "give connection_name or connection, not both")
    if key.lower() in _LOOK_BACKS:
        message = f"unknown key '{key}'; a look-back is source.configure.backward: {{days: 3}}"
        return Finding(place.path, message, kind="unknown_key")
    suggestion = suggest_key(key, place.owner)
    home = home_of(key)
    if home is not None and suggestion != key and not _same_place(prefix, home):
        message = f"unknown key '{key}' here; it belongs at {home}"
        return Finding(place.path, message, kind="unknown_key")
    return Finding(place.path, f"unknown key '{key}'", suggestion, kind="unknown_key")


def _same_place(prefix: str, home: str) -> bool:
    return home.rpartition(".")[0] == prefix


@lru_cache(maxsize=1024)
def suggest_key(key: str, owner: type[BaseModel] | None) -> str | None:
    """Return the key of a model that an unknown one is probably meant to be."""
    if owner is None:
        return None
    known = keys_of(owner)
    other = SYNONYMS.get(key.lower())
    if other is not None and other.partition(".")[0] in known:
        return other
    return nearest(key, known)


def _not_one_of(place: _Place, item: Mapping[str, Any]) -> Finding:
    expected = str(item["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
    given = item["input"]
    options = expected.split(", ")
    suggestion = nearest(given, options) if isinstance(given, str) else None
    message = f"expected one of {expected}, got {_show(given, secret=False)}"
    return Finding(place.path, message, suggestion)


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
}

_HINTS: dict[tuple[str, type], str] = {
    ("bool_type", str): "; write it without quotes",
    ("int_type", str): "; write it without quotes",
    ("float_type", str): "; write it without quotes",
    ("string_type", bool): "; put it in quotes",
    ("string_type", int): "; put it in quotes",
    ("string_type", float): "; put it in quotes",
}

_SAYINGS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "it is required",
    "string_too_short": lambda _: "it may not be blank",
    "string_too_long": lambda ctx: f"it may have at most {ctx['max_length']} characters",
    "too_short": lambda _: "it needs at least one entry",
    "greater_than_equal": lambda ctx: f"it must be at least {ctx['ge']}",
    "greater_than": lambda ctx: f"it must be more than {ctx['gt']}",
    "less_than_equal": lambda ctx: f"it must be at most {ctx['le']}",
}


def _say(item: Mapping[str, Any]) -> str:
    saying = _SAYINGS.get(item["type"])
    return saying(item.get("ctx", {})) if saying else str(item["msg"])


def _is_private(model: type[BaseModel], path: str) -> bool:
    # a connection's configure can hold what must not be shown
    inside = path.startswith("configure.") and "connection_type" in model.model_fields
    return inside or ".connection" in path


def _show(value: Any, *, secret: bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    kinds = {str: "text", int: "the number", float: "the number"}
    if type(value) in kinds:
        kind = "text" if secret and isinstance(value, str) else kinds[type(value)]
        return kind.replace("the", "a") if secret else f"{kind} {_short(value)}"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"


def _short(value: Any) -> str:
    if not isinstance(value, str):
        return str(value)
    return f"'{value[:57]}...'" if len(value) > 60 else f"'{value}'"


def paths(found: Iterable[Finding]) -> set[str]:
    """Return the fields that findings are about."""
    return {item.field or "" for item in found}
