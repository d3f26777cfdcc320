"""What every part of a run is handed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacoolie_core import clock
from datacoolie_core.redaction import Redaction
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_core.run.events import Message, PhaseName, PhaseReached

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.events import Listener
    from datacoolie_core.run.locks import Locks
    from datacoolie_core.state.stores import StateStore


@dataclass(frozen=True)
class RunContext:
    """One run: its id, its settings and where it says what happens.

    Attributes:
        run_id: Unique; written to every commit and row of the run.
        project_dir: Root of relative paths.
        store: Where state records are kept.
        locks: Shared by all runs of a driver.
        emit: Takes every event; safe to call from any thread.
        sleep: Waits that many seconds between attempts.
        sql_paths: Roots of SQL files.
        artifact_root: Root of ``artifact:/…``; None is the project.
        resolvers: Secret resolvers by prefix.
        full_refresh: Read from the beginning and replace what is there.
        shared: Ids of dataflows whose destination other active dataflows write too.
        now: The wall clock.
        stopping: Set when the run was interrupted: a replay starts no further chunk.
        redaction: Secrets that were resolved, so that no message shows one.
    """

    run_id: str
    project_dir: str
    store: StateStore
    locks: Locks
    emit: Listener
    sleep: Callable[[float], None]
    config: DataCoolieRunConfig = field(default_factory=DataCoolieRunConfig)
    sql_paths: Sequence[str] = ()
    artifact_root: str | None = None
    resolvers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    full_refresh: bool = False
    shared: Collection[str] = ()
    now: Callable[[], datetime] = clock.utc_now
    stopping: threading.Event = field(default_factory=threading.Event)
    redaction: Redaction = field(default_factory=Redaction)

    def phase(self, dataflow: Dataflow, name: PhaseName, window: Window | None = None) -> None:
        """Tell the listeners that a dataflow reached a point of its run."""
        self.emit(PhaseReached(dataflow, name, window))

    def info(self, dataflow: Dataflow, text: str) -> None:
        """Log a line about a dataflow."""
        self.emit(Message(dataflow, "info", self.redaction.clean(text)))

    def warn(self, dataflow: Dataflow, text: str) -> None:
        """Log a warning about a dataflow."""
        self.emit(Message(dataflow, "warning", self.redaction.clean(text)))
