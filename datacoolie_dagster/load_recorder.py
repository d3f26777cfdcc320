"""Records each dataflow of a run in Dagster as soon as it has ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacoolie_core.run.events import DataflowFinished, DataflowStarted
from datacoolie_dagster.provenance import NewestInputs
from datacoolie_dagster.recording import (
    Context,
    counter,
    materialization,
    record_failure,
    record_marks,
)
from datacoolie_dagster.results import event_metadata

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.results import DataflowResult
    from datacoolie_core.state.record import StateRecord
    from datacoolie_dagster.project import Loaded


@dataclass
class LoadRecorder:
    """A listener that records each dataflow of a run as it ends.

    Attributes:
        context: The op's.
        loaded: The assets by dataflow id; of those that are loaded, or more.
        driver: The one that runs; it knows the state before each load.
        own: Dataflow id → the partition that was asked for, which the load records as its own.
        problems: What went wrong while recording; a listener can't raise.
    """

    context: Context
    loaded: Mapping[str, Loaded]
    driver: DataCoolieDriver | None = None
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: list[Exception] = field(default_factory=list[Exception])
    _newest: NewestInputs = field(init=False)
    _before: dict[str, StateRecord | None] = field(default_factory=dict[str, "StateRecord | None"])
    _inputs: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    _recorded: set[str] = field(default_factory=set[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._newest = NewestInputs(self.context.instance, self.loaded.values())

    def __call__(self, event: Event) -> None:
        """Note state and inputs before a load, and record how it ended."""
        if isinstance(event, DataflowStarted) and self.driver is not None:
            dataflow_id = event.dataflow.dataflow_id
            self._before[dataflow_id] = self.driver.store.load(dataflow_id)
            self._inputs[dataflow_id] = self._newest.tags(self.loaded[dataflow_id])
        elif isinstance(event, DataflowFinished):
            self.record(event.result)

    def record(self, result: DataflowResult) -> None:
        """Record how a dataflow ended, once; what was never started has no event of its own."""
        with self._lock:
            if result.dataflow.dataflow_id in self._recorded:
                return
            self._recorded.add(result.dataflow.dataflow_id)
            try:
                self._record(result)
            except Exception as error:
                self.context.log.exception("%s was not recorded", result.dataflow.label)
                self.problems.append(error)

    def _record(self, result: DataflowResult) -> None:
        loaded = self.loaded[result.dataflow.dataflow_id]
        if result.error is not None or not result.attempts:
            # failed, or never started: it runs elsewhere, or an upstream failed
            record_failure(self.context, loaded, result)
            return
        before = self._before.get(result.dataflow.dataflow_id)
        inputs = self._inputs.get(result.dataflow.dataflow_id)
        count = counter(self.driver, loaded) if self.driver is not None else None
        own = self.own.get(result.dataflow.dataflow_id)
        record_marks(self.context, loaded, result, before, count=count, inputs=inputs, own=own)
        metadata = event_metadata(result, loaded.reads)
        event = materialization(loaded, result, metadata, own, inputs=inputs)
        self.context.log_event(event)
        self._newest.has_changed(loaded.key)
