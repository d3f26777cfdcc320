"""The columns that a query may name, and what in a query is ours to build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.engines.sql.coerce import to_truth
from datacoolie_core.engines.sql.translate import translate
from datacoolie_core.engines.sql.values import Session, SqlError, Value, scope_of
from datacoolie_core.metadata.dialect.catalogue import AGGREGATES, functions
from datacoolie_core.metadata.dialect.check import check_call
from datacoolie_core.metadata.dialect.grammar import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OURS = (
    exp.Cast, exp.Extract, exp.Interval, exp.IntDiv, exp.Div, exp.Mod, exp.Add, exp.Sub, exp.Mul,
    exp.Neg, exp.NullSafeEQ, exp.NullSafeNEQ, exp.RegexpLike, exp.Case, exp.If, exp.Substring,
    exp.Trim, exp.StrPosition, exp.CurrentDate, exp.CurrentTimestamp, exp.DPipe, exp.Bracket,
    exp.Dot, exp.Escape,
)  # fmt: skip


class BeyondUs(Exception):  # noqa: N818 - no failure: the engine's own SQL is asked then
    """A query of a form that is left to the engine."""


def is_ours(node: exp.Expr) -> bool:
    """Return whether a node means what docs/reference/sql.md says, not what the engine's SQL does.

    Raises:
        BeyondUs: It is a function that only the engine may know.
    """
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name in AGGREGATES:
            return False
        if name not in functions():
            raise BeyondUs(name)
        check_call(name, len(node.expressions))
        return True
    if isinstance(node, exp.Substring):
        check_call("substring", len(list(node.iter_expressions())))
    return isinstance(node, _OURS)


def by_engine(tree: exp.Expr, frames: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return what the engine's own SQL makes of a query."""
    context = pl.SQLContext(frames, eager=False)
    # in this form it is said of every ORDER BY where the nulls are
    return context.execute(tree.sql(dialect="postgres"))


def quoted(name: str) -> exp.Expr:
    """Return a name for a query of the engine."""
    return exp.to_identifier(name, quoted=True)


def column(name: str) -> exp.Expr:
    """Return a column of the frame at hand."""
    return exp.Column(this=quoted(name))


@dataclass(frozen=True)
class Origin:
    """One table or query of a FROM.

    Attributes:
        names: What its columns may be qualified with.
        frame: Its rows.
        columns: Its columns → their names in the joined frame.
    """

    names: tuple[str, ...]
    frame: pl.LazyFrame
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Rows:
    """The rows that a SELECT works on.

    Attributes:
        frame: Them.
        origins: Where their columns are from.
        session: The load's instant and zone.
    """

    frame: pl.LazyFrame
    origins: tuple[Origin, ...]
    session: Session | None

    def value(self, node: exp.Expr) -> Value:
        """Return what an expression over the columns of the frame is worth."""
        return translate(node, scope_of(self.frame.collect_schema(), self.session))

    def truth(self, node: exp.Expr) -> pl.Expr:
        """Return a condition.

        Raises:
            SqlError: It is something else.
        """
        return to_truth(self.value(node), scope_of({}, self.session)).expr

    def with_columns(self, columns: Mapping[str, pl.Expr]) -> Rows:
        """Return the rows with more columns."""
        added = [value.alias(name) for name, value in columns.items()]
        frame = self.frame.with_columns(added) if added else self.frame
        return Rows(frame, self.origins, self.session)

    def resolved(self, node: exp.Expr) -> exp.Expr:
        """Return an expression with each column under its name in the frame.

        Raises:
            SqlError: There is no such column, or more than one.
        """

        def one(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
                return part
            return found_column(names_of(part), self.origins)

        return node.transform(one)

    def starred(self, qualifier: str | None) -> list[tuple[str, str]]:
        """Return the columns that ``*`` or ``name.*`` stands for, with their names in the frame."""
        chosen = [one for one in self.origins if qualifier is None or _is_called(one, [qualifier])]
        if not chosen:
            raise SqlError(f"there is no table '{qualifier}' in the query")
        pairs = [pair for one in chosen for pair in one.columns.items()]
        return list({name: (shown, name) for shown, name in pairs}.values())


def _is_called(origin: Origin, parts: list[str]) -> bool:
    wanted = [part.casefold() for part in parts]
    return [name.casefold() for name in origin.names[-len(wanted) :]] == wanted


def found_column(parts: list[str], origins: Iterable[Origin]) -> exp.Expr:
    """Return the column that a name in a query means, or a field of it.

    Args:
        parts: The name, with the table before it and fields behind it.
        origins: Where it may be from.

    Raises:
        SqlError: It is nowhere, or in more than one table.
    """
    known = list(origins)
    for taken in range(len(parts) - 1, 0, -1):
        for origin in known:
            name = (
                match(parts[taken], origin.columns) if _is_called(origin, parts[:taken]) else None
            )
            if name is not None:
                return _with_fields(origin.columns[name], parts[taken + 1 :])
    holders = {
        origin.columns[name]: None
        for origin in known
        for name in [match(parts[0], origin.columns)]
        if name is not None
    }
    if len(holders) > 1:
        raise SqlError(f"the column '{parts[0]}' is in more than one table", "Write table.column.")
    if not holders:
        everything = [name for origin in known for name in origin.columns]
        shown = ".".join(parts)
        raise SqlError(
            f"there is no column '{shown}'", remedy_for(parts[-1], everything), "missing_column"
        )
    return _with_fields(next(iter(holders)), parts[1:])


def _with_fields(name: str, fields: list[str]) -> exp.Expr:
    found = column(name)
    for one in fields:
        found = exp.Dot(this=found, expression=quoted(one))
    return found
