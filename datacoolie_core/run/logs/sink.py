"""Where the lines of one log go; what can't be stored is counted, and never stops a run."""

from __future__ import annotations

import logging
import threading
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from datacoolie_core import clock, storage
from datacoolie_core.errors import DataCoolieError
from datacoolie_core.storage import is_remote

if TYPE_CHECKING:
    from datacoolie_core.run.logs.config import LogConfig

# not a child of the package's logger: what it says must not come back to the log that failed
_LOGGER = logging.getLogger("datacoolie.logs")


class LineSink:
    """One file of JSON lines.

    A file on a disk gets each line as it comes, so that it can be read after a kill. Object stores
    can't append: there lines wait and are written together.

    Args:
        uri: The file.
        config: How long lines may wait, and how many.
    """

    def __init__(self, uri: str, config: LogConfig) -> None:
        self.uri = uri
        self.dropped_records = 0
        self.dropped_bytes = 0
        self._config = config
        self._remote = is_remote(uri)
        self._guard = threading.Lock()
        in_memory = config.storage == "memory"
        self._limit = config.buffer_bytes if in_memory else config.spool_bytes
        self._waiting = SpooledTemporaryFile(max_size=self._limit if in_memory else 1)  # noqa: SIM115
        self._bytes = 0
        self._unwritten = 0
        self._parts = 0
        self._flushed = clock.monotonic()

    def add(self, line: str) -> None:
        """Store a line, or count it as dropped."""
        data = line.encode() + b"\n"
        with self._guard:
            if not self._remote:
                self._append(line, len(data))
                return
            if self._bytes + len(data) > self._limit:
                self._drop(1, len(data))
                return
            self._waiting.write(data)
            self._bytes += len(data)
            self._unwritten += len(data)
            late = clock.monotonic() - self._flushed >= self._config.flush_seconds
            if late or self._unwritten >= self._config.batch_bytes:
                self._flush()

    def close(self) -> None:
        """Write what waits."""
        with self._guard:
            if self._unwritten:
                self._flush()
            self._waiting.close()

    def _append(self, line: str, size: int) -> None:
        try:
            storage.append_line(self.uri, line)
        except (OSError, DataCoolieError) as error:
            self._drop(1, size)
            _LOGGER.warning("the log %s can't be written: %s", self.uri, error)

    def _drop(self, records: int, size: int) -> None:
        self.dropped_records += records
        self.dropped_bytes += size

    def _flush(self) -> None:
        """Write what waits; lines that can't be written wait on, up to the limit."""
        self._flushed = clock.monotonic()
        self._waiting.seek(0)
        data = self._waiting.read()
        try:
            storage.write_atomic(self._target(), data)
        except (OSError, DataCoolieError) as error:
            _LOGGER.warning("the log %s can't be written: %s", self.uri, error)
            return
        self._unwritten = 0
        if self._config.persistence == "batch":
            self._parts += 1
            self._waiting.seek(0)
            self._waiting.truncate()
            self._bytes = 0

    def _target(self) -> str:
        if self._config.persistence == "snapshot" or self._parts == 0:
            return self.uri
        stem, dot, ending = self.uri.rpartition(".")
        return f"{stem}_{self._parts}{dot}{ending}"
