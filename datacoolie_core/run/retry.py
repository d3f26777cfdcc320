"""When to try again, and how long to wait before."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CAP_SECONDS = 60.0


@dataclass(frozen=True)
class RetryHandler:
    """How often a dataflow is tried again, and after which delays.

    Args:
        retry_count: Attempts after the first.
        retry_delay: Seconds before the second attempt; it doubles from there, up to 60.
        jitter: Share of each delay that is drawn at random, 0 to 1; the cap holds with it.
    """

    retry_count: int = 0
    retry_delay: float = 5.0
    jitter: float = 0.0

    def delays(self, draw: Callable[[], float] = random.random) -> Iterator[float]:
        """Yield the seconds to wait before attempt 2, 3 and so on.

        >>> list(RetryHandler(7, 5).delays())
        [5, 10, 20, 40, 60.0, 60.0, 60.0]
        """
        delay = min(self.retry_delay, CAP_SECONDS)
        for _ in range(self.retry_count):
            yield delay - delay * self.jitter * draw() if self.jitter else delay
            delay = min(delay * 2, CAP_SECONDS)
