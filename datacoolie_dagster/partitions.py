"""Replay chunks as partitions: the core cuts the range, Dagster shows the same windows.

A cron that gives exactly the core's chunks becomes time windows, so that Dagster knows what is
late and what comes next. Everything else (partial first and last chunks, intervals that no cron
can say, numbers) becomes a fixed list of keys with the same windows. A window is always looked up
among the core's, never computed from a cron.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import dagster as dg

from datacoolie_core import clock
from datacoolie_core.errors import SettingsError
from datacoolie_core.plan.chunks import generate_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.metadata.options import ReplayOptions
    from datacoolie_core.plan.windows import Window

_SAMPLE = 500
_HORIZON = {"hours": timedelta(days=8), "minutes": timedelta(days=1)}
_DAY_AND_COARSER = timedelta(days=5 * 366)


def is_open(dataflow: Dataflow) -> bool:
    """Say whether a dataflow's replay range has no end: its last chunk runs up to now."""
    replay = dataflow.options.replay
    return replay is not None and replay.end is None


def chunk_column(dataflow: Dataflow) -> str | None:
    """Return the source column whose values the chunks bound."""
    replay = dataflow.options.replay
    if replay is not None and replay.chunk_column is not None:
        return replay.chunk_column
    return next(iter(dataflow.source.watermark_columns), None)


def replay_windows(dataflow: Dataflow, now: datetime | None = None) -> tuple[Window, ...]:
    """Return the chunks of a dataflow's replay options; none for a dataflow without.

    Args:
        dataflow: The dataflow.
        now: The instant that an open range runs up to; the clock's by default.

    Raises:
        SettingsError: The range or its interval makes no sense.
    """
    replay = dataflow.options.replay
    if replay is None:
        return ()
    column = chunk_column(dataflow)
    if column is None:
        raise SettingsError(
            "nothing says which column its chunks bound",
            place=f"dataflow '{dataflow.label}', replay",
            remedy="Set replay.chunk_column, or source.watermark_columns.",
            code="invalid_replay",
        )
    try:
        return _cut(replay, column, now or clock.utc_now())
    except SettingsError as error:
        raise SettingsError(
            error.message,
            place=f"dataflow '{dataflow.label}', replay",
            remedy=error.remedy,
            code=error.code,
        ) from error


def _cut(
    replay: ReplayOptions, column: str, now: datetime, end: str | None = None
) -> tuple[Window, ...]:
    return generate_chunks(
        replay.start,
        end if end is not None else replay.end,
        column=column,
        chunk_interval=replay.chunk_interval,
        step=replay.step,
        timezone=replay.timezone,
        now=now,
    )


def windows_for(
    dataflow: Dataflow, keys: Iterable[str], now: datetime | None = None
) -> tuple[Window, ...]:
    """Return the windows of partition keys, in the order of the range.

    Raises:
        SettingsError: For keys that the dataflow's replay range does not have.
    """
    wanted = dict.fromkeys(keys)
    found = tuple(w for w in replay_windows(dataflow, now) if w.key in wanted)
    unknown = wanted.keys() - {window.key for window in found}
    if unknown:
        raise SettingsError(
            f"its replay range has no partition {', '.join(sorted(unknown))}",
            place=f"dataflow '{dataflow.label}'",
            remedy="Reload the code location: the metadata changed after the run was asked for.",
            code="unknown_partition",
        )
    return found


def running_window(dataflow: Dataflow, windows: Sequence[Window]) -> Window | None:
    """Return which of some windows means up to now: the last one of an open range.

    Args:
        dataflow: Whose they are.
        windows: In the order of the range, at least one.
    """
    if not is_open(dataflow):
        return None
    newest = windows[-1]
    return newest if newest.key == replay_windows(dataflow)[-1].key else None


def partitions_of(dataflow: Dataflow) -> dg.PartitionsDefinition | None:
    """Return the partitions of a dataflow, None if it has no replay options.

    Raises:
        SettingsError: The range or its interval makes no sense.
    """
    replay = dataflow.options.replay
    if replay is None:
        return None
    now = clock.utc_now()
    windows = replay_windows(dataflow, now)
    for candidate in _candidates(replay, windows, now):
        if _same(candidate, windows, now) and _same_later(candidate, dataflow, now):
            return candidate
    return dg.StaticPartitionsDefinition([window.key for window in windows])


def _candidates(
    replay: ReplayOptions, windows: Sequence[Window], now: datetime
) -> Iterator[dg.TimeWindowPartitionsDefinition]:
    units = replay.chunk_interval or {}
    if len(units) != 1 or not windows:
        return
    (unit, size), first, last = next(iter(units.items())), windows[0].lower, windows[-1].upper
    for zone in dict.fromkeys((replay.timezone, "UTC")):
        start, end = _local(first, zone), _local(last, zone)
        if start is None or end is None:
            return
        ahead = 1 if replay.end is None else (len(windows) if _instant(last) > now else 0)
        for cron, fmt in _crons(unit, size, start):
            yield dg.TimeWindowPartitionsDefinition(
                start=start,
                end=None if replay.end is None else end,
                cron_schedule=cron,
                fmt=fmt,
                timezone=zone,
                end_offset=ahead,
            )


def _crons(unit: str, size: int, start: datetime) -> Iterator[tuple[str, str]]:
    at = f"{start.minute} {start.hour}"
    if unit == "years" and size == 1:
        yield "0 0 1 1 *", "%Y"
    elif unit == "months" and 12 % size == 0:
        yield ("0 0 1 * *" if size == 1 else f"0 0 1 */{size} *"), "%Y-%m"
    elif (unit, size) in {("weeks", 1), ("days", 7)}:
        yield f"{at} * * {start.isoweekday() % 7}", "%Y-%m-%d"
    elif unit == "days" and size == 1:
        yield f"{at} * * *", "%Y-%m-%d"
    elif unit == "hours" and 24 % size == 0:
        yield ("0 * * * *" if size == 1 else f"0 */{size} * * *"), "%Y-%m-%dT%H:%MZ"
    elif unit == "minutes" and 60 % size == 0:
        yield ("* * * * *" if size == 1 else f"*/{size} * * * *"), "%Y-%m-%dT%H:%MZ"


def _same(
    definition: dg.TimeWindowPartitionsDefinition, windows: Sequence[Window], now: datetime
) -> bool:
    """Compare all keys, and the instants of up to 500 windows."""
    if list(definition.get_partition_keys(current_time=now)) != [w.key for w in windows]:
        return False
    every = max(1, len(windows) // _SAMPLE)
    for window in dict.fromkeys((*windows[::every], windows[-1])):
        theirs = definition.time_window_for_partition_key(window.key)
        if theirs.start != _instant(window.lower) or theirs.end != _instant(window.upper):
            return False
    return True


def _same_later(
    definition: dg.TimeWindowPartitionsDefinition, dataflow: Dataflow, now: datetime
) -> bool:
    """Compare the windows of an open range that are still to come."""
    replay = dataflow.options.replay
    if replay is None or replay.end is not None:
        return True
    unit = next(iter(replay.chunk_interval or {}), "days")
    later = now + _HORIZON.get(unit, _DAY_AND_COARSER)
    return _same(definition, replay_windows(dataflow, later), later)


def _local(bound: object, zone: str) -> datetime | None:
    if isinstance(bound, datetime):
        return bound.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if isinstance(bound, date):
        return datetime(bound.year, bound.month, bound.day)  # noqa: DTZ001 - midnight in the zone
    return None


def _instant(bound: object) -> datetime:
    if isinstance(bound, datetime):
        return bound
    assert isinstance(bound, date)
    return datetime(bound.year, bound.month, bound.day, tzinfo=UTC)


def mapping_between(
    upstream: dg.PartitionsDefinition | None, downstream: dg.PartitionsDefinition | None
) -> dg.PartitionMapping | None:
    """Return which upstream partitions a downstream one depends on.

    The same chunks depend on each other one by one; everything else depends on the whole table,
    which is what a load reads.
    """
    if upstream is None:
        return None
    if downstream is None or downstream != upstream:
        return dg.AllPartitionMapping()
    if isinstance(upstream, dg.TimeWindowPartitionsDefinition):
        return dg.TimeWindowPartitionMapping()
    return dg.IdentityPartitionMapping()


def interval_name(dataflow: Dataflow) -> str:
    """Return how people name the interval of a dataflow's chunks, for a job's name."""
    replay = dataflow.options.replay
    units = dict(replay.chunk_interval or {}) if replay else {}
    if replay and replay.step is not None:
        units = {"step": replay.step}
    common = {"years": "yearly", "months": "monthly", "weeks": "weekly", "days": "daily"}
    common |= {"hours": "hourly"}
    if len(units) == 1:
        unit, size = next(iter(units.items()))
        if size == 1 and unit in common:
            return common[unit]
    return "_".join(f"{unit}_{size}" for unit, size in units.items()) or "once"
