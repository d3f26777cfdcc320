"""The unit of a replay: an interval of the calendar, a duration, or a step of numbers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from datacoolie_core.plan.bounds import Bound, Step, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

CALENDAR_UNITS = ("years", "months", "weeks", "days")
DURATION_UNITS = ("hours", "minutes")
UNITS = (*CALENDAR_UNITS, *DURATION_UNITS)


@dataclass(frozen=True)
class Interval:
    """How far it is from one boundary to the next.

    Attributes:
        units: Unit name to a positive number, from the coarsest to the finest.
        step: The step of numbers; then there are no units.
    """

    units: Mapping[str, int] = field(default_factory=dict[str, int])
    step: Step | None = None

    @property
    def coarsest(self) -> str:
        """The unit that the first boundary snaps to."""
        return next(iter(self.units))

    @property
    def finest(self) -> str:
        """The unit that keys are written in."""
        return next(reversed(tuple(self.units)))

    @property
    def duration(self) -> timedelta:
        """Hours and minutes, which are the same on every day."""
        return timedelta(hours=self.units.get("hours", 0), minutes=self.units.get("minutes", 0))


def parse_interval(
    chunk_interval: Mapping[str, int] | None, step: Step | None, start: Bound
) -> Interval | None:
    """Return the interval of a replay, None if it is to run in one piece.

    Args:
        chunk_interval: As written: units, or ``step`` alone.
        step: As written beside it; only one of both may be there.
        start: The first bound, which says what kind of interval fits.

    Raises:
        SettingsError: The interval makes no sense, or does not fit the bounds.
    """
    if chunk_interval is None:
        return None if step is None else Interval(step=_checked_step(step, start))
    if step is not None:
        raise refuse("it has a chunk_interval and a step", "Keep one of them.")
    if not chunk_interval:
        raise refuse("chunk_interval is empty", 'Write such as {"months": 1}, or leave it out.')
    for name, value in chunk_interval.items():
        _check_unit(name, value)
    if "step" in chunk_interval:
        if len(chunk_interval) > 1:
            raise refuse("step stands beside calendar units", "Keep one of them.")
        return Interval(step=_checked_step(chunk_interval["step"], start))
    return Interval(units=_checked_units(chunk_interval, start))


def _check_unit(name: str, value: object) -> None:
    if name == "step":
        return
    if name not in UNITS:
        near = difflib.get_close_matches(name, UNITS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Use {', '.join(UNITS)} or step."
        raise refuse(f"chunk_interval has an unknown unit '{name}'", hint)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise refuse(f"chunk_interval {name} is {value!r}", "Use a whole number from 1 on.")


def _checked_units(chunk_interval: Mapping[str, int], start: Bound) -> dict[str, int]:
    if not isinstance(start, date):
        raise refuse(
            f"the bounds are numbers and chunk_interval is {dict(chunk_interval)}",
            "Use a step for numbers, or dates as bounds.",
        )
    units = {name: chunk_interval[name] for name in UNITS if name in chunk_interval}
    fine = [name for name in DURATION_UNITS if name in units]
    if fine and not isinstance(start, datetime):
        raise refuse(
            f"the bounds are dates and chunk_interval has {fine[0]}",
            "Write the bounds as timestamps, such as 2025-01-31T00:00:00.",
        )
    return units


def _checked_step(step: object, start: Bound) -> Step:
    if isinstance(start, date):
        raise refuse(
            "the bounds are dates and the interval is a step",
            'Use a chunk_interval such as {"months": 1}.',
        )
    if isinstance(step, bool) or not isinstance(step, int | float | Decimal):
        raise refuse(f"step is {step!r}", "Use a number above 0.")
    if not isinstance(step, int | type(start)):
        raise refuse(
            f"step is a {type(step).__name__} and the bounds are {type(start).__name__}",
            "Write both in one kind of number.",
        )
    if not 0 < step < float("inf"):
        raise refuse(f"step is {step}", "Use a number above 0.")
    return step
