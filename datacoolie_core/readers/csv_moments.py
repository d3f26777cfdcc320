"""Dates and times that a CSV file's types are inferred to be: read as text, parsed by column.

The engine's CSV parser looks for the form of every single value, which costs more than all its other
work. A column whose first values are ISO 8601 is parsed at once instead, several times as fast, and a
value that does not fit is told with its column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.casts import Cast, cast_expression
from datacoolie_core.metadata.hint_types import LogicalType

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAMPLE = 100
_INFERRING = ("infer_schema", "try_parse_dates")


def iso_moments(
    path: str, options: Mapping[str, Any], schema: Mapping[str, pl.DataType]
) -> dict[str, LogicalType]:
    """Return the columns that ISO texts made temporal, with the type that they get.

    Args:
        path: The file, as the engine reads it.
        options: As given to the engine.
        schema: The inferred columns.
    """
    kinds = {name: kind for name, dtype in schema.items() if (kind := _kind_of(dtype))}
    if not kinds or options.get("ignore_errors"):
        return {}
    reading = {key: value for key, value in options.items() if not key.startswith(_INFERRING)}
    texts = pl.scan_csv(path, glob=False, raise_if_empty=False, infer_schema=False, **reading)
    length = options.get("infer_schema_length", _SAMPLE) or _SAMPLE
    sample = texts.select(list(kinds)).head(length).collect(engine="streaming")
    return {name: kind for name, kind in kinds.items() if _fits(sample[name], kind)}


def with_moments(frame: pl.LazyFrame, moments: Mapping[str, LogicalType]) -> pl.LazyFrame:
    """Return the frame with its texts as moments.

    A value that is none makes the frame raise :class:`BadValue` when it is computed.
    """
    text = pl.String()
    return frame.with_columns(
        cast_expression(Cast(name, kind), text) for name, kind in moments.items()
    )


def _kind_of(dtype: pl.DataType) -> LogicalType | None:
    if dtype == pl.Date:
        return LogicalType("date")
    if isinstance(dtype, pl.Datetime):
        return LogicalType("timestamp" if dtype.time_zone else "timestamp_ntz")
    return None


def _fits(values: pl.Series, kind: LogicalType) -> bool:
    if kind.kind != "date" and values.str.contains(r"^.{10}[T ]").not_().any():
        return False
    try:
        values.to_frame().select(cast_expression(Cast(values.name, kind), pl.String()))
    except (BadValue, pl.exceptions.PolarsError):
        return False
    return True
