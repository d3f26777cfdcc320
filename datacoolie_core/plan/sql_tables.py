"""Which tables a SQL text reads, without running it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TableName = tuple[str, ...]
"""The parts of a name, such as ``("silver", "flights")``; quotes are gone."""

_DIALECTS = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "sql server": "tsql",
    "oracle": "oracle",
    "sqlite": "sqlite",
}
_GUESSES = ("", "postgres", "spark", "duckdb")


@lru_cache(maxsize=4096)
def tables_in(sql: str, database_type: str | None = None) -> tuple[TableName, ...] | None:
    """Return the tables that a query reads, each once, in order; None if it can't be parsed.

    Names that the query defines itself (common table expressions) are no tables.

    >>> tables_in('WITH a AS (SELECT * FROM "Silver".flights) SELECT * FROM a JOIN planes')
    (('Silver', 'flights'), ('planes',))

    Args:
        sql: A query.
        database_type: ``postgresql``, ``mysql``, ``mssql``, ``oracle`` or ``sqlite``; None for a
            lakehouse.
    """
    known = _DIALECTS.get((database_type or "").lower())
    for dialect in (known,) if known else _GUESSES:
        statements = _parsed(sql, dialect)
        if statements is not None:
            found = (name for statement in statements for name in _read_by(statement))
            return tuple(dict.fromkeys(found))
    return None


def _parsed(sql: str, dialect: str) -> list[Any] | None:
    import sqlglot  # costs 0.15 s, and a project without queries never needs it
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements: list[Any] = [one for one in sqlglot.parse(sql, read=dialect or None) if one]
    except (SqlglotError, RecursionError):
        return None
    # what it does not understand it keeps as a command: then no table would be seen
    commands = any(isinstance(one, exp.Command) for one in statements)
    return None if commands or not statements else statements


def _read_by(statement: Any) -> Iterator[TableName]:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        sources = [one for scope in traverse_scope(statement) for one in scope.sources.values()]
    except SqlglotError:  # two tables of one name, without aliases
        sources = []
    own: set[str] = set()
    if not sources:
        sources = list(statement.find_all(exp.Table))
        own = {one.alias.casefold() for one in statement.find_all(exp.CTE)}
    for table in sources:
        if not isinstance(table, exp.Table):
            continue
        parts = tuple(str(part.name) for part in table.parts if isinstance(part, exp.Identifier))
        if parts and not (len(parts) == 1 and parts[0].casefold() in own):
            yield parts
