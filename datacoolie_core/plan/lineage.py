"""What a dataflow reads: the tables, files and endpoints of its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from datacoolie_core.errors import DataCoolieError
from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.plan.edges import Edge, Notice
from datacoolie_core.plan.query import is_inline
from datacoolie_core.plan.sql_tables import TableName, tables_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.models import Connection, Dataflow, Source

ReadQuery = Callable[["Dataflow"], "str | None"]
"""Gives the SQL text of a dataflow's query, from a file too; None without a query."""

SourceKind = Literal["table", "path", "endpoint", "function", "query"]


@dataclass(frozen=True)
class ExternalSource:
    """A place that a dataflow reads and that no dataflow writes.

    Attributes:
        key: Connection, schema if there is one, then table, path, endpoint or function.
        connection: Where it is.
        kind: What the last part of the key is; ``query`` if nothing says what is read.
    """

    key: tuple[str, ...]
    connection: Connection
    kind: SourceKind


@dataclass(frozen=True)
class Read:
    """One thing that a source reads.

    Attributes:
        identities: What it may be, most likely first; the first one that somebody writes is it.
        external: What it is if nobody writes it.
    """

    identities: tuple[str, ...]
    external: ExternalSource


def reads_of(dataflow: Dataflow, sql: str | None) -> tuple[Read, ...] | None:
    """Return what a dataflow reads.

    Args:
        dataflow: Any dataflow.
        sql: The text of its query, if it has one and it could be read.

    Returns:
        None if its query can't be parsed, so that nobody knows.
    """
    source = dataflow.source
    if source.query is None:
        return (_plain_read(source),)
    tables = None if sql is None else tables_in(sql, source.connection.configure.database_type)
    return None if tables is None else tuple(_named_table(source, name) for name in tables)


def _plain_read(source: Source) -> Read:
    connection = source.connection
    endpoint = getattr(source.configure, "endpoint", None)
    if source.python_function is not None:
        return Read((), _external(connection, "function", source.python_function))
    if connection.connection_type == "api":
        place = str(endpoint) if endpoint else source.table
        return Read((), _external(connection, "endpoint", place))
    kind: SourceKind = "path" if connection.connection_type == "file" else "table"
    identity = destination_identity(source)
    return Read(
        () if identity is None else (identity,),
        _external(connection, kind, source.schema_name, source.table),
    )


def _named_table(source: Source, name: TableName) -> Read:
    connection = source.connection
    parts = name
    if len(parts) > 1 and connection.catalog and parts[0] == connection.catalog:
        parts = parts[1:]
    placed = [parts]
    if len(parts) == 1 and source.schema_name:
        placed.insert(0, (source.schema_name, *parts))
    found = (_identity(source, one) for one in placed)
    return Read(
        tuple(one for one in found if one is not None), _external(connection, "table", *placed[0])
    )


def _identity(source: Source, name: TableName) -> str | None:
    *schema, table = name
    update = {"schema_name": "/".join(schema) or None, "table": table}
    return destination_identity(source.model_copy(update=update))


def _external(connection: Connection, kind: SourceKind, *parts: str | None) -> ExternalSource:
    return ExternalSource((connection.name, *(part for part in parts if part)), connection, kind)


@dataclass(frozen=True)
class Lineage:
    """What the sources of all dataflows say.

    Attributes:
        edges: From each writer of a place to each dataflow that reads it.
        externals: Dataflow id → what it reads that nobody writes.
        queries: Dataflow id → the SQL text of its query.
        warnings: Queries of which nobody knows what they read.
    """

    edges: tuple[Edge, ...]
    externals: Mapping[str, tuple[ExternalSource, ...]]
    queries: Mapping[str, str]
    warnings: tuple[Notice, ...]


def lineage_edges(
    dataflows: Sequence[Dataflow],
    destinations: Mapping[str, Sequence[str]],
    read_query: ReadQuery | None,
) -> Lineage:
    """Return the edges that follow from what is read and written.

    Reading one's own destination makes no edge, not even to others that write it.

    Args:
        dataflows: All of them.
        destinations: Destination identity → ids of its writers.
        read_query: Gives the SQL text of a query; None reads inline queries alone.
    """
    queries, warnings = _queries(dataflows, read_query)
    edges: list[Edge] = []
    externals: dict[str, tuple[ExternalSource, ...]] = {}
    for flow in dataflows:
        reads = reads_of(flow, queries.get(flow.dataflow_id))
        if reads is None:
            reads = (_unknown(flow),)
            if flow.dataflow_id in queries:
                warnings.append(_unread(flow, "is not understood"))
        outside: list[ExternalSource] = []
        for read in reads:
            identity = next((one for one in read.identities if one in destinations), None)
            if identity is None:
                outside.append(read.external)
            else:
                edges += _edges(flow, identity, destinations[identity])
        if outside:
            externals[flow.dataflow_id] = tuple({one.key: one for one in outside}.values())
    return Lineage(tuple(edges), externals, queries, tuple(warnings))


def _edges(flow: Dataflow, identity: str, writers: Sequence[str]) -> list[Edge]:
    if flow.dataflow_id in writers:
        return []
    detail = f"reads {identity.removeprefix('table:')}"
    return [Edge(writer, flow.dataflow_id, "lineage", detail) for writer in writers]


def _queries(
    dataflows: Sequence[Dataflow], read_query: ReadQuery | None
) -> tuple[dict[str, str], list[Notice]]:
    queries: dict[str, str] = {}
    warnings: list[Notice] = []
    for flow in dataflows:
        query = flow.source.query
        if query is None:
            continue
        if read_query is None:
            text = query if is_inline(query) else None
        else:
            try:
                text = read_query(flow)
            except DataCoolieError as error:
                warnings.append(_unread(flow, f"can't be read: {error.message}"))
                continue
        if text is not None:
            queries[flow.dataflow_id] = text
    return queries, warnings


def _unread(flow: Dataflow, reason: str) -> Notice:
    return Notice(
        flow.dataflow_id,
        f"'{flow.label}': its query {reason}, so nobody knows which tables it waits for. "
        "Correct it, or name them in depends_on",
    )


def _unknown(flow: Dataflow) -> Read:
    return Read((), _external(flow.source.connection, "query", "query"))
