"""One function of the dialect: its names, and how many arguments it takes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPTIONAL = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True)
class Function:
    """One function.

    Attributes:
        names: Its name and its other names.
        arguments: As the reference shows them; optional ones in brackets, ``...`` for any number.
        says: What it gives, one sentence.
        example: A call that stands for itself, without a column.
    """

    names: tuple[str, ...]
    arguments: str
    says: str
    example: str

    @property
    def name(self) -> str:
        """The name that the reference lists it under."""
        return self.names[0]

    @property
    def least(self) -> int:
        """How many arguments it needs."""
        needed = _OPTIONAL.sub("", self.arguments).replace("...", "")
        return len([part for part in needed.split(",") if part.strip()])

    @property
    def most(self) -> int | None:
        """How many arguments it takes; None for any number."""
        if "..." in self.arguments:
            return None
        plain = self.arguments.replace("[", "").replace("]", "")
        return len([part for part in plain.split(",") if part.strip()])


def function(names: str, arguments: str, says: str, example: str) -> Function:
    """Return a function; its names are separated by commas."""
    return Function(tuple(name.strip() for name in names.split(",")), arguments, says, example)
