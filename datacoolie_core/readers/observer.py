"""What watches the rows of a batch on their way from the source to the transforms."""

from __future__ import annotations

from datetime import UTC, date, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.boundary import BoundaryRows, Watched, beyond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.readers.batch import Observation, ReadRequest


class Observer:
    """Hands frames on and fills an observation; called from several threads.

    Args:
        observation: What is filled.
        watched: The watermark columns.
        request: What was asked for.
        rows: Knows the rows at the watermark.
    """

    def __init__(
        self,
        observation: Observation,
        watched: Sequence[Watched],
        request: ReadRequest,
        rows: BoundaryRows,
    ) -> None:
        self._seen = observation
        self._watched = watched
        self._request = request
        self._rows = rows
        self._names = [one.name for one in watched]
        self._temporary = [one.name for one in watched if one.name != one.column.column]
        self._beyond = beyond(watched, request.max_watermark)
        self._lock = Lock()

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Take in one frame and return the rows that go on, without the typed columns."""
        if frame.height:
            with self._lock:
                frame = self._passed(frame) if self._watched else frame
                self._seen.rows_read += frame.height
        return frame.drop(self._temporary)

    def _passed(self, frame: pl.DataFrame) -> pl.DataFrame:
        frame, bad = self._unreadable(frame)
        frame, without = self._nulls(frame)
        moving, above = self._limited(frame)
        highest = self._range(moving)
        self._rows.see(moving, highest, above, without)
        passed = self._rows.unknown(frame)
        return passed if bad is None else pl.concat([passed, bad])

    def _unreadable(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Set rows apart that go to quarantine for their watermark: it can't move anything."""
        if self._request.dataflow.options.on_cast_error != "quarantine":
            return frame, None
        suspects = [
            one.column.bad
            for one in self._watched
            if one.column.bad is not None
            and frame[one.name].null_count() > frame[one.column.column].null_count()
        ]
        if not suspects:
            return frame, None
        bad = frame.select(pl.any_horizontal(suspects)).to_series()
        return (frame.filter(~bad), frame.filter(bad)) if bad.any() else (frame, None)

    def _nulls(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Count rows without a watermark; return the rows that go on, and those among them."""
        if self._request.window is not None:
            return frame, None
        empty = frame.select(pl.all_horizontal(pl.col(self._names).is_null())).to_series()
        count = int(empty.sum())
        if not count:
            return frame, None
        self._seen.rows_null_watermark += count
        if self._request.null_watermark == "exclude":
            return frame.filter(~empty), None
        if self._request.null_watermark == "include":
            return frame, frame.filter(empty)
        names = ", ".join(one.column.column for one in self._watched)
        raise ReadError(
            f"rows have no value (null or NaN) in {names}: {count} or more",
            place="source.watermark_columns",
            remedy="Correct the source, or set configure.datacoolie.null_watermark of the source"
            " to include or exclude.",
            code="null_watermark",
        )

    def _limited(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        """Return the rows that may move the watermark, and those above ``max_watermark``."""
        if self._beyond is None:
            return frame, None
        above = frame.select(self._beyond).to_series()
        count = int(above.sum())
        if not count:
            return frame, None
        self._seen.rows_beyond_max += count
        return frame.filter(~above), frame.filter(above)

    def _range(self, frame: pl.DataFrame) -> list[Any]:
        """Take in the highest and lowest values, and return this frame's highest ones."""
        highest = [_plain(value) for value in frame.select(pl.col(self._names).max()).row(0)]
        lowest = [_plain(value) for value in frame.select(pl.col(self._names).min()).row(0)]
        for one, high, low in zip(self._watched, highest, lowest, strict=True):
            if high is None:
                continue
            key = one.column.name
            before = self._seen.candidate.get(key)
            self._seen.candidate[key] = high if before is None else _greater(before, high)
            least = self._seen.lowest.get(key)
            self._seen.lowest[key] = low if least is None or low < least else least
        return highest


def _plain(value: Any) -> Any:
    aware = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC) if aware else value


def _greater(one: Any, other: Any) -> Any:
    """Return the greater of two watermarks; a date is its midnight."""
    if isinstance(one, date) and isinstance(one, datetime) != isinstance(other, datetime):
        return one if _midnight(one) >= _midnight(other) else other
    return max(one, other)


def _midnight(value: date) -> datetime:
    return datetime.fromisoformat(value.isoformat())
