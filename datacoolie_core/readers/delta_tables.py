"""Delta tables by path, and SQL over the tables below a connection's base path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core import storage
from datacoolie_core.engines.delta_scan import scan_table
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.discovery import base_path, source_uri
from datacoolie_core.readers.options import read_options
from datacoolie_core.readers.source import Source

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.readers.batch import ReadRequest


def _version(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected a version number or a timestamp")  # noqa: TRY004 - as all options
    return int(value) if isinstance(value, str) and value.isdigit() else value


OPTIONS: dict[str, Any] = {"version": _version}
ALIASES = {"version_as_of": "version", "timestamp_as_of": "version"}
_UNKNOWN_RELATION = re.compile(r"relation '(?P<name>.+?)' was not found")


def open_delta(request: ReadRequest) -> Source:
    """Return a scan of a Delta table at one version, or the rows of a query over such tables.

    Raises:
        ReadError: There is no such table or version, or the query is wrong.
    """
    options = read_options(request.dataflow, OPTIONS, ALIASES)
    if request.query is not None:
        return _open_query(request, request.query)
    uri = source_uri(request)
    table = _table(request, uri, options.get("version"))
    action = {"path": uri, "version": table.version()}
    return Source(scan_table(table), action)


def _table(request: ReadRequest, uri: str, version: Any = None) -> DeltaTable:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    storage_options = request.dataflow.source.connection.configure.storage_options
    try:
        if isinstance(version, str):
            table = DeltaTable(uri, storage_options=storage_options or None)
            table.load_as_version(version)
            return table
        return DeltaTable(uri, version=version, storage_options=storage_options or None)
    except TableNotFoundError as error:
        raise ReadError(
            "there is no Delta table",
            place=uri,
            remedy="Check base_path, schema_name and table, or load the table first.",
            code="missing_table",
        ) from error
    except (DeltaError, OSError, ValueError) as error:
        missing = version is not None
        raise ReadError(
            f"the Delta table can't be opened: {str(error).splitlines()[0]}",
            place=uri,
            remedy="Name a version that the table still has."
            if missing
            else "Check that the storage answers and that the table is whole.",
            code="missing_version" if missing else "read_failed",
            retryable=not missing,
        ) from error


def _open_query(request: ReadRequest, query: str) -> Source:
    context: pl.SQLContext[pl.LazyFrame] = pl.SQLContext()
    tables: dict[str, Any] = {}
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
            table = _named_table(request, name, error)
            tables[name] = {"path": table.table_uri, "version": table.version()}
            context.register(name, scan_table(table))  # pyright: ignore[reportUnknownMemberType]
        else:
            return Source(frame, {"query": query, "tables": tables}, diagnose=_diagnosis(request))


def _named_table(request: ReadRequest, name: str, error: Exception) -> DeltaTable:
    """Return the table that a query names: ``schema.table`` or ``table`` below the base path."""
    source = request.dataflow.source
    root = base_path(request)
    parts = name.split(".")
    if source.connection.catalog and parts[0] == source.connection.catalog:
        parts = parts[1:]
    places = [storage.join(root, *parts)]
    if len(parts) == 1 and source.schema_name:
        places.insert(0, storage.join(root, source.schema_name, *parts))
    for place in places:
        try:
            return _table(request, place)
        except ReadError as failure:
            if failure.code != "missing_table":
                raise
    raise ReadError(
        f"the query reads '{name}', but there is no Delta table at {places[0]}",
        place=_place(request),
        remedy="Correct the name in the query, or load the table first.",
        code="missing_table",
    ) from error


def _place(request: ReadRequest) -> str:
    written = request.dataflow.source.query or ""
    return written if written.lower().endswith(".sql") else "source.query"


def _sql_error(request: ReadRequest, error: Exception) -> ReadError:
    return ReadError(
        f"the query can't be run: {str(error).splitlines()[0]}",
        place=_place(request),
        remedy="Correct the query; it is written in the SQL of polars.",
        code="sql_error",
    )


def _diagnosis(request: ReadRequest) -> Any:
    def diagnose(error: Exception) -> ReadError | None:
        broken = (pl.exceptions.SQLInterfaceError, pl.exceptions.SQLSyntaxError)
        return _sql_error(request, error) if isinstance(error, broken) else None

    return diagnose
