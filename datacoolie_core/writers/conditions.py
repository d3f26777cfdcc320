"""Conditions of the metadata over the columns of a batch or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.names import match
from datacoolie_core.engines.polars_sql import expression
from datacoolie_core.errors import TransformError, WriteError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Condition:
    """A condition that is true, false, or null, which counts as false.

    Attributes:
        written: As the metadata has it.
        holds: Whether it is true of a row, never null.
        columns: What it looks at.
        sql: The same for the library's own writer, every name quoted.
    """

    written: str
    holds: pl.Expr
    columns: tuple[str, ...]
    sql: str


def condition_of(written: str, schema: Mapping[str, pl.DataType], *, field: str) -> Condition:
    """Return a condition, checked against the columns that it may name.

    Args:
        written: SQL.
        schema: The columns; case does not matter.
        field: Where it is written: ``delete_when``, ``replay_filter``.

    Raises:
        WriteError: It is no condition, or names a column that is not there.
    """
    try:
        parsed = expression(written, schema, place=field)
        kind = pl.LazyFrame(schema=schema).select(parsed).collect_schema().dtypes()[0]
    except TransformError as error:
        raise _refused(field, written, error.message) from error
    except pl.exceptions.PolarsError as error:
        raise _refused(field, written, str(error).splitlines()[0]) from error
    if kind != pl.Boolean:
        raise _refused(field, written, f"it gives {kind}, not true or false")
    columns = tuple(dict.fromkeys(parsed.meta.root_names()))
    return Condition(written, parsed.fill_null(value=False), columns, _quoted(written, schema))


def _refused(field: str, written: str, why: str) -> WriteError:
    return WriteError(
        f"{field} can't be used: {why}",
        place=f"{field}: {written}",
        remedy="Write a condition over the columns as they are after name cleaning.",
        code=f"bad_{field}",
    )


def _quoted(written: str, schema: Mapping[str, pl.DataType]) -> str:
    import sqlglot
    from sqlglot import expressions

    tree = sqlglot.parse_one(written)
    for column in tree.find_all(expressions.Column):
        name = match(column.name, schema) or column.name
        column.set("this", expressions.to_identifier(name, quoted=True))
    return tree.sql()
