"""Schema hints as the readers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.errors import ReadError
from datacoolie_core.metadata.hint_types import LogicalType, hint_dialect, parse_type

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow, SchemaHint


def hint_of(column: str, dataflow: Dataflow) -> SchemaHint | None:
    """Return the hint that types a column of the source, None if none does."""
    if not dataflow.source.connection.configure.use_schema_hint:
        return None
    active = [hint for hint in dataflow.transform.schema_hints if hint.is_active]
    name = match(column, [hint.column_name for hint in active])
    return next((hint for hint in active if hint.column_name == name), None)


def hinted_type(column: str, hint: SchemaHint, dataflow: Dataflow) -> LogicalType:
    """Return the type that a hint names.

    Raises:
        ReadError: It names none.
    """
    dialect = hint_dialect(dataflow.source.connection)
    try:
        return parse_type(hint.data_type, dialect, hint.precision, hint.scale)
    except ValueError as error:
        raise ReadError(
            str(error),
            place=f"schema hint of '{column}'",
            remedy="Correct the hint.",
            code="bad_hint",
        ) from error
