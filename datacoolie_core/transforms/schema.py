"""Slot 10: types from schema hints, then wall clock times to instants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression, engine_type
from datacoolie_core.errors import TransformError
from datacoolie_core.metadata.hint_types import LogicalType, hint_dialect, parse_type
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow, SchemaHint


def _hints(dataflow: Dataflow) -> list[SchemaHint]:
    if not dataflow.source.connection.configure.use_schema_hint:
        return []
    return [hint for hint in dataflow.transform.schema_hints if hint.is_active]


def _wanted(dataflow: Dataflow) -> bool:
    return bool(_hints(dataflow)) or dataflow.transform.configure.convert_timestamp_ntz


def _apply(shaped: Shaped, dataflow: Dataflow, _context: TransformContext) -> Shaped:
    zone = dataflow.transform.configure.timestamp_timezone
    hints = {hint.column_name: hint for hint in _hints(dataflow)}
    place = "transform.schema_hints"
    columns = found_columns(hints, shaped.schema, dataflow, place=place)
    changed = {
        column: _hinted(column, hints[name], shaped.schema[column], dataflow)
        for name, column in columns.items()
    }
    if changed:
        shaped = shaped.with_columns(**changed)
    if not dataflow.transform.configure.convert_timestamp_ntz:
        return shaped
    instant = LogicalType("timestamp")
    naive = {
        name: (cast_expression(Cast(name, instant, zone=zone), dtype), engine_type(instant))
        for name, dtype in shaped.schema.items()
        if isinstance(dtype, pl.Datetime) and dtype.time_zone is None
    }
    return shaped.with_columns(**naive) if naive else shaped


def _hinted(
    column: str, hint: SchemaHint, own: pl.DataType, dataflow: Dataflow
) -> tuple[pl.Expr, pl.DataType]:
    zone = dataflow.transform.configure.timestamp_timezone
    try:
        dialect = hint_dialect(dataflow.source.connection)
        target = parse_type(hint.data_type, dialect, hint.precision, hint.scale)
        value = cast_expression(Cast(column, target, hint.format, zone), own)
        if hint.default_value is not None:
            given = pl.DataFrame({column: [hint.default_value]})
            cast = cast_expression(Cast(column, target, hint.format, zone), pl.String())
            value = value.fill_null(pl.lit(given.select(cast).to_series()[0], engine_type(target)))
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise TransformError(
            f"the schema hint '{hint.data_type}' can't be applied: {str(error).splitlines()[0]}",
            place=f"column '{column}'",
            remedy="Correct the hint's type, format or default_value.",
            code="bad_hint",
        ) from error
    return value, engine_type(target)


SLOT = Slot(10, "schema", _wanted, _apply)
