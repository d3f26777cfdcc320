"""Wall-clock times of a zone as instants, on days when clocks change too."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from datacoolie_core.errors import SettingsError


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises:
        SettingsError: There is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(
            f"no time zone '{name}'",
            remedy="Use a name such as Europe/Paris, America/New_York or UTC.",
            code="unknown_timezone",
        ) from error


def first_instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first UTC instant at which a zone's clocks show a time or a later one.

    That is the start of a local day even where midnight comes twice (the earlier one) or not at
    all (the moment after the gap).

    Args:
        local: A naive wall-clock time.
        zone: The zone whose clocks show it.
    """
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _end_of_gap(before, instant, zone)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    old_offset = before.astimezone(zone).utcoffset()
    seconds = int((after - before).total_seconds())
    low, high = 0, seconds
    while high - low > 1:
        middle = (low + high) // 2
        moved = (before + timedelta(seconds=middle)).astimezone(zone)
        if moved.utcoffset() == old_offset:
            low = middle
        else:
            high = middle
    return before + timedelta(seconds=high)


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the UTC instant of a wall-clock time that a person wrote.

    Midnight means the first instant of that day.

    Args:
        local: A naive wall-clock time.
        zone: The zone in which it was meant.

    Raises:
        SettingsError: The clocks of that zone never show this time, or show it twice.
    """
    if local.time() == time.min:
        return first_instant(local, zone)
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    second = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if first == second:
        return first
    happens = "comes twice" if first < second else "does not exist"
    raise SettingsError(
        f"{local.isoformat()} {happens} in {zone.key}, where clocks change",
        remedy="Write it with its offset, or choose another time.",
        code="ambiguous_time" if first < second else "nonexistent_time",
    )
