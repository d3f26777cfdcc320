"""Conditions of the metadata over the columns of a batch or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.names import match
from datacoolie_core.engines.polars_sql import Session, typed_expression
from datacoolie_core.errors import TransformError, WriteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from datacoolie_core.metadata.models import Dataflow


@dataclass(frozen=True)
class Condition:
    """A condition that is true, false, or null, which counts as false.

    Attributes:
        written: As the metadata has it.
        holds: Whether it is true of a row, never null.
        columns: What it looks at.
        schema: The columns that it could have named.
        field: Where it is written.
    """

    written: str
    holds: pl.Expr
    columns: tuple[str, ...]
    schema: Mapping[str, pl.DataType]
    field: str

    @property
    def sql(self) -> str:
        """The same for the library's own writer, every name quoted.

        Raises:
            WriteError: It would not be sure to mean the same there.
        """
        from datacoolie_core.engines.sql.plain import plain_sql

        found = plain_sql(self.written, self.schema)
        if found is None:
            raise WriteError(
                f"{self.field} can't be used with this table, which is written by the Delta library",
                place=f"{self.field}: {self.written}",
                remedy="Compare columns with constants of their own type; use no functions.",
                code=f"bad_{self.field}",
            )
        return found


def condition_of(
    written: str,
    schema: Mapping[str, pl.DataType],
    *,
    field: str,
    dataflow: Dataflow | None = None,
    now: datetime | None = None,
) -> Condition:
    """Return a condition, checked against the columns that it may name.

    Args:
        written: SQL.
        schema: The columns; case does not matter.
        field: Where it is written: ``delete_when``, ``replay_filter``.
        dataflow: Says the zone of timestamps without one.
        now: The instant of the load.

    Raises:
        WriteError: It is no condition, or names a column that is not there.
    """
    zone = None if dataflow is None else dataflow.transform.configure.timestamp_timezone
    session = Session(now, zone)
    try:
        parsed, kind = typed_expression(written, schema, place=field, session=session)
    except TransformError as error:
        raise _refused(field, written, error.message) from error
    if kind != pl.Boolean:
        raise _refused(field, written, f"it gives {kind}, not true or false")
    names = tuple(dict.fromkeys(parsed.meta.root_names()))
    columns = tuple(match(name, schema) or name for name in names)
    return Condition(written, parsed.fill_null(value=False), columns, schema, field)


def _refused(field: str, written: str, why: str) -> WriteError:
    return WriteError(
        f"{field} can't be used: {why}",
        place=f"{field}: {written}",
        remedy="Write a condition over the columns as they are after name cleaning.",
        code=f"bad_{field}",
    )
