"""Schema hints as the readers see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core.errors import ReadError
from datacoolie_core.metadata.hint_types import LogicalType, hint_dialect, parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.models import Dataflow, SchemaHint


@dataclass(frozen=True)
class Hints:
    """The active hints of a dataflow, found at once: sources may have thousands of columns.

    Attributes:
        exact: Column as it is written → its hint.
        folded: The same without case; the first of those that differ in case only.
    """

    exact: Mapping[str, SchemaHint]
    folded: Mapping[str, SchemaHint]

    def of(self, column: str) -> SchemaHint | None:
        """Return the hint that types a column of the source, None if none does."""
        return self.exact.get(column) or self.folded.get(column.casefold())


def hints_of(dataflow: Dataflow) -> Hints:
    """Return the hints that count for a dataflow's source."""
    used = dataflow.source.connection.configure.use_schema_hint
    active = [hint for hint in dataflow.transform.schema_hints if used and hint.is_active]
    exact: dict[str, SchemaHint] = {}
    folded: dict[str, SchemaHint] = {}
    for hint in active:
        exact.setdefault(hint.column_name, hint)
        folded.setdefault(hint.column_name.casefold(), hint)
    return Hints(exact, folded)


def hint_of(column: str, dataflow: Dataflow) -> SchemaHint | None:
    """Return the hint that types one column of the source, None if none does."""
    return hints_of(dataflow).of(column)


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
