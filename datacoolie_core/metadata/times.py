"""Durations, zones and cron lines as people write them in the metadata."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

_UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"\s*(\d+)\s*(s|min|h|d|w)\s*")
_NOW = re.compile(r"\s*now\s*(?:\+\s*\d+\s*(?:d|h|min)\s*)?")
_CRON_FIELD = re.compile(r"[\w*/,?#-]+")
_CRON_NAMES = frozenset({"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly"})
_CRON_FIELDS = 5


def parse_duration(text: str) -> timedelta | None:
    """Return a duration such as ``15min``, ``6h`` or ``1d``, None if it is none.

    >>> parse_duration("90min")
    datetime.timedelta(seconds=5400)
    """
    found = _DURATION.fullmatch(text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None


@cache
def is_timezone(name: str) -> bool:
    """Return whether a name is that of a time zone."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def is_limit(text: str) -> bool:
    """Return whether a text limits watermarks: ``now``, ``now + 1d`` or an ISO timestamp."""
    if _NOW.fullmatch(text):
        return True
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def is_cron(text: str) -> bool:
    """Return whether a text looks like a cron line: five fields, or a name such as @daily."""
    parts = text.split()
    if text.startswith("@"):
        return text in _CRON_NAMES
    return len(parts) == _CRON_FIELDS and all(_CRON_FIELD.fullmatch(part) for part in parts)
