"""Shared schema hints, handed to the dataflows that read their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pydantic_core import PydanticCustomError

from datacoolie_core.metadata.hint_types import HintTypeError, hint_dialect
from datacoolie_core.metadata.models import (
    Connection,
    Dataflow,
    SchemaHint,
    SchemaHintGroup,
    Source,
)
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.sections import Loaded
from datacoolie_core.metadata.transform_checks import check_hints

FindConnection = Callable[[str], Connection]
_Key = tuple[str, str]
_Group = Loaded[SchemaHintGroup]


def attach(
    groups: Sequence[_Group],
    flows: Iterable[Loaded[Dataflow]],
    find: FindConnection,
) -> None:
    """Give each dataflow without hints of its own the shared ones of its source table.

    Local hints win wholly. A connection with ``use_schema_hint: false`` gets none at all.
    """
    by_table: dict[_Key, list[_Group]] = {}
    for group in groups:
        connection = _connection(group, find)
        if group.model is not None and connection is not None:
            _check_types(group, group.model, connection)
            key = (connection.connection_id, group.model.table_name.casefold())
            by_table.setdefault(key, []).append(group)
    by_table = {key: _without_twins(found) for key, found in by_table.items()}
    for item in flows:
        if item.model is not None:
            item.model = _with_hints(item, item.model, by_table)


def _connection(group: _Group, find: FindConnection) -> Connection | None:
    name = group.entry.text("connection_id", "connection_name")
    field = "connection_name" if group.entry.text("connection_name") else "connection_id"
    if name is None:
        group.findings.append(Finding(None, "give connection_name or connection_id"))
        return None
    try:
        return find(name)
    except PydanticCustomError as error:
        group.findings.append(Finding(field, error.message(), kind="homeless"))
        return None


def _check_types(group: _Group, model: SchemaHintGroup, connection: Connection) -> None:
    try:
        dialect = hint_dialect(connection)
    except HintTypeError:
        return  # a problem of the connection
    group.findings.extend(check_hints(model.hints, dialect, "hints"))


def _without_twins(groups: Iterable[_Group]) -> list[_Group]:
    schemas: dict[str, _Group] = {}
    for group in groups:
        other = schemas.setdefault(_schema(group.model), group)
        if other is not group:
            message = f"{other.entry.source} has hints for this table too; put them in one group"
            group.findings.append(Finding("table_name", message))
    return list(schemas.values())


def _schema(group: SchemaHintGroup | None) -> str:
    return (group.schema_name or "").casefold() if group else ""


def _with_hints(
    item: Loaded[Dataflow], flow: Dataflow, by_table: dict[_Key, list[_Group]]
) -> Dataflow:
    if not flow.source.connection.configure.use_schema_hint:
        return _replaced(flow, ()) if flow.transform.schema_hints else flow
    if flow.transform.schema_hints or not flow.source.table:
        return flow
    key = (flow.source.connection.connection_id, flow.source.table.casefold())
    fitting = list(_fitting(by_table.get(key, ()), flow.source))
    if len(fitting) > 1:
        schemas = ", ".join(group.model.schema_name or "none" for group in fitting if group.model)
        message = f"there are schema hints for this table in several schemas ({schemas}); name one"
        item.findings.append(Finding("source.schema_name", message))
    elif fitting and fitting[0].broken:
        message = f"its schema hints in {fitting[0].entry.source} are invalid"
        item.findings.append(Finding("source.table", message, kind="echo"))
    elif fitting and fitting[0].model:
        return _replaced(flow, fitting[0].model.hints)
    return flow


def _fitting(groups: Iterable[_Group], source: Source) -> Iterator[_Group]:
    wanted = (source.schema_name or "").casefold()
    return (group for group in groups if not wanted or _schema(group.model) == wanted)


def _replaced(flow: Dataflow, hints: tuple[SchemaHint, ...]) -> Dataflow:
    transform = flow.transform.model_copy(update={"schema_hints": hints})
    return flow.model_copy(update={"transform": transform})
