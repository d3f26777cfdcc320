"""SQLite: one read transaction for everything that a load reads, never a new file.

A table is streamed from where it is. A query is run once: its rows go to a temporary table, so that
finding out their types, and reading them, does not run it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.plan.bounded_query import bracketed, without_terminator
from datacoolie_core.readers.database_rows import Ask, Rows
from datacoolie_core.readers.hints import Hints, hinted_type, hints_of
from datacoolie_core.readers.sqlite_bounds import bounds_of, quoted
from datacoolie_core.readers.sqlite_file import connected
from datacoolie_core.readers.sqlite_trouble import (
    check_filter,
    conflicting,
    explained,
    inexact,
    no_table,
    refuse_duplicates,
)
from datacoolie_core.readers.sqlite_types import Conflict, Declared, Reading, declared, reading

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

_EXACT = 2**53
_VIEW = "__dc_source"
_COPY = "__dc_rows"


@dataclass
class _Session:
    """One connection, and what it reads.

    Attributes:
        ask: What was asked for.
        handle: The connection, in its read transaction.
        columns: Those of the source, with what their declarations say.
        relation: What rows are read from: the source with its bounds, or the copy of its rows.
        parameters: Values of the bounds in the relation.
        stored: Column → its name in the relation.
        filled: Columns that hold no null.
        lock: One thread at a time fetches.
    """

    ask: Ask
    handle: sqlite3.Connection
    columns: dict[str, Declared] = field(default_factory=dict[str, Declared])
    relation: str = ""
    parameters: tuple[Any, ...] = ()
    stored: dict[str, str] = field(default_factory=dict[str, str])
    filled: frozenset[str] = frozenset()
    lock: Lock = field(default_factory=Lock)

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement; an error names what is read, and the line of the query."""
        import sqlite3

        try:
            return self.handle.execute(sql, parameters)
        except sqlite3.Error as error:
            raise explained(error, self.ask, self.columns, self.handle) from error

    def one(self, expressions: str, condition: str = "") -> Any:
        """Return the first row of some expressions over the rows that are read."""
        where = f"\nWHERE {condition} LIMIT 1" if condition else ""
        sql = f"SELECT {expressions} FROM {self.relation}{where}"  # noqa: S608 - quoted names
        return self.run(sql, self.parameters).fetchone()


def open_sqlite(ask: Ask) -> Rows:
    """Return the rows of a table or a query of a SQLite database.

    Raises:
        ReadError: The database is not there or broken, there is no such table, the query or the
            filter is wrong, or a column holds values that don't go together.
    """
    session = _Session(ask, connected(ask))
    try:
        session.run("BEGIN")
        source, indexed = _described(session)
        sql, sent = _bounded(session, source, indexed=indexed)
        session.parameters = sent
        session.relation = f"(\n{sql}\n)"
        session.stored = {name: name for name in session.columns}
        if ask.query is not None and not ask.request.peek:
            _copy(session, sql)
        readings = _readings(session)
    except BaseException:
        session.handle.close()
        raise

    def batches(columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
        return _batches(session, readings, columns)

    return Rows(
        {name: one.dtype for name, one in readings.items()},
        batches,
        sql,
        sent,
        session.handle.close,
    )


def _described(session: _Session) -> tuple[str, bool]:
    """Find out the columns; return the source as SQL, and whether an index may serve its bounds.

    A view tells them without running the query, and takes nothing but a query.
    """
    ask = session.ask
    if ask.query is not None:
        text = without_terminator(ask.query)
        session.run(f"CREATE TEMP VIEW {_VIEW} AS\n{text}")
        source = bracketed(text)
    else:
        source = ".".join(quoted(part) for part in ask.table)
        own = session.run(f"PRAGMA {_pragma(ask)}").fetchall()
        if not own:
            raise no_table(ask, session.handle)
        session.filled = _filled(own)
        session.run(f"CREATE TEMP VIEW {_VIEW} AS SELECT * FROM {source}")  # noqa: S608 - quoted names
    found = session.run(f"PRAGMA temp.table_info({_VIEW})").fetchall()
    session.run(f"DROP VIEW temp.{_VIEW}")
    session.columns = {str(row[1]): declared(str(row[2] or "")) for row in found}
    if ask.query is not None:
        refuse_duplicates(ask, session.columns)
        return source, False
    (kind,) = session.run(_KIND, (ask.table[-1],)).fetchone() or ("table",)
    return source, kind == "table"


_KIND = "SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')"


def _pragma(ask: Ask) -> str:
    *schema, table = (quoted(part) for part in ask.table)
    return f"{schema[0] + '.' if schema else ''}table_info({table})"


def _filled(table: list[Any]) -> frozenset[str]:
    """Return the columns that hold no null: declared so, or the table's own row number."""
    keys = [row for row in table if row[5]]
    number = keys[0][1] if len(keys) == 1 and str(keys[0][2]).upper() == "INTEGER" else None
    return frozenset(str(row[1]) for row in table if row[3] or row[1] == number)


def _bounded(session: _Session, source: str, *, indexed: bool) -> tuple[str, tuple[Any, ...]]:
    request = session.ask.request
    written = request.dataflow.source.filter_expression
    conditions: list[str] = []
    values: tuple[Any, ...] = ()
    bounds = bounds_of(request, session.columns, indexed=indexed, filled=session.filled)
    if bounds is not None:
        conditions.append(f"({bounds[0]})")
        values = bounds[1]
    if written:
        check_filter(session.ask, written, session.columns)
        conditions.append(f"(\n{without_terminator(written)}\n)")
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    listed = ", ".join(quoted(name) for name in session.columns)
    return f"SELECT {listed} FROM {source}{where}", values  # noqa: S608 - quoted names


def _copy(session: _Session, sql: str) -> None:
    """Run the query once and keep its rows; others may write to the database from then on.

    The copy's columns have no type, so that SQLite puts every value there as it is.
    """
    names = [f"c{index}" for index in range(len(session.columns))]
    session.run(f"CREATE TEMP TABLE {_COPY} ({', '.join(names)})")
    session.run(f"INSERT INTO temp.{_COPY}\n{sql}", session.parameters)
    session.run("COMMIT")
    session.relation, session.parameters = f"temp.{_COPY}", ()
    session.stored = dict(zip(session.columns, names, strict=True))


def _readings(session: _Session) -> dict[str, Reading]:
    """Return how each column is read, by the values that the read will see."""
    hints = hints_of(session.ask.request.dataflow)
    seen = session.one(
        ", ".join(f"group_concat(DISTINCT typeof({quoted(at)}))" for at in session.stored.values())
    )
    readings: dict[str, Reading] = {}
    for name, classes in zip(session.columns, seen, strict=True):
        found = {one for one in (classes or "").split(",") if one and one != "null"}
        readings[name] = _reading(session, name, found, hints)
    return readings


def _reading(session: _Session, name: str, classes: set[str], hints: Hints) -> Reading:
    column, hint = session.columns[name], hints.of(name)
    dataflow = session.ask.request.dataflow
    target = None if hint is None else hinted_type(name, hint, dataflow)
    formatted = hint is not None and bool(hint.format)
    found = reading(column, classes, target, formatted=formatted)
    at = quoted(session.stored[name])
    if isinstance(found, Conflict):
        kinds = ", ".join(f"'{one}'" for one in found.classes)
        (value,) = session.one(at, f"typeof({at}) IN ({kinds})")
        raise conflicting(session.ask, name, value, found)
    if found.dtype == pl.Boolean() and classes and (odd := session.one(at, f"{at} NOT IN (0, 1)")):
        raise conflicting(
            session.ask, name, odd[0], Conflict(("integer",), f"it is declared {column.text}")
        )
    if found.dtype == pl.Float64() and "integer" in classes:
        return _exact(session, name, classes, found)
    return found


def _exact(session: _Session, name: str, classes: set[str], found: Reading) -> Reading:
    """Return how integers that become double are read: as integers where one would change."""
    at = quoted(session.stored[name])
    big = session.one(at, f"typeof({at}) = 'integer' AND ({at} > {_EXACT} OR {at} < -{_EXACT})")
    if big is None:
        return found
    if classes == {"integer"}:
        return Reading(pl.Int64())
    raise inexact(session.ask, name, big[0])


def _batches(
    session: _Session, readings: dict[str, Reading], columns: Sequence[str] | None
) -> Iterator[pl.DataFrame]:
    import sqlite3

    wanted = list(readings) if columns is None else list(columns)
    listed = ", ".join(quoted(session.stored[name]) for name in wanted) or "NULL"
    sql = f"SELECT {listed} FROM {session.relation}"  # noqa: S608 - quoted names
    cursor = session.run(sql, session.parameters)
    while True:
        try:
            with session.lock:
                rows = cursor.fetchmany(session.ask.fetch_size)
        except sqlite3.Error as error:
            raise explained(error, session.ask, session.columns, session.handle) from error
        if not rows:
            return
        yield _frame(rows, {name: readings[name] for name in wanted})


def _frame(rows: list[tuple[Any, ...]], readings: dict[str, Reading]) -> pl.DataFrame:
    if not readings:
        return pl.DataFrame(height=len(rows))
    series: list[pl.Series] = []
    for (name, one), values in zip(readings.items(), zip(*rows, strict=True), strict=True):
        converted = values if one.convert is None else one.convert(values)
        series.append(pl.Series(name, converted, dtype=one.dtype))
    return pl.DataFrame(series)
