"""What entries of a scope say about each other: names, ids, and who waits for whom."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.problems import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datacoolie_core.metadata.models import Connection, Dataflow
    from datacoolie_core.metadata.sections import Loaded


class Registry:
    """Connections by name and id, for the dataflows that name them."""

    def __init__(self, loaded: Iterable[Loaded[Connection]]) -> None:
        self._by_name: dict[str, list[Loaded[Connection]]] = {}
        self._by_id: dict[str, Loaded[Connection]] = {}
        for item in loaded:
            self._by_name.setdefault(item.entry.name, []).append(item)
            self._by_id.setdefault(item.entry.identity, item)

    def find(self, name: str) -> Connection:
        """Return the connection of a name, else of an id."""
        found = self._by_name.get(name.strip()) or []
        if not found and name in self._by_id:
            found = [self._by_id[name]]
        context: dict[str, Any] = {"name": name, "known": list(self._by_name)}
        if not found:
            raise PydanticCustomError("unknown_connection", "no connection '{name}'", context)
        if len(found) > 1:
            places = " and ".join(dict.fromkeys(item.entry.source for item in found))
            message = "'{name}' is ambiguous, connections in {places} have that name; give the id"
            raise PydanticCustomError(
                "ambiguous_connection", message, {"name": name, "places": places}
            )
        if found[0].broken or found[0].model is None:
            why = "; ".join(_phrase(item) for item in found[0].findings)
            message = "the connection '{name}' is invalid: {why}"
            raise PydanticCustomError("echo", message, {"name": name, "why": why})
        return found[0].model


def _phrase(finding: Finding) -> str:
    return f"{finding.field}: {finding.message}" if finding.field else finding.message


def check_connections(loaded: Sequence[Loaded[Connection]]) -> None:
    """Find connections that share an id."""
    first: dict[str, Loaded[Connection]] = {}
    for item in loaded:
        other = first.setdefault(item.entry.identity, item)
        if other is not item:
            _clash(item, other, "connection_id", _same_connection(item, other))


def _same_connection(item: Loaded[Connection], other: Loaded[Connection]) -> str:
    place = other.entry.source
    if item.entry.text("connection_id"):
        return f"the id is also that of connection '{other.entry.name}' in {place}; ids are unique"
    return f"{place} has a connection of this name too; rename one, or give one a connection_id"


def check_dataflows(loaded: Sequence[Loaded[Dataflow]]) -> None:
    """Find dataflows that share an id or a name, and waits for unknown ones."""
    ids: dict[str, Loaded[Dataflow]] = {}
    labels: dict[str, Loaded[Dataflow]] = {}
    for item in loaded:
        other = ids.setdefault(item.entry.identity, item)
        namesake = labels.setdefault(item.entry.label, item)
        if other is not item:
            _clash(item, other, "dataflow_id", _same_dataflow(item, other))
        elif namesake is not item:
            place = namesake.entry.source
            message = f"{place} has a dataflow '{item.entry.label}' too; rename one of them"
            _clash(item, namesake, "name", message)
    _check_waits(loaded)


def _same_dataflow(item: Loaded[Dataflow], other: Loaded[Dataflow]) -> str:
    place = other.entry.source
    if item.entry.text("dataflow_id"):
        return f"the id is also that of dataflow '{other.entry.label}' in {place}; ids are unique"
    return f"{place} has a dataflow of this name too; give one of them a dataflow_id"


def _clash(item: Loaded[Any], other: Loaded[Any], field: str, message: str) -> None:
    item.findings.append(Finding(field, message))
    # said once, but neither of the two can be used
    other.findings.append(Finding(field, message, kind="echo"))


def _check_waits(loaded: Sequence[Loaded[Dataflow]]) -> None:
    known: dict[str, set[str]] = {}
    for item in loaded:
        for key in {item.entry.name, item.entry.label, item.entry.identity}:
            known.setdefault(key, set()).add(item.entry.identity)
    names = {name for item in loaded for name in (item.entry.name, item.entry.label)}

    @cache
    def suggest(name: str) -> str | None:
        return nearest(name, names)

    for item in loaded:
        if item.model is not None:
            item.findings.extend(_unknown_waits(item.model, known, suggest))


def _unknown_waits(
    flow: Dataflow, known: dict[str, set[str]], suggest: Callable[[str], str | None]
) -> Iterable[Finding]:
    for index, name in enumerate(flow.options.depends_on):
        field = f"configure.datacoolie.depends_on[{index}]"
        meant = known.get(name)
        if meant is None:
            yield Finding(field, f"no dataflow '{name}'", suggest(name))
        elif len(meant) > 1 and name != flow.dataflow_id:
            yield Finding(
                field, f"'{name}' names {len(meant)} dataflows; write stage/name or the id"
            )
