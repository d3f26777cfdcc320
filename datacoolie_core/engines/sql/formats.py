"""Texts from dates and times, by a pattern of Java's letters or of % letters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.values import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
_LETTERS = {
    **dict.fromkeys(("y", "yyyy", "u", "uuuu"), "%Y"),
    **dict.fromkeys(("yy", "uu"), "%y"),
    **dict.fromkeys(("M", "L"), "%-m"),
    **dict.fromkeys(("MM", "LL"), "%m"),
    **dict.fromkeys(("MMM", "LLL"), "%b"),
    **dict.fromkeys(("MMMM", "LLLL"), "%B"),
    "d": "%-d",
    "dd": "%d",
    "D": "%-j",
    "DDD": "%j",
    "H": "%-H",
    "HH": "%H",
    "h": "%-I",
    "hh": "%I",
    "m": "%-M",
    "mm": "%M",
    "s": "%-S",
    "ss": "%S",
    "a": "%p",
    **dict.fromkeys(("E", "EE", "EEE"), "%a"),
    "EEEE": "%A",
}
_UTC = {
    **dict.fromkeys(("X", "XX", "XXX"), "Z"),
    **dict.fromkeys(("x",), "+00"),
    **dict.fromkeys(("Z", "ZZ", "ZZZ", "xx"), "+0000"),
    **dict.fromkeys(("xxx", "ZZZZZ"), "+00:00"),
    **dict.fromkeys(("z", "VV"), "UTC"),
}
_MOST_DIGITS = 9


def formatted(clock: pl.Expr, pattern: str, zone: str | None) -> pl.Expr:
    """Return a date or time as text.

    Args:
        clock: A date, or a timestamp without a zone.
        pattern: ``yyyy-MM-dd``, or ``%Y-%m-%d``.
        zone: The zone of the clock; None if it has none.

    Raises:
        SqlError: A letter has no meaning.
    """
    if "%" in pattern:
        return clock.dt.to_string(pattern.replace(".%f", "%.f"))
    parts = list(_parts(clock, pattern, zone))
    if not parts:
        return pl.when(clock.is_not_null()).then(pl.lit(""))
    return parts[0] if len(parts) == 1 else pl.concat_str(parts)


def _parts(clock: pl.Expr, pattern: str, zone: str | None) -> Iterator[pl.Expr]:
    """Yield the pieces of a text; what the engine formats alike is one piece."""
    plain = ""
    for found in _TOKEN.finditer(pattern):
        token = found.group()
        special = _special(clock, token)
        if special is None:
            plain += _plain(token, pattern, zone)
            continue
        if plain:
            yield clock.dt.to_string(plain)
        plain = ""
        yield special
    if plain:
        yield clock.dt.to_string(plain)


def _special(clock: pl.Expr, token: str) -> pl.Expr | None:
    if token[0] == "S":
        return clock.cast(pl.Datetime("us")).dt.to_string("%9f").str.slice(0, len(token))
    if token in ("q", "Q"):
        return clock.dt.quarter().cast(pl.String)
    return None


def _plain(token: str, pattern: str, zone: str | None) -> str:
    if token.startswith("'"):
        return (token[1:-1].replace("''", "'") or "'").replace("%", "%%")
    if not token[0].isascii() or not token[0].isalpha():
        return token
    if zone == "UTC" and token in _UTC:
        return _UTC[token]
    if token in _LETTERS:
        return _LETTERS[token]
    raise SqlError(f"'{token}' in the pattern '{pattern}' has no meaning")
