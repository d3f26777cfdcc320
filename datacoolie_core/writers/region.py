"""The part of a table that a load replaces: a window, what a run read again, one's own rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.conditions import Condition, condition_of
from datacoolie_core.writers.ranges import Range, range_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.plan.windows import Window
    from datacoolie_core.writers.request import Reread, WriteRequest
    from datacoolie_core.writers.tables import LiveFile


@dataclass(frozen=True)
class Region:
    """Rows of a table.

    Attributes:
        ranges: A row is inside if it is inside one of them; without any, every row is.
        valueless: Rows without a value in all of the ranges' columns are inside too.
        own: The rows of this dataflow: only those can be inside.
    """

    ranges: tuple[Range, ...] = ()
    valueless: bool = False
    own: Condition | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the ranges, whose statistics tell files apart."""
        return tuple(one.column for one in self.ranges)

    @property
    def within(self) -> pl.Expr:
        """Whether a row is within the ranges, whoever's it is; never null."""
        if not self.ranges:
            return pl.lit(value=True)
        parts = [one.rows for one in self.ranges]
        if self.valueless:
            parts.append(reduce(lambda a, b: a & b, [_valueless(one) for one in self.ranges]))
        return reduce(lambda a, b: a | b, parts)

    @property
    def rows(self) -> pl.Expr:
        """Whether a row is inside, never null."""
        return self.within if self.own is None else self.within & self.own.holds

    def overlaps(self, file: LiveFile) -> bool:
        """Return whether a file may hold a row that is inside."""
        if not self.ranges or any(one.overlaps(file) for one in self.ranges):
            return True
        return self.valueless and any(_may_lack(file, one.column) for one in self.ranges)

    def covers(self, file: LiveFile) -> bool:
        """Return whether every row of a file is inside for sure."""
        if self.own is not None:
            return False
        return not self.ranges or any(one.covers(file) for one in self.ranges)

    def check(self, batch: pl.LazyFrame) -> None:
        """Raise if a row of the batch is outside: it would be doubled by the next load.

        Args:
            batch: Rows in the table's shape.

        Raises:
            WriteError: Names the column and a value.
        """
        if self.ranges:
            _check(batch.filter(~self.within).select(self.columns), self._elsewhere)
        if self.own is not None:
            _check(batch.filter(~self.own.holds).select(self.own.columns), self._foreign)

    def _elsewhere(self, told: str) -> WriteError:
        bounds = "; ".join(_told(one) for one in self.ranges)
        return outside(f"{told} is outside the window {bounds}")

    def _foreign(self, told: str) -> WriteError:
        written = "" if self.own is None else self.own.written
        return WriteError(
            f"a row with {told} does not meet the replay_filter `{written}`, so that the next"
            " replay would not find it",
            place="destination.configure.datacoolie.replay_filter",
            remedy="Correct the replay_filter: it must hold for every row that this dataflow"
            " writes.",
            code="outside_filter",
        )


def outside(what: str) -> WriteError:
    """Return the error for a row of the batch that is not in the window."""
    return WriteError(
        what,
        remedy="A transform moved rows out of the window that was read; bound the replay by a"
        " column that keeps its values (configure.datacoolie.replay.chunk_column).",
        code="outside_window",
    )


def _told(one: Range) -> str:
    return f"of '{one.column}' from {one.lower} to {one.upper}"


def _check(found: pl.LazyFrame, error: Callable[[str], WriteError]) -> None:
    rows = found.head(1).collect(engine="streaming")
    if rows.height:
        told = ", ".join(f"'{name}' = {value!r}" for name, value in rows.row(0, named=True).items())
        raise error(told)


def _valueless(one: Range) -> pl.Expr:
    value = pl.col(one.column)
    return (value.fill_nan(None) if one.dtype.is_float() else value).is_null()


def _may_lack(file: LiveFile, column: str) -> bool:
    if column in file.partition:
        return file.partition[column] is None
    # NaN counts as no value, and no statistics tell of it
    return True


def own_rows(request: WriteRequest, schema: pl.Schema) -> Condition | None:
    """Return the condition that tells the dataflow's rows from those of others, None without one.

    Raises:
        WriteError: It can't be used.
    """
    written = request.dataflow.destination.configure.datacoolie.replay_filter
    if written is None:
        return None
    field, flow = "replay_filter", request.dataflow
    return condition_of(written, schema, field=field, dataflow=flow, now=request.now)


def asked_region(request: WriteRequest, schema: pl.Schema) -> Region:
    """Return what a request wants replaced, whatever is in the batch.

    Args:
        request: Without a window the region is the whole table, or the dataflow's own rows.
        schema: The table's columns after the load.

    Raises:
        WriteError: A column that is not there, or a bound that it can't be compared with.
    """
    own = own_rows(request, schema)
    if request.mode != "replace_window":
        return Region(own=own)
    if request.window is not None:
        return Region((_window_range(request, request.window, schema),), own=own)
    if request.reread is not None:
        ranges = _reread_ranges(request, request.reread, schema)
        return Region(tuple(ranges), request.reread.valueless, own)
    raise WriteError("a replay needs a window", code="no_window")


def _zone(request: WriteRequest) -> str | None:
    return request.dataflow.transform.configure.timestamp_timezone


def _window_range(request: WriteRequest, asked: Window, schema: pl.Schema) -> Range:
    bounds = (asked.lower, asked.upper)
    zone = _zone(request)
    return range_of(asked.column, schema, bounds, zone=zone, written_in=asked.zone)


def _reread_ranges(request: WriteRequest, reread: Reread, schema: pl.Schema) -> list[Range]:
    zone = _zone(request)
    return [
        range_of(column, schema, (lower, reread.upto.get(column)), upper_inclusive=True, zone=zone)
        for column, lower in reread.lower.items()
    ]


def reaching(region: Region, batch: pl.LazyFrame) -> Region:
    """Return a region that reaches up to the highest values of a batch.

    Args:
        region: Its ranges end where the state does.
        batch: Rows in the table's shape.
    """
    values = [(pl.col(one.column) if one.typed is None else one.typed) for one in region.ranges]
    highest = batch.select(
        (value.fill_nan(None) if one.dtype.is_float() else value).max().alias(str(number))
        for number, (value, one) in enumerate(zip(values, region.ranges, strict=True))
    ).collect(engine="streaming")
    return replace(region, ranges=tuple(map(_raised, region.ranges, highest.row(0))))


def _raised(one: Range, highest: Any) -> Range:
    if highest is None or (one.upper is not None and highest <= one.upper):
        return one
    return replace(one, upper=highest)
