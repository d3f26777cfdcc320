"""The format's generic coercions, as annotated types that the models use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, StringConstraints
from pydantic_core import PydanticCustomError

Name = Annotated[str, StringConstraints(min_length=1)]
TrimmedName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def to_list(value: Any) -> Any:
    """Return a list field as a tuple: comma text, JSON array text, a scalar, a list.

    >>> to_list("id, line_no"), to_list('["a,b"]'), to_list(5)
    (('id', 'line_no'), ('a,b',), (5,))
    """
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return tuple(cast("list[Any]", value))
    if isinstance(value, str):
        return _list_from_text(value.strip())
    return (value,)


def _list_from_text(text: str) -> tuple[Any, ...]:
    if not text.startswith(("[", "{")):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        parsed = json.loads(text)
    except ValueError:
        message = "expected a list, or text that is a JSON array; this text is broken JSON"
        raise PydanticCustomError("broken_json", message) from None
    return tuple(cast("list[Any]", parsed)) if isinstance(parsed, list) else (parsed,)


def to_object(value: Any) -> Any:
    """Return a mapping field: a mapping as it is, JSON object text parsed, blank as empty."""
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        parsed = json.loads(value)
    except ValueError:
        message = "expected a mapping, or text that is a JSON object; this text is broken JSON"
        raise PydanticCustomError("broken_json", message) from None
    if not isinstance(parsed, dict):
        kind = type(parsed).__name__
        message = "expected a JSON object, this text is a JSON {kind}"
        raise PydanticCustomError("not_an_object", message, {"kind": kind})
    return cast("Any", parsed)


def object_or_none(value: Any) -> dict[str, Any] | None:
    """Return a mapping field as `to_object` does, None where it is broken."""
    try:
        parsed = to_object(value)
    except PydanticCustomError:
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None


def to_secrets_ref(value: Any) -> Any:
    """Return ``secrets_ref`` as a mapping of source to a tuple of configure fields."""
    mapping = to_object(value)
    if not isinstance(mapping, Mapping):
        return mapping
    fields = cast("Mapping[str, Any]", mapping)
    return {source: to_list(names) for source, names in fields.items()} or None


def to_columns(value: Any) -> Any:
    """Return partition columns with each plain name as a mapping."""
    return tuple(
        {"column": item.strip()} if isinstance(item, str) else item for item in to_list(value)
    )


def lower(value: Any) -> Any:
    """Return text trimmed and in lower case; anything else as it is."""
    return value.strip().lower() if isinstance(value, str) else value


def blank_to_none(value: Any) -> Any:
    """Return text trimmed, and None when nothing is left."""
    return (value.strip() or None) if isinstance(value, str) else value


def digits_to_int(value: Any) -> Any:
    """Return digit text as a number; the format allows both for precision and scale."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value)
    return value


def has_unit(value: Any) -> Any:
    """Refuse an amount of time without a unit."""
    if isinstance(value, (int, float, str)):
        message = "{value} has no unit, write a mapping such as days: 3"
        raise PydanticCustomError("no_unit", message, {"value": str(value)})
    return value


def date_to_text(value: Any) -> Any:
    """Return a date or time that a parser made of text as ISO text."""
    return value.isoformat() if isinstance(value, date) else value


Names = Annotated[tuple[Name, ...], BeforeValidator(to_list)]
Listed = BeforeValidator(to_list)
AsObject = BeforeValidator(to_object)
Lowered = BeforeValidator(lower)
BlankIsNone = BeforeValidator(blank_to_none)
Digits = BeforeValidator(digits_to_int)
IsoText = BeforeValidator(date_to_text)
Anything = Annotated[dict[str, Any], AsObject]
