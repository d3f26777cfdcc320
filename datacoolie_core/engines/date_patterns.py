"""Date and time patterns: the Java ones of schema hints as the engine's ``%`` patterns."""

from __future__ import annotations

import re
from functools import cache

_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
_LETTERS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "y": "%Y",
    "u": "%Y",
    "yy": "%y",
    "M": "%m",
    "MM": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "L": "%m",
    "LL": "%m",
    "d": "%d",
    "dd": "%d",
    "D": "%j",
    "DDD": "%j",
    "H": "%H",
    "HH": "%H",
    "h": "%I",
    "hh": "%I",
    "m": "%M",
    "mm": "%M",
    "s": "%S",
    "ss": "%S",
    "a": "%p",
    "E": "%a",
    "EE": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "X": "%#z",
    "XX": "%z",
    "XXX": "%:z",
    "x": "%#z",
    "xx": "%z",
    "xxx": "%:z",
    "Z": "%z",
    "ZZZZZ": "%:z",
}
_DOTTED = re.compile(r"%%|\.%f")
_PART = re.compile(r"%[-_0^#:.\d]*[A-Za-z%]|.", re.DOTALL)
_TEXTS = {
    **dict.fromkeys("mdHIMSyekl", r"\s*\d{1,2}"),
    **dict.fromkeys("bBhaAp", r"\p{L}+\.?"),
    "Y": r"\d{4}",
    "j": r"\d{1,3}",
    "F": r"\d{4}-\d{1,2}-\d{1,2}",
    "T": r"\d{1,2}:\d{1,2}:\d{1,2}",
    "R": r"\d{1,2}:\d{1,2}",
    "%": "%",
}
"""What the text of a part looks like."""
_ZONES = ("%z", "%:z", "%#z", "%+")


def engine_pattern(pattern: str) -> str:
    """Return a hint's pattern in the engine's form; in a ``%`` pattern, ``%f`` is a fraction.

    >>> engine_pattern("yyyy-MM-dd'T'HH:mm:ss.SSS"), engine_pattern("%d/%m/%Y")
    ('%Y-%m-%dT%H:%M:%S%.3f', '%d/%m/%Y')

    Raises:
        ValueError: A letter has no meaning.
    """
    if "%" in pattern:
        return _DOTTED.sub(_dotted, pattern)
    parts: list[str] = []
    for found in _TOKEN.finditer(pattern):
        token = found.group()
        if token.startswith("'"):
            parts.append(token[1:-1].replace("''", "'") or "'")
        elif not token[0].isalpha():
            parts.append(token)
        elif token[0] == "S":
            _add_fraction(parts, len(token))
        elif token in _LETTERS:
            parts.append(_LETTERS[token])
        else:
            raise ValueError(f"'{token}' in the pattern '{pattern}' has no meaning")
    return "".join(parts)


def _add_fraction(parts: list[str], digits: int) -> None:
    # the engine reads a fraction of 3, 6 or 9 digits with its point, any other without
    wanted = {3: "3f", 6: "6f", 9: "9f"}.get(digits, "f")
    if parts and parts[-1] == ".":
        parts[-1] = f"%.{wanted}"
    else:
        parts.append(f"%{wanted}")


def _dotted(found: re.Match[str]) -> str:
    return "%.f" if found.group() == ".%f" else found.group()


@cache
def bare_fraction(pattern: str) -> tuple[str, str] | None:
    """Return how texts with a fraction that has no point become ones that have it.

    The engine takes ``%f`` for a number of nanoseconds, whatever its digits.

    >>> bare_fraction("%H:%M:%S,%f")[1], bare_fraction("%H:%M:%S%.f")
    ('%H:%M:%S,%.f', None)

    Returns:
        A regular expression of what stands before and in the fraction, in two groups, and the
        pattern of the texts with a point between the two; None where no such fraction is read.
    """
    before = ""
    parts = [found.group() for found in _PART.finditer(pattern)]
    for index, part in enumerate(parts):
        if part == "%f":
            changed = [*parts[:index], "%.f", *parts[index + 1 :]]
            return f"^({before})(\\d{{1,9}})", "".join(changed)
        known = _TEXTS.get(part[-1], ".+?") if part[0] == "%" else re.escape(part)
        before += r"\s*" if part.isspace() else known
    return None


def has_zone(pattern: str) -> bool:
    """Return whether a ``%`` pattern reads an offset."""
    return any(zone in pattern for zone in _ZONES)


def has_time(pattern: str) -> bool:
    """Return whether a ``%`` pattern reads a time of day."""
    return any(part in pattern for part in ("%H", "%I", "%T", "%R", "%s", "%+", "%k", "%l", "%X"))
