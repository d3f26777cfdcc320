"""Bounds of a read as filters: values are fitted to the column's type, or refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import polars as pl

from datacoolie_core.engines.moments import moment_of
from datacoolie_core.errors import ReadError, WatermarkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.plan.windows import Scalar, Window
    from datacoolie_core.readers.watermark_columns import WatermarkColumn


def fitted(value: Scalar, column: WatermarkColumn, written_in: str | None = None) -> Scalar:
    """Return a bound as a value that the column can be compared with.

    Dates and timestamps fit each other (a date is its midnight); a bound without a zone takes the
    declared zone, else UTC; an offset is converted. Text is read as ISO 8601.

    Args:
        value: The bound.
        column: What it is compared with.
        written_in: Whose clocks showed the bound when it was written without an offset: values
            without a zone are compared with these clocks.

    Raises:
        ReadError: The bound is of another kind, or its offset would have to be dropped.
    """
    family = column.family
    if family == "empty":
        return value
    if (
        family == "number"
        and isinstance(value, int | float | Decimal)
        and not isinstance(value, bool)
    ):
        return value
    if family == "text" and isinstance(value, str):
        return value
    if family in ("date", "clock", "instant"):
        moment = moment_of(value)
        if moment is not None:
            return _zoned(moment, column, written_in)
    raise ReadError(
        f"the bound {_shown(value)} can't be compared with values of type {column.dtype}",
        place=f"column '{column.column}'",
        remedy="Give a bound of the column's type, or a schema hint that types the column.",
        code="bound_type",
    )


def _zoned(value: date, column: WatermarkColumn, written_in: str | None) -> date:
    if column.family == "instant":
        moment = datetime.fromisoformat(value.isoformat())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(column.zone or "UTC"))
        return moment.astimezone(UTC)
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value
    if written_in is not None:
        return value.astimezone(ZoneInfo(written_in)).replace(tzinfo=None)
    if column.family == "date":
        local = value.astimezone(ZoneInfo(column.zone)) if column.zone else value
        if column.zone or local.time() == time():
            # a day's midnight in its own zone is that day
            return local.replace(tzinfo=None)
    raise ReadError(
        f"the bound {_shown(value)} has an offset, the values have none",
        place=f"column '{column.column}'",
        remedy="Declare the zone of the values: transform.configure.timestamp_timezone.",
        code="zone_unknown",
    )


def fitted_state(value: Scalar, column: WatermarkColumn) -> Scalar:
    """Return a stored watermark as a value of the column's type.

    Raises:
        WatermarkError: The source's type has changed so that the two have no common order.
    """
    naive = isinstance(value, datetime) and value.tzinfo is None
    if naive and column.family == "instant" and column.zone is None:
        raise _changed(value, column, "Declare the zone of the stored value")
    try:
        return fitted(value, column)
    except ReadError as error:
        hint = "Declare the zone of the values" if error.code == "zone_unknown" else None
        raise _changed(value, column, hint) from error


def _changed(value: Scalar, column: WatermarkColumn, hint: str | None) -> WatermarkError:
    name = column.name
    first = f"{hint} (transform.configure.timestamp_timezone), or set" if hint else "Set"
    return WatermarkError(
        f"the stored watermark is {_shown(value)}, but the column's values are of type"
        f" {column.dtype}",
        place=f"column '{name}'",
        remedy=f"{first} the watermark anew with `datacoolie watermark set`, or reset it to load"
        " everything again.",
        code="watermark_type_changed",
    )


def _shown(value: Scalar) -> str:
    kind = type(value).__name__
    text = value.isoformat() if isinstance(value, date) else repr(value)
    return f"{text} ({kind})"


def literal(value: Scalar, column: WatermarkColumn) -> pl.Expr:
    """Return a fitted bound as an expression in the column's own zone."""
    if (
        isinstance(value, datetime)
        and isinstance(column.dtype, pl.Datetime)
        and column.dtype.time_zone
    ):
        instant = pl.lit(value, dtype=pl.Datetime("us", "UTC"))
        return instant.dt.convert_time_zone(column.dtype.time_zone)
    return pl.lit(value)


def above(bounds: Sequence[tuple[WatermarkColumn, Scalar | None]], *, inclusive: bool) -> pl.Expr:
    """Return the filter of a normal run: above the bound in at least one column.

    Rows without any watermark value pass too, so that they can be counted.

    Args:
        bounds: Column and fitted lower bound, None if the column has none yet.
        inclusive: Whether a row at a bound is read.
    """
    parts = [_above(column, value, inclusive=inclusive) for column, value in bounds]
    return _any([*parts, without_value([column for column, _ in bounds])])


def without_value(columns: Sequence[WatermarkColumn]) -> pl.Expr:
    """Return whether a row has no watermark value at all: null or NaN in every column."""
    return reduce(lambda one, other: one & other, [column.typed.is_null() for column in columns])


def _above(column: WatermarkColumn, value: Scalar | None, *, inclusive: bool) -> pl.Expr:
    if value is None:
        return column.typed.is_not_null()
    bound = literal(value, column)
    return column.typed >= bound if inclusive else column.typed > bound


def _any(parts: Sequence[pl.Expr]) -> pl.Expr:
    return reduce(lambda one, other: one | other, parts)


def fitted_window(window: Window, column: WatermarkColumn) -> Window:
    """Return a chunk's window with bounds that the column can be compared with.

    Raises:
        ReadError: A bound is of another kind, or its offset would have to be dropped.
    """
    lower, upper = (
        None if bound is None else _of_type(fitted(bound, column, window.zone), column)
        for bound in (window.lower, window.upper)
    )
    return replace(window, lower=lower, upper=upper, zone=None)


def _of_type(value: Scalar, column: WatermarkColumn) -> Scalar:
    """Return a date as a timestamp, or midnight as a date, as the column has them."""
    if not isinstance(value, date):
        return value
    if isinstance(value, datetime):
        midnight = column.family == "date" and value.time() == time()
        return value.date() if midnight else value
    return datetime.combine(value, time()) if column.family == "clock" else value


def within(column: WatermarkColumn, window: Window) -> pl.Expr:
    """Return the filter of a replay: inside a half-open window; null is outside.

    Args:
        column: What is bounded.
        window: From :func:`fitted_window`.
    """
    parts: list[pl.Expr] = []
    if window.lower is not None:
        parts.append(column.typed >= literal(window.lower, column))
    if window.upper is not None:
        parts.append(column.typed < literal(window.upper, column))
    if not parts:
        return column.typed.is_not_null()
    return reduce(lambda one, other: one & other, parts)
