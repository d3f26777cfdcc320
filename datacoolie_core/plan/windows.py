"""Values that bound a read: watermarks, windows, chunks. Plain data, no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal

Scalar = bool | int | float | Decimal | str | datetime | date | time | bytes
Watermark = Mapping[str, Scalar]
"""Column name → highest value that is durable in the destination. Empty: nothing loaded yet."""


@dataclass(frozen=True)
class Window:
    """A half-open range of one source column: ``lower <= column < upper``.

    Attributes:
        column: The source column (the chunk column).
        lower: Inclusive; None is unbounded.
        upper: Exclusive; None is unbounded.
        key: How people name it, such as ``2013-01`` (the partition key in Dagster).
        zone: Whose clocks showed the bounds as they were written; None if they were written with
            an offset. Values without a zone are compared with what those clocks showed, unless
            metadata declares a zone for them.
    """

    column: str
    lower: Scalar | None
    upper: Scalar | None
    key: str = ""
    zone: str | None = field(default=None, compare=False)
