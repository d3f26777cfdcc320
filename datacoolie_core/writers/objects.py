"""Single files of a table, through the store that delta-rs uses, with the same credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core import storage
from datacoolie_core.errors import MissingPathError, StorageError, WriteError
from datacoolie_core.storage import is_remote
from datacoolie_core.storage.locations import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacoolie_core.writers.tables import Place


def read_file(place: Place, path: str) -> bytes:
    """Return a file's bytes.

    Args:
        place: The table.
        path: Relative to it.

    Raises:
        MissingPathError: There is no such file.
        StorageError: It can't be read.
    """
    if not is_remote(place.uri):
        return storage.read_bytes(place.path(path))
    try:
        with handler(place).open_input_file(path) as file:
            return file.read()
    except FileNotFoundError as error:
        raise MissingPathError("there is no such file", place=place.path(path)) from error
    except OSError as error:
        raise _unreadable(place, path, error) from error


def has_file(place: Place, path: str) -> bool:
    """Return whether a file is there."""
    if not is_remote(place.uri):
        return storage.exists(place.path(path))
    try:
        return handler(place).get_file_info([path])[0].is_file
    except OSError as error:
        raise _unreadable(place, path, error) from error


def refuse_absent(place: Place, paths: Sequence[str]) -> None:
    """Raise if somebody deleted staged files: a commit that names them would break the table.

    A load may take hours, and a vacuum without retention takes every file that no commit names.

    Args:
        place: The table.
        paths: Relative to it.

    Raises:
        WriteError: Names one of them.
    """
    gone = _absent(place, paths)
    if gone:
        raise WriteError(
            f"{len(gone)} files of this load were deleted before they were committed, such as"
            f" {gone[0]}",
            place=place.uri,
            remedy="Nothing was changed: run it again. Keep vacuums without retention off tables"
            " that are being loaded.",
            code="staged_files_gone",
            retryable=True,
        )


def _absent(place: Place, paths: Sequence[str]) -> list[str]:
    if not is_remote(place.uri):
        return [path for path in paths if not has_file(place, path)]
    if not paths:
        return []
    try:
        found = handler(place).get_file_info(list(paths))
    except OSError as error:
        raise _unreadable(place, paths[0], error) from error
    return [path for path, info in zip(paths, found, strict=True) if not info.is_file]


def delete_file(place: Place, path: str) -> None:
    """Delete a file; that it is gone already is fine."""
    if not is_remote(place.uri):
        storage.delete(place.path(path))
        return
    try:
        handler(place).delete_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(place, path, error) from error


@dataclass(frozen=True)
class FoundFile:
    """A file of a table's folder.

    Attributes:
        path: Relative to the table.
        size: Bytes.
        modified: Milliseconds since 1970.
    """

    path: str
    size: int
    modified: float


def find_files(place: Place, paths: Sequence[str]) -> list[FoundFile]:
    """Return those files that are there.

    Args:
        place: The table.
        paths: Relative to it.

    Raises:
        StorageError: The storage does not answer.
    """
    if not is_remote(place.uri):
        found = [_on_disk(place, path) for path in paths]
        return [file for file in found if file is not None]
    try:
        infos: list[Any] = handler(place).get_file_info(list(paths)) if paths else []
    except OSError as error:
        raise _unreadable(place, paths[0], error) from error
    return [
        FoundFile(path, info.size, info.mtime_ns / 1e6)
        for path, info in zip(paths, infos, strict=True)
        if info.is_file
    ]


def _on_disk(place: Place, path: str) -> FoundFile | None:
    try:
        info = local_path(place.path(path)).stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(place, path, error) from error
    return FoundFile(path, info.st_size, info.st_mtime_ns / 1e6)


def count_files(place: Place, folder: str) -> int:
    """Return how many files a folder of the table holds, without those in folders below it."""
    if not is_remote(place.uri):
        return sum(one.is_file() for one in local_path(place.path(folder)).iterdir())
    import pyarrow.fs

    select = cast("Callable[[str], Any]", pyarrow.fs.FileSelector)  # pyright: ignore[reportUnknownMemberType]
    infos: list[Any] = handler(place).get_file_info_selector(select(folder))
    return sum(bool(info.is_file) for info in infos)


def handler(place: Place) -> Any:
    """Return delta-rs's own file system of a table, as pyarrow takes it."""
    from deltalake.fs import DeltaStorageHandler

    return DeltaStorageHandler(place.uri, place.options)


def _unreadable(place: Place, path: str, error: OSError) -> StorageError:
    told = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return StorageError(
        told, place=place.path(path), remedy="Check that the storage answers.", retryable=True
    )
