"""Which partitions an incremental load covers: the months up to the saved watermark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from datacoolie_dagster.partitions import is_open, replay_windows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.results import DataflowResult
    from datacoolie_core.state.record import StateRecord

MOST_MARKS = 500
"""Partitions that one load marks at most, the newest first; the next load goes on."""


@dataclass(frozen=True)
class Marks:
    """The partitions that a load marks.

    Attributes:
        windows: In the order of the range.
        left: How many more are covered and wait for the next load.
    """

    windows: tuple[Window, ...] = ()
    left: int = 0


def marks_of(
    result: DataflowResult,
    before: StateRecord | None,
    materialized: Collection[str],
    now: datetime | None = None,
) -> Marks:
    """Return the partitions to mark after an incremental load.

    A window is covered when it ends at or before the saved watermark and starts where the state
    covers the source. The running window of an open range counts as loaded up to now.

    Args:
        result: How the load ended.
        before: The state before it.
        materialized: Keys of partitions that are materialized already.
        now: The instant that an open range runs up to; the clock's by default.
    """
    dataflow, state = result.dataflow, result.state
    windows = replay_windows(dataflow, now)
    if state is None or not windows:
        return Marks()
    scale = _Scale(dataflow)
    column = windows[0].column
    after = scale.place(state.watermark.get(column))
    if not _comparable(after, scale.lower(windows[0])):
        return Marks()
    floor = scale.place((state.covered_from or {}).get(column))
    reached = [w for w in windows if floor is None or floor <= scale.lower(w)]
    covered = [w for w in reached if scale.upper(w) is not None and scale.upper(w) <= after]
    touched = _touched(scale, reached, result, before, column, after)
    chosen = [w for w in covered if w.key in touched or w.key not in materialized]
    chosen += _unfinished(dataflow, windows, reached, covered, touched, chosen)
    return Marks(tuple(chosen[-MOST_MARKS:]), max(0, len(chosen) - MOST_MARKS))


def _touched(
    scale: _Scale,
    windows: Sequence[Window],
    result: DataflowResult,
    before: StateRecord | None,
    column: str,
    after: Any,
) -> set[str]:
    """Return the keys of windows that this load may have put rows into."""
    if result.status != "succeeded":
        return set()
    start = None
    if before is not None and result.run_kind == "incremental":
        start = scale.place(before.watermark.get(column))
    return {
        w.key
        for w in windows
        if scale.lower(w) <= after
        and (start is None or scale.upper(w) is None or start < scale.upper(w))
    }


def _unfinished(
    dataflow: Dataflow,
    windows: Sequence[Window],
    reached: Sequence[Window],
    covered: Sequence[Window],
    touched: Collection[str],
    chosen: Sequence[Window],
) -> list[Window]:
    """Return a window that is not covered whole and is marked all the same, if there is one.

    The running window of an open range is loaded up to now. In a closed range the newest covered
    window is marked again, or the first touched one, when nothing else would tell what is
    downstream that rows have come.
    """
    if not touched:
        return []
    running = windows[-1]
    if is_open(dataflow) and running.key in touched and running not in chosen:
        return [running]
    if chosen:
        return []
    if covered:
        return [covered[-1]]
    return [w for w in reached if w.key in touched][-1:]


def _comparable(one: object, other: object) -> bool:
    """Say whether a watermark and a bound are of one kind: both instants, or both numbers."""
    if one is None:
        return False
    return isinstance(one, datetime) == isinstance(other, datetime)


class _Scale:
    """Puts window bounds and watermarks of a dataflow on one scale."""

    def __init__(self, dataflow: Dataflow) -> None:
        replay = dataflow.options.replay
        zone = dataflow.transform.configure.timestamp_timezone
        self._naive = ZoneInfo(zone) if zone else UTC
        self._days = ZoneInfo(replay.timezone) if replay else UTC

    def lower(self, window: Window) -> Any:
        """Return where a window starts."""
        return self.place(window.lower)

    def upper(self, window: Window) -> Any:
        """Return where a window ends, None if it does not."""
        return self.place(window.upper)

    def place(self, value: object) -> Any:
        """Return a bound or a watermark as an instant or a number."""
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return None
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=self._naive)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=self._days)
        if isinstance(value, float):
            return Decimal(repr(value))
        return value if isinstance(value, int | Decimal) else None
