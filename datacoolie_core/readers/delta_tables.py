"""Delta tables by path, and SQL over the tables below a connection's base path."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core import storage
from datacoolie_core.engines.delta_scan import scan_table
from datacoolie_core.engines.names import remedy_for
from datacoolie_core.errors import ReadError, StorageError
from datacoolie_core.readers.delta_versions import (
    Version,
    asked_version,
    files_are_gone,
    opened_table,
)
from datacoolie_core.readers.discovery import base_path, source_uri
from datacoolie_core.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalake import DeltaTable

    from datacoolie_core.readers.batch import ReadRequest

Diagnosis = Callable[[Exception], ReadError | None]
_UNKNOWN_RELATION = re.compile(r"relation '(?P<name>.+?)' was not found", re.DOTALL)
_MOST_FOLDERS = 200
"""So many are looked into for the names of tables; a message needs no more."""


def open_delta(request: ReadRequest) -> Source:
    """Return a scan of a Delta table at one version, or the rows of a query over such tables.

    Raises:
        ReadError: There is no such table or version, or the query is wrong.
    """
    version = asked_version(request.dataflow)
    if request.query is not None:
        return _open_query(request, request.query, version)
    uri = source_uri(request)
    table = _table(request, uri, version)
    number = table.version()
    gone = _gone(uri, number) if version is not None else _unknown
    return Source(scan_table(table), {"path": uri, "version": number}, diagnose=gone)


def _table(request: ReadRequest, uri: str, version: Version) -> DeltaTable:
    options = request.dataflow.source.connection.configure.storage_options
    return opened_table(uri, options, version)


def _unknown(_error: Exception) -> None:
    return None


def _gone(uri: str, number: int) -> Diagnosis:
    def diagnose(error: Exception) -> ReadError | None:
        return files_are_gone(uri, number) if isinstance(error, FileNotFoundError) else None

    return diagnose


def _open_query(request: ReadRequest, query: str, version: Version) -> Source:
    if isinstance(version, int):
        raise ReadError(
            "a version is one table's own number, a query may read several tables",
            place="read_options",
            remedy="Give a timestamp: every table is read as it was then.",
            code="bad_option",
        )
    tables: dict[str, Any] = {}

    def rows(name: str, error: Exception | None = None) -> pl.LazyFrame:
        table = _named_table(request, name, version, error)
        tables[name] = {"path": table.table_uri, "version": table.version()}
        return scan_table(table)

    frame = _translated(request, query, rows)
    if frame is None:
        tables.clear()
        frame = _by_engine(request, query, tables, rows)
    return Source(frame, {"query": query, "tables": tables}, diagnose=_diagnosis(request))


def _translated(
    request: ReadRequest, query: str, rows: Callable[[str], pl.LazyFrame]
) -> pl.LazyFrame | None:
    """Return a query in the SQL of docs/reference/sql.md; None if the engine's own will do."""
    from datacoolie_core.engines.sql.queries import query_frame
    from datacoolie_core.engines.sql.values import Session, SqlError

    zone = request.dataflow.transform.configure.timestamp_timezone
    try:
        frame = query_frame(query, rows, Session(request.now, zone))
        if frame is not None:
            frame.collect_schema()
    except (SqlError, pl.exceptions.PolarsError) as error:
        raise _sql_error(request, error, getattr(error, "remedy", None)) from error
    return frame


def _by_engine(
    request: ReadRequest,
    query: str,
    tables: Mapping[str, Any],
    rows: Callable[[str, Exception], pl.LazyFrame],
) -> pl.LazyFrame:
    context: pl.SQLContext[pl.LazyFrame] = pl.SQLContext()
    while True:
        try:
            frame = context.execute(query)
            frame.collect_schema()
        except pl.exceptions.PolarsError as error:
            unknown = _UNKNOWN_RELATION.search(str(error))
            # a table that is registered and still not found would loop for ever
            if unknown is None or unknown["name"] in tables:
                raise _sql_error(request, error) from error
            name = unknown["name"]
            context.register(name, rows(name, error))  # pyright: ignore[reportUnknownMemberType]
        else:
            return frame


def _named_table(
    request: ReadRequest, name: str, version: Version, error: Exception | None
) -> DeltaTable:
    """Return the table that a query names: ``schema.table`` or ``table`` below the base path."""
    root = base_path(request)
    places = [storage.join(root, *parts) for parts in _paths(request, name)]
    for place in places:
        try:
            return _table(request, place, version)
        except ReadError as failure:
            if failure.code != "missing_table":
                raise
    where = places[0] if places else root
    raise ReadError(
        f"the query reads '{name}', but there is no Delta table at {where}",
        place=_place(request),
        remedy=_remedy(request, root, name),
        code="missing_table",
    ) from error


def _paths(request: ReadRequest, name: str) -> Iterator[Sequence[str]]:
    source = request.dataflow.source
    parts = name.split(".")
    if source.connection.catalog and parts[0] == source.connection.catalog:
        parts = parts[1:]
    whole = ".".join(parts)
    # a name stays below the base path
    if "/" in whole or "\\" in whole or not all(parts):
        return
    if len(parts) == 1 and source.schema_name:
        yield (source.schema_name, whole)
    yield parts
    if len(parts) > 1:
        yield (whole,)


def _remedy(request: ReadRequest, root: str, name: str) -> str:
    options = request.dataflow.source.connection.configure.storage_options
    there = list(_tables_below(root, options))
    if not there:
        return "Correct the name in the query, or load the table first; there are no tables."
    known = remedy_for(name, there)
    return f"Correct the name in the query, or load the table first. {known}"


def _tables_below(root: str, options: dict[str, str]) -> Iterator[str]:
    """Yield the names of tables in a folder and in the folders inside it."""
    looked = 0
    waiting: list[tuple[str, ...]] = [()]
    while waiting and looked < _MOST_FOLDERS:
        looked += 1
        parts = waiting.pop(0)
        try:
            inside = storage.list_folders(storage.join(root, *parts), storage_options=options)
        except StorageError:
            continue
        if "_delta_log" in inside:
            yield ".".join(parts)
        elif len(parts) < 2:
            waiting += [(*parts, one) for one in inside if not one.startswith(("_", "."))]


def _place(request: ReadRequest) -> str:
    written = request.dataflow.source.query or ""
    return written if written.lower().endswith(".sql") else "source.query"


def _sql_error(request: ReadRequest, error: Exception, remedy: str | None = None) -> ReadError:
    return ReadError(
        f"the query can't be run: {str(error).splitlines()[0]}",
        place=_place(request),
        remedy=remedy or "Correct the query; its SQL is that of docs/reference/sql.md.",
        code="sql_error",
    )


def _diagnosis(request: ReadRequest) -> Diagnosis:
    def diagnose(error: Exception) -> ReadError | None:
        broken = (pl.exceptions.SQLInterfaceError, pl.exceptions.SQLSyntaxError)
        return _sql_error(request, error) if isinstance(error, broken) else None

    return diagnose
