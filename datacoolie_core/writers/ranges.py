"""A range of one destination column: which rows are in it, and which files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import polars as pl

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.casts import Cast, cast_expression, engine_type
from datacoolie_core.engines.moments import moment_of
from datacoolie_core.errors import WriteError
from datacoolie_core.metadata.hint_types import LogicalType
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from datacoolie_core.metadata.hint_type_names import Kind
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.writers.tables import LiveFile


@dataclass(frozen=True)
class Range:
    """Values from ``lower`` up to ``upper``; a row without a value is outside.

    Attributes:
        column: Its name.
        dtype: Its type in the table.
        lower: Inclusive, of the column's type; None is unbounded.
        upper: Of the column's type; None is unbounded.
        upper_inclusive: Whether ``upper`` itself is inside.
        typed: The column as a value of ``dtype``, where the table holds it as text: read like
            the source's text was, since text has another order. None for other columns.
    """

    column: str
    dtype: pl.DataType
    lower: Any = None
    upper: Any = None
    upper_inclusive: bool = False
    typed: pl.Expr | None = None

    @property
    def rows(self) -> pl.Expr:
        """Whether a row is inside, never null."""
        value = pl.col(self.column) if self.typed is None else self.typed
        inside = value.is_not_null()
        if self.lower is not None:
            inside &= value >= self._literal(self.lower)
        if self.upper is not None:
            bound = self._literal(self.upper)
            inside &= value <= bound if self.upper_inclusive else value < bound
        return inside.fill_null(value=False)

    def _literal(self, value: Any) -> pl.Expr:
        # a bound may lie outside what the column's type holds
        exact = isinstance(self.dtype, pl.Decimal) or self.dtype.is_integer()
        return pl.lit(value, dtype=None if exact else self.dtype)

    def overlaps(self, file: LiveFile) -> bool:
        """Return whether a file may hold a row that is inside."""
        if self.typed is not None and self.column not in file.partition:
            return True
        if self.column in file.partition:
            return self.holds(file.partition[self.column])
        low, high = file.lowest.get(self.column), file.highest.get(self.column)
        if low is None or high is None:
            return file.rows is None or file.nulls.get(self.column) != file.rows
        above = self.lower is not None and high < self.lower
        return not (above or self._past(low))

    def covers(self, file: LiveFile) -> bool:
        """Return whether every row of a file is inside for sure."""
        if self.column in file.partition:
            return self.holds(file.partition[self.column])
        if self.typed is not None:
            return False
        low, high = file.lowest.get(self.column), file.highest.get(self.column)
        if low is None or high is None or file.nulls.get(self.column) != 0:
            return False
        return self.holds(low) and self.holds(high)

    def holds(self, value: Any) -> bool:
        """Return whether a value of the column is inside."""
        if self.typed is not None:
            return self._holds_text(value)
        if value is None or (self.lower is not None and value < self.lower):
            return False
        return not self._past(value)

    def _holds_text(self, value: Any) -> bool:
        try:
            return bool(pl.DataFrame({self.column: [value]}).select(self.rows).item())
        except (BadValue, pl.exceptions.PolarsError) as error:
            raise WriteError(
                f"the text {value!r} can't be compared with bounds of type "
                f"{delta_name(self.dtype)}",
                place=f"column '{self.column}'",
                remedy="Give a bound of the column's type, or type the column by a schema hint.",
                code="bound_type",
            ) from error

    def _past(self, value: Any) -> bool:
        if self.upper is None:
            return False
        return bool(value > self.upper if self.upper_inclusive else value >= self.upper)


def range_of(
    column: str,
    schema: pl.Schema,
    bounds: tuple[Scalar | None, Scalar | None],
    *,
    upper_inclusive: bool = False,
    zone: str | None = None,
    written_in: str | None = None,
) -> Range:
    """Return a range whose bounds are of the column's type.

    A date is its midnight. A bound without a zone, for a column with one, is in ``zone`` or UTC; a
    bound with an offset, for a column without a zone, needs one of the zones to be converted.

    Args:
        column: A destination column.
        schema: The table's columns.
        bounds: Lower, inclusive, and upper.
        upper_inclusive: Whether the upper bound is inside.
        zone: ``transform.configure.timestamp_timezone``.
        written_in: Whose clocks showed the bounds when they were written without an offset.

    Raises:
        WriteError: There is no such column, or a bound that it can't be compared with.
    """
    if column not in schema:
        raise WriteError(
            f"the destination has no column '{column}'",
            place="window",
            remedy="The column that bounds a replay must reach the destination under this name"
            " (configure.datacoolie.replay.chunk_column, replay_filter).",
            code="missing_column",
        )
    dtype, typed = schema[column], None
    # days were written as days: what the clocks of another zone showed then does not matter
    clocks = written_in or zone if isinstance(dtype, pl.Date) else zone or written_in
    if isinstance(dtype, pl.String) and (kind := _kind_of(bounds)):
        dtype = engine_type(LogicalType(kind))
        cast_ = Cast(column, LogicalType(kind), zone=clocks)
        typed = cast_expression(cast_, pl.String())
    lower, upper = (None if b is None else _fitted(b, column, dtype, clocks) for b in bounds)
    if dtype.is_integer():
        lower, upper = _whole(lower), _whole(upper, down=upper_inclusive)
    return Range(column, dtype, lower, upper, upper_inclusive, typed)


def _kind_of(bounds: tuple[Scalar | None, Scalar | None]) -> Kind | None:
    """Return the type in which text is compared with bounds, None if that is text itself."""
    first = next((bound for bound in bounds if bound is not None), None)
    if isinstance(first, datetime):
        return "timestamp_ntz" if first.tzinfo is None else "timestamp"
    if isinstance(first, date):
        return "timestamp_ntz"
    if isinstance(first, bool | str) or not isinstance(first, int | float | Decimal):
        return None
    return "int64" if all(isinstance(b, int) for b in bounds if b is not None) else "float64"


def _whole(bound: Any, *, down: bool = False) -> Any:
    """Return the whole number that parts whole numbers as a bound does."""
    if bound is None or isinstance(bound, int):
        return bound
    return math.floor(bound) if down else math.ceil(bound)


def _fitted(bound: Scalar, column: str, dtype: pl.DataType, zone: str | None) -> Any:
    if dtype.is_temporal():
        moment = moment_of(bound)
        if moment is not None:
            return _zoned(moment, column, dtype, zone)
    elif dtype.is_numeric() and isinstance(bound, int | float | Decimal):
        if not isinstance(bound, bool):
            return _number(bound, dtype)
    elif isinstance(bound, str) and isinstance(dtype, pl.String):
        return bound
    raise WriteError(
        f"the bound {bound!r} can't be compared with values of type {delta_name(dtype)}",
        place=f"column '{column}'",
        remedy="Give a bound of the column's type, or type the column by a schema hint.",
        code="bound_type",
    )


def _number(bound: float | Decimal, dtype: pl.DataType) -> float | Decimal:
    if isinstance(dtype, pl.Decimal):
        return Decimal(str(bound))
    if isinstance(dtype, pl.Float32):
        # rows are compared in single precision, so files have to be too
        return float(pl.Series([float(bound)], dtype=pl.Float32)[0])
    return float(bound) if isinstance(dtype, pl.Float64) else bound


def _zoned(moment: date, column: str, dtype: pl.DataType, zone: str | None) -> date:
    if isinstance(dtype, pl.Date):
        return _as_date(moment, column, zone)
    wall = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    if cast("pl.Datetime", dtype).time_zone:
        aware = wall if wall.tzinfo else wall.replace(tzinfo=ZoneInfo(zone or "UTC"))
        return aware.astimezone(UTC)
    return _without_offset(wall, column, zone)


def _without_offset(wall: datetime, column: str, zone: str | None) -> datetime:
    if wall.tzinfo is None:
        return wall
    if zone is None:
        raise WriteError(
            f"the bound {wall.isoformat()} has an offset, the values have none",
            place=f"column '{column}'",
            remedy="Declare the zone of the values: transform.configure.timestamp_timezone.",
            code="zone_unknown",
        )
    return wall.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _as_date(moment: date, column: str, zone: str | None) -> date:
    if not isinstance(moment, datetime):
        return moment
    wall = _without_offset(moment, column, zone)
    if wall.time() != time():
        raise WriteError(
            f"the bound {moment.isoformat()} is inside a day, the values are whole days",
            place=f"column '{column}'",
            remedy="Replay whole days.",
            code="bound_type",
        )
    return wall.date()
