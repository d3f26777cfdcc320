"""What happens during a run, as small objects; CLI, logs, records and Dagster listen to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.maintain_results import MaintenanceResult, TargetResult
    from datacoolie_core.run.results import DataflowResult, ExecutionResult, Failure

PhaseName = Literal[
    "preparing",
    "reading",
    "staging",
    "staged",
    "quarantining",
    "quarantined",
    "committing",
    "claimed",
    "publishing",
    "published",
    "committed",
    "deleting",
    "cleaned",
    "settling",
    "settled",
    "saving",
    "saved",
]
"""``claimed``, ``publishing`` and ``published`` are points of flat files alone, ``deleting`` is one of
maintenance, ``cleaned`` one of both; ``quarantining``, ``quarantined``, ``settling`` and ``settled`` are
points of loads with bad rows."""


@dataclass(frozen=True)
class RunStarted:
    """A run was admitted."""

    run_id: str
    dataflows: int


@dataclass(frozen=True)
class DataflowStarted:
    """A dataflow was admitted."""

    dataflow: Dataflow


@dataclass(frozen=True)
class PhaseReached:
    """A dataflow reached a point of its run (the points where a kill must lose nothing)."""

    dataflow: Dataflow
    phase: PhaseName
    window: Window | None = None


@dataclass(frozen=True)
class Message:
    """A log line for people."""

    dataflow: Dataflow | None
    level: Literal["debug", "info", "warning", "error"]
    text: str


@dataclass(frozen=True)
class RetryScheduled:
    """An attempt failed in a way that time can cure."""

    dataflow: Dataflow
    attempt: int
    delay_seconds: float
    error: Failure


@dataclass(frozen=True)
class ChunkFinished:
    """A replay's chunk is durable (or failed)."""

    result: DataflowResult


@dataclass(frozen=True)
class DataflowFinished:
    """A dataflow ended, whatever its status."""

    result: DataflowResult


@dataclass(frozen=True)
class AdmissionStopped:
    """Nothing more starts; what runs is waited for.

    Attributes:
        reason: ``interrupted`` or ``stopped after a failure``.
        waiting: Dataflows that had not started.
    """

    reason: str
    waiting: int


@dataclass(frozen=True)
class RunFinished:
    """A run ended."""

    result: ExecutionResult


@dataclass(frozen=True)
class TargetFinished:
    """The maintenance of a table ended, whatever its status."""

    result: TargetResult


@dataclass(frozen=True)
class MaintenanceFinished:
    """A run of maintenance ended; it began with :class:`RunStarted`."""

    result: MaintenanceResult


Event = (
    RunStarted
    | DataflowStarted
    | PhaseReached
    | Message
    | RetryScheduled
    | ChunkFinished
    | DataflowFinished
    | AdmissionStopped
    | RunFinished
    | TargetFinished
    | MaintenanceFinished
)
Listener = Callable[[Event], None]
