"""Columns that metadata names and the data does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from datacoolie_core.engines.names import listed, match, remedy_for
from datacoolie_core.errors import TransformError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.transforms.slots import TransformContext

MissingPolicy = Literal["error", "ignore"]


def found_columns(
    names: Iterable[str],
    columns: Iterable[str],
    dataflow: Dataflow,
    context: TransformContext | None,
    *,
    place: str,
    policy: MissingPolicy | None = None,
) -> dict[str, str]:
    """Return which column each name means; the ones without a column are left out, with a warning.

    Args:
        names: As the metadata has them.
        columns: Those of the frame.
        dataflow: Its ``missing_column_policy`` decides about names without a column.
        context: Gets the warning; None if nobody asks.
        place: The metadata field, for messages.
        policy: Decides in place of the dataflow's, where the format leaves no choice.

    Raises:
        TransformError: A column is missing, and the policy is ``error``.
    """
    known = list(columns)
    result: dict[str, str] = {}
    missing: list[str] = []
    for name in names:
        column = match(name, known)
        if column is None:
            missing.append(name)
        else:
            result[name] = column
    if not missing:
        return result
    text = f"there is no column {listed(missing)}"
    remedy = remedy_for(missing[0], known)
    if (policy or dataflow.transform.configure.missing_column_policy) == "error":
        raise TransformError(text, place=place, remedy=remedy, code="missing_column")
    if context is not None:
        context.warnings.append(("missing_column", f"{place}: {text}, so it is left out. {remedy}"))
    return result
