"""Patterns of dated folders, such as ``{year}/{month}/{day}``: which folders fit, and their periods."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNITS = ("year", "month", "day", "hour")
"""The placeholders, from coarse to fine."""
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class DatePatternError(ValueError):
    """A pattern that names no dates."""


@dataclass(frozen=True)
class Period:
    """The time that a folder stands for.

    Attributes:
        start: Inclusive, in UTC.
        end: Exclusive, in UTC.
    """

    start: datetime
    end: datetime


@dataclass(frozen=True)
class DatePattern:
    """A pattern, one regular expression for each level of folders.

    Attributes:
        text: As written.
        levels: For each level, its expression and the placeholders of its groups.
    """

    text: str
    levels: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]

    def parts(self, folders: Sequence[str]) -> Mapping[str, int] | None:
        """Return the numbers in the names of folders, from the top on; None if one does not fit.

        Args:
            folders: As many levels as are known.
        """
        found: dict[str, int] = {}
        for name, (expression, units) in zip(folders, self.levels, strict=False):
            match = expression.fullmatch(name)
            if match is None:
                return None
            for unit, digits in zip(units, match.groups(), strict=True):
                if found.setdefault(unit, int(digits)) != int(digits):
                    return None
        return found if _is_date(found) else None

    def period(self, folders: Sequence[str]) -> Period | None:
        """Return the period of folders that fit, None while they do not name a year yet."""
        return _period(self.parts(folders) or {})

    def start(self, folders: Sequence[str]) -> datetime | None:
        """Return the date of a whole path of dated folders; None if it is none."""
        if len(folders) < len(self.levels):
            return None
        period = self.period(folders[: len(self.levels)])
        return None if period is None else period.start


def _known(parts: Mapping[str, int]) -> list[int]:
    """Return year, month, … as far as they are known without a gap."""
    numbers: list[int] = []
    for unit in UNITS:
        if unit not in parts:
            break
        numbers.append(parts[unit])
    return numbers


def _is_date(parts: Mapping[str, int]) -> bool:
    limits = {"year": (1, 9999), "month": (1, 12), "day": (1, 31), "hour": (0, 23)}
    if any(not limits[unit][0] <= value <= limits[unit][1] for unit, value in parts.items()):
        return False
    try:
        _start(_known(parts))
    except ValueError:  # such as 30 February
        return False
    return True


def _start(numbers: Sequence[int]) -> datetime:
    year, month, day, hour = (*numbers, *(1, 1, 1, 0)[len(numbers) :])
    return datetime(year, month, day, hour, tzinfo=UTC)


def _period(parts: Mapping[str, int]) -> Period | None:
    numbers = _known(parts)
    if not numbers:
        return None
    start = _start(numbers)
    try:
        return Period(start, _end(start, len(numbers)))
    except (ValueError, OverflowError):  # the last year that there is
        return Period(start, datetime.max.replace(tzinfo=UTC))


def _end(start: datetime, known: int) -> datetime:
    if known == 1:
        return start.replace(year=start.year + 1)
    if known == 2:
        return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    return start + (timedelta(days=1) if known == 3 else timedelta(hours=1))


@lru_cache(maxsize=256)
def date_pattern(text: str) -> DatePattern:
    """Return a pattern of dated folders.

    Levels are split at ``/``; one may hold several placeholders and other text. A year has four
    digits. The other numbers may lack a leading zero, except where nothing stands between two of
    them, since ``2024111`` would be two dates.

    >>> pattern = date_pattern("{year}/{month}-{day}")
    >>> pattern.start(["2024", "1-05"]).isoformat()
    '2024-01-05T00:00:00+00:00'

    Raises:
        DatePatternError: It has an unknown placeholder, no year, or skips a unit.
    """
    levels = [level for level in text.replace("\\", "/").split("/") if level]
    used = [name for level in levels for name in _PLACEHOLDER.findall(level)]
    unknown = [name for name in used if name not in UNITS]
    if unknown:
        raise DatePatternError(
            f"'{{{unknown[0]}}}' is no part of a date; use {{year}}, {{month}}, {{day}} and {{hour}}"
        )
    missing = [unit for unit in UNITS[: _finest(used) + 1] if unit not in used]
    if missing or not used:
        wanted = f"{{{missing[0] if missing else 'year'}}}"
        raise DatePatternError(f"'{text}' does not tell a date: {wanted} is missing")
    return DatePattern(text, tuple(_level(level) for level in levels))


def _finest(used: Sequence[str]) -> int:
    return max((UNITS.index(name) for name in used), default=-1)


def _level(level: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    pieces = _PLACEHOLDER.split(level)
    texts, units = pieces[::2], pieces[1::2]
    expression = re.escape(texts[0])
    for index, unit in enumerate(units):
        # what is between two placeholders tells where the first one ends
        before = index > 0 and not texts[index]
        after = index + 1 < len(units) and not texts[index + 1]
        digits = r"\d{4}" if unit == "year" else r"\d{2}" if before or after else r"\d{1,2}"
        expression += f"({digits}){re.escape(texts[index + 1])}"
    return re.compile(expression, re.ASCII), tuple(units)
