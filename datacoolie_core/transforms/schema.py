"""Slot 10: types from schema hints, then wall clock times to instants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression
from datacoolie_core.errors import TransformError
from datacoolie_core.metadata.hint_types import LogicalType, hint_dialect, parse_type
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext
from datacoolie_core.transforms.tolerant import Conversion, tolerant

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow, SchemaHint

_INSTANT = LogicalType("timestamp")


def _hints(dataflow: Dataflow) -> list[SchemaHint]:
    if not dataflow.source.connection.configure.use_schema_hint:
        return []
    return [hint for hint in dataflow.transform.schema_hints if hint.is_active]


def _wanted(dataflow: Dataflow) -> bool:
    return bool(_hints(dataflow)) or dataflow.transform.configure.convert_timestamp_ntz


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    zone = dataflow.transform.configure.timestamp_timezone
    hints = {hint.column_name: hint for hint in _hints(dataflow)}
    place = "transform.schema_hints"
    # shared hints describe a table, of which a file may hold a part: the format only warns
    columns = found_columns(hints, shaped.schema, dataflow, context, place=place, policy="ignore")
    hinted = [
        _hinted(column, hints[name], shaped.schema[column], dataflow)
        for name, column in columns.items()
    ]
    types = {**shaped.schema, **{one.cast.column: one.wanted for one in hinted}}
    instants = [
        Conversion(Cast(name, _INSTANT, zone=zone), dtype)
        for name, dtype in types.items()
        if dataflow.transform.configure.convert_timestamp_ntz and _is_naive(dtype)
    ]
    if context.bad_rows is not None:
        return tolerant(shaped, (hinted, instants), context.bad_rows)
    for stage in (hinted, instants):
        changed = {one.cast.column: (one.exact, one.wanted) for one in stage}
        shaped = shaped.with_columns(**changed) if changed else shaped
    return shaped


def _is_naive(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime) and dtype.time_zone is None


def _hinted(column: str, hint: SchemaHint, own: pl.DataType, dataflow: Dataflow) -> Conversion:
    zone = dataflow.transform.configure.timestamp_timezone
    try:
        dialect = hint_dialect(dataflow.source.connection)
        target = parse_type(hint.data_type, dialect, hint.precision, hint.scale)
        cast = Cast(column, target, hint.format, zone)
        cast_expression(cast, own)
        if hint.default_value is None:
            return Conversion(cast, own)
        given = pl.DataFrame({column: [hint.default_value]})
        default = given.select(cast_expression(cast, pl.String())).to_series()[0]
        return Conversion(cast, own, default)
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise TransformError(
            f"the schema hint '{hint.data_type}' can't be applied: {str(error).splitlines()[0]}",
            place=f"column '{column}'",
            remedy="Correct the hint's type, format or default_value.",
            code="bad_hint",
        ) from error


SLOT = Slot(10, "schema", _wanted, _apply)
