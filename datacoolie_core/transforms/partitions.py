"""Slot 80: partition columns, computed where they have an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.engines.polars_sql import Session, typed_expression
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def _wanted(dataflow: Dataflow) -> bool:
    return any(column.expression for column in dataflow.destination.partition_columns)


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    session = Session(context.now, dataflow.transform.configure.timestamp_timezone)
    for index, column in enumerate(dataflow.destination.partition_columns):
        if column.expression:
            place = f"destination.partition_columns[{index}].expression"
            value = typed_expression(column.expression, shaped.schema, place=place, session=session)
            name = match(column.column, shaped.schema) or column.column
            shaped = shaped.with_columns(**{name: value})
    return shaped.with_ours_last(dataflow)


SLOT = Slot(80, "partitions", _wanted, _apply)
