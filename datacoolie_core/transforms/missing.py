"""Columns that metadata names and the data does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.errors import TransformError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow


def found_columns(
    names: Iterable[str],
    columns: Iterable[str],
    dataflow: Dataflow,
    *,
    place: str,
    strict: bool = False,
) -> dict[str, str]:
    """Return which column each name means.

    Args:
        names: As the metadata has them.
        columns: Those of the frame.
        dataflow: Its ``missing_column_policy`` decides about names without a column.
        place: The metadata field, for messages.
        strict: A missing column is an error, whatever the policy.

    Raises:
        TransformError: A column is missing, and the policy is ``error``.
    """
    known = list(columns)
    policy = dataflow.transform.configure.missing_column_policy
    result: dict[str, str] = {}
    for name in names:
        column = match(name, known)
        if column is not None:
            result[name] = column
        elif strict or policy == "error":
            raise TransformError(
                f"there is no column '{name}'",
                place=place,
                remedy=remedy_for(name, known),
                code="missing_column",
            )
    return result
