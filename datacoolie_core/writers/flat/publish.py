"""Give staged files their names, and take files away."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import StorageError
from datacoolie_core.storage import is_remote
from datacoolie_core.storage.files import sync_folder
from datacoolie_core.storage.filesystems import explained, filesystem
from datacoolie_core.storage.locations import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.writers.flat.layout import Staged
    from datacoolie_core.writers.flat.place import Place


def publish(place: Place, file: Staged) -> None:
    """Put a staged file in its place: by a rename on a disk, by one upload to a store.

    Raises:
        StorageError: It can't be written.
    """
    uri = place.path(file.path)
    with explained(uri, "write"):
        if is_remote(place.uri):
            system, path = filesystem(uri, place.storage_options)
            system.put_file(str(file.place), path)
            return
        target = local_path(uri)
        target.parent.mkdir(parents=True, exist_ok=True)
        # the manifest will be durable: what it names must be too
        descriptor = os.open(file.place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        file.place.rename(target)
        sync_folder(target.parent)


def delete_files(place: Place, paths: Iterable[str]) -> list[str]:
    """Delete files that do not count, with the folders that are empty then.

    Args:
        place: The folder.
        paths: Relative to it; that one is gone already is fine.

    Returns:
        Those that could not be deleted.
    """
    left: list[str] = []
    for path in paths:
        try:
            storage.delete(place.path(path), storage_options=place.storage_options)
        except StorageError:
            left.append(path)
        else:
            _drop_empty_folders(place, path)
    return left


def _drop_empty_folders(place: Place, path: str) -> None:
    if is_remote(place.uri):
        return
    root = local_path(place.uri)
    for level in list(PurePosixPath(path).parents)[:-1]:
        with suppress(OSError):  # not empty: other files are there
            (root / level).rmdir()
