"""Single files of a table, through the store that delta-rs uses, with the same credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacoolie_core import storage
from datacoolie_core.errors import MissingPathError, StorageError
from datacoolie_core.storage import is_remote

if TYPE_CHECKING:
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


def handler(place: Place) -> Any:
    """Return delta-rs's own file system of a table, as pyarrow takes it."""
    from deltalake.fs import DeltaStorageHandler

    return DeltaStorageHandler(place.uri, place.options)


def _unreadable(place: Place, path: str, error: OSError) -> StorageError:
    told = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return StorageError(
        told, place=place.path(path), remedy="Check that the storage answers.", retryable=True
    )
