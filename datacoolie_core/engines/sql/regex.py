"""Patterns of Java and of LIKE as patterns of the engine, with the same meaning or refused."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.values import SqlError, Value, truth

if TYPE_CHECKING:
    from collections.abc import Callable

# Java's classes are ASCII, those of the engine are Unicode
_CLASSES = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": r" \t\n\x0B\f\r",
}
_EDGES = {"b": r"(?-u:\b)", "B": r"(?-u:\B)", "Z": r"\n?\z", "z": r"\z"}
_GROUP = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|\$", re.DOTALL)


@lru_cache(maxsize=1024)
def engine_regex(pattern: str) -> str:
    r"""Return a pattern of Java's as the engine's.

    >>> print(engine_regex(r"(\d+)[\s,]"))
    ([0-9]+)[ \t\n\x0B\f\r,]

    Raises:
        SqlError: The engine can't match it: it looks around itself, or refers back.
    """
    translated = "".join(_pieces(pattern))
    try:
        pl.select(pl.lit("").str.contains(translated))
    except pl.exceptions.PolarsError as error:
        raise SqlError(
            f"the pattern '{pattern}' can't be used",
            "Patterns have no look-around, no back-references and no possessive quantifiers.",
        ) from error
    return translated


def _pieces(pattern: str) -> list[str]:
    found: list[str] = []
    inside, index = False, 0
    while index < len(pattern):
        one = pattern[index]
        if one == "\\" and index + 1 < len(pattern):
            found.append(_escape(pattern[index + 1], inside=inside))
            index += 2
            continue
        if one == "[" and not inside:
            inside = True
        elif one == "]" and inside and pattern[index - 1 : index] not in ("[", "^"):
            inside = False
        found.append(one)
        index += 1
    return found


def _escape(letter: str, *, inside: bool) -> str:
    kept = _CLASSES.get(letter.lower())
    if kept is None:
        return f"\\{letter}" if inside else _EDGES.get(letter, f"\\{letter}")
    if letter.isupper():
        return f"[^{kept}]"
    return kept if inside else f"[{kept}]"


def replacement(written: str) -> str:
    """Return what replaces a match: ``$1`` is a group, a backslash makes the next one plain."""

    def one(found: re.Match[str]) -> str:
        escaped, number, name = found.groups()
        if escaped is not None:
            return "$$" if escaped == "$" else str(escaped)
        group = number or name
        return f"${{{group}}}" if group else "$$"

    return _GROUP.sub(one, written)


def like(value: pl.Expr, pattern: str, *, ignore_case: bool = False, escape: str = "\\") -> Value:
    """Return whether a text is like a pattern of ``%`` and ``_``.

    Args:
        value: The text.
        pattern: The pattern.
        ignore_case: ILIKE.
        escape: The character that makes the next one plain.
    """
    pieces = _like_pieces(pattern, escape)
    plain = _plain_like(pieces)
    if plain is not None and not ignore_case:
        return truth(plain(value))
    body = "".join({"%": ".*", "_": "."}[p] if wild else re.escape(p) for p, wild in pieces)
    return truth(value.str.contains(f"(?s{'i' if ignore_case else ''})^{body}\\z"))


def _like_pieces(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """Return the characters of a pattern, each with whether it stands for others."""
    pieces: list[tuple[str, bool]] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            pieces.append((next(letters, escape), False))
        else:
            pieces.append((letter, letter in "%_"))
    return pieces


def _plain_like(pieces: list[tuple[str, bool]]) -> Callable[[pl.Expr], pl.Expr] | None:
    """Return the simple comparison that a pattern stands for; None if it is not that simple."""
    first = bool(pieces) and pieces[0] == ("%", True)
    last = bool(pieces) and pieces[-1] == ("%", True)
    middle = pieces[1 if first else 0 : -1 if last and len(pieces) > 1 else None]
    if any(wild for _, wild in middle) or pieces == [("%", True)]:
        return None
    text = "".join(letter for letter, _ in middle)
    if first and last:
        return lambda value: value.str.contains(text, literal=True)
    if first:
        return lambda value: value.str.ends_with(text)
    if last:
        return lambda value: value.str.starts_with(text)
    return lambda value: value == text


def matches(value: pl.Expr, pattern: str) -> Value:
    """Return whether a part of a text matches a pattern of Java's."""
    return truth(value.str.contains(engine_regex(pattern)))
