"""Rows that the next run reads again: which are known now, and which will be then.

These are the rows that tie with the watermark, those above ``max_watermark``, and those without a
watermark where they are always read. They are recognised by their hashes.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.readers.bounds import literal
from datacoolie_core.readers.row_hash import row_hashes
from datacoolie_core.state.record import BOUNDARY_BYTES, Boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.readers.batch import Observation, ReadRequest
    from datacoolie_core.readers.watermark_columns import WatermarkColumn

MOST_ROWS = 2000
"""More rows than this are not kept: their hashes would not fit into the state anyway."""


@dataclass(frozen=True)
class Watched:
    """A watermark column in the frames that pass.

    Attributes:
        column: What it is.
        name: The column of the frame that holds its typed values.
        stored: Its stored watermark, fitted to its type; None if there is none.
    """

    column: WatermarkColumn
    name: str
    stored: Scalar | None

    def same(self, value: Any) -> pl.Expr:
        """Return the filter of the rows that have a value; null is no match."""
        return (pl.col(self.name) == literal(value, self.column)).fill_null(value=False)


@dataclass
class _Kept:
    """Some rows, and how many there were."""

    frames: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    count: int = 0

    @property
    def overflown(self) -> bool:
        return self.count > MOST_ROWS

    def add(self, frame: pl.DataFrame) -> None:
        if self.overflown or not frame.height:
            return
        self.frames.append(frame.head(MOST_ROWS + 1))
        self.count += frame.height


@dataclass
class _Ties:
    """The rows at one column's highest value so far."""

    watched: Watched
    value: Any | None
    rows: _Kept = field(default_factory=_Kept)

    def see(self, frame: pl.DataFrame, highest: Any | None) -> None:
        if highest is None or (self.value is not None and highest < self.value):
            return
        if self.value is None or highest > self.value:
            self.value, self.rows = highest, _Kept()
        self.rows.add(frame.filter(self.watched.same(highest)))


def beyond(watched: Sequence[Watched], limit: datetime | None) -> pl.Expr | None:
    """Return whether a row lies above a limit in time, None where nothing can."""
    if limit is None:
        return None
    parts = [
        pl.col(one.name) > _limit(limit, one.column)
        for one in watched
        if one.column.family in ("date", "clock", "instant")
    ]
    return pl.any_horizontal(parts).fill_null(value=False) if parts else None


def _limit(limit: datetime, column: WatermarkColumn) -> pl.Expr:
    if column.family == "instant":
        return literal(limit.astimezone(UTC), column)
    # values without a declared zone are taken as UTC here: the limit is no more than a guard
    return pl.lit(limit.astimezone(UTC).replace(tzinfo=None))


class BoundaryRows:
    """Leaves known rows out and keeps what the next boundary is made of.

    Args:
        watched: The watermark columns.
        request: What was asked for.
        observation: Says whether the request's hashes can be used.
        schema: Fingerprint of the source's columns.
        typed: Columns that are hashed by another value than the one that was read.
    """

    def __init__(
        self,
        watched: Sequence[Watched],
        request: ReadRequest,
        observation: Observation,
        schema: str,
        typed: Sequence[pl.Expr] = (),
    ) -> None:
        self._watched = watched
        self._typed = typed
        self._request = request
        self._observation = observation
        self._schema = schema
        self._temporary = [one.name for one in watched if one.name != one.column.column]
        usable = observation.boundary_usable and request.window is None
        self._known = Counter(request.boundary.hashes if usable else {})
        self._ties = [_Ties(one, one.stored) for one in watched]
        self._beyond = _Kept()
        self._without = _Kept()

    def see(
        self,
        moving: pl.DataFrame,
        highest: Sequence[Any],
        above: pl.DataFrame | None,
        without: pl.DataFrame | None,
    ) -> None:
        """Take in rows.

        Args:
            moving: Rows that may move the watermark.
            highest: Their highest value in each column.
            above: Rows above ``max_watermark``.
            without: Rows without a watermark that go on.
        """
        if not self._request.track_boundary:
            return
        for ties, value in zip(self._ties, highest, strict=True):
            ties.see(moving, value)
        if above is not None:
            self._beyond.add(above)
        if without is not None:
            self._without.add(without)

    def unknown(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a frame without the rows that are loaded already."""
        region = self._read_again() if self._known else None
        if region is None:
            return frame
        places = frame.select(region).to_series().arg_true()
        if not len(places):
            return frame
        known: list[int] = []
        for place, row in zip(places, self._hashes(frame[places]), strict=True):
            if self._known[row] > 0:
                self._known[row] -= 1
                known.append(place)
        self._observation.rows_known += len(known)
        return frame.filter(~pl.int_range(frame.height, eager=True).is_in(known))

    def _read_again(self) -> pl.Expr | None:
        """Return whether a row may be among the known ones."""
        parts: list[pl.Expr] = []
        bounds = [(one, one.stored) for one in self._watched if one.stored is not None]
        if bounds:
            higher = [pl.col(one.name) > literal(value, one.column) for one, value in bounds]
            tied = pl.any_horizontal(one.same(value) for one, value in bounds)
            parts.append(tied & ~pl.any_horizontal(higher).fill_null(value=False))
        limit = self._request.boundary.beyond
        above = beyond(self._watched, limit if isinstance(limit, datetime) else None)
        if above is not None:
            parts.append(above)
        if self._request.null_watermark == "include":
            parts.append(pl.all_horizontal(pl.col(one.name).is_null() for one in self._watched))
        return pl.any_horizontal(parts) if parts else None

    def _hashes(self, frame: pl.DataFrame) -> list[str]:
        raw = frame.drop(self._temporary)
        typed = raw.with_columns(self._typed)
        hashes = row_hashes(typed)
        names = [name for name in raw.columns if typed[name].null_count() > raw[name].null_count()]
        if not names:
            return hashes
        # a bad value has no typed value: such a row is known by its texts
        bad = pl.any_horizontal(
            pl.lit(raw[name].is_not_null() & typed[name].is_null()) for name in names
        )
        places = raw.select(bad).to_series().arg_true()
        for place, known in zip(places, row_hashes(raw[places]), strict=True):
            hashes[place] = known
        return hashes

    def boundary(self) -> Boundary:
        """Return the rows at the new watermark, for the state."""
        if not self._request.track_boundary or not self._watched:
            return Boundary()
        others = [self._beyond, *([self._without] if self._nulls_come_again() else [])]
        if any(kept.overflown for kept in others):
            return Boundary(compare=True)
        rest = any(kept.count for kept in others)
        too_many = Boundary(compare=True, ties_only=not rest)
        if any(ties.rows.overflown for ties in self._ties):
            return too_many
        counts = self._counted(others)
        if self._observation.boundary_usable and self._unmoved():
            # rows that are loaded count even if the source no longer shows them
            counts |= Counter(self._request.boundary.hashes)
        boundary = Boundary(
            hashes=dict(counts),
            schema=self._schema if counts else "",
            beyond=self._request.max_watermark if self._beyond.count else None,
        )
        small = len(counts) <= MOST_ROWS and len(json.dumps(boundary.to_json())) <= BOUNDARY_BYTES
        return boundary if small else too_many

    def _nulls_come_again(self) -> bool:
        """Whether the next run reads rows without a watermark again."""
        policy = self._request.dataflow.source.configure.datacoolie.null_watermark
        return policy == "include" or not self._observation.candidate

    def _counted(self, others: Sequence[_Kept]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for kept in others:
            for frame in kept.frames:
                counts.update(self._hashes(frame))
        for index, ties in enumerate(self._ties):
            for frame in ties.rows.frames:
                counts.update(self._hashes(self._not_before(frame, index)))
        return counts

    def _not_before(self, frame: pl.DataFrame, index: int) -> pl.DataFrame:
        """Return the rows that no earlier column has counted already."""
        earlier = [
            ties.watched.same(ties.value) for ties in self._ties[:index] if ties.value is not None
        ]
        if not earlier:
            return frame
        return frame.filter(~reduce(lambda one, other: one | other, earlier))

    def _unmoved(self) -> bool:
        candidate = self._observation.candidate
        return any(candidate.get(one.column.name) == one.stored for one in self._watched)
