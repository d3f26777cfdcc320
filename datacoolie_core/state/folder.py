"""What a folder of files holds, as its manifests decide: which files count and whose they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import MissingPathError, StorageError
from datacoolie_core.state.manifest import FOLDER, Manifest, is_manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacoolie_core.state.manifest import FileEntry, Removed
    from datacoolie_core.storage import FileInfo

_LOOKS = 20
"""How often a folder is looked at before it counts as never quiet."""


@dataclass(frozen=True)
class Contents:
    """A folder at one instant: its manifests and its files belong together.

    Attributes:
        uri: The folder.
        manifests: One a dataflow that has written here.
        files: Path relative to the folder → file; hidden names are left out.
    """

    uri: str
    manifests: tuple[Manifest, ...] = ()
    files: Mapping[str, FileInfo] = field(default_factory=dict[str, "FileInfo"])

    def of(self, dataflow_id: str) -> Manifest | None:
        """Return the manifest of a dataflow."""
        return next((one for one in self.manifests if one.dataflow_id == dataflow_id), None)

    @cached_property
    def named(self) -> Mapping[str, tuple[Manifest, FileEntry]]:
        """Path → the manifest that names it as loaded, and its entry; the file may be gone."""
        return {entry.path: (owner, entry) for owner in self.manifests for entry in owner.files}

    @cached_property
    def visible(self) -> Mapping[str, FileInfo]:
        """The files whose rows count: those that are loaded, and those of nobody."""
        hidden = {path for one in self.manifests for path in one.abandoned}
        hidden |= {path for one in self.manifests if one.pending for path in one.pending.files}
        gone: dict[str, list[Removed]] = {}
        for mark in (mark for one in self.manifests for mark in one.removed):
            gone.setdefault(mark.path, []).append(mark)
        return {
            path: info
            for path, info in self.files.items()
            if path not in hidden and not any(mark.is_of(info) for mark in gone.get(path, ()))
        }


def read_contents(uri: str, storage_options: Mapping[str, str] | None = None) -> Contents:
    """Return what a folder holds; an empty one if it is not there.

    The manifests are read before and after the files are listed, so that no load that commits in
    between is seen by half.

    Raises:
        StorageError: It can't be read, or never keeps still.
    """
    before = _manifests(uri, storage_options)
    for _ in range(_LOOKS):
        files = _files(uri, storage_options)
        after = _manifests(uri, storage_options)
        if _same(before, after):
            return Contents(uri, after, files)
        before = after
    raise _restless(uri)


def list_visible(
    uri: str,
    root: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    walk: Callable[[], list[FileInfo]] | None = None,
) -> list[FileInfo]:
    """Return the files below a folder that a reader may read, sorted by path.

    Args:
        uri: The folder, or one file.
        root: Manifests are looked for in the folder and in those above it, up to this one.
        storage_options: For the object store.
        walk: Lists the files in another way, such as only some of them.

    Raises:
        MissingPathError: There is no such folder.
        StorageError: It can't be read, or never keeps still.
    """
    folders = _upwards(uri, root)
    listing = walk or partial(
        storage.list_files, uri, recursive=True, storage_options=storage_options
    )
    before = [_manifests(folder, storage_options) for folder in folders]
    for _ in range(_LOOKS):
        found = listing()
        if not any(before) and not any(_has_manifests(f, storage_options) for f in folders):
            return found
        after = [_manifests(folder, storage_options) for folder in folders]
        if all(map(_same, before, after)):
            return [info for info in found if _counts(info, folders, after)]
        before = after
    raise _restless(uri)


def _counts(
    info: FileInfo, folders: Sequence[str], manifests: Sequence[tuple[Manifest, ...]]
) -> bool:
    for folder, known in zip(folders, manifests, strict=True):
        path = _below(folder, info.uri)
        if known and path not in Contents(folder, known, {path: info}).visible:
            return False
    return True


def _upwards(uri: str, root: str) -> list[str]:
    folders = [uri.rstrip("/")]
    top = root.rstrip("/")
    while folders[-1].startswith(f"{top}/"):
        folders.append(folders[-1].rpartition("/")[0])
    return folders


def _below(folder: str, uri: str) -> str:
    return uri.removeprefix(folder.rstrip("/")).lstrip("/")


def _files(uri: str, storage_options: Mapping[str, str] | None) -> dict[str, FileInfo]:
    try:
        found = storage.list_files(uri, recursive=True, storage_options=storage_options)
    except MissingPathError:
        return {}
    return {_below(uri, info.uri): info for info in found}


def _has_manifests(uri: str, storage_options: Mapping[str, str] | None) -> bool:
    return storage.exists(storage.join(uri, FOLDER), storage_options=storage_options)


def _manifests(uri: str, storage_options: Mapping[str, str] | None) -> tuple[Manifest, ...]:
    try:
        found = storage.list_files(
            storage.join(uri, FOLDER), include_hidden=True, storage_options=storage_options
        )
    except MissingPathError:
        return ()
    texts = [info.uri for info in found if is_manifest(info.uri)]
    read = (read_manifest(text, storage_options) for text in texts)
    return tuple(one for one in read if one is not None)


def _same(before: Sequence[Manifest], after: Sequence[Manifest]) -> bool:
    return [one.etag for one in before] == [one.etag for one in after]


def _restless(uri: str) -> StorageError:
    return StorageError(
        f"loads were committed here each of the {_LOOKS} times that it was looked at",
        place=uri,
        remedy="Run it again.",
        code="folder_busy",
        retryable=True,
    )
