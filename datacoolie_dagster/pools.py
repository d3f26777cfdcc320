"""Dagster's pools: how many dataflows may read from one place at once, in any run.

A step of one dataflow is in the pool of its source, and Dagster itself sees to the rest. A group step
loads dataflows of several sources; each of them takes a slot of its own pool before it starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.run.events import AdmissionStopped, DataflowFinished, DataflowStarted
from datacoolie_dagster.names import safe_name

if TYPE_CHECKING:
    import dagster as dg

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.events import Event

_ASK_AGAIN = 1.0
"""Seconds between two tries to get a slot."""
_SERVERS = ("database", "api", "streaming")


def pool_of(dataflow: Dataflow) -> str | None:
    """Return the pool of a dataflow's source, None if it is in none.

    It is the one that its source names (``configure.datacoolie.pool``); for databases and APIs else
    the name of the connection. As long as the instance sets no limit for it, it limits nothing.
    """
    named = dataflow.source.configure.datacoolie.pool
    if named:
        return safe_name(named, named)
    connection = dataflow.source.connection
    kind = connection.connection_type
    return safe_name(connection.name, connection.name) if kind in _SERVERS else None


@contextmanager
def slots_for(
    instance: dg.DagsterInstance, run_id: str, step: str, dataflows: Sequence[Dataflow]
) -> Generator[PoolSlots]:
    """Give a listener for a step that loads several dataflows; no slot is held afterwards.

    Args:
        instance: Has the pools.
        run_id: The run's.
        step: The name of the step.
        dataflows: What it loads.
    """
    pools = {one.dataflow_id: pool for one in dataflows if (pool := pool_of(one))}
    slots = PoolSlots(instance, run_id, step, pools)
    try:
        yield slots
    finally:
        slots.release()


@dataclass
class PoolSlots:
    """A listener that lets each dataflow of a step start only when it has a slot of its pool.

    Attributes:
        instance: Has the pools.
        run_id: The run's.
        step: The name of the step.
        pools: Dataflow id → its pool.
        sleep: Waits a number of seconds.
    """

    instance: dg.DagsterInstance
    run_id: str
    step: str
    pools: Mapping[str, str]
    sleep: Callable[[float], None] = clock.sleep
    _held: set[str] = field(default_factory=set[str])
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __call__(self, event: Event) -> None:
        """Wait for a slot before a load, and give it back after it."""
        if isinstance(event, AdmissionStopped):
            self._stopped.set()
        elif isinstance(event, DataflowStarted):
            self._claim(event.dataflow.dataflow_id)
        elif isinstance(event, DataflowFinished):
            self._free(event.result.dataflow.dataflow_id)

    def release(self) -> None:
        """Give back what is still held."""
        for one in list(self._held):
            self._free(one)

    def _claim(self, dataflow_id: str) -> None:
        pool = self.pools.get(dataflow_id)
        if pool is None or not self._is_limited(pool):
            return
        storage = self.instance.event_log_storage
        self._held.add(dataflow_id)
        while not self._stopped.is_set():
            claim = storage.claim_concurrency_slot(pool, self.run_id, self._key(dataflow_id))
            if claim.is_claimed:
                return
            self.sleep(_ASK_AGAIN)

    def _is_limited(self, pool: str) -> bool:
        storage = self.instance.event_log_storage
        if not storage.supports_global_concurrency_limits:
            return False
        config = storage.get_pool_config()
        if config.default_pool_limit is not None:
            storage.initialize_concurrency_limit_to_default(pool)
        return any(one.name == pool for one in storage.get_pool_limits())

    def _free(self, dataflow_id: str) -> None:
        if dataflow_id in self._held:
            self._held.discard(dataflow_id)
            storage = self.instance.event_log_storage
            storage.free_concurrency_slot_for_step(self.run_id, self._key(dataflow_id))

    def _key(self, dataflow_id: str) -> str:
        """Return what a slot is claimed under: a step of Dagster's has none but its own."""
        return f"{self.step}[{dataflow_id}]"
