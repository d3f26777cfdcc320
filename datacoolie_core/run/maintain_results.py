"""What maintenance says of itself: one result a table, one for the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.results import Failure, Notice, Status
    from datacoolie_core.writers.maintain_request import Operation

METRICS = ("files_added", "files_removed", "bytes_added", "bytes_removed", "bytes_saved")


@dataclass(frozen=True)
class TargetResult:
    """How the maintenance of one table ended.

    Attributes:
        dataflow: Stands for the table.
        status: ``failed`` if one of its operations failed.
        reason: Why it was skipped or is pending.
        destination: Where the table is.
        operations: What was done, in order.
        started_at: None if it was never begun.
        duration_seconds: Wall time.
        warnings: For the user.
        error: Of the first operation that failed, or why none was begun.
    """

    dataflow: Dataflow
    status: Status
    reason: str | None = None
    destination: str | None = None
    operations: Sequence[Operation] = ()
    started_at: datetime | None = None
    duration_seconds: float | None = None
    warnings: tuple[Notice, ...] = ()
    error: Failure | None = None

    def metric(self, name: str) -> int:
        """Return one of :data:`METRICS`, over all operations."""
        return sum(getattr(one, name) for one in self.operations)

    def to_json(self) -> dict[str, Any]:
        """Return the table's entry in ``maintain --json`` (docs/maintenance.md)."""
        error = self.error
        return {
            "name": self.dataflow.name,
            "dataflow_id": self.dataflow.dataflow_id,
            "stage": self.dataflow.stage,
            "status": self.status,
            "reason": self.reason,
            "destination": self.destination,
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "duration_seconds": self.duration_seconds,
            **{name: self.metric(name) for name in METRICS},
            "operations": [one.to_json() for one in self.operations],
            "warnings": [{"code": w.code, "message": w.message} for w in self.warnings],
            "error": None
            if error is None
            else {
                "phase": error.phase,
                "code": error.code,
                "message": error.message,
                "place": error.place,
                "remedy": error.remedy,
            },
        }


@dataclass(frozen=True)
class MaintenanceResult:
    """How the maintenance of all tables ended.

    Attributes:
        run_id: The run's id.
        targets: A result for each table, and for each dataflow that may not stand for one.
        duration_seconds: Wall time of the whole.
        message: Says so when nothing was selected.
        interrupted: Ended early by Ctrl-C, after what ran was drained.
    """

    run_id: str
    targets: tuple[TargetResult, ...] = ()
    duration_seconds: float = 0.0
    message: str | None = None
    interrupted: bool = False

    def count(self, status: Status) -> int:
        """Return how many targets ended with this status."""
        return sum(one.status == status for one in self.targets)

    @property
    def total(self) -> int:
        """Targets, skipped ones too."""
        return len(self.targets)

    @property
    def succeeded(self) -> int:
        """Tables that were maintained."""
        return self.count("succeeded")

    @property
    def failed(self) -> int:
        """Tables of which an operation failed."""
        return self.count("failed")

    @property
    def skipped(self) -> int:
        """Had nothing to do, or may not be maintained."""
        return self.count("skipped")

    @property
    def pending(self) -> int:
        """Never begun."""
        return self.count("pending")

    @property
    def running(self) -> int:
        """Always 0: what was begun is drained."""
        return 0

    @property
    def errors(self) -> dict[str, str]:
        """Dataflow id → message, for each failed target."""
        return {
            one.dataflow.dataflow_id: one.error.message
            for one in self.targets
            if one.error is not None
        }

    @property
    def has_failures(self) -> bool:
        """Whether any target failed."""
        return self.failed > 0

    @property
    def status(self) -> Literal["succeeded", "failed", "interrupted"]:
        """The run's own status; a pending target makes it failed."""
        if self.interrupted:
            return "interrupted"
        return "failed" if self.failed or self.pending else "succeeded"

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``maintain --json`` (docs/maintenance.md)."""
        return {
            "version": 1,
            "run_id": self.run_id,
            "status": self.status,
            "message": self.message,
            "duration_seconds": round(self.duration_seconds, 3),
            "counts": {
                "total": self.total,
                **{
                    name: self.count(name)
                    for name in ("succeeded", "failed", "skipped", "running", "pending")
                },
            },
            "targets": [one.to_json() for one in self.targets],
        }
