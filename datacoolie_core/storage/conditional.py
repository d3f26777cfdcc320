"""Writes that happen only if nobody else was first."""

from __future__ import annotations

import errno
import json
import time
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from datacoolie_core.clock import monotonic, utc_now
from datacoolie_core.errors import MissingPathError, StorageError
from datacoolie_core.storage.files import delete, read_bytes, staged, sync_folder, write_atomic
from datacoolie_core.storage.filesystems import explained, filesystem
from datacoolie_core.storage.locations import is_remote, local_path, scheme_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

LOCK_WAIT = 30.0
"""Seconds to wait for another writer of the same file."""
LOCK_LIFE = timedelta(seconds=120)
"""A lock object older than this belongs to a writer that died."""
_POLL = 0.05
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_MEMORY = Lock()


def etag_of(data: bytes) -> str:
    """Return the etag of a content: its SHA-256, the same on every kind of storage."""
    return sha256(data).hexdigest()


def read_with_etag(
    uri: str, *, storage_options: Mapping[str, Any] | None = None
) -> tuple[bytes, str] | None:
    """Return a file's bytes and their etag for `put_if_match`, None when there is no file."""
    try:
        data = read_bytes(uri, storage_options=storage_options)
    except MissingPathError:
        return None
    return data, etag_of(data)


def put_if_absent(
    uri: str, data: bytes | str, *, storage_options: Mapping[str, Any] | None = None
) -> bool:
    """Create a file, whole, unless there is one already.

    Args:
        uri: The file.
        data: Its content; text is written as UTF-8.
        storage_options: Options of the connection.

    Returns:
        Whether this call created it. Of several calls at once exactly one does.
    """
    content = data.encode() if isinstance(data, str) else data
    with explained(uri, "write"):
        try:
            if is_remote(uri):
                _create_remote(uri, content, storage_options)
            else:
                _create_local(uri, content)
        except FileExistsError:
            return False
    return True


def _create_local(uri: str, content: bytes) -> None:
    target = local_path(uri)
    with staged(target, content) as temporary:
        try:
            # a hard link fails if the name is taken, and shows the whole content at once
            target.hardlink_to(temporary)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            with target.open("xb") as file:
                file.write(content)
    sync_folder(target.parent)


def _create_remote(uri: str, content: bytes, storage_options: Mapping[str, Any] | None) -> None:
    system, path = filesystem(uri, storage_options)
    scheme = scheme_of(uri)
    if scheme == "memory":
        # fsspec's memory looks and then writes; real stores do both in one request
        with _MEMORY:
            system.pipe_file(path, content, mode="create")
    elif scheme in {"az", "abfs", "abfss"}:
        system.pipe_file(path, content, overwrite=False)
    else:
        system.pipe_file(path, content, mode="create")


def put_if_match(
    uri: str,
    data: bytes | str,
    etag: str | None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> bool:
    """Replace a file only if it still is what `read_with_etag` saw.

    All writers of such a file must use this function: a lock beside the file (``.<name>.lock``)
    makes look and write one step, on a disk as well as in a store.

    Args:
        uri: The file.
        data: Its new content; text is written as UTF-8.
        etag: What `read_with_etag` gave; None when there was no file.
        storage_options: Options of the connection.

    Returns:
        Whether it was replaced; False means that another writer was first: read again.

    Raises:
        StorageError: Another writer held the file for too long.
    """
    if etag is None:
        return put_if_absent(uri, data, storage_options=storage_options)
    with _held(uri, storage_options):
        current = read_with_etag(uri, storage_options=storage_options)
        if current is None or current[1] != etag:
            return False
        write_atomic(uri, data, storage_options=storage_options)
    return True


@contextmanager
def _held(uri: str, storage_options: Mapping[str, Any] | None) -> Generator[None]:
    folder, _, name = uri.rpartition("/")
    lock = f"{folder}/.{name}.lock" if folder else f".{name}.lock"
    if is_remote(uri):
        with _remote_lock(uri, lock, storage_options):
            yield
        return
    from filelock import FileLock, Timeout  # costs 65 ms, mostly asyncio

    path = local_path(lock)
    held = FileLock(path, timeout=LOCK_WAIT)
    with explained(uri, "lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            held.acquire()
        except Timeout as error:
            raise _busy(uri, lock) from error
    try:
        yield
    finally:
        held.release()


@contextmanager
def _remote_lock(uri: str, lock: str, storage_options: Mapping[str, Any] | None) -> Generator[None]:
    token = json.dumps({"owner": uuid4().hex, "at": utc_now().isoformat()})
    deadline = monotonic() + LOCK_WAIT
    while not put_if_absent(lock, token, storage_options=storage_options):
        _drop_stale(lock, storage_options)
        if monotonic() > deadline:
            raise _busy(uri, lock)
        time.sleep(_POLL)  # noqa: TID251 - waits for another process, which no test can fake
    try:
        yield
    finally:
        found = read_with_etag(lock, storage_options=storage_options)
        if found is not None and found[0] == token.encode():
            delete(lock, storage_options=storage_options)


def _drop_stale(lock: str, storage_options: Mapping[str, Any] | None) -> None:
    found = read_with_etag(lock, storage_options=storage_options)
    if found is None:
        return
    since = datetime.fromisoformat(json.loads(found[0])["at"])
    if utc_now() - since > LOCK_LIFE:
        delete(lock, storage_options=storage_options)


def _busy(uri: str, lock: str) -> StorageError:
    return StorageError(
        f"another process has held this file for {LOCK_WAIT:.0f} seconds",
        place=uri,
        remedy=f"Wait for it to end, or delete {lock} if none is left.",
        code="file_busy",
        retryable=True,
    )
