"""Rows as they are hashed: hinted columns and watermarks by their typed values, not their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression, engine_type
from datacoolie_core.engines.lenient import lenient_cast
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.hints import Hints, hint_of, hinted_type, hints_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.readers.watermark_columns import WatermarkColumn

_MOMENTS = ("date", "clock", "instant")


@dataclass(frozen=True)
class TypedRow:
    """What is hashed of a row.

    Attributes:
        values: The columns that are not hashed as they are, under their own names.
        schema: Name → type, for the fingerprint.
    """

    values: tuple[pl.Expr, ...]
    schema: dict[str, pl.DataType]


def typed_row(
    schema: Mapping[str, pl.DataType], columns: Sequence[WatermarkColumn], dataflow: Dataflow
) -> TypedRow:
    """Return how the rows of a source are hashed, so that one value has one hash however written.

    Args:
        schema: The source's columns as read.
        columns: The watermark columns.
        dataflow: Its hints and its zone.
    """
    watermarks = {column.column: column for column in columns}
    hints = hints_of(dataflow)
    values: list[pl.Expr] = []
    types: dict[str, pl.DataType] = {}
    for name, own in schema.items():
        value, dtype = _watermark(own, watermarks.get(name), dataflow) or _hinted(
            name, own, dataflow, hints
        )
        if value is not None:
            values.append(value.alias(name))
        types[name] = _in_utc(dtype)
    return TypedRow(tuple(values), types)


def _watermark(
    own: pl.DataType, column: WatermarkColumn | None, dataflow: Dataflow
) -> tuple[pl.Expr, pl.DataType] | None:
    """Return a watermark that is a moment made of text, or of a clock in a declared zone."""
    clock = isinstance(own, pl.Datetime) and own.time_zone is None
    if column is None or column.family not in _MOMENTS or not (own == pl.String or clock):
        return None
    if column.dtype == own:
        return None
    if own == pl.String and hint_of(column.column, dataflow) is None:
        # the type of bare text comes from its values, and a read without any has none to tell:
        # the fingerprint must not change with that
        return column.typed, own
    return column.typed, column.dtype


def _hinted(
    name: str, own: pl.DataType, dataflow: Dataflow, hints: Hints
) -> tuple[pl.Expr | None, pl.DataType]:
    hint = hints.of(name)
    if hint is None:
        return None, own
    zone = dataflow.transform.configure.timestamp_timezone
    try:
        target = hinted_type(name, hint, dataflow)
        typed = cast_expression if dataflow.options.on_cast_error == "fail" else lenient_cast
        return typed(Cast(name, target, hint.format, zone), own), engine_type(target)
    except (ReadError, ValueError):
        # the transforms refuse this hint, with what to do
        return None, own


def _in_utc(dtype: pl.DataType) -> pl.DataType:
    """Return a type with UTC for any zone: an instant is hashed as one, wherever it is shown."""
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return pl.Datetime(dtype.time_unit, "UTC")
    return dtype
