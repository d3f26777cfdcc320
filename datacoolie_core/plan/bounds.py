"""The bounds of a replay as people write them: ISO text, dates, timestamps, numbers."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from datacoolie_core.errors import SettingsError

Step = int | float | Decimal
Bound = int | float | Decimal | date | datetime

_BEYOND_MICROSECONDS = re.compile(r"[.,]\d{6}0*[1-9]")


def refuse(message: str, remedy: str) -> SettingsError:
    """Return the error for a replay that can't be."""
    return SettingsError(message, place="replay", remedy=remedy, code="invalid_replay")


def parse_bound(value: object, name: str) -> Bound:
    """Return a bound as a value; text is read as an ISO date or timestamp.

    Args:
        value: What was written.
        name: ``start`` or ``end``, for messages.

    Raises:
        SettingsError: It is no date, timestamp or number.
    """
    if isinstance(value, str):
        return _parse_text(value.strip(), name)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | date):
        raise refuse(
            f"{name} is {value!r}, a {type(value).__name__}",
            "Use a date, a timestamp or a number.",
        )
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise refuse(f"{name} is {value}", "Use a finite number.")
    return value


def _parse_text(text: str, name: str) -> Bound:
    has_time = "T" in text.upper() or " " in text
    if _BEYOND_MICROSECONDS.search(text):
        raise refuse(
            f"{name} '{text}' is finer than a microsecond", "Round it to six digits or fewer."
        )
    try:
        return datetime.fromisoformat(text) if has_time else date.fromisoformat(text)
    except ValueError as error:
        raise refuse(
            f"{name} '{text}' is no date or timestamp",
            "Write 2025-01-31, 2025-01-31T06:30:00 or 2025-01-31T06:30:00+01:00.",
        ) from error


def check_pair(start: Bound, end: Bound) -> None:
    """Check that two bounds are of one kind and in order.

    Raises:
        SettingsError: They are not.
    """
    if type(start) is not type(end):
        raise refuse(
            f"start is a {_kind(start)} and end is a {_kind(end)}", "Use one kind for both."
        )
    if isinstance(start, datetime) and isinstance(end, datetime) and _mixed(start, end):
        raise refuse(
            "one of start and end has an offset and the other has none",
            "Write the offset on both, or on neither and set the timezone.",
        )
    if not start < end:  # pyright: ignore[reportOperatorIssue]
        raise refuse(f"start {start} is not before end {end}", "The end is exclusive: move it up.")


def _mixed(start: datetime, end: datetime) -> bool:
    return (start.tzinfo is None) != (end.tzinfo is None)


def _kind(bound: Bound) -> str:
    return "timestamp" if isinstance(bound, datetime) else type(bound).__name__
