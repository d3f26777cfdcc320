"""``ExecutionLogger``: a record for each dataflow as it ends, and one for the whole job."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacoolie_core import clock, storage
from datacoolie_core.errors import LifecycleError
from datacoolie_core.run.events import (
    DataflowFinished,
    MaintenanceFinished,
    RunFinished,
    RunStarted,
    TargetFinished,
)
from datacoolie_core.run.logs.config import LogConfig
from datacoolie_core.run.logs.dataflow_rows import dataflow_row, maintenance_row
from datacoolie_core.run.logs.records import Job, line
from datacoolie_core.run.logs.sink import LineSink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.run.events import Event

_TOTALS = (
    "rows_read",
    "rows_written",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "files_added",
    "files_removed",
    "bytes_added",
    "bytes_removed",
)
_STATUSES = ("succeeded", "failed", "skipped", "running", "pending")


@dataclass
class _Totals:
    """What all operations of a job did, added up."""

    dataflows: int = 0
    by_status: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATUSES, 0))
    figures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TOTALS, 0))
    operations: dict[str, None] = field(default_factory=dict[str, None])
    failed: list[str] = field(default_factory=list[str])

    def add(self, row: Mapping[str, Any]) -> None:
        for name in _TOTALS:
            self.figures[name] += row["metrics"].get(name) or 0
        self.operations[row["operation_type"]] = None
        if row["status"] == "failed":
            name, identifier = row["dataflow_name"], row["dataflow_id"]
            self.failed.append(f"{name} [{identifier}]" if name else identifier)


class ExecutionLogger:
    """Writes what was run, and how it ended.

    Files below ``log_base_path``: ``dataflow_run_log/__run_date=…/dataflow_….json`` has a line for
    each dataflow that ended, ``job_run_log/__run_date=…/job_….json`` one for the job, when the
    driver closes (docs/reference/logs.md).

    Args:
        log_base_path: The folder, as a path or URI.
        config: How logs are kept.
    """

    def __init__(self, log_base_path: str, config: LogConfig | None = None) -> None:
        self.log_base_path = log_base_path
        self.config = config or LogConfig()
        self._guard = threading.Lock()
        self._totals = _Totals()
        self._run_id = ""
        self._job: Job | None = None
        self._fixed: dict[str, Any] = {}
        self._dataflows: LineSink | None = None
        self._jobs: LineSink | None = None
        self._closed = False

    def open(self, job: Job, settings: Mapping[str, Any]) -> None:
        """Start to log a job.

        Args:
            job: Names the files.
            settings: Columns of the job's record that are known from the start.

        Raises:
            LifecycleError: The logger was opened before: each driver needs its own.
        """
        if self._job is not None:
            raise LifecycleError(
                "the execution logger belongs to another driver",
                remedy="Make an ExecutionLogger for each driver.",
            )
        self._job, self._fixed = job, dict(settings)
        self._dataflows = self._sink("dataflow")
        self._jobs = self._sink("job")

    def _sink(self, kind: str) -> LineSink:
        assert self._job is not None
        path = storage.join(self.log_base_path, f"{kind}_run_log", self._job.file(kind))
        return LineSink(path, self.config)

    def __call__(self, event: Event) -> None:
        """Take an event of a run; only starts and ends matter."""
        if isinstance(event, RunStarted):
            self._run_id = event.run_id
        elif isinstance(event, DataflowFinished):
            self._add(dataflow_row(event.result, self._run_id))
        elif isinstance(event, TargetFinished):
            self._add(maintenance_row(event.result, self._run_id))
        elif isinstance(event, RunFinished | MaintenanceFinished):
            self._count(event.result)

    def _add(self, row: dict[str, Any]) -> None:
        if self._job is None or self._dataflows is None:
            return
        record = {**self._job.columns("dataflow_run_log"), **row}
        with self._guard:
            self._totals.add(row)
        self._dataflows.add(line(record, self.config))

    def _count(self, result: Any) -> None:
        with self._guard:
            self._totals.dataflows += result.total
            for status in _STATUSES:
                self._totals.by_status[status] += result.count(status)

    def finish(self, status: str, messages: list[str]) -> None:
        """Write the job's record.

        Args:
            status: Of the whole job.
            messages: Failures that are nobody's dataflow: of start, scheduling, teardown.
        """
        if self._job is None or self._jobs is None or self._closed:
            return
        totals = self._totals
        now = clock.utc_now()
        told = [*messages, *(["; ".join(totals.failed)] if totals.failed else [])]
        message = "; ".join(told) or None
        cut = message is not None and len(message.encode()) > self.config.diagnostic_bytes
        dropped = [sink for sink in (self._dataflows, self._jobs) if sink is not None]
        record: dict[str, Any] = {
            **self._job.columns("job_run_log"),
            **self._fixed,
            "start_time": self._job.started_at.isoformat(),
            "end_time": now.isoformat(),
            "duration_seconds": round((now - self._job.started_at).total_seconds(), 3),
            "status": status,
            "message": message,
            "total_dataflows": totals.dataflows,
            **{f"total_{name}": count for name, count in totals.by_status.items()},
            **{f"total_{name}": count for name, count in totals.figures.items()},
            "log_records_dropped": sum(sink.dropped_records for sink in dropped),
            "log_bytes_dropped": sum(sink.dropped_bytes for sink in dropped),
            "message_truncated": cut,
            "operation_types": list(totals.operations),
            "observed_at": now.isoformat(),
        }
        self._jobs.add(line(record, self.config))

    def close(self) -> None:
        """Store what waits; nothing is logged any more."""
        self._closed = True
        for sink in (self._dataflows, self._jobs):
            if sink is not None:
                sink.close()
