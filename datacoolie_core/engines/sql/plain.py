"""Simple conditions as SQL that every engine reads alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from datacoolie_core.engines.dtypes import instance
from datacoolie_core.engines.names import match
from datacoolie_core.engines.sql.kinds import Kind, kind_of
from datacoolie_core.metadata.dialect.check import checked

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_NUMBERS = ("int", "decimal", "float")
_TREE = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.Is, exp.In, exp.Between, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null,
    exp.Neg, exp.Like,
)  # fmt: skip
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Like)


def plain_sql(written: str, schema: Mapping[str, pl.DataType]) -> str | None:
    """Return a condition as standard SQL, every name quoted; None if it is not that simple.

    It is simple if it only compares columns with constants or columns of the same kind, so that no
    engine converts anything in its own way.

    >>> import polars as pl
    >>> print(plain_sql("Region = 'north' AND n > 1", {"region": pl.String(), "n": pl.Int64()}))
    "region" = 'north' AND "n" > 1
    >>> plain_sql("upper(region) = 'NORTH'", {"region": pl.String()}) is None
    True

    Args:
        written: The condition, of which it is known that it can be used.
        schema: The columns; case does not matter.
    """
    tree = checked(written).copy()
    if not all(isinstance(node, _TREE) for node in tree.walk()):
        return None
    # how a pattern takes its special characters for plain ones is told in many ways
    if any("\\" in node.sql() for node in tree.find_all(exp.Like)):
        return None
    if not all(_alike(node, schema) for node in tree.find_all(*_COMPARISONS)):
        return None
    for column in tree.find_all(exp.Column):
        name = match(column.name, schema)
        if name is None or len(column.parts) > 1:
            return None
        column.set("this", exp.to_identifier(name, quoted=True))
    return tree.sql()


def _alike(node: exp.Expr, schema: Mapping[str, pl.DataType]) -> bool:
    operands = [node.this, *node.expressions]
    operands += [node.args[name] for name in ("expression", "low", "high") if node.args.get(name)]
    kinds = {kind for one in operands for kind in [_kind(one, schema)] if kind != "null"}
    numbers = {"number" if kind in _NUMBERS else kind for kind in kinds}
    return len(numbers) <= 1 and None not in numbers


def _kind(node: exp.Expr, schema: Mapping[str, pl.DataType]) -> Kind | None:
    if isinstance(node, exp.Paren | exp.Neg):
        return _kind(node.this, schema)
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "int"
    if isinstance(node, exp.Column):
        name = match(node.name, schema)
        return None if name is None else kind_of(instance(schema[name]))
    if isinstance(node, exp.Boolean):
        return "bool"
    return "null" if isinstance(node, exp.Null) else None
