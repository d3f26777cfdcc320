"""Date and time patterns: the Java ones of schema hints as the engine's ``%`` patterns."""

from __future__ import annotations

import re

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
_ZONES = ("%z", "%:z", "%#z", "%+")


def engine_pattern(pattern: str) -> str:
    """Return a hint's pattern in the engine's form; a ``%`` pattern stays as it is.

    >>> engine_pattern("yyyy-MM-dd'T'HH:mm:ss.SSS"), engine_pattern("%d/%m/%Y")
    ('%Y-%m-%dT%H:%M:%S%.3f', '%d/%m/%Y')

    Raises:
        ValueError: A letter has no meaning.
    """
    if "%" in pattern:
        return pattern
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


def has_zone(pattern: str) -> bool:
    """Return whether a ``%`` pattern reads an offset."""
    return any(zone in pattern for zone in _ZONES)


def has_time(pattern: str) -> bool:
    """Return whether a ``%`` pattern reads a time of day."""
    return any(part in pattern for part in ("%H", "%I", "%T", "%R", "%s", "%+", "%k", "%l", "%X"))
