"""A value that a column's type can't hold, on its way out of the engine."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

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
        """Raise for the first value that is bad; a null is never bad.

        Args:
            column: The column's name.
            values: What was there.
            bad: True where the value can't be held.
            target: The type that was wanted.
            reason: Why not, if there is more to say.
        """
        wrong = values.filter(bad & values.is_not_null())
        if len(wrong):
            raise BadValue.of(Trouble(column, str(wrong[0]), target, reason))
