"""Keys and partition columns by the names that they have in the destination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.plan.columns import clean_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Dataflow


def named_as_written(dataflow: Dataflow, columns: Sequence[str]) -> Dataflow:
    """Return the dataflow with its keys and partition columns named as the batch has them.

    The metadata may name a column as the source does, or as it is after name cleaning; case does
    not matter. A name that fits no column is left for the writer to refuse.

    Args:
        dataflow: As prepared.
        columns: The batch's columns, after all transforms.
    """
    mode = dataflow.transform.configure.column_name_mode
    folded = {column.casefold(): column for column in columns}

    def found(name: str) -> str:
        if name in columns:
            return name
        cleaned = clean_name(name, mode)
        return folded.get(name.casefold()) or folded.get(cleaned.casefold()) or name

    destination = dataflow.destination
    partitions = tuple(
        one.model_copy(update={"column": found(one.column)})
        for one in destination.partition_columns
    )
    keys = tuple(found(key) for key in destination.merge_keys)
    update = {"merge_keys": keys, "partition_columns": partitions}
    return dataflow.model_copy(update={"destination": destination.model_copy(update=update)})
