"""Finding a column by the name that metadata gives it: case does not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable


def match(name: str, columns: Iterable[str]) -> str | None:
    """Return the column that a name means: the very same, else the first that differs in case.

    >>> match("Order_ID", ["order_id", "amount"])
    'order_id'
    """
    known = list(columns)
    if name in known:
        return name
    folded = name.casefold()
    return next((column for column in known if column.casefold() == folded), None)


def pattern_names(names: Iterable[str]) -> list[str]:
    """Return the names that the engine takes for several columns wherever they are written.

    >>> pattern_names(["price", "*", "^a$", "^a"])
    ['*', '^a$']
    """
    return [name for name in names if name == "*" or (name[:1] == "^" and name[-1:] == "$")]


def listed(names: Iterable[str], *, most: int = 5) -> str:
    """Return names for a message: quoted, comma-separated, the rest as a number.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    known = [f"'{name}'" for name in names]
    if len(known) <= most:
        return ", ".join(known)
    return f"{', '.join(known[:most])} and {len(known) - most} more"


def remedy_for(name: str, candidates: Iterable[str]) -> str:
    """Return what to do about a name that is not among the candidates."""
    known = list(candidates)
    near = nearest(name, known)
    if near is not None:
        return f"Did you mean '{near}'?"
    return f"There are: {listed(known, most=20)}." if known else "There are none."
