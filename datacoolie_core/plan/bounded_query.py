"""The SQL of a source with its bounds, as a plan shows it.

A database is sent its values as bound parameters, in comparisons that fit how it keeps values; over
Delta tables the engine runs the query and applies the same bounds to its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

from datacoolie_core.plan.windows import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Watermark, Window

_QUOTES = {"mysql": ("`", "`"), "mssql": ("[", "]")}


@dataclass(frozen=True)
class Above:
    """The bounds of a normal run: above in at least one column.

    Attributes:
        lower: Per watermark column, where the read starts; empty reads everything.
        inclusive: Whether rows at a bound are read again.
        with_nulls: Whether rows without any watermark value are loaded too.
    """

    lower: Watermark = field(default_factory=dict[str, Scalar])
    inclusive: bool = True
    with_nulls: bool = False


def bounded_query(dataflow: Dataflow, query: str | None, bounds: Above | Window) -> str | None:
    """Return the SQL of a source with its bounds and filter; None if it is not read by SQL.

    Args:
        dataflow: Any dataflow.
        query: The text of its query, None to read its table.
        bounds: Of a normal run, or one chunk of a replay.
    """
    source = dataflow.source
    kind = source.connection.configure.database_type
    if query is None and source.connection.connection_type != "database":
        return None
    conditions = list(_conditions(bounds, kind))
    if source.filter_expression:
        # a comment at its end must not swallow the bracket
        end = "\n)" if "--" in source.filter_expression else ")"
        conditions.append(f"({source.filter_expression}{end}")
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    if query is None:
        parts = [one for one in (source.schema_name, source.table) if one]
        table = ".".join(_quoted(one, kind) for one in parts)
        return f"SELECT * FROM {table}{where}"  # noqa: S608 - shown, never run
    body = without_terminator(query)
    if not where:
        return body
    return f"SELECT * FROM {bracketed(body)}{where}"  # noqa: S608 - shown, never run


def bracketed(query: str) -> str:
    """Return a query as the table of another one, on lines of its own: it may end in a comment.

    >>> print(bracketed("SELECT 1 -- one"))
    (
    SELECT 1 -- one
    ) AS source
    """
    return f"(\n{query}\n) AS source"


def without_terminator(query: str) -> str:
    """Return a query that can stand inside another one: without a closing semicolon.

    A comment behind it stays; the query has to stand on lines of its own.

    >>> without_terminator("SELECT 1; -- one")
    'SELECT 1 -- one'
    """
    text = query.strip()
    if ";" not in text:
        return text
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        tokens = tokenize(text)
    except SqlglotError:
        return text.rstrip("; \t\n")
    while tokens and tokens[-1].token_type.name == "SEMICOLON":
        end = tokens.pop()
        text = text[: end.start] + text[end.end + 1 :]
    return text.strip()


def _conditions(bounds: Above | Window, kind: str | None) -> Iterator[str]:
    if isinstance(bounds, Above):
        sign = ">=" if bounds.inclusive else ">"
        parts = [f"{_quoted(c, kind)} {sign} {_literal(v)}" for c, v in bounds.lower.items()]
        if parts and bounds.with_nulls:
            parts.append(" AND ".join(f"{_quoted(c, kind)} IS NULL" for c in bounds.lower))
        if parts:
            yield parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"
        return
    column = _quoted(bounds.column, kind)
    if bounds.lower is not None:
        yield f"{column} >= {_literal(bounds.lower)}"
    if bounds.upper is not None:
        yield f"{column} < {_literal(bounds.upper)}"


def _quoted(name: str, kind: str | None) -> str:
    start, end = _QUOTES.get((kind or "").lower(), ('"', '"'))
    return f"{start}{name.replace(end, end * 2)}{end}"


def _literal(value: Scalar) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    text = value.isoformat() if isinstance(value, time) else value
    return "'" + text.replace("'", "''") + "'"
