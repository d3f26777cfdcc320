"""Slot 35: the rows that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.polars_sql import Session, condition
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def _wanted(dataflow: Dataflow) -> bool:
    return bool(dataflow.transform.filter_expression)


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    written = dataflow.transform.filter_expression or "true"
    session = Session(context.now, dataflow.transform.configure.timestamp_timezone)
    place = "transform.filter_expression"
    kept = condition(written, shaped.schema, place=place, session=session)
    return shaped.with_frame(shaped.frame.filter(kept))


SLOT = Slot(35, "filter", _wanted, _apply)
