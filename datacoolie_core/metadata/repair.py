"""Entries without their broken parts, so that all other rules can still be checked."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError

from datacoolie_core.metadata.coercions import to_object
from datacoolie_core.metadata.models import Connection

if TYPE_CHECKING:
    from collections.abc import Iterable

Loc = tuple[int | str, ...]
UNKNOWN = Connection.model_construct(name="?", connection_id="?", connection_type="", format="")
"""Stands for a connection that can't be told; rules about connections pass over it."""

_REQUIRED: dict[str, Any] = {"connection": UNKNOWN, "connection_name": UNKNOWN, "table": "?"}
_ROUNDS = 4
_GONE = object()


def without(raw: dict[str, Any], locs: Iterable[Loc]) -> dict[str, Any]:
    """Return a copy of an entry without the values at these places."""
    entry = _copy(raw)
    for loc in locs:
        _mark(entry, loc)
    return cast("dict[str, Any]", _pruned(entry))


def best_effort(
    model: type[BaseModel], raw: dict[str, Any], error: ValidationError, context: dict[str, Any]
) -> Any:
    """Return the model of what is right in a broken entry, or None if too little is."""
    entry = raw
    for _ in range(_ROUNDS):
        entry = without(entry, (item["loc"] for item in error.errors()))
        for item in error.errors():
            _fill_required(entry, item["loc"])
        try:
            return model.model_validate(entry, context=context)
        except ValidationError as again:
            error = again
    return None


def _copy(value: Any) -> Any:
    # models inside an entry are frozen and shared; only containers are copied
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_copy(item) for item in cast("list[Any]", value)]
    return value if isinstance(value, BaseModel) else copy.copy(value)


def _mark(entry: dict[str, Any], loc: Loc) -> None:
    here: Any = entry
    last: tuple[Any, Any] | None = None
    for step in loc:
        here = _opened(here, last)
        if not _has(here, step):
            continue  # the tag of a union, or a list that was a single value
        last = (here, step)
        here = here[step]
        if isinstance(step, int):
            break  # a list item without its broken part would be broken in another way
    if last is not None:
        last[0][last[1]] = _GONE


def _opened(here: Any, last: tuple[Any, Any] | None) -> Any:
    if not isinstance(here, str) or last is None or not here.lstrip().startswith("{"):
        return here
    opened = to_object(here)
    last[0][last[1]] = opened
    return opened


def _has(container: Any, step: int | str) -> bool:
    if isinstance(container, dict):
        return step in container
    if isinstance(container, list) and isinstance(step, int):
        return step < len(cast("list[Any]", container))
    return False


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _pruned(item) for key, item in items if item is not _GONE}
    if isinstance(value, list):
        return [_pruned(item) for item in cast("list[Any]", value) if item is not _GONE]
    return value


def _fill_required(entry: dict[str, Any], loc: Loc) -> None:
    if loc[:1] not in (("source",), ("destination",)):
        return
    end = entry.setdefault(str(loc[0]), {})
    if len(loc) == 1:
        end.update(connection=UNKNOWN, table="?")
    elif loc[1] in _REQUIRED and not isinstance(end, str):
        key = "connection" if loc[1] == "connection_name" else str(loc[1])
        end.setdefault(key, _REQUIRED[key])
