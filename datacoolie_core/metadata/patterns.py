"""The regular expressions that value rules may use: a subset that every engine reads alike."""

from __future__ import annotations

import re
from contextlib import suppress

_LITERAL_ESCAPES = frozenset(r".^$*+?()[]{}|\/-#&~ ") | frozenset("tnrfv")
_QUANTIFIER = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")


class _PatternError(Exception):
    pass


def pattern_problem(pattern: str) -> str | None:
    r"""Return what is wrong with a pattern, None if it is in the subset.

    >>> pattern_problem("[^0-9]+"), pattern_problem(r"\d+")
    (None, '\\d is not supported; write a class such as [0-9]')
    """
    if not pattern:
        return "it is empty"
    with suppress(IndexError):  # a broken pattern: the compiler says it better
        try:
            _Scanner(pattern).scan()
        except _PatternError as error:
            return str(error)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"this is not a regular expression: {error}"
    return None


class _Scanner:
    """Looks in a pattern for what is outside the subset."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._groups: list[bool] = []  # for each open group: is it more than plain characters
        self._closed: bool | None = None  # the same of the group that has just ended

    def scan(self) -> None:
        while self._at < len(self._text):
            self._step()

    def _step(self) -> None:
        char = self._text[self._at]
        closed, self._closed = self._closed, None
        if char == "\\":
            self._escape()
        elif char == "[":
            self._class()
        elif char == "(":
            self._open()
        elif char == ")":
            self._closed = self._groups.pop()
            self._at += 1
        elif self._quantifier(closed):
            pass
        elif char == "{":
            raise _PatternError(r"a { that is no {n}, {n,} or {n,m} must be written \{")
        else:
            if char == "|":
                self._complicate()
            self._at += 1

    def _complicate(self) -> None:
        self._groups = [True for _ in self._groups]

    def _escape(self) -> None:
        char = self._text[self._at + 1]
        if char.isdigit():
            raise _PatternError(f"\\{char} is not supported: no back-references")
        if char not in _LITERAL_ESCAPES:
            raise _PatternError(f"\\{char} is not supported; write a class such as [0-9]")
        self._at += 2

    def _open(self) -> None:
        self._complicate()
        rest = self._text[self._at + 1 :]
        if rest.startswith("?") and not rest.startswith("?:"):
            raise _PatternError(
                f"({rest[:2]} is not supported: no lookaround, named groups or inline flags"
            )
        self._groups.append(False)
        self._at += 3 if rest.startswith("?:") else 1

    def _quantifier(self, closed: bool | None) -> bool:
        found = _QUANTIFIER.match(self._text, self._at)
        if found is None:
            return False
        if closed:
            raise _PatternError("a repeated group may not hold groups, repetitions or alternatives")
        self._complicate()
        self._at = found.end()
        if self._text[self._at : self._at + 1] == "+":
            raise _PatternError("possessive quantifiers are not supported")
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
        return True

    def _class(self) -> None:
        self._at += 1
        if self._text[self._at] == "^":
            self._at += 1
        first = True
        while first or self._text[self._at] != "]":
            first = False
            pair = self._text[self._at : self._at + 2]
            if pair[0] == "[" or pair in ("&&", "--", "~~", "||"):
                raise _PatternError("set operations and nested classes in [...] are not supported")
            if pair[0] == "\\":
                self._escape()
            else:
                self._at += 1
        self._at += 1
