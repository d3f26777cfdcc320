"""One run of a dataflow at a time, and one writer of a destination at a time in a process.

Across machines, and where the project folder can't be locked, the ``txn`` fence of the commit
(docs/reference/state.md) keeps two runs apart; the lock only says so earlier and more cheaply.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

from datacoolie_core import clock
from datacoolie_core.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Generator

LOCK_FOLDER = ".datacoolie/locks"


class Locks:
    """The locks of one driver.

    Args:
        project_dir: The project root; lock files live below it, so that a command line and a
            Dagster process on one machine see each other.
    """

    def __init__(self, project_dir: str) -> None:
        self._folder = Path(project_dir) / LOCK_FOLDER
        self._guard = threading.Lock()
        self._destinations: dict[str, threading.Lock] = {}

    @contextmanager
    def dataflow(self, dataflow_id: str) -> Generator[None]:
        """Hold the dataflow; a killed process lets go of it at once.

        Raises:
            BusyError: When it is running in another thread or process; it names that one.
        """
        stem = self._folder / quote(dataflow_id, safe="")
        owner = stem.with_name(f"{stem.name}.owner")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{stem}.lock", thread_local=False)
            lock.acquire(blocking=False)
        except Timeout:
            raise BusyError(
                f"it is already running ({_read_owner(owner)})",
                dataflow=dataflow_id,
                remedy="Wait for that run, or end it; nothing was read or written.",
            ) from None
        except OSError:
            # A read-only project folder: the fence of the commit still holds.
            yield
            return
        try:
            _write_owner(owner)
            yield
        finally:
            lock.release()

    @contextmanager
    def destination(self, identity: str) -> Generator[None]:
        """Hold a destination against the other threads of this process; waits for it."""
        with self._guard:
            lock = self._destinations.setdefault(identity, threading.Lock())
        with lock:
            yield


def _write_owner(path: Path) -> None:
    since = clock.utc_now().isoformat(timespec="seconds")
    # only for the message of who comes second: a full disk must not stop the run that has the lock
    with suppress(OSError):
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}, since {since}")


def _read_owner(path: Path) -> str:
    try:
        return path.read_text(errors="replace") or "no details"
    except OSError:
        return "no details"
