"""What a caller asks of a replay: the range, its chunks, and what happens to saved progress."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from datacoolie_core import clock
from datacoolie_core.plan.bounds import Bound, Step, refuse
from datacoolie_core.plan.chunks import generate_chunks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from datacoolie_core.metadata.options import ReplayOptions
    from datacoolie_core.plan.windows import Window

_PART = re.compile(r"(\d+)(y|mo|w|d|h|min)")
_UNITS = {
    "y": "years",
    "mo": "months",
    "w": "weeks",
    "d": "days",
    "h": "hours",
    "min": "minutes",
}


@dataclass(frozen=True)
class ReplayConfig:
    """A range to load again, in chunks.

    >>> config = ReplayConfig("2025-01-15", "2025-03-10", chunk_interval={"months": 1})
    >>> [window.key for window in config.windows("changed_at")]
    ['2025-01', '2025-02', '2025-03']

    Args:
        start: Inclusive: a date, a timestamp, a number, or ISO text.
        end: Exclusive, of the same kind; None is up to now.
        chunk_interval: ``years, months, weeks, days, hours, minutes``, or ``step`` alone; None
            loads the range in one piece.
        save_watermark: Whether each chunk that succeeds moves the saved watermark; it never
            moves back.
        chunk_column: The source column that is bounded; None takes each dataflow's own
            (``configure.datacoolie.replay.chunk_column``, else its first watermark column).
        step: How wide a chunk of numbers is; the same as ``chunk_interval={"step": n}``.
        respect_order: A dataflow starts after all chunks of what it waits for (group, order,
            ``depends_on``, lineage); else all dataflows run beside each other.
        timezone: Whose calendar and clocks: an IANA name.

    Raises:
        SettingsError: The range or its interval makes no sense.
    """

    start: str | Bound
    end: str | Bound | None
    chunk_interval: Mapping[str, int] | None = None
    save_watermark: bool = False
    chunk_column: str | None = None
    step: Step | None = field(default=None, kw_only=True)
    respect_order: bool = field(default=False, kw_only=True)
    timezone: str = field(default="UTC", kw_only=True)

    def __post_init__(self) -> None:
        if self.chunk_interval is not None:
            # a mapping of the caller's may change later
            object.__setattr__(self, "chunk_interval", dict(self.chunk_interval))
        for name in ("save_watermark", "respect_order"):
            given: object = getattr(self, name)
            if not isinstance(given, bool):
                raise refuse(f"{name} is {given!r}", "Use True or False.")
        if self.chunk_column is not None and not self.chunk_column.strip():
            raise refuse("chunk_column is blank", "Name a column, or leave it out.")
        self.windows("")

    @classmethod
    def of_options(cls, options: ReplayOptions, *, save_watermark: bool = False) -> Self:
        """Return the replay that a dataflow's ``configure.datacoolie.replay`` describes.

        Raises:
            SettingsError: The range or its interval makes no sense.
        """
        return cls(
            options.start,
            options.end,
            options.chunk_interval,
            save_watermark,
            options.chunk_column,
            step=options.step,
            respect_order=options.respect_order,
            timezone=options.timezone,
        )

    def windows(self, column: str, now: datetime | None = None) -> tuple[Window, ...]:
        """Return the chunks in order.

        Args:
            column: The source column that they bound.
            now: The current instant, aware, for an open end; None reads the clock.

        Raises:
            SettingsError: The range or its interval makes no sense.
        """
        return generate_chunks(
            self.start,
            self.end,
            column=column,
            chunk_interval=self.chunk_interval,
            step=self.step,
            timezone=self.timezone,
            now=now or clock.utc_now(),
        )


def parse_every(text: str) -> dict[str, int]:
    """Return the chunk interval of a short text.

    >>> parse_every("1mo"), parse_every("1d12h"), parse_every("15min")
    ({'months': 1}, {'days': 1, 'hours': 12}, {'minutes': 15})

    Raises:
        SettingsError: It is no such text.
    """
    parts = _PART.findall(text)
    units = {_UNITS[unit]: int(number) for number, unit in parts}
    whole = "".join(number + unit for number, unit in parts)
    if not parts or whole != text.strip() or len(units) < len(parts):
        raise refuse(
            f"'{text}' is no interval", "Write 1y, 1mo, 1w, 1d, 6h or 15min, or 1mo1d for both."
        )
    return units
