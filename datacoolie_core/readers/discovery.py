"""Which files a file source has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from datacoolie_core import storage
from datacoolie_core.engines.names import listed
from datacoolie_core.errors import MissingPathError, ReadError, StorageError
from datacoolie_core.plan.tracking import dated
from datacoolie_core.readers.date_folders import date_pattern, folders_from
from datacoolie_core.readers.tracked import Tracked, folder_bound, track
from datacoolie_core.secrets import Secret
from datacoolie_core.state.folder import list_visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.date_folders import DatePattern
    from datacoolie_core.storage import FileInfo


FolderValues = Mapping[str, str | None]
"""Key → value of the ``key=value`` folders that a file lies in."""
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Discovery:
    """What was found at a file source's place.

    Attributes:
        uri: The folder or file.
        files: Those that the format reads, sorted by path.
        hive: File → the values of its ``key=value`` folders.
        warnings: Code and message.
        tracked: What will be remembered of the files; None where rows alone tell what is loaded.
    """

    uri: str
    files: tuple[FileInfo, ...]
    hive: Mapping[str, FolderValues] = field(default_factory=dict[str, "FolderValues"])
    warnings: tuple[tuple[str, str], ...] = ()
    tracked: Tracked | None = None


def base_path(request: ReadRequest) -> str:
    """Return the base path of the source's connection, absolute.

    Raises:
        ReadError: The connection has none.
    """
    connection = request.dataflow.source.connection
    # a secret stands where the metadata's text was
    given = cast("object", connection.configure.base_path)
    base = given.reveal() if isinstance(given, Secret) else given
    if not isinstance(base, str):
        raise ReadError(
            f"connection '{connection.name}' has no base_path",
            place="source",
            remedy="Add configure.base_path to the connection.",
            code="no_base_path",
        )
    return storage.resolve(base.replace("\\", "/"), request.project_dir)


def source_uri(request: ReadRequest) -> str:
    """Return ``base_path/schema_name/table``, absolute.

    Raises:
        ReadError: The connection has no base path.
    """
    source = request.dataflow.source
    parts = [part.replace("\\", "/") for part in (source.schema_name, source.table) if part]
    return storage.join(base_path(request), *parts)


def discover(request: ReadRequest, suffixes: Sequence[str]) -> Discovery:
    """Return the files of a source; a source may name one file, whatever its suffix.

    Args:
        request: What is read.
        suffixes: Endings that belong to the format, in lower case.

    Raises:
        ReadError: The folder is missing, or it has files of which none belongs to the format.
    """
    uri = source_uri(request)
    connection = request.dataflow.source.connection.configure
    pattern = dated(request.dataflow)
    found = _listed(request, uri, None if pattern is None else date_pattern(pattern))
    if len(found) == 1 and found[0].uri.rstrip("/") == uri.rstrip("/"):
        return _tracked(Discovery(uri, tuple(found)), request, {})
    if pattern is not None:
        return _dated(request, uri, found, suffixes)
    matching = _matching(uri, found, suffixes, hive=connection.use_hive_partitioning)
    return _tracked(matching, request, {})


def _listed(request: ReadRequest, uri: str, pattern: DatePattern | None) -> Sequence[FileInfo]:
    connection = request.dataflow.source.connection.configure
    root, options = base_path(request), connection.storage_options
    lower = folder_bound(request)
    try:
        if pattern is None or lower is None:
            return list_visible(uri, root, options)
        folders = folders_from(uri, pattern, lower, options)
        return [info for folder in folders for info in list_visible(folder, root, options)]
    except MissingPathError as error:
        raise ReadError(
            "there is no such file or folder",
            place=uri,
            remedy="Check base_path, schema_name and table; relative paths start at the project"
            f" root ({request.project_dir}).",
            code="missing_path",
        ) from error
    except StorageError as error:
        raise ReadError(
            error.message,
            place=error.place,
            remedy=error.remedy,
            code=error.code,
            retryable=error.retryable,
        ) from error


def _dated(
    request: ReadRequest, uri: str, found: Sequence[FileInfo], suffixes: Sequence[str]
) -> Discovery:
    """Return the files of dated folders; one that lies elsewhere is told, never read."""
    connection = request.dataflow.source.connection.configure
    pattern = date_pattern(connection.date_folder_partitions or "")
    dates = {_below(uri, info): pattern.instant_of(_below(uri, info)) for info in found}
    placed = {path: instant for path, instant in dates.items() if instant is not None}
    inside = [info for info in found if _below(uri, info) in placed]
    outside = [path for path in dates if path not in placed]
    if outside and not inside:
        raise ReadError(
            f"no folder looks like '{pattern.text}': {listed(outside, most=3)}",
            place=uri,
            remedy="Correct date_folder_partitions of the connection, or name a deeper table.",
            code="no_matching_files",
        )
    levels = len(pattern.levels)
    matching = _matching(
        uri, inside, suffixes, hive=connection.use_hive_partitioning, levels=levels
    )
    if outside:
        told = f"{uri}: files outside of '{pattern.text}' are not read: {listed(outside)}"
        matching = replace(matching, warnings=(*matching.warnings, ("files_outside_pattern", told)))
    return _tracked(matching, request, placed)


def _tracked(found: Discovery, request: ReadRequest, placed: Mapping[str, datetime]) -> Discovery:
    named = [(_below(found.uri, info), info) for info in found.files]
    dates = {path: placed[path] for path, _ in named if path in placed}
    files, tracked = track(named, dates, request)
    return replace(found, files=tuple(files), tracked=tracked)


def _matching(
    uri: str,
    found: Sequence[FileInfo],
    suffixes: Sequence[str],
    *,
    hive: bool,
    levels: int = 0,
) -> Discovery:
    """Return the files that a format reads, below so many levels of folders."""
    inside = {info.uri: "/".join(_below(uri, info).split("/")[levels:]) for info in found}
    fitting = [info for info in found if info.uri.lower().endswith(tuple(suffixes))]
    files = [info for info in fitting if hive or "/" not in inside[info.uri]]
    if found and not files:
        raise _nothing_fits(uri, [*inside.values()], suffixes, nested=bool(fitting))
    warnings: list[tuple[str, str]] = []
    if len(files) < len(fitting):
        hidden = listed(inside[info.uri] for info in fitting if "/" in inside[info.uri])
        warnings.append(
            ("files_in_subfolders", f"{uri}: files in sub-folders are not read: {hidden}")
        )
    others = [name for name in inside.values() if not name.lower().endswith(tuple(suffixes))]
    if others:
        warnings.append(
            ("files_ignored", f"{uri}: files of another kind are not read: {listed(others)}")
        )
    values = {info.uri: _hive_values(_below(uri, info)) for info in files} if hive else {}
    return Discovery(uri, tuple(files), values, tuple(warnings))


def _below(uri: str, info: FileInfo) -> str:
    return info.uri.removeprefix(uri.rstrip("/")).lstrip("/")


def _nothing_fits(
    uri: str, names: Sequence[str], suffixes: Sequence[str], *, nested: bool
) -> ReadError:
    if nested:
        return ReadError(
            f"all files are in sub-folders: {listed(names, most=3)}",
            place=uri,
            remedy="Name the sub-folder as the table, or set use_hive_partitioning on the"
            " connection for key=value folders.",
            code="no_matching_files",
        )
    return ReadError(
        f"there are files, but none ends in {', '.join(suffixes)}: {listed(names, most=3)}",
        place=uri,
        remedy="Set the connection's format to that of the files, or rename them.",
        code="no_matching_files",
    )


def _hive_values(relative: str) -> dict[str, str | None]:
    from urllib.parse import unquote

    folders = relative.split("/")[:-1]
    pairs = (folder.partition("=") for folder in folders if "=" in folder)
    return {key: None if value == _NULL_FOLDER else unquote(value) for key, _, value in pairs}
