"""Slot 85: select or drop columns, then rename some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext, trailing_columns

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def _wanted(dataflow: Dataflow) -> bool:
    transform = dataflow.transform
    return bool(transform.select_columns or transform.drop_columns or transform.rename_columns)


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    transform = dataflow.transform
    if transform.select_columns:
        place = "transform.select_columns"
        chosen = found_columns(
            transform.select_columns, shaped.schema, dataflow, context, place=place
        )
        if not chosen:
            raise TransformError(
                "none of these columns is there",
                place=place,
                remedy=remedy_for(transform.select_columns[0], shaped.schema),
                code="missing_column",
            )
        kept = dict.fromkeys(chosen.values())
        ours = trailing_columns(dataflow)
        trailing = [name for name in shaped.schema if name in ours and name not in kept]
        shaped = shaped.select([*kept, *trailing])
    if transform.drop_columns:
        place = "transform.drop_columns"
        gone = found_columns(transform.drop_columns, shaped.schema, dataflow, context, place=place)
        shaped = shaped.drop(list(gone.values()))
    return _renamed(shaped, dataflow, context)


def _renamed(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    place = "transform.rename_columns"
    wanted = dataflow.transform.rename_columns
    found = found_columns(wanted, shaped.schema, dataflow, context, place=place)
    names = {column: wanted[name] for name, column in found.items()}
    staying = [name for name in shaped.schema if name not in names]
    for old, new in names.items():
        taken = match(new, staying)
        if taken is not None:
            raise TransformError(
                f"'{old}' can't be renamed to '{new}': there is a column '{taken}'",
                place=place,
                remedy="Choose another name, or drop that column.",
                code="name_collision",
            )
    return shaped.rename(names)


SLOT = Slot(85, "projection", _wanted, _apply)
