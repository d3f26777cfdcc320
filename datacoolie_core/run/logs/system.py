"""``SystemLogger``: everything that happens in a session, event by event."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from datacoolie_core import storage
from datacoolie_core.clock import utc_now
from datacoolie_core.errors import LifecycleError
from datacoolie_core.run.events import (
    AdmissionStopped,
    ChunkFinished,
    DataflowFinished,
    DataflowStarted,
    Message,
    PhaseReached,
    RetryScheduled,
    TargetFinished,
)
from datacoolie_core.run.logs.config import LogConfig
from datacoolie_core.run.logs.records import Job, line
from datacoolie_core.run.logs.sink import LineSink

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.events import Event

LOGGER = "datacoolie_core"


class SystemLogger(logging.Handler):
    """Writes session, operation, dataflow and retry events, and what the package logs.

    The file below ``log_base_path`` is ``__run_date=…/system_….json``; its columns and event
    names are in docs/reference/logs.md.

    Args:
        log_base_path: The folder, as a path or URI.
        config: How logs are kept.
    """

    def __init__(self, log_base_path: str, config: LogConfig | None = None) -> None:
        self.config = config or LogConfig()
        super().__init__(level=self.config.file_level)
        self.log_base_path = log_base_path
        self._job: Job | None = None
        self._sink: LineSink | None = None
        self._run_id: str | None = None

    def open(self, job: Job) -> None:
        """Start to log a session.

        Raises:
            LifecycleError: The logger was opened before: each driver needs its own.
        """
        if self._job is not None:
            raise LifecycleError(
                "the system logger belongs to another driver",
                remedy="Make a SystemLogger for each driver.",
            )
        self._job = job
        path = storage.join(self.log_base_path, job.file("system"))
        self._sink = LineSink(path, self.config)
        logging.getLogger(LOGGER).addHandler(self)

    def begin(self, run_id: str | None) -> None:
        """Say which run the next records belong to; None for none."""
        self._run_id = run_id

    def tell(
        self,
        event_name: str | None,
        text: str,
        *,
        level: str = "INFO",
        dataflow: Dataflow | None = None,
        exc_info: str | None = None,
    ) -> None:
        """Write one record, if its level is logged.

        Args:
            event_name: Such as ``session.ready``; None for a plain line.
            text: For people.
            level: Name of its level.
            dataflow: Whom it is about.
            exc_info: A traceback.
        """
        self._write(
            level,
            {
                "logger": LOGGER,
                "msg": text,
                "dataflow_id": dataflow.dataflow_id if dataflow else None,
                "dataflow_run_id": self._run_id,
                "event_name": event_name,
                "module": None,
                "func": None,
                "line": None,
                "exc_info": exc_info,
            },
        )

    def __call__(self, event: Event) -> None:
        """Take an event of a run."""
        if isinstance(event, DataflowStarted):
            self.tell("dataflow.started", event.dataflow.label, dataflow=event.dataflow)
        elif isinstance(event, PhaseReached):
            self._phase(event)
        elif isinstance(event, Message):
            self.tell(None, event.text, level=event.level.upper(), dataflow=event.dataflow)
        elif isinstance(event, RetryScheduled):
            text = f"attempt {event.attempt} failed, next in {event.delay_seconds} s: "
            self.tell(
                "retry.scheduled",
                text + event.error.message,
                level="WARNING",
                dataflow=event.dataflow,
                exc_info=event.error.trace,
            )
        elif isinstance(event, ChunkFinished):
            chunk = event.result
            key = chunk.window.key if chunk.window else ""
            text = f"{chunk.dataflow.label}, chunk {key}: {chunk.status}"
            self.tell("replay.chunk_finished", text, dataflow=chunk.dataflow)
        elif isinstance(event, AdmissionStopped):
            text = f"{event.reason}: {event.waiting} dataflows do not start"
            self.tell("scheduler.admission_stopped", text, level="WARNING")
        elif isinstance(event, DataflowFinished | TargetFinished):
            result = event.result
            why = result.error.message if result.error else result.reason
            text = f"{result.dataflow.label}: {result.status}" + (f" ({why})" if why else "")
            level = "ERROR" if result.status == "failed" else "INFO"
            trace = result.error.trace if result.error else None
            self.tell(
                "dataflow.finished", text, level=level, dataflow=result.dataflow, exc_info=trace
            )

    def _phase(self, event: PhaseReached) -> None:
        if event.phase == "reading" and event.dataflow.source.query:
            text = f"query of {event.dataflow.label} is ready"
            self.tell("query.file_resolved", text, level="DEBUG", dataflow=event.dataflow)
        name = "preparation.finished" if event.phase == "reading" else None
        self.tell(name, f"phase {event.phase}", level="DEBUG", dataflow=event.dataflow)

    def emit(self, record: logging.LogRecord) -> None:
        """Write what a module of the package logged."""
        trace = None
        if record.exc_info:
            trace = logging.Formatter().formatException(record.exc_info)
        self._write(
            record.levelname,
            {
                "logger": record.name,
                "msg": record.getMessage(),
                "dataflow_id": None,
                "dataflow_run_id": self._run_id,
                "event_name": None,
                "module": record.module,
                "func": record.funcName,
                "line": record.lineno,
                "exc_info": trace,
            },
        )

    def _write(self, level: str, columns: dict[str, Any]) -> None:
        if self._job is None or self._sink is None:
            return
        if logging.getLevelNamesMapping()[level] < self.level:
            return
        record = {
            **self._job.columns("system_log"),
            "ts": utc_now().isoformat(),
            "level": level,
            **columns,
        }
        self._sink.add(line(record, self.config))

    def close(self) -> None:
        """Store what waits; nothing is logged any more."""
        logging.getLogger(LOGGER).removeHandler(self)
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        super().close()
