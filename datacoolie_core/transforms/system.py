"""Slot 70: the system columns; the product's own, at the end of every table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.moments import instant_literal
from datacoolie_core.transforms.slots import SYSTEM_COLUMNS, Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow

UPDATED_BY = "DataCoolie"
_INSTANT = pl.Datetime("us", "UTC")


def _wanted(_dataflow: Dataflow) -> bool:
    return True


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    shaped = shaped.drop([name for name in shaped.schema if name.lower() in SYSTEM_COLUMNS])
    now = instant_literal(context.now)
    values = (now, now, pl.lit(UPDATED_BY), pl.lit(context.run_id))
    types = (_INSTANT, _INSTANT, pl.String(), pl.String())
    added = zip(SYSTEM_COLUMNS, zip(values, types, strict=True), strict=True)
    return shaped.with_columns(**dict(added)).with_ours_last(dataflow)


SLOT = Slot(70, "system", _wanted, _apply)
