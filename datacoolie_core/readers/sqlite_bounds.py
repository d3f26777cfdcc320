"""The bounds of a read as SQLite can check them: no row is missed, whatever its columns hold.

A value's order in SQLite depends on how it is stored: numbers come before text, text before
blobs, and text is compared letter by letter. So a bound is compared with values of its own kind,
and values of any other kind pass: the typed comparison afterwards refuses them, or takes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from datacoolie_core.engines.moments import moment_of
from datacoolie_core.engines.names import match
from datacoolie_core.readers.hints import hint_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.sqlite_types import Declared

Term = tuple[str, tuple[Any, ...]]
"""SQL and its parameters."""

_ISO = "'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'"
_ISO_FORMATS = ("yyyy-MM-dd", "%Y-%m-%d", "%F")
_SMALLEST, _GREATEST = -(2**63), 2**63 - 1
_ZONES = timedelta(days=2)
"""More than two zones can lie apart."""


@dataclass(frozen=True)
class Column:
    """A column in a comparison.

    Attributes:
        name: As the source has it.
        declared: Its declaration.
        iso: Its text, if it holds dates, has the form of ISO 8601.
        indexed: It is a table's own column: SQLite may use an index, and knows its affinity.
    """

    name: str
    declared: Declared
    iso: bool
    indexed: bool

    @property
    def quoted(self) -> str:
        """Its name as SQL."""
        return quoted(self.name)

    @property
    def bare(self) -> str:
        """Its values as SQL, never converted before they are compared."""
        return self.quoted if self.indexed else f"+{self.quoted}"


def quoted(name: str) -> str:
    """Return a name as SQL.

    >>> quoted('we"ird')
    '"we""ird"'
    """
    return '"' + name.replace('"', '""') + '"'


def bounds_of(
    request: ReadRequest,
    columns: Mapping[str, Declared],
    *,
    indexed: bool,
    filled: Collection[str] = (),
) -> Term | None:
    """Return the condition that holds for every row that a read wants, None if all rows may.

    Args:
        request: What bounds the read.
        columns: Those of the source.
        indexed: The source is a table.
        filled: Columns that hold no null.
    """

    def column(name: str) -> Column | None:
        found = match(name, columns)
        if found is None:
            return None
        hint = hint_of(found, request.dataflow)
        iso = hint is None or not hint.format or hint.format.startswith(_ISO_FORMATS)
        return Column(found, columns[found], iso, indexed)

    if request.window is not None:
        own = column(request.window.column)
        if own is None:
            return None
        ends = [(request.window.lower, _from), (request.window.upper, _below)]
        terms = [make(own, value) for value, make in ends if value is not None]
        return _joined(" AND ", [term for term in terms if term is not None])
    if not request.lower:
        return None
    named = [column(name) for name in request.dataflow.source.watermark_columns]
    return _above(request, named, filled)


def _above(
    request: ReadRequest, columns: list[Column | None], filled: Collection[str]
) -> Term | None:
    terms: list[Term] = []
    known: list[Column] = []
    for column in columns:
        if column is None:
            return None
        key = match(column.name, request.lower)
        term = (f"{column.quoted} IS NOT NULL", ()) if key is None else None
        if key is not None:
            term = _from(column, request.lower[key])
        if term is None:
            return None
        terms.append(term)
        known.append(column)
    if any(column.name in filled for column in known):
        return _joined(" OR ", terms)
    # rows without any watermark are counted, so they are read
    nulls = " AND ".join(f"{column.quoted} IS NULL" for column in known)
    return _joined(" OR ", [*terms, (nulls, ())])


def _joined(word: str, terms: list[Term]) -> Term | None:
    if not terms:
        return None
    text = word.join(f"({sql})" for sql, _ in terms)
    return text, tuple(value for _, values in terms for value in values)


def _from(column: Column, value: Scalar) -> Term | None:
    """Return the condition of values at or above a bound; one that is not text passes, too."""
    number = _number(value, down=True)
    if number is not None:
        # text and blobs are above every number; a column of text would compare as text
        return None if column.declared.affinity == "text" else (f"{column.bare} >= ?", (number,))
    day = moment_of(value)
    if day is not None:
        return _moment(column, ">=", _day(day, -_ZONES))
    if not isinstance(value, str):
        return None
    text = _as_text(column)
    return f"{text} >= ? COLLATE BINARY OR {text} < ''", (value,)


def _below(column: Column, value: Scalar) -> Term | None:
    """Return the condition of values below a bound; one of another kind passes, too."""
    number = _number(value, down=False)
    if number is not None:
        if column.declared.affinity == "text":
            return None
        other = f"typeof({column.quoted}) IN ('text', 'blob')"
        return f"{column.bare} < ? OR {other}", (number,)
    day = moment_of(value)
    if day is not None:
        return _moment(column, "<", _day(day, _ZONES + timedelta(days=1)))
    if not isinstance(value, str):
        return None
    return (
        f"{_as_text(column)} < ? COLLATE BINARY OR typeof({column.quoted}) = 'blob'",
        (value,),
    )


def _as_text(column: Column) -> str:
    own = column.declared.affinity == "text" and column.indexed
    return column.quoted if own else f"+{column.quoted}"


def _moment(column: Column, sign: str, day: date | None) -> Term | None:
    if day is None or not column.iso:
        return None
    text = _as_text(column)
    return (
        f"{text} {sign} ? COLLATE BINARY OR {column.quoted} NOT GLOB {_ISO}",
        (day.isoformat(),),
    )


def _day(moment: date, by: timedelta) -> date | None:
    if isinstance(moment, datetime):
        moment = (moment.astimezone(UTC) if moment.tzinfo else moment).date()
    try:
        return moment + by
    except OverflowError:
        return None


def _number(value: Scalar, *, down: bool) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if _SMALLEST <= value <= _GREATEST else None
    if isinstance(value, Decimal):
        return math.nextafter(float(value), -math.inf if down else math.inf)
    return value if isinstance(value, float) else None
