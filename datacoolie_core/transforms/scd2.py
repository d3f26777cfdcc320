"""Slot 60: the validity of each row as a version of its key."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression
from datacoolie_core.engines.polars_sql import Session, expression
from datacoolie_core.errors import TransformError
from datacoolie_core.metadata.hint_types import LogicalType
from datacoolie_core.plan.columns import SCD2_COLUMNS
from datacoolie_core.plan.scd2 import (
    EFFECTIVE,
    IS_CURRENT,
    VALID_FROM,
    VALID_TO,
    effective_default,
    effective_expression,
    keeps_history,
)
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow

_INSTANT = pl.Datetime("us", "UTC")
_NANOSECONDS = pl.Datetime("ns", "UTC")


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    value = _effective(shaped, dataflow, context)
    kind = _kind(shaped, value)
    ready = _instant(shaped.with_columns(**{VALID_FROM: (value, kind)}), value, kind, dataflow)
    others = [n for n in ready.schema if n.lower() in SCD2_COLUMNS and n not in SCD2_COLUMNS]
    added = {
        VALID_TO: (pl.lit(None, dtype=_INSTANT), _INSTANT),
        IS_CURRENT: (pl.lit(value=True), pl.Boolean()),
    }
    return ready.drop(others).with_columns(**added).with_ours_last(dataflow)


def _effective(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> pl.Expr:
    written = effective_expression(dataflow)
    if written is not None:
        session = Session(context.now, dataflow.transform.configure.timestamp_timezone)
        return expression(written, shaped.schema, place=EFFECTIVE, session=session)
    column = effective_default(dataflow)
    if column is None:
        return pl.lit(context.now.astimezone(UTC), dtype=_INSTANT)
    place = "source.watermark_columns"
    found = found_columns([column], shaped.schema, dataflow, context, place=place, policy="error")
    return pl.col(found[column])


def _kind(shaped: Shaped, value: pl.Expr) -> pl.DataType:
    try:
        return shaped.frame.select(value.alias(VALID_FROM)).collect_schema().dtypes()[0]
    except pl.exceptions.PolarsError as error:
        raise TransformError(
            str(error).splitlines()[0],
            place=EFFECTIVE,
            remedy="Correct the expression or the types that it works on.",
            code="bad_expression",
        ) from error


def _instant(shaped: Shaped, value: pl.Expr, kind: pl.DataType, dataflow: Dataflow) -> Shaped:
    """Make UTC instants of what the expression gives: the rules are those of a TIMESTAMP hint.

    Nanoseconds stay, so that the writer can say which value it can't keep.
    """
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        utc = pl.col(VALID_FROM).dt.convert_time_zone("UTC")
        return shaped.with_columns(**{VALID_FROM: (utc, pl.Datetime(kind.time_unit, "UTC"))})
    if not isinstance(kind, pl.Datetime | pl.Date | pl.String):
        raise TransformError(
            f"versions are valid from an instant, but {_told(dataflow)} is {kind}",
            place=EFFECTIVE,
            remedy="Name a date or a timestamp there; CURRENT_TIMESTAMP is the time of the load.",
            code="not_an_instant",
        )
    column = value.meta.output_name() if value.meta.is_column() else VALID_FROM
    zone = dataflow.transform.configure.timestamp_timezone
    made = cast_expression(Cast(column, LogicalType("timestamp"), zone=zone), kind)
    if isinstance(kind, pl.Datetime) and kind.time_unit == "ns":
        own = pl.col(column)
        made = made.cast(_NANOSECONDS) + (own - own.cast(pl.Datetime("us")).cast(kind))
        return shaped.with_columns(**{VALID_FROM: (made, _NANOSECONDS)})
    return shaped.with_columns(**{VALID_FROM: (made, _INSTANT)})


def _told(dataflow: Dataflow) -> str:
    written = effective_expression(dataflow)
    if written is not None:
        return f"`{written}`"
    return f"the watermark column '{effective_default(dataflow)}', which stands in for it,"


SLOT = Slot(60, "scd2", keeps_history, _apply)
