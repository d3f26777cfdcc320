"""Databases: a table or a query, bounded by parameters, streamed in batches.

What differs between databases is one function each, in :data:`DATABASES`: from an :class:`Ask` to
the :class:`Rows` of one consistent snapshot. Bounds that it sends may let more rows through than
were asked for, never fewer; the exact comparison is made on the typed rows, as for every source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.database_rows import FETCH_SIZE, Ask, Rows
from datacoolie_core.readers.database_settings import database_settings
from datacoolie_core.readers.options import count, read_options
from datacoolie_core.readers.source import Source
from datacoolie_core.readers.sqlite import open_sqlite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacoolie_core.readers.batch import ReadRequest

DATABASES: dict[str, Callable[[Ask], Rows]] = {"sqlite": open_sqlite}
"""Kind of database → what reads it."""

OPTIONS: dict[str, Any] = {"fetch_size": count}
ALIASES = {"batch_size": "fetch_size", "fetchsize": "fetch_size", "batchsize": "fetch_size"}


def open_database(request: ReadRequest) -> Source:
    """Return the rows of a table or a query of a database.

    Raises:
        ReadError: The database, the table, the query or its filter can't be used.
    """
    source = request.dataflow.source
    settings = database_settings(source.connection)
    opener = DATABASES.get(settings.kind)
    if opener is None:
        raise _unknown(settings.kind, source.connection.name)
    options = read_options(request.dataflow, OPTIONS, ALIASES)
    ask = Ask(
        request,
        settings,
        place_of(request),
        fetch_size=options.get("fetch_size") or FETCH_SIZE,
    )
    rows = opener(ask)
    failures: list[ReadError] = []
    return Source(
        _scan(rows, failures),
        _action(ask, rows),
        filtered=True,
        diagnose=lambda _: failures[0] if failures else None,
        close=rows.close,
    )


def place_of(request: ReadRequest) -> str:
    """Return how messages name what is read."""
    source = request.dataflow.source
    where = f"connection '{source.connection.name}'"
    if request.query is None:
        name = ".".join(part for part in (source.schema_name, source.table) if part)
        return f"{where}, table '{name}'"
    written = source.query or ""
    return f"{where}, {written if written.lower().endswith('.sql') else 'source.query'}"


def _scan(rows: Rows, failures: list[ReadError]) -> pl.LazyFrame:
    """Return a frame that asks for the rows anew each time that it is consumed.

    The engine does not pass every error on as it was: the first one is kept in ``failures``.
    """

    def scan(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = limit
        try:
            for batch in rows.batches(columns):
                passed = batch if predicate is None else batch.filter(predicate)
                yield passed if left is None else passed.head(left)
                left = None if left is None else left - passed.height
                if left is not None and left <= 0:
                    return
        except ReadError as error:
            failures.append(error)
            raise

    frame = register_io_source(scan, schema=pl.Schema(rows.schema))
    # a filter that runs Python, such as one of parsed text, can't be handed to the source
    return frame.map_batches(_as_it_is, predicate_pushdown=False, streamable=True)


def _as_it_is(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def _action(ask: Ask, rows: Rows) -> dict[str, Any]:
    action: dict[str, Any] = {"connection": ask.settings.connection}
    if ask.query is None:
        action["table"] = ".".join(ask.table)
    action["query"] = rows.sql
    if rows.parameters:
        action["parameters"] = [
            value if isinstance(value, int | float | str) else str(value)
            for value in rows.parameters
        ]
    return action


def _unknown(kind: str, connection: str) -> ReadError:
    known = ", ".join(DATABASES)
    if not kind:
        return ReadError(
            "nothing says which database it is",
            place=f"connection '{connection}'",
            remedy=f"Set configure.database_type: {known}.",
            code="bad_database",
        )
    return ReadError(
        f"databases of type '{kind}' can't be read yet",
        place=f"connection '{connection}'",
        remedy=f"Databases that can be read: {known}. For others, write a Python function that"
        " returns the rows (format function).",
        code="unsupported_database",
    )
