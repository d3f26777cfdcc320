"""The core's events as lines in the run's log."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.run.events import (
    ChunkFinished,
    DataflowFinished,
    DataflowStarted,
    Message,
    PhaseReached,
    RetryScheduled,
)

if TYPE_CHECKING:
    import dagster as dg

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.results import DataflowResult


_TOLD = ("reading", "staging", "committing")
"""Phases in which a long load may be; a line for each point would cost more than a small load."""
_SECONDS_BETWEEN_SUMS = 5


class RunLog:
    """A listener that writes what happens into a Dagster log.

    Args:
        log: The log of a step.
    """

    def __init__(self, log: dg.DagsterLogManager) -> None:
        self._log = log

    def __call__(self, event: Event) -> None:
        """Write an event, if people want to read of it."""
        if isinstance(event, Message):
            self._log.log(event.level.upper(), f"{_head(event.dataflow)}{event.text}")
        elif isinstance(event, DataflowStarted):
            self._log.info(f"{_head(event.dataflow)}started")
        elif isinstance(event, PhaseReached) and event.phase in _TOLD:
            chunk = f" (chunk {event.window.key})" if event.window else ""
            self._log.debug(f"{_head(event.dataflow)}{event.phase}{chunk}")
        elif isinstance(event, RetryScheduled):
            self._log.warning(
                f"{_head(event.dataflow)}attempt {event.attempt} failed, the next one comes in "
                f"{event.delay_seconds:g} s: {event.error.message}"
            )
        elif isinstance(event, ChunkFinished | DataflowFinished):
            self._finished(event.result)

    def _finished(self, result: DataflowResult) -> None:
        head = _head(result.dataflow)
        chunk = f"chunk {result.window.key} " if result.window else ""
        if result.error is not None:
            self._log.error(f"{head}{chunk}failed: {result.error.message}")
            return
        reason = f": {result.reason}" if result.reason else ""
        counts = ", ".join(
            f"{count:,} {name.removeprefix('rows_').replace('_', ' ')}"
            for name, count in result.rows.items()
            if count
        )
        rows = f" ({counts})" if counts else ""
        self._log.info(f"{head}{chunk}{result.status}{reason}{rows}")


class GroupLog(RunLog):
    """A listener that writes what happens to many dataflows: a line for what went wrong, and sums.

    A line costs as much as the event that records a dataflow, so those that went well have none.

    Args:
        log: The log of a step.
        total: How many dataflows it loads.
    """

    def __init__(self, log: dg.DagsterLogManager, total: int) -> None:
        super().__init__(log)
        self._total = total
        self._ended: Counter[str] = Counter()
        self._told_at = clock.monotonic()
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write an event, if it is not one of those that each dataflow has."""
        if isinstance(event, Message | RetryScheduled):
            super().__call__(event)
        elif isinstance(event, DataflowFinished | ChunkFinished) and event.result.error:
            self._finished(event.result)
        if isinstance(event, DataflowFinished):
            self._count(event.result)

    def _count(self, result: DataflowResult) -> None:
        with self._lock:
            self._ended[result.status] += 1
            ended, now = self._ended.total(), clock.monotonic()
            if ended < self._total and now - self._told_at < _SECONDS_BETWEEN_SUMS:
                return
            self._told_at = now
            counts = ", ".join(f"{count:,} {status}" for status, count in self._ended.items())
        self._log.info(f"{ended:,} of {self._total:,} dataflows have ended: {counts}")


def _head(dataflow: Dataflow | None) -> str:
    return f"{dataflow.label}: " if dataflow else ""
