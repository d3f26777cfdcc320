"""What may be a name: it becomes part of asset keys and paths."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def name_problem(name: str, *, slash: bool = False) -> str | None:
    """Return what is wrong with a name, None if nothing is.

    Args:
        name: As written.
        slash: Whether ``/`` is allowed, as in an id.
    """
    if _CONTROL.search(name):
        return "it may not contain control characters such as line breaks"
    if "/" in name and not slash:
        return "it may not contain '/', which separates stage and name"
    return None
