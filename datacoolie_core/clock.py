"""The only reader of the wall clock, so that a test can move time in one place."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current instant, aware, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return seconds of a clock that never goes backwards, for durations."""
    return time.perf_counter()


def sleep(seconds: float) -> None:
    """Wait; functions take it as an argument, so that tests need not."""
    time.sleep(seconds)
