"""Reading, writing and deleting one file, wherever it is."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from datacoolie_core.errors import StorageError
from datacoolie_core.storage.filesystems import explained, filesystem
from datacoolie_core.storage.locations import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


def read_bytes(uri: str, *, storage_options: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a file.

    Raises:
        MissingPathError: There is no such file.
        StorageError: It can't be read.
    """
    with explained(uri, "read"):
        if not is_remote(uri):
            return local_path(uri).read_bytes()
        system, path = filesystem(uri, storage_options)
        return system.cat_file(path)


def read_text(uri: str, *, storage_options: Mapping[str, Any] | None = None) -> str:
    """Return the text of a UTF-8 file; a byte order mark at its start is dropped.

    Raises:
        MissingPathError: There is no such file.
        StorageError: It can't be read, or is not UTF-8.
    """
    data = read_bytes(uri, storage_options=storage_options)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StorageError(
            f"byte {error.start} is not UTF-8",
            place=uri,
            remedy="Save the file as UTF-8.",
            code="not_utf8",
        ) from error


def exists(uri: str, *, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Return whether a file or a folder is there."""
    with explained(uri, "look at"):
        if not is_remote(uri):
            return local_path(uri).exists()
        system, path = filesystem(uri, storage_options)
        return system.exists(path)


def write_atomic(
    uri: str, data: bytes | str, *, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Write a whole file so that nobody ever sees half of it; missing folders are made.

    On a disk the bytes go to a hidden file beside it, which is synced and renamed; a store gets
    one put.

    Args:
        uri: The file.
        data: Its new content; text is written as UTF-8.
        storage_options: Options of the connection.
    """
    content = data.encode() if isinstance(data, str) else data
    with explained(uri, "write"):
        if is_remote(uri):
            system, path = filesystem(uri, storage_options)
            system.pipe_file(path, content)
            return
        target = local_path(uri)
        with staged(target, content) as temporary:
            temporary.replace(target)
        sync_folder(target.parent)


@contextmanager
def staged(target: Path, content: bytes) -> Generator[Path]:
    """Write bytes durably to a hidden file beside a target; it is gone afterwards."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{uuid4().hex}.tmp"
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, where the system can."""
    # some systems can't open or sync a folder: the rename itself has happened
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def delete(uri: str, *, storage_options: Mapping[str, Any] | None = None) -> None:
    """Delete a file; that it is gone already is fine."""
    with explained(uri, "delete"):
        if not is_remote(uri):
            local_path(uri).unlink(missing_ok=True)
            return
        system, path = filesystem(uri, storage_options)
        with suppress(FileNotFoundError):
            system.rm_file(path)


def append_line(uri: str, text: str, *, storage_options: Mapping[str, Any] | None = None) -> None:
    """Add one line to a file of lines, which is made if it is missing.

    A store can't append: there the file is read and put again, so gather many lines into one
    call, and let one process own such a file.

    Args:
        uri: The file.
        text: One line, or several joined by line ends; the last line end is added.
        storage_options: Options of the connection.
    """
    line = text.encode() + b"\n"
    with explained(uri, "append"):
        if is_remote(uri):
            system, path = filesystem(uri, storage_options)
            before = system.cat_file(path) if system.exists(path) else b""
            system.pipe_file(path, before + line)
            return
        target = local_path(uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        # one write of an append-only descriptor: lines of several threads never mix
        descriptor = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


@contextmanager
def local_copy(uri: str, *, storage_options: Mapping[str, Any] | None = None) -> Generator[Path]:
    """Give a path on this machine that holds a file; a remote one is copied and dropped after.

    The copy keeps the file's name, since readers look at its ending.

    Raises:
        MissingPathError: There is no such file.
    """
    if not is_remote(uri):
        path = local_path(uri)
        with explained(uri, "read"):
            path.stat()
        yield path
        return
    with TemporaryDirectory(prefix="datacoolie-") as folder:
        with explained(uri, "read"):
            system, remote = filesystem(uri, storage_options)
            copy = Path(folder) / (remote.rstrip("/").rpartition("/")[2] or "file")
            system.get_file(remote, str(copy))
        yield copy
