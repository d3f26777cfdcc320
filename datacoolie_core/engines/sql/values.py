"""What a part of an expression is worth, and where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core import clock
from datacoolie_core.engines.names import match

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlglot import exp

NO_CONSTANT: Any = object()
"""What :attr:`Value.constant` is for a value that rows decide."""


class SqlError(ValueError):
    """An expression that has no meaning over these columns."""

    def __init__(
        self, message: str, remedy: str | None = None, code: str = "bad_expression"
    ) -> None:
        super().__init__(message)
        self.remedy = remedy or "Correct the expression, or the types that it works on."
        self.code = code


@dataclass(frozen=True)
class Session:
    """What all expressions of one load have in common.

    Attributes:
        now: The instant of the load, aware; None is the instant at which an expression is read.
        zone: The zone of timestamps that have none, and of the clock that dates are read from.
    """

    now: datetime | None = None
    zone: str | None = None


@dataclass(frozen=True)
class Value:
    """A part of an expression.

    Attributes:
        expr: It.
        dtype: Its type; ``pl.Null`` for NULL, ``pl.Unknown`` where a column's is not known.
        constant: As Python has it, where no row decides; a text, number, truth, date or time.
    """

    expr: pl.Expr
    dtype: pl.DataType
    constant: Any = NO_CONSTANT

    @property
    def is_constant(self) -> bool:
        """Whether no row decides what it is."""
        return self.constant is not NO_CONSTANT

    @property
    def root(self) -> str:
        """The column that messages name."""
        names = self.expr.meta.root_names()
        return names[0] if names else "literal"


@dataclass(frozen=True)
class Scope:
    """Where an expression stands.

    Attributes:
        schema: The columns that it may name.
        now: The instant of the load, aware.
        zone: As in :class:`Session`, never None.
        guard: True for the rows that need this part: in the others it may not fail.
    """

    schema: Mapping[str, pl.DataType]
    now: datetime = field(default_factory=clock.utc_now)
    zone: str = "UTC"
    guard: pl.Expr | None = None

    def under(self, condition: pl.Expr) -> Scope:
        """Return the scope of a part that only some rows need."""
        both = condition if self.guard is None else self.guard & condition
        return replace(self, guard=both)

    def guarded(self, expr: pl.Expr) -> pl.Expr:
        """Return a value that is null for the rows that don't need it."""
        return expr if self.guard is None else pl.when(self.guard).then(expr)


def scope_of(schema: Mapping[str, pl.DataType], session: Session | None) -> Scope:
    """Return the outermost scope."""
    given = session or Session()
    return Scope(schema, given.now or clock.utc_now(), given.zone or "UTC")


@dataclass(frozen=True)
class Call:
    """One call of a function.

    Attributes:
        name: As the dialect lists it, in lower case.
        nodes: Its arguments.
        scope: Where it stands.
        translate: Gives what an argument is worth.
    """

    name: str
    nodes: list[exp.Expr]
    scope: Scope
    translate: Callable[[exp.Expr, Scope], Value]

    def __len__(self) -> int:
        return len(self.nodes)

    def value(self, index: int, scope: Scope | None = None) -> Value:
        """Return an argument."""
        return self.translate(self.nodes[index], scope or self.scope)

    def values(self, start: int = 0) -> list[Value]:
        """Return the arguments from one on."""
        return [self.translate(node, self.scope) for node in self.nodes[start:]]

    def constant(self, index: int, kind: type[Any], what: str) -> Any:
        """Return an argument that must be the same for all rows.

        Raises:
            SqlError: It is not, or of another kind.
        """
        node = self.nodes[index]
        quoted = quoted_text(node, self.scope) if kind is str else None
        if quoted is not None:
            return quoted
        value = self.translate(node, self.scope)
        right = isinstance(value.constant, kind) and not (
            kind is int and isinstance(value.constant, bool)
        )
        if not right:
            raise SqlError(f"{self.name}: {what} must be a constant {_NAMES[kind]}")
        return value.constant


_NAMES: dict[type[Any], str] = {str: "text", int: "whole number"}


def quoted_text(node: exp.Expr, scope: Scope) -> str | None:
    """Return the text of a name in double quotes that no column has, else None.

    Only for places where a column can't stand: "yyyy-MM-dd'T'HH:mm" is such a pattern.
    """
    from sqlglot import exp

    from datacoolie_core.metadata.dialect.grammar import names_of

    name = node.this
    if not isinstance(name, exp.Identifier) or not name.args.get("quoted"):
        return None
    plain = len(names_of(node)) == 1 and match(name.name, scope.schema) is None
    return name.name if plain else None


def truth(expr: pl.Expr) -> Value:
    """Return a condition."""
    return Value(expr, pl.Boolean())


def text(expr: pl.Expr) -> Value:
    """Return a text."""
    return Value(expr, pl.String())


def int32(expr: pl.Expr) -> Value:
    """Return a number of type INT."""
    return Value(expr.cast(pl.Int32), pl.Int32())


Handler = Callable[[Call], Value]
"""What gives the value of a call."""
