"""Run records: one JSON line a dataflow, and one for the whole run (docs/reference/state.md)."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from datacoolie_core import clock, storage
from datacoolie_core.run.events import DataflowFinished, RunFinished, RunStarted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.run.events import Event
    from datacoolie_core.run.results import DataflowResult, ExecutionResult

FORMAT = 1


class RunRecorder:
    """Writes a run's records below a folder.

    Files: ``dataflow_run_log/__run_date=YYYY-MM-DD/dataflow_<time>_<run id>.jsonl`` and
    ``job_run_log/…/job_<time>_<run id>.jsonl``.

    Args:
        root: The log folder, as a path or URI.
        attributes: Free JSON of the caller, written to the job's record.
    """

    def __init__(self, root: str, attributes: Mapping[str, Any] | None = None) -> None:
        self._root = root
        self._attributes = dict(attributes or {})
        self._guard = threading.Lock()
        self._run_id = ""
        self._stamp = clock.utc_now()

    def __call__(self, event: Event) -> None:
        """Take an event of the run; only its start, its dataflows' ends and its end matter."""
        if isinstance(event, RunStarted):
            self._run_id, self._stamp = event.run_id, clock.utc_now()
        elif isinstance(event, DataflowFinished):
            self._append("dataflow", self._dataflow(event.result))
        elif isinstance(event, RunFinished):
            self._append("job", self._job(event.result))

    def _append(self, kind: str, record: Mapping[str, Any]) -> None:
        day = f"__run_date={self._stamp:%Y-%m-%d}"
        name = f"{kind}_{self._stamp:%Y%m%d_%H%M%S}_{self._run_id}.jsonl"
        path = storage.join(self._root, f"{kind}_run_log", day, name)
        with self._guard:
            storage.append_line(path, json.dumps(record, ensure_ascii=False, default=str))

    def _dataflow(self, result: DataflowResult) -> dict[str, Any]:
        flow = result.dataflow
        return {
            "format": FORMAT,
            "run_id": self._run_id,
            **result.to_json(),
            "group_number": flow.group_number,
            "execution_order": flow.execution_order,
            "load_type": flow.destination.load_type,
            "source_connection": flow.source.connection.name,
            "source_query": flow.source.query,
            "source_action": dict(result.source_action),
            "destination_connection": flow.destination.connection.name,
            "attempt_log": [
                {
                    "number": one.number,
                    "started_at": one.started_at.isoformat(),
                    "duration_seconds": one.duration_seconds,
                    "status": one.status,
                    "error": one.error.message if one.error else None,
                }
                for one in result.attempts
            ],
        }

    def _job(self, result: ExecutionResult) -> dict[str, Any]:
        document = result.to_json()
        failed = [one for one in result.dataflows if one.status == "failed"]
        return {
            "format": FORMAT,
            "run_id": result.run_id,
            "status": document["status"],
            "counts": document["counts"],
            "duration_seconds": round(result.duration_seconds, 3),
            "failed": "; ".join(
                f"{one.dataflow.name or one.dataflow.dataflow_id} [{one.dataflow.dataflow_id}]"
                for one in failed
            ),
            "rows_read": sum(one.rows.get("rows_read") or 0 for one in result.dataflows),
            "rows_written": sum(one.rows.get("rows_written") or 0 for one in result.dataflows),
            "run_attributes": self._attributes,
        }
