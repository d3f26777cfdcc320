"""A range of one destination column: which rows are in it, and which files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import polars as pl

from datacoolie_core.engines.moments import moment_of
from datacoolie_core.errors import WriteError
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
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
    """

    column: str
    dtype: pl.DataType
    lower: Any = None
    upper: Any = None
    upper_inclusive: bool = False

    @property
    def rows(self) -> pl.Expr:
        """Whether a row is inside, never null."""
        value = pl.col(self.column)
        inside = value.is_not_null()
        if self.lower is not None:
            inside &= value >= self._literal(self.lower)
        if self.upper is not None:
            bound = self._literal(self.upper)
            inside &= value <= bound if self.upper_inclusive else value < bound
        return inside.fill_null(value=False)

    def _literal(self, value: Any) -> pl.Expr:
        return pl.lit(value, dtype=None if isinstance(self.dtype, pl.Decimal) else self.dtype)

    def overlaps(self, file: LiveFile) -> bool:
        """Return whether a file may hold a row that is inside."""
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
        low, high = file.lowest.get(self.column), file.highest.get(self.column)
        if low is None or high is None or file.nulls.get(self.column) != 0:
            return False
        return self.holds(low) and self.holds(high)

    def holds(self, value: Any) -> bool:
        """Return whether a value of the column's type is inside."""
        if value is None or (self.lower is not None and value < self.lower):
            return False
        return not self._past(value)

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
) -> Range:
    """Return a range whose bounds are of the column's type.

    A date is its midnight. A bound without a zone, for a column with one, is in ``zone`` or UTC; a
    bound with an offset, for a column without a zone, needs ``zone`` to be converted.

    Args:
        column: A destination column.
        schema: The table's columns.
        bounds: Lower, inclusive, and upper.
        upper_inclusive: Whether the upper bound is inside.
        zone: ``transform.configure.timestamp_timezone``.

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
    dtype = schema[column]
    lower, upper = (None if b is None else _fitted(b, column, dtype, zone) for b in bounds)
    return Range(column, dtype, lower, upper, upper_inclusive)


def _fitted(bound: Scalar, column: str, dtype: pl.DataType, zone: str | None) -> Any:
    if dtype.is_temporal():
        moment = moment_of(bound)
        if moment is not None:
            return _zoned(moment, column, dtype, zone)
    elif dtype.is_numeric() and isinstance(bound, int | float | Decimal):
        if not isinstance(bound, bool):
            return Decimal(str(bound)) if isinstance(dtype, pl.Decimal) else bound
    elif isinstance(bound, str) and isinstance(dtype, pl.String):
        return bound
    raise WriteError(
        f"the bound {bound!r} can't be compared with values of type {delta_name(dtype)}",
        place=f"column '{column}'",
        remedy="Give a bound of the column's type, or type the column by a schema hint.",
        code="bound_type",
    )


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
