"""What goes wrong with a SQLite source, told with its table, its column and the query's line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacoolie_core.engines.names import listed, match, remedy_for
from datacoolie_core.errors import ReadError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping

    from datacoolie_core.readers.database_rows import Ask
    from datacoolie_core.readers.sqlite_types import Conflict, Declared

_NEAR = re.compile(r'near "(?P<token>.*)": syntax error', re.DOTALL)
_NAMED = re.compile(
    r"(?:no such (?:column|table|function)|ambiguous column name): (?P<name>.*)"
    r'|unrecognized token: "(?P<token>.*)"',
    re.DOTALL,
)
_NO_TABLE = re.compile(r"no such table: (?P<name>.*)", re.DOTALL)
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
)
_RENAMED = re.compile(r"(?P<name>.*):\d+$", re.DOTALL)
_UNDECODED = re.compile(r"Could not decode to UTF-8 column '(?P<column>.*)' with text")
_BUSY = ("locked", "busy", "schema has changed")
_STORAGE = ("disk I/O", "disk is full", "malformed", "not a database", "unable to open")
_LONGEST = 80


def explained(
    error: Exception, ask: Ask, columns: Mapping[str, Declared], handle: sqlite3.Connection
) -> ReadError:
    """Return what an error of SQLite means for the reader's user.

    Args:
        error: As raised.
        ask: What was asked for.
        columns: Of the source, as far as they are known.
        handle: The connection.
    """
    text = str(error)
    undecoded = _UNDECODED.search(text)
    if undecoded is not None:
        return _no_text(undecoded["column"], ask, columns)
    if any(part in text for part in _BUSY):
        return ReadError(
            f"the database is in use: {text}",
            place=ask.place,
            remedy="Wait until the other program has finished writing.",
            code="database_locked",
            retryable=True,
        )
    if any(part in text for part in _STORAGE):
        return ReadError(
            f"the database can't be read: {text}",
            place=ask.place,
            remedy="Check that the file is whole, and that there is room for temporary files.",
            code="unreadable_database",
        )
    if ask.query is None:
        if "unknown database" in text:
            return no_table(ask, handle)
        return _wrong_sql(text, f"{ask.place}, source.filter_expression", "filter")
    line = _line(text, ask.query, handle)
    place = ask.place if line is None else f"{ask.place}, line {line}"
    missing = _NO_TABLE.search(text)
    if missing is not None:
        return _missing(missing["name"].removeprefix("main."), place, handle)
    return _wrong_sql(text, place, "query")


def _wrong_sql(text: str, place: str, what: str) -> ReadError:
    return ReadError(
        f"the {what} can't be run: {text}",
        place=place,
        remedy=f"Correct the {what}; it is written in the SQL of SQLite.",
        code="sql_error",
    )


def _no_text(column: str, ask: Ask, columns: Mapping[str, Declared]) -> ReadError:
    # a copy's columns are numbered
    numbered = re.fullmatch(r"c(\d+)", column)
    if ask.query is not None and numbered is not None and column not in columns:
        column = list(columns)[int(numbered[1])]
    return ReadError(
        "it holds text that is not UTF-8",
        place=f"{ask.place}, column '{column}'",
        remedy="Correct the value in the database, or read the column by a query as"
        f' CAST("{column}" AS BLOB).',
        code="bad_value",
    )


def _line(text: str, query: str, handle: sqlite3.Connection) -> int | None:
    """Return the line of a query that a message is about, None if that can't be told."""
    found = _NEAR.search(text) or _NAMED.search(text)
    if found is None:
        return None
    name = found["token"] or found["name"].rpartition(".")[2]
    places = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE))
    if found.re is _NEAR:
        # the query up to a token that is right is no more than incomplete
        places = [one for one in places if text == _said_of(query[: one.end()], handle)][:1]
    lines = {query.count("\n", 0, place.start()) + 1 for place in places}
    return min(lines) if len(lines) == 1 else None


def _said_of(part: str, handle: sqlite3.Connection) -> str | None:
    import sqlite3

    try:
        handle.execute(f"EXPLAIN CREATE TEMP VIEW __dc_part AS\n{part}")
    except sqlite3.Error as error:
        return str(error)
    return None


def no_table(ask: Ask, handle: sqlite3.Connection) -> ReadError:
    """Return the error of a table that the database lacks."""
    return _missing(".".join(ask.table), ask.place, handle)


def _missing(name: str, place: str, handle: sqlite3.Connection) -> ReadError:
    import sqlite3

    try:
        there = [str(table) for (table,) in handle.execute(_TABLES)]
    except sqlite3.Error:
        there = []
    return ReadError(
        f"the database has no table '{name}'",
        place=place,
        remedy=remedy_for(name, there),
        code="missing_table",
    )


def refuse_duplicates(ask: Ask, columns: Iterable[str]) -> None:
    """Refuse a query that gives two columns one name.

    Raises:
        ReadError: It names them.
    """
    known = list(columns)
    twice = [
        base
        for name in known
        if (found := _RENAMED.match(name)) and (base := match(found["name"], known)) is not None
    ]
    if twice:
        raise ReadError(
            f"the query gives more than one column called {listed(dict.fromkeys(twice))}",
            place=ask.place,
            remedy="Give each column a name of its own with AS.",
            code="duplicate_column",
        )


def check_filter(ask: Ask, written: str, columns: Iterable[str]) -> None:
    """Refuse a filter that names a column which is not there.

    SQLite itself takes such a name, if it is quoted, for a text, and finds no row.

    Raises:
        ReadError: It says which columns there are.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(written, dialect="sqlite")
    except SqlglotError:
        return
    if tree.find(exp.Query):
        return
    known = [*columns, "rowid", "oid", "_rowid_"]
    for column in tree.find_all(exp.Column):
        if match(column.name, known) is None:
            raise ReadError(
                f"there is no column '{column.name}' in `{written}`",
                place=f"{ask.place}, source.filter_expression",
                remedy=remedy_for(column.name, columns),
                code="missing_column",
            )


def conflicting(ask: Ask, column: str, value: object, conflict: Conflict) -> ReadError:
    """Return the error of values that don't go together."""
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    return ReadError(
        f"it holds {shown} ({conflict.classes[0]}), but {conflict.wanted}",
        place=f"{ask.place}, column '{column}'",
        remedy="Correct the value, or give the column a schema hint: string keeps every value as"
        " text.",
        code="type_conflict",
    )


def inexact(ask: Ask, column: str, value: object) -> ReadError:
    """Return the error of an integer that no double holds, beside fractions."""
    return ReadError(
        f"it holds fractions, so it is read as double, which can't hold the integer {value!r}",
        place=f"{ask.place}, column '{column}'",
        remedy="Give the column a schema hint: string or decimal.",
        code="type_conflict",
    )
