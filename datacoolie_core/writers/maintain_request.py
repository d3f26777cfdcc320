"""What the maintenance of a table is asked for, and what each of its operations did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core import clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.writers.commit import Sleep
    from datacoolie_core.writers.request import OnPhase
    from datacoolie_core.writers.tables import Place

OperationName = Literal["compact", "zorder", "vacuum", "checkpoint", "log_cleanup"]
OperationStatus = Literal["succeeded", "failed", "skipped"]
INFO = "datacoolie_maintenance"
"""Key of the commit info that names a commit of maintenance."""


@dataclass(frozen=True)
class MaintainOptions:
    """How a table is maintained.

    Attributes:
        target_size: Bytes of a compacted file; None takes the table's ``delta.targetFileSize``,
            else 100 MiB.
        zorder_columns: Rows are laid out along a curve through these; empty only compacts.
        retention_hours: Hours for which removed files are kept; None takes the table's own
            retention, at least a week.
        allow_short_retention: Whether ``retention_hours`` may be below the table's own.
        unreferenced: Whether files that the table has never named are removed.
        checkpoint: Whether a checkpoint is written.
        log_cleanup: Whether expired commits are removed from the log.
        dry_run: Only say what would be done.
    """

    target_size: int | None = None
    zorder_columns: tuple[str, ...] = ()
    retention_hours: float | None = None
    allow_short_retention: bool = False
    unreferenced: bool = True
    checkpoint: bool = True
    log_cleanup: bool = True
    dry_run: bool = False


@dataclass(frozen=True)
class Upkeep:
    """The maintenance of one table.

    Attributes:
        place: The table.
        options: How.
        run_id: Names commits and files.
        searched: Columns that loads search by (keys, watermarks): they always get statistics.
        sleep: Waits for a number of seconds between tries.
        on_phase: Told of ``staging``, ``staged``, ``committing`` and ``committed`` of files that
            are written anew, of ``deleting`` and ``cleaned`` of a clean-up.
        now: The time that ages are counted from.
    """

    place: Place
    options: MaintainOptions
    run_id: str
    searched: tuple[str, ...] = ()
    sleep: Sleep = clock.sleep
    on_phase: OnPhase = lambda _: None
    now: datetime = field(default_factory=clock.utc_now)

    def hours_since(self, milliseconds: float) -> float:
        """Return the age of a moment, given in milliseconds since 1970."""
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
        return (self.now - moment).total_seconds() / 3600


@dataclass(frozen=True)
class Operation:
    """What one operation did to one table.

    Attributes:
        name: Which one.
        status: ``skipped`` if it can't or shall not be done.
        message: For people.
        duration_seconds: Wall time.
        files_added: New files that the table names.
        files_removed: ``compact``: files that the table names no more; ``vacuum``: files deleted.
        bytes_added: Of the new files.
        bytes_removed: Of the removed ones.
        details: What else is worth knowing, by name.
        warnings: Code and message.
    """

    name: OperationName
    status: OperationStatus
    message: str
    duration_seconds: float = 0.0
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: Sequence[tuple[str, str]] = ()

    @property
    def bytes_saved(self) -> int:
        """Bytes by which what is stored became smaller."""
        return self.bytes_removed - self.bytes_added

    def to_json(self) -> dict[str, Any]:
        """Return the operation's entry in ``maintain --json`` (docs/maintenance.md)."""
        return {
            "name": self.name,
            "status": self.status,
            "message": self.message,
            "duration_seconds": self.duration_seconds,
            "files_added": self.files_added,
            "files_removed": self.files_removed,
            "bytes_added": self.bytes_added,
            "bytes_removed": self.bytes_removed,
            "bytes_saved": self.bytes_saved,
            "details": dict(self.details),
        }


def megabytes(size: int) -> str:
    """Return a size for people.

    >>> megabytes(1_572_864)
    '1.5 MiB'
    """
    return f"{size / 1024**2:,.1f} MiB" if size >= 100_000 else f"{size / 1024:,.1f} KiB"
