"""What a run says of itself: one result a dataflow, one for the whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core.state.values import encode_watermark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from datacoolie_core.errors import Phase
    from datacoolie_core.metadata.models import Dataflow, InvalidDataflow
    from datacoolie_core.plan.windows import Watermark, Window
    from datacoolie_core.run.selected import Selected
    from datacoolie_core.state.record import StateRecord

Status = Literal["succeeded", "failed", "skipped", "pending", "running"]
RunKind = Literal["full", "incremental", "replay", "full_refresh"]

ROW_COUNTS = (
    "rows_read",
    "rows_written",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "rows_unchanged",
    "rows_stale",
    "rows_rejected",
    "rows_nulled",
    "rows_null_watermark",
)


@dataclass(frozen=True)
class Notice:
    """A warning: a code for scripts, a message for people."""

    code: str
    message: str


@dataclass(frozen=True)
class Failure:
    """Why a dataflow failed.

    Attributes:
        phase: Where in the run.
        code: For scripts.
        message: What is wrong, whole: the place, the problem and the remedy.
        place: Column, file, table.
        remedy: What to do.
        retryable: Whether the same load can succeed later without a change.
        trace: The traceback, for the system log.
    """

    phase: Phase
    code: str
    message: str
    place: str | None = None
    remedy: str | None = None
    retryable: bool = False
    trace: str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Attempt:
    """One try of a dataflow (or of one chunk)."""

    number: int
    started_at: datetime
    duration_seconds: float
    status: Status
    error: Failure | None = None


@dataclass(frozen=True)
class DataflowResult:
    """How one dataflow (or one chunk of its replay) ended.

    Attributes:
        dataflow: The dataflow as in the metadata.
        status: succeeded, failed, skipped or pending.
        reason: Why it was skipped or is pending.
        run_kind: What the read was bounded by.
        window: The chunk, in a replay.
        state: The state after the load; None if there is none yet.
        rows: Every name of :data:`ROW_COUNTS` → count, or None where it is unknown.
        table_rows: Rows in the destination after the load.
        schema: Destination column → type, in order.
        files: ``files_added``, ``files_removed``, ``bytes_added``, ``bytes_removed``.
        selected: What bounded the read; None if nothing was read.
        chunks: Results of the chunks, in a replay.
        bad_values: Column → reason → values that did not fit their type: those that became null,
            or whose rows went to quarantine.
        bad_sample: Some of the rows that went to quarantine: column, value, reason, source_file
            and row, without values of masked columns.
        stale_upstream: Ids of upstream dataflows that failed in this run before this one ran.
        started_at: None if it was never admitted.
    """

    dataflow: Dataflow
    status: Status
    reason: str | None = None
    run_kind: RunKind = "incremental"
    window: Window | None = None
    attempts: tuple[Attempt, ...] = ()
    started_at: datetime | None = None
    duration_seconds: float | None = None
    destination: str | None = None
    state: StateRecord | None = None
    rows: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    table_rows: int | None = None
    schema: Mapping[str, str] = field(default_factory=dict[str, str])
    source_action: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    selected: Selected | None = None
    warnings: tuple[Notice, ...] = ()
    bad_values: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict[str, "Mapping[str, int]"]
    )
    bad_sample: tuple[Mapping[str, str | None], ...] = ()
    stale_upstream: tuple[str, ...] = ()
    error: Failure | None = None
    chunks: tuple[DataflowResult, ...] = ()

    @property
    def watermark(self) -> Watermark:
        """The saved watermark after the load; empty if there is none."""
        return self.state.watermark if self.state else {}

    def to_json(self) -> dict[str, Any]:
        """Return the dataflow's entry in ``run --json`` (docs/reference/cli.md)."""
        return {
            "name": self.dataflow.name,
            "dataflow_id": self.dataflow.dataflow_id,
            "stage": self.dataflow.stage,
            "status": self.status,
            "reason": self.reason,
            "run_kind": self.run_kind,
            "window": _window_json(self.window),
            "attempts": len(self.attempts),
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "duration_seconds": self.duration_seconds,
            "destination": self.destination,
            "table_version": self.state.table_version if self.state else None,
            "sequence": self.state.sequence if self.state else None,
            "watermark": encode_watermark(self.watermark) if self.watermark else None,
            **{name: self.rows.get(name) for name in ROW_COUNTS},
            "bad_values": {name: dict(reasons) for name, reasons in self.bad_values.items()},
            "table_rows": self.table_rows,
            "stale_upstream": list(self.stale_upstream),
            "warnings": [{"code": w.code, "message": w.message} for w in self.warnings],
            "error": None
            if self.error is None
            else {
                "phase": self.error.phase,
                "code": self.error.code,
                "message": self.error.message,
                "place": self.error.place,
                "remedy": self.error.remedy,
            },
            "chunks": [chunk.to_json() for chunk in self.chunks],
        }


def _window_json(window: Window | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {
        "column": window.column,
        "key": window.key,
        "lower": None if window.lower is None else str(window.lower),
        "upper": None if window.upper is None else str(window.upper),
    }


@dataclass(frozen=True)
class ExecutionResult:
    """How a run ended.

    Attributes:
        run_id: The run's id.
        dataflows: A result for each selected dataflow, in plan order.
        duration_seconds: Wall time of the whole.
        interrupted: Ended early by Ctrl-C, after what ran was drained.
        invalid: Dataflows whose metadata is wrong, under ``on_invalid: quarantine``; they count
            as failed, in phase metadata.
    """

    run_id: str
    dataflows: tuple[DataflowResult, ...]
    duration_seconds: float
    interrupted: bool = False
    invalid: tuple[InvalidDataflow, ...] = ()

    def count(self, status: Status) -> int:
        """Return how many dataflows ended with this status."""
        ended = sum(result.status == status for result in self.dataflows)
        return ended + len(self.invalid) if status == "failed" else ended

    @property
    def total(self) -> int:
        """Dataflows submitted."""
        return len(self.dataflows) + len(self.invalid)

    @property
    def succeeded(self) -> int:
        """Finished with status succeeded."""
        return self.count("succeeded")

    @property
    def failed(self) -> int:
        """Terminally failed."""
        return self.count("failed")

    @property
    def skipped(self) -> int:
        """Had nothing to do, or may not run."""
        return self.count("skipped")

    @property
    def pending(self) -> int:
        """Never admitted."""
        return self.count("pending")

    @property
    def running(self) -> int:
        """Always 0: what was admitted is drained."""
        return 0

    @property
    def errors(self) -> dict[str, str]:
        """Dataflow id → message, for each failed dataflow."""
        failed = {
            result.dataflow.dataflow_id: result.error.message
            for result in self.dataflows
            if result.error is not None
        }
        return failed | {one.dataflow_id: _problems(one) for one in self.invalid}

    @property
    def has_failures(self) -> bool:
        """Whether any dataflow failed."""
        return self.failed > 0

    @property
    def success_rate(self) -> float:
        """Share of dataflows that did not fail, 0 to 1; 1 for an empty run."""
        return 1.0 if not self.total else 1 - self.failed / self.total

    @property
    def status(self) -> Literal["succeeded", "failed", "interrupted"]:
        """The run's own status; a pending dataflow makes it failed."""
        if self.interrupted:
            return "interrupted"
        return "failed" if self.failed or self.pending else "succeeded"

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``run --json`` (docs/reference/cli.md)."""
        return {
            "version": 1,
            "run_id": self.run_id,
            "status": self.status,
            "counts": {
                "total": self.total,
                **{
                    name: self.count(name)
                    for name in ("succeeded", "failed", "skipped", "running", "pending")
                },
            },
            "dataflows": [
                *(result.to_json() for result in self.dataflows),
                *(_invalid_json(one) for one in self.invalid),
            ],
        }


def _problems(invalid: InvalidDataflow) -> str:
    return "\n".join(str(problem) for problem in invalid.problems)


def _invalid_json(invalid: InvalidDataflow) -> dict[str, Any]:
    """Return the entry of a dataflow whose metadata is wrong: nulls, never missing keys."""
    first = next(iter(invalid.problems), None)
    return {
        "name": invalid.label,
        "dataflow_id": invalid.dataflow_id,
        "stage": invalid.stage,
        "status": "failed",
        "reason": None,
        "run_kind": None,
        "window": None,
        "attempts": 0,
        "started_at": None,
        "duration_seconds": None,
        "destination": None,
        "table_version": None,
        "sequence": None,
        "watermark": None,
        **dict.fromkeys(ROW_COUNTS),
        "bad_values": {},
        "table_rows": None,
        "stale_upstream": [],
        "warnings": [],
        "error": {
            "phase": "metadata",
            "code": "invalid_metadata",
            "message": _problems(invalid),
            "place": first.source if first else None,
            "remedy": None,
        },
        "chunks": [],
    }
