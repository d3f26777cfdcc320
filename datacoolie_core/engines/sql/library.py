"""All functions: what gives the value of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.sql import (
    branches,
    hashing,
    lists,
    numbers,
    parts,
    patterns,
    text,
    times,
)

if TYPE_CHECKING:
    from datacoolie_core.engines.sql.values import Handler

FUNCTIONS: dict[str, Handler] = {
    **branches.FUNCTIONS,
    **text.FUNCTIONS,
    **patterns.FUNCTIONS,
    **times.FUNCTIONS,
    **parts.FUNCTIONS,
    **numbers.FUNCTIONS,
    **lists.FUNCTIONS,
    **hashing.FUNCTIONS,
}
"""By the name that the dialect lists a function under."""
