"""SQL expressions of the metadata as expressions of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.engines.names import listed, match, remedy_for
from datacoolie_core.errors import TransformError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NEEDS_TYPES = "cannot determine the type"
_VALUE = "__dc_value"


def expression(written: str, schema: Mapping[str, pl.DataType], *, place: str) -> pl.Expr:
    """Return a SQL expression over some columns; their names may differ in case.

    Args:
        written: As the metadata has it.
        schema: The columns that it may name.
        place: The metadata field, for messages.

    Raises:
        TransformError: It is no expression, or names a column or function that is not there.
    """
    try:
        parsed = pl.sql_expr(written)
    except pl.exceptions.PolarsError as error:
        typed = _typed(written, schema, place) if _NEEDS_TYPES in str(error) else None
        if typed is None:
            raise _no_expression(error, written, place) from error
        return typed
    used = {name: _column(name, schema, written, place) for name in parsed.meta.root_names()}
    renamed = {name: column for name, column in used.items() if name != column}
    return _with_names(parsed, renamed, written, place)


def typed_expression(
    written: str, schema: Mapping[str, pl.DataType], *, place: str
) -> tuple[pl.Expr, pl.DataType]:
    """Return a SQL expression and its type: ``pl.Unknown`` if it works on such a column.

    Raises:
        TransformError: As :func:`expression`; or its types do not go together.
    """
    value = expression(written, schema, place=place)
    types = {name: schema[name] for name in value.meta.root_names()}
    if any(is_one_of(dtype, pl.Unknown) for dtype in types.values()):
        return value, pl.Unknown()
    try:
        return value, pl.LazyFrame(schema=types).select(value).collect_schema().dtypes()[0]
    except pl.exceptions.PolarsError as error:
        raise TransformError(
            f"{str(error).splitlines()[0]} in `{written}`",
            place=place,
            remedy="Correct the expression, or the types that it works on.",
            code="bad_expression",
        ) from error


def condition(written: str, schema: Mapping[str, pl.DataType], *, place: str) -> pl.Expr:
    """Return a SQL expression that is true or false.

    Raises:
        TransformError: As :func:`typed_expression`; or it is something else.
    """
    value, kind = typed_expression(written, schema, place=place)
    if not is_one_of(kind, pl.Boolean, pl.Null, pl.Unknown):
        raise TransformError(
            f"`{written}` gives {kind}, not true or false",
            place=place,
            remedy="Write a condition, such as amount > 0.",
            code="bad_expression",
        )
    return value


def columns_in(written: str) -> list[str]:
    """Return the columns that a SQL expression names, as it writes them."""
    try:
        return pl.sql_expr(written).meta.root_names()
    except pl.exceptions.PolarsError:
        return _names_in(written)


def _no_expression(error: Exception, written: str, place: str) -> TransformError:
    return TransformError(
        f"{str(error).splitlines()[0]} in `{written}`",
        place=place,
        remedy="Correct the expression; it is written in the SQL of polars.",
        code="sql_error",
    )


def _column(name: str, schema: Mapping[str, pl.DataType], written: str, place: str) -> str:
    column = match(name, schema)
    if column is None:
        raise TransformError(
            f"there is no column '{name}' in `{written}`",
            place=place,
            remedy=remedy_for(name, schema),
            code="missing_column",
        )
    return column


def _typed(written: str, schema: Mapping[str, pl.DataType], place: str) -> pl.Expr | None:
    """Return an expression that the engine reads only against a frame, such as DATE_TRUNC.

    None if it looks at more than one row, or at none.
    """
    names = _names_in(written)
    if not names:
        return None
    used = {name: _column(name, schema, written, place) for name in names}
    query = f'SELECT ({written}\n) AS "{_VALUE}" FROM self'  # noqa: S608 - reads this frame alone
    types = {name: schema[column] for name, column in used.items()}
    if any(is_one_of(dtype, pl.Unknown) for dtype in types.values()):
        return None
    try:
        kind = pl.LazyFrame(schema=types).sql(query).collect_schema()[_VALUE]
    except pl.exceptions.PolarsError as error:
        raise _no_expression(error, written, place) from error

    def compute(rows: pl.Series) -> pl.Series:
        return rows.struct.unnest().sql(query).to_series()

    row = pl.struct(pl.col(column).alias(name) for name, column in used.items())
    return row.map_batches(compute, return_dtype=kind, is_elementwise=True)


def _names_in(written: str) -> list[str]:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(written, dialect="postgres")
    except SqlglotError:
        return []
    if tree.find(exp.AggFunc, exp.Window, exp.Query):
        return []
    return list(dict.fromkeys(column.parts[0].name for column in tree.find_all(exp.Column)))


def _with_names(parsed: pl.Expr, renamed: dict[str, str], written: str, place: str) -> pl.Expr:
    if not renamed:
        return parsed
    # the engine has no way to rename inside an expression, its SQL text has
    text = written
    for name, column in renamed.items():
        text = _replaced(text, name, column)
    found = pl.sql_expr(text)
    if set(renamed).intersection(found.meta.root_names()):
        raise TransformError(
            f"the columns {listed(renamed)} are written in another case in `{written}`",
            place=place,
            remedy=f"Write {listed(renamed.values())}.",
            code="missing_column",
        )
    return found


def _replaced(text: str, name: str, column: str) -> str:
    import re

    quoted = '"' + column.replace('"', '""') + '"'
    pattern = rf"'(?:[^']|'')*'|\"{re.escape(name)}\"|(?<![\w\".]){re.escape(name)}(?![\w\"(])"
    return re.sub(pattern, lambda found: found[0] if found[0].startswith("'") else quoted, text)
