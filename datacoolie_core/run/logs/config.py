"""How logs are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from datacoolie_core.errors import SettingsError

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LEVELS: tuple[Level, ...] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
SCHEMA_VERSION = 7
KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True)
class LogConfig:
    """How logs are kept.

    Args:
        log_level: The lowest level that the console shows.
        file_level: The lowest level that the system log holds.
        storage: Where records of a remote log wait: in ``memory``, or in a temporary ``file``.
        persistence: How a remote log grows: ``snapshot`` writes its file anew, ``batch`` adds a
            numbered file. Files on a disk grow by a line at once, whatever is set here.
        flush_seconds: A remote log is written at least that often, while records come.
        batch_bytes: And when so many bytes wait.
        buffer_bytes: The most that may wait in memory; records beyond it are counted and dropped.
        spool_bytes: The same for a temporary file.
        close_timeout: Seconds that closing may take.
        diagnostic_bytes: The most that one text of a record may take.
        record_bytes: The most that one record may take; details go first.

    Raises:
        SettingsError: For a value out of range.
    """

    log_level: Level = "INFO"
    file_level: Level = "DEBUG"
    storage: Literal["memory", "file"] = "memory"
    persistence: Literal["snapshot", "batch"] = "snapshot"
    flush_seconds: float = 300
    batch_bytes: int = 4 * MIB
    buffer_bytes: int = 64 * MIB
    spool_bytes: int = 512 * MIB
    close_timeout: float = 10
    diagnostic_bytes: int = 64 * KIB
    record_bytes: int = MIB

    def __post_init__(self) -> None:
        for name in ("log_level", "file_level"):
            if getattr(self, name) not in LEVELS:
                raise SettingsError(
                    f"{name} is {getattr(self, name)!r}", remedy=f"Give one of {', '.join(LEVELS)}."
                )
        for name, allowed in (
            ("storage", ("memory", "file")),
            ("persistence", ("snapshot", "batch")),
        ):
            if getattr(self, name) not in allowed:
                raise SettingsError(
                    f"{name} is {getattr(self, name)!r}",
                    remedy=f"Give {' or '.join(allowed)}.",
                )
        sizes = ("flush_seconds", "batch_bytes", "buffer_bytes", "spool_bytes", "close_timeout")
        for name in (*sizes, "diagnostic_bytes", "record_bytes"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"{name} is {getattr(self, name)}", remedy="Give more than 0.")
