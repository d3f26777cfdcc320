"""Slot 30: computed columns, one after the other, so that a later one may use an earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.engines.polars_sql import Session, typed_expression
from datacoolie_core.transforms.slots import SYSTEM_COLUMNS, Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def _wanted(dataflow: Dataflow) -> bool:
    return bool(dataflow.transform.additional_columns)


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    # those of an earlier stage describe that stage's load, not this one
    shaped = shaped.drop([name for name in shaped.schema if name.lower() in SYSTEM_COLUMNS])
    session = Session(context.now, dataflow.transform.configure.timestamp_timezone)
    for index, column in enumerate(dataflow.transform.additional_columns):
        place = f"transform.additional_columns[{index}].expression"
        value = typed_expression(column.expression, shaped.schema, place=place, session=session)
        name = match(column.column, shaped.schema) or column.column
        shaped = shaped.with_columns(**{name: value})
    return shaped


SLOT = Slot(30, "columns", _wanted, _apply)
