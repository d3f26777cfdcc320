"""Entries as they read best, and in the one form in which two of them can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

from datacoolie_core.metadata.base import OpenModel
from datacoolie_core.metadata.coercions import digits_to_int, object_or_none, to_list
from datacoolie_core.metadata.columns import fields_of, members_of
from datacoolie_core.metadata.models import (
    Connection,
    Dataflow,
    PartitionColumn,
    SchemaHintGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from datacoolie_core.metadata.sections import Section

MODELS: dict[Section, type[BaseModel]] = {
    "connections": Connection,
    "dataflows": Dataflow,
    "schema_hints": SchemaHintGroup,
}
_DIGITS = ("precision", "scale")


def arranged(value: Any, annotation: Any) -> Any:
    """Return a value with its keys in the order of the model, JSON text opened.

    Nothing is left out: what the model does not know stays where it was, after what it knows.

    Args:
        value: As it was written.
        annotation: The type that the model gives it.
    """
    model, item = _shape(annotation)
    opened = _opened(value) if model is not None or _is_free(annotation) else value
    if model is not None and isinstance(opened, dict):
        mapping = cast("dict[str, Any]", opened)
        known = {name: field.annotation for name, field in fields_of(model) if name in mapping}
        first = [name for name in known if name != "extensions"]
        rest = [key for key in mapping if key not in known]
        order = [*first, *rest, *(["extensions"] if "extensions" in known else [])]
        return {key: arranged(mapping[key], known.get(key)) for key in order}
    if item is not None and isinstance(value, list):
        return [arranged(one, item) for one in cast("list[Any]", value)]
    return opened


def comparable(value: Any, annotation: Any) -> Any:
    """Return what a value means: nulls left out, JSON text opened, lists as lists.

    Args:
        value: As it was written.
        annotation: The type that the model gives it.
    """
    model, item = _shape(annotation)
    if model is not None:
        opened = _opened(value)
        if model is PartitionColumn and isinstance(value, str):
            return {"column": value.strip()}
        if isinstance(opened, dict):
            return dict(_comparable_parts(cast("dict[str, Any]", opened), model))
        return opened
    if item is not None:
        return [comparable(one, item) for one in _listed(value)]
    if _is_free(annotation):
        return _free(_opened(value), annotation)
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike in their types too: 1, 1.0 and true are three things."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(items) == len(others) and all(map(same, items, others))
    left, right = cast("object", one), cast("object", other)
    return type(left) is type(right) and repr(left) == repr(right)


def _comparable_parts(mapping: dict[str, Any], model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    known = dict(fields_of(model))
    for key, value in mapping.items():
        field = known.get(key)
        if field is None:
            if value is not None or issubclass(model, OpenModel):
                yield key, value
        elif value is not None:
            typed = digits_to_int(value) if key in _DIGITS else value
            meant = comparable(typed, field.annotation)
            if meant not in ({}, []) or not _is_empty_by_default(field):
                yield key, meant


def _is_empty_by_default(field: FieldInfo) -> bool:
    return field.default == () or field.default_factory is not None


def _free(value: Any, annotation: Any) -> Any:
    inner = next(
        (get_args(one)[1] for one in members_of(annotation) if get_origin(one) is dict), None
    )
    if isinstance(value, dict) and _shape(inner)[1] is not None:
        return {key: comparable(one, inner) for key, one in cast("dict[str, Any]", value).items()}
    return cast("Any", value)


def _shape(annotation: Any) -> tuple[type[BaseModel] | None, Any]:
    """Return the model of a mapping, or the type of a list's items."""
    if annotation is None:
        return None, None
    for one in members_of(annotation):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one, None
        if get_origin(one) is tuple:
            return None, get_args(one)[0]
    return None, None


def _is_free(annotation: Any) -> bool:
    return annotation is not None and any(get_origin(one) is dict for one in members_of(annotation))


def _opened(value: Any) -> Any:
    opened = cast("Any", object_or_none(value)) if isinstance(value, str) else None
    return value if opened is None else opened


def _listed(value: Any) -> list[Any]:
    try:
        return list(to_list(value))
    except PydanticCustomError:
        return [value]
