"""SQL expressions of the metadata as expressions of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.names import listed, match, remedy_for
from datacoolie_core.errors import TransformError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        raise TransformError(
            f"{str(error).splitlines()[0]} in `{written}`",
            place=place,
            remedy="Correct the expression; it is written in the SQL of polars.",
            code="sql_error",
        ) from error
    used = parsed.meta.root_names()
    renamed: dict[str, str] = {}
    for name in used:
        column = match(name, schema)
        if column is None:
            raise TransformError(
                f"there is no column '{name}' in `{written}`",
                place=place,
                remedy=remedy_for(name, schema),
                code="missing_column",
            )
        if column != name:
            renamed[name] = column
    return _with_names(parsed, renamed, written, place)


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
