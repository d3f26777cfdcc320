"""Watermark columns with a type: from the schema, a hint, or the values; never compared untyped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression, engine_type
from datacoolie_core.engines.lenient import cast_unless_bad, is_bad
from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.errors import ReadError
from datacoolie_core.metadata.hint_types import LogicalType
from datacoolie_core.readers.hints import hint_of, hinted_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.hint_type_names import Kind
    from datacoolie_core.metadata.models import Dataflow

Family = Literal["number", "date", "clock", "instant", "text", "empty"]
"""``clock`` is a timestamp without a zone, ``instant`` one with; ``empty`` has no value at all."""

_SAMPLE = 1000
_OFFSET = r"\s?(Z|[+-]\d{2}(:?\d{2})?)"
_CLOCK = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
_SHAPES: dict[str, Kind] = {
    r"^[+-]?\d{1,18}$": "int64",
    r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$": "float64",
    r"^\d{4}-\d{2}-\d{2}$": "date",
    f"^{_CLOCK}$": "timestamp_ntz",
    f"^{_CLOCK}{_OFFSET}$": "timestamp",
}
"""What text must look like to be compared as a type, if no hint says which."""


@dataclass(frozen=True)
class WatermarkColumn:
    """One column that bounds a read.

    Attributes:
        name: As the metadata names it: the key in the state.
        column: As the source names it.
        typed: Its value in a type that can be compared; null for null and NaN.
        dtype: The type of ``typed``.
        family: What it can be compared with.
        zone: The zone of values without one; None if nothing declares it.
        plain: ``typed`` is the column as it is, so a filter on it can reach the files.
        bad: Whether a value can't be read as its hint says, so that ``typed`` is null; None where
            such a value ends the read.
    """

    name: str
    column: str
    typed: pl.Expr
    dtype: pl.DataType
    family: Family
    zone: str | None
    plain: bool
    bad: pl.Expr | None = None


def watermark_column(
    name: str,
    frame: pl.LazyFrame,
    schema: Mapping[str, pl.DataType],
    dataflow: Dataflow,
    *,
    place: str = "source.watermark_columns",
) -> WatermarkColumn:
    """Return a column of the source, typed.

    A hint decides for text, and says that a timestamp without a zone is an instant. Text without a
    hint gets the type of its first values; a later value that does not fit stops the read. A
    timestamp without a zone is one of ``timestamp_timezone`` where that is declared.

    Args:
        name: As the metadata names it.
        frame: The source, to look at some values of a text column.
        schema: The columns of ``frame``.
        dataflow: Its hints and zone.
        place: What names the column, for messages.

    Raises:
        ReadError: There is no such column, or values of its type have no order to rely on.
    """
    column = match(name, schema)
    if column is None:
        raise ReadError(
            f"the source has no column '{name}'",
            place=place,
            remedy=remedy_for(name, schema),
            code="missing_column",
        )
    own = schema[column]
    zone = dataflow.transform.configure.timestamp_timezone
    target, pattern = _hinted(column, own, dataflow)
    if target is None and own == pl.String:
        target = _inferred(column, frame)
        own = own if target is not None else pl.Null()
    if target is not None and target.kind == "timestamp_ntz" and zone is not None:
        target = LogicalType("timestamp")
    if target is None or _has_type(own, target):
        return _as_it_is(name, column, own, zone)
    judge = _judge(column, dataflow)
    return _converted(name, column, own, Cast(column, target, pattern, zone), judge)


def _judge(column: str, dataflow: Dataflow) -> Cast | None:
    """Return the cast that says which values are bad; None where a bad value ends the read."""
    hint = hint_of(column, dataflow)
    if hint is None or dataflow.options.on_cast_error == "fail":
        return None
    rules = dataflow.transform.value_rules
    if match(column, [name for rule in rules for name in rule.columns]) is not None:
        # what is bad here may be good once its text was cleaned, and then would be read for ever
        return None
    zone = dataflow.transform.configure.timestamp_timezone
    return Cast(column, hinted_type(column, hint, dataflow), hint.format, zone)


def _hinted(
    column: str, own: pl.DataType, dataflow: Dataflow
) -> tuple[LogicalType | None, str | None]:
    hint = hint_of(column, dataflow)
    if hint is None:
        return None, None
    target = hinted_type(column, hint, dataflow)
    # a hint that only renames the type of numbers would cost the files' statistics
    useless = own.is_numeric() and not own.is_float() and target.kind != "string"
    return (None, None) if useless else (target, hint.format)


def _has_type(own: pl.DataType, target: LogicalType) -> bool:
    if target.kind == "timestamp" and isinstance(own, pl.Datetime):
        return own.time_zone is not None
    return own == engine_type(target)


def _inferred(column: str, frame: pl.LazyFrame) -> LogicalType | None:
    """Return the type of a text column's first values, None if it holds no value."""
    sample = (
        frame.select(pl.col(column))
        .filter(pl.col(column).is_not_null())
        .head(_SAMPLE)
        .collect(engine="streaming")
        .to_series()
    )
    if not len(sample):
        return None
    for pattern, kind in _SHAPES.items():
        if sample.str.contains(pattern).all():
            return LogicalType(kind)
    common = max(_SHAPES, key=lambda pattern: sample.str.contains(pattern).sum())
    odd = sample.filter(~sample.str.contains(common))[0]
    raise ReadError(
        f"it is text, and the type of values such as {odd!r} can't be told",
        place=f"watermark column '{column}'",
        remedy="Add a schema hint for it: a number, date or timestamp type (with its format), or"
        " string to compare it as text.",
        code="untyped_watermark",
    )


def _as_it_is(name: str, column: str, own: pl.DataType, zone: str | None) -> WatermarkColumn:
    value = pl.col(column)
    if isinstance(own, pl.Datetime):
        return _moment(name, column, own, zone)
    if own.is_float():
        return WatermarkColumn(name, column, value.fill_nan(None), own, "number", zone, plain=False)
    if own == pl.Null:
        nothing = pl.lit(None)
        return WatermarkColumn(name, column, nothing, own, "empty", zone, plain=False)
    family: Family | None = None
    if own.is_integer() or own.is_decimal():
        family = "number"
    elif own == pl.Date:
        family = "date"
    elif own == pl.String:
        family = "text"
    if family is None:
        raise _no_watermark(column, str(own))
    return WatermarkColumn(name, column, value, own, family, zone, plain=True)


def _no_watermark(column: str, dtype: str) -> ReadError:
    return ReadError(
        f"values of type {dtype} can't be a watermark",
        place=f"watermark column '{column}'",
        remedy="Use a number, a date, a timestamp or a text column.",
        code="bad_watermark",
    )


def _moment(name: str, column: str, own: pl.Datetime, zone: str | None) -> WatermarkColumn:
    if own.time_zone is None and zone is not None:
        return _converted(name, column, own, Cast(column, LogicalType("timestamp"), None, zone))
    # values closer than a microsecond are ties, which are told apart by their hashes
    exact = own.time_unit != "ns"
    dtype = own if exact else pl.Datetime("us", own.time_zone)
    value = pl.col(column) if exact else pl.col(column).cast(dtype)
    family: Family = "clock" if own.time_zone is None else "instant"
    return WatermarkColumn(name, column, value, dtype, family, zone, plain=exact)


def _converted(
    name: str,
    column: str,
    own: pl.DataType,
    cast: Cast,
    judge: Cast | None = None,
) -> WatermarkColumn:
    target = cast.target
    try:
        value = cast_expression(cast, own) if judge is None else cast_unless_bad(cast, own, judge)
    except ValueError as error:
        raise ReadError(
            str(error),
            place=f"watermark column '{column}'",
            remedy="Correct its schema hint.",
            code="bad_hint",
        ) from error
    families: dict[str, Family] = {
        "date": "date",
        "timestamp": "instant",
        "timestamp_ntz": "clock",
        "string": "text",
    }
    if target.kind in ("bool", "binary", "time"):
        raise _no_watermark(column, target.kind)
    dtype = engine_type(target)
    if dtype.is_float():
        value = value.fill_nan(None)
    plain = own == dtype == pl.String
    return WatermarkColumn(
        name,
        column,
        value,
        dtype,
        families.get(target.kind, "number"),
        cast.zone,
        plain=plain,
        bad=None if judge is None or plain else is_bad(judge, own),
    )
