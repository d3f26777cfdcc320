"""What a normal run reads again and therefore replaces: ``merge_overwrite`` by watermark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.errors import WatermarkError, WriteError
from datacoolie_core.plan.columns import blocked_by, destination_column
from datacoolie_core.writers.request import Reread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.readers.batch import ReadRequest

_FIELD = "destination.configure.replace_by_watermark"


def replaces_reread(dataflow: Dataflow) -> bool:
    """Say whether a run replaces what it reads again, rather than the keys of its batch."""
    destination = dataflow.destination
    by_key = destination.load_type == "merge_overwrite"
    return by_key and destination.configure.replace_by_watermark


def tells_own_rows(dataflow: Dataflow) -> bool:
    """Say whether the metadata tells this dataflow's rows from those of others."""
    return dataflow.destination.configure.datacoolie.replay_filter is not None


def refuse_shared(dataflow: Dataflow, *, shared: bool) -> None:
    """Refuse to replace a window in a table that others write too.

    Raises:
        WriteError: Nothing tells the dataflow's rows from theirs.
    """
    if shared and replaces_reread(dataflow) and not tells_own_rows(dataflow):
        raise WriteError(
            "other active dataflows write the same table, so replacing a window would take their"
            " rows",
            dataflow=dataflow.dataflow_id,
            place=_FIELD,
            remedy="Say which rows are this dataflow's"
            " (destination.configure.datacoolie.replay_filter), or give it a table of its own.",
            code="shared_destination",
        )


def reread(dataflow: Dataflow, request: ReadRequest) -> Reread | None:
    """Return what a read covers that earlier loads have written, None if that is not known.

    It is not known at first, while a watermark column has no value yet, and where rows that tie
    with the watermark are not read again: then the keys of the batch are replaced.

    Args:
        dataflow: As prepared.
        request: The read of a normal run.

    Raises:
        WatermarkError: A watermark column can't be followed to the destination.
    """
    if not replaces_reread(dataflow) or not request.inclusive or not request.stored:
        return None
    if any(name not in request.lower for name in dataflow.source.watermark_columns):
        return None
    columns = {name: _followed(dataflow, name) for name in dataflow.source.watermark_columns}
    return Reread(
        lower={column: request.lower[name] for name, column in columns.items()},
        upto={column: request.stored[name] for name, column in columns.items()},
        valueless=request.null_watermark == "include",
    )


def _followed(dataflow: Dataflow, name: str) -> str:
    column = destination_column(dataflow, name)
    if column is None:
        raise WatermarkError(
            f"rows of a window can't be told in the destination by '{name}':"
            f" {blocked_by(dataflow, name)}",
            dataflow=dataflow.dataflow_id,
            place=_FIELD,
            remedy="Let the column arrive unchanged, or set replace_by_watermark: false to replace"
            " the keys of each batch.",
            code="column_not_followed",
        )
    return column


def named(found: Reread, columns: Sequence[str]) -> Reread:
    """Return the same with its columns named as the batch has them."""
    names = {name: match(name, columns) or name for name in found.lower}
    return replace(
        found,
        lower={names[name]: bound for name, bound in found.lower.items()},
        upto={names.get(name, name): value for name, value in found.upto.items()},
    )
