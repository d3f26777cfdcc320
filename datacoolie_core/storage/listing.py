"""Which files a folder holds: names are names, never patterns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import MissingPathError
from datacoolie_core.storage.filesystems import explained, filesystem
from datacoolie_core.storage.locations import is_remote, join, local_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_KEYS = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


@dataclass(frozen=True, order=True)
class FileInfo:
    """A file that a listing found.

    Attributes:
        uri: Its path, below the folder that was listed; plain for ``file://``.
        size: Bytes.
        modified_at: When it was last written, aware, in UTC.
    """

    uri: str
    size: int
    modified_at: datetime


def list_files(
    uri: str,
    *,
    recursive: bool = False,
    include_hidden: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> list[FileInfo]:
    """Return the files of a folder, sorted by path; a path that is a file gives that file.

    A store has no empty folders, so there an empty one can't be told from a missing one.

    Args:
        uri: The folder. Characters such as ``[ ] * ?`` are plain characters of its name.
        recursive: Whether files of folders inside count.
        include_hidden: Whether names that start with ``_`` or ``.`` count, and what is below.
        storage_options: Options of the connection.

    Raises:
        MissingPathError: There is no such folder.
        StorageError: It can't be listed.
    """
    with explained(uri, "list"):
        if is_remote(uri):
            found = _remote_files(uri, recursive=recursive, storage_options=storage_options)
        else:
            found = _local_files(uri, recursive=recursive)
        return sorted(
            info for relative, info in found if include_hidden or not _is_hidden(relative)
        )


def list_folders(uri: str, *, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the folders inside a folder, sorted; hidden ones, too.

    Raises:
        StorageError: It is not there, or can't be listed.
    """
    with explained(uri, "list"):
        if not is_remote(uri):
            with os.scandir(local_path(uri)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        system, path = filesystem(uri, storage_options)
        found: list[dict[str, Any]] = system.ls(path.rstrip("/"), detail=True)
        names = (str(one["name"]) for one in found if one.get("type") == "directory")
        return sorted(name.rstrip("/").rpartition("/")[2] for name in names)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(("_", ".")) for part in relative.split("/"))


def _local_files(uri: str, *, recursive: bool) -> Iterator[tuple[str, FileInfo]]:
    root = local_path(uri)
    if root.is_file():
        yield "", _local_info(str(root), root.stat())
        return
    for relative, stat in _walk(root, "", recursive=recursive, seen=frozenset()):
        yield relative, _local_info(join(str(root), relative), stat)


def _walk(
    folder: Path, prefix: str, *, recursive: bool, seen: frozenset[str]
) -> Iterator[tuple[str, os.stat_result]]:
    real = os.path.realpath(folder)
    if real in seen:  # a link that leads back up
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            relative = f"{prefix}{entry.name}"
            if not entry.is_dir():
                stat = _stat(entry)
                if stat is not None:
                    yield relative, stat
            elif recursive:
                yield from _walk(
                    Path(entry.path), f"{relative}/", recursive=True, seen=seen | {real}
                )


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except FileNotFoundError:
        if not entry.is_symlink():  # deleted since the folder was opened
            return None
        raise MissingPathError(
            "can't list: this link leads nowhere",
            place=entry.path,
            remedy="Mend or remove the link.",
        ) from None


def _local_info(uri: str, stat: os.stat_result) -> FileInfo:
    # through whole microseconds: a float of seconds rounds
    modified_at = _EPOCH + timedelta(microseconds=stat.st_mtime_ns // 1000)
    return FileInfo(uri, stat.st_size, modified_at)


def _remote_files(
    uri: str, *, recursive: bool, storage_options: Mapping[str, Any] | None
) -> Iterator[tuple[str, FileInfo]]:
    system, path = filesystem(uri, storage_options)
    root = path.rstrip("/")
    if system.isfile(root):
        yield "", _remote_info(uri.rstrip("/"), system.info(root))
        return
    found = system.find(root, maxdepth=None if recursive else 1, detail=True)
    if not found and not system.exists(root):
        raise MissingPathError(
            "can't list: there is no such folder",
            place=uri,
            remedy="Check the path and the base path of the connection.",
        )
    for name, details in found.items():
        relative = name.removeprefix(root).lstrip("/")
        yield relative, _remote_info(join(uri, relative), details)


def _remote_info(uri: str, details: dict[str, Any]) -> FileInfo:
    raw = next((details[key] for key in _TIME_KEYS if details.get(key) is not None), None)
    return FileInfo(uri, int(details.get("size") or 0), _instant(raw))


def _instant(raw: object) -> datetime:
    if isinstance(raw, datetime):
        return raw.replace(tzinfo=UTC) if raw.tzinfo is None else raw.astimezone(UTC)
    if isinstance(raw, int | float):
        return datetime.fromtimestamp(raw, UTC)
    if isinstance(raw, str):
        return _instant(datetime.fromisoformat(raw))
    return _EPOCH
