"""A value that a column's type can't hold, on its way out of the engine."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Generator

_MARKED = re.compile(r"\x02(.*?)\x03", re.DOTALL)


@dataclass(frozen=True)
class Trouble:
    """Which value it was.

    Attributes:
        column: Its column.
        value: As text.
        target: The type that it should have had.
        reason: Why not, if there is more to say.
    """

    column: str
    value: str
    target: str
    reason: str | None = None


@dataclass
class Noted:
    """Bad values of a column that did not stop its conversion.

    Attributes:
        length: Values of the column.
        found: Which of them were bad, and why; the first reason of a value counts.
        places: Where the values stand that are looked at, if they are a part of the column.
    """

    length: int
    found: list[tuple[pl.Series, str]] = field(default_factory=list[tuple[pl.Series, str]])
    places: pl.Series | None = None

    def add(self, bad: pl.Series, why: str) -> None:
        """Take note of values.

        Args:
            bad: True where a value is bad.
            why: The same for all of them.
        """
        if not bad.any():
            return
        if self.places is not None:
            whole = pl.repeat(value=False, n=self.length, eager=True, dtype=pl.Boolean)
            bad = whole.scatter(self.places.filter(bad), True)
        self.found.append((bad, why))


_noting: ContextVar[Noted | None] = ContextVar("noting", default=None)


@contextmanager
def noting(length: int) -> Generator[Noted]:
    """Take note of bad values in place of raising for the first one.

    Args:
        length: Values of the column that is converted.
    """
    noted = Noted(length)
    token = _noting.set(noted)
    try:
        yield noted
    finally:
        _noting.reset(token)


@contextmanager
def part_of_the_column(rows: pl.Series) -> Generator[None]:
    """Say that what is checked are some values of the column only.

    Args:
        rows: True for each of them.
    """
    noted = _noting.get()
    if noted is None:
        yield
        return
    noted.places = rows.arg_true()
    try:
        yield
    finally:
        noted.places = None


class BadValue(ValueError):  # noqa: N818 - it never reaches a user, `explain` turns it into one
    """Raised while the frame is computed.

    The engine makes such an error anew from its text alone, so the facts are inside the text.
    """

    @staticmethod
    def of(trouble: Trouble) -> BadValue:
        """Return the error that carries some facts."""
        facts = [trouble.column, trouble.value, trouble.target, trouble.reason]
        return BadValue(f"\x02{json.dumps(facts)}\x03")

    @staticmethod
    def trouble(error: BaseException) -> Trouble | None:
        """Return the facts that an error's text carries, None if there are none."""
        found = _MARKED.search(str(error))
        return Trouble(*json.loads(found.group(1))) if found else None

    @staticmethod
    def check(
        column: str, values: pl.Series, bad: pl.Series, target: str, reason: str | None = None
    ) -> None:
        """Raise for the first value that is bad, or take note of all; a null is never bad.

        Args:
            column: The column's name.
            values: What was there.
            bad: True where the value can't be held.
            target: The type that was wanted.
            reason: Why not, if there is more to say.
        """
        noted = _noting.get()
        if noted is not None:
            noted.add(bad & values.is_not_null(), reason_of(target, reason))
            return
        wrong = values.filter(bad & values.is_not_null())
        if len(wrong):
            raise BadValue.of(Trouble(column, str(wrong[0]), target, reason))


def reason_of(target: str, reason: str | None = None) -> str:
    """Return why a value is bad, without the value.

    >>> reason_of("date", "expected ISO 8601")
    'no date: expected ISO 8601'
    """
    return f"no {target}: {reason}" if reason else f"no {target}"
