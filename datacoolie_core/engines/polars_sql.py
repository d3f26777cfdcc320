"""SQL expressions of the metadata as expressions of the engine.

The SQL is that of Spark with a few additions: docs/reference/sql.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.engines.sql.kinds import shown
from datacoolie_core.engines.sql.values import Session, SqlError, Value, scope_of
from datacoolie_core.errors import TransformError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Session", "columns_in", "condition", "expression", "typed_expression"]

_REFERENCE = "Correct the expression; docs/reference/sql.md has the functions."


def expression(
    written: str,
    schema: Mapping[str, pl.DataType],
    *,
    place: str,
    session: Session | None = None,
) -> pl.Expr:
    """Return a SQL expression over some columns; their names may differ in case.

    Args:
        written: As the metadata has it.
        schema: The columns that it may name.
        place: The metadata field, for messages.
        session: The load's instant and zone; None is this instant, and UTC.

    Raises:
        TransformError: It is no expression, or names a column or function that is not there.
    """
    return _value(written, schema, place, session).expr


def typed_expression(
    written: str,
    schema: Mapping[str, pl.DataType],
    *,
    place: str,
    session: Session | None = None,
) -> tuple[pl.Expr, pl.DataType]:
    """Return a SQL expression and its type: ``pl.Unknown`` if it works on such a column.

    Raises:
        TransformError: As :func:`expression`; or its types do not go together.
    """
    value = _value(written, schema, place, session)
    names = value.expr.meta.root_names()
    types = {name: schema[name] for name in names}
    if any(is_one_of(dtype, pl.Unknown) for dtype in types.values()):
        return value.expr, pl.Unknown()
    try:
        # the engine has the last word: what it says is what the table gets
        known = pl.LazyFrame(schema=types).select(value.expr).collect_schema().dtypes()[0]
    except pl.exceptions.PolarsError as error:
        raise TransformError(
            f"{str(error).splitlines()[0]} in `{written}`",
            place=place,
            remedy="Correct the expression, or the types that it works on.",
            code="bad_expression",
        ) from error
    return value.expr, known


def condition(
    written: str,
    schema: Mapping[str, pl.DataType],
    *,
    place: str,
    session: Session | None = None,
) -> pl.Expr:
    """Return a SQL expression that is true or false.

    Raises:
        TransformError: As :func:`typed_expression`; or it is something else.
    """
    value, kind = typed_expression(written, schema, place=place, session=session)
    if not is_one_of(kind, pl.Boolean, pl.Null, pl.Unknown):
        raise TransformError(
            f"`{written}` gives {shown(kind)}, not true or false",
            place=place,
            remedy="Write a condition, such as amount > 0.",
            code="bad_expression",
        )
    return value


def columns_in(written: str) -> list[str]:
    """Return the columns that a SQL expression names, as it writes them; none if it is none."""
    from datacoolie_core.metadata.dialect.grammar import DialectError, names_in, parsed

    try:
        return names_in(parsed(written))
    except DialectError:
        return []


def _value(
    written: str, schema: Mapping[str, pl.DataType], place: str, session: Session | None
) -> Value:
    from datacoolie_core.engines.sql.translate import translate
    from datacoolie_core.metadata.dialect.check import checked
    from datacoolie_core.metadata.dialect.grammar import DialectError

    try:
        return translate(checked(written), scope_of(schema, session))
    except DialectError as error:
        meant = f" Did you mean '{error.suggestion}'?" if error.suggestion else ""
        raise TransformError(
            f"{error} in `{written}`", place=place, remedy=f"{_REFERENCE}{meant}", code="sql_error"
        ) from error
    except SqlError as error:
        raise TransformError(
            f"{error} in `{written}`", place=place, remedy=error.remedy, code=error.code
        ) from error
