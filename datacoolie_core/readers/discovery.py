"""Which files a file source has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from datacoolie_core import storage
from datacoolie_core.engines.names import listed
from datacoolie_core.errors import MissingPathError, ReadError, StorageError
from datacoolie_core.secrets import Secret
from datacoolie_core.state.folder import list_visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.readers.batch import ReadRequest
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
    """

    uri: str
    files: tuple[FileInfo, ...]
    hive: Mapping[str, FolderValues] = field(default_factory=dict[str, "FolderValues"])
    warnings: tuple[tuple[str, str], ...] = ()


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
    _check_supported(request)
    uri = source_uri(request)
    connection = request.dataflow.source.connection.configure
    try:
        found = list_visible(uri, base_path(request), connection.storage_options)
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
    if len(found) == 1 and found[0].uri.rstrip("/") == uri.rstrip("/"):
        return Discovery(uri, tuple(found))
    if connection.use_hive_partitioning:
        return _matching(uri, found, suffixes, hive=True)
    return _matching(uri, found, suffixes, hive=False)


def _check_supported(request: ReadRequest) -> None:
    source = request.dataflow.source
    for option, given in (
        ("date_folder_partitions", source.connection.configure.date_folder_partitions),
        ("file_registry", source.configure.datacoolie.file_registry),
    ):
        if given:
            raise ReadError(
                f"{option} is not supported yet",
                place="source",
                remedy="Remove it, or wait for a later version.",
                code="unsupported_option",
            )


def _matching(
    uri: str, found: Sequence[FileInfo], suffixes: Sequence[str], *, hive: bool
) -> Discovery:
    inside = {info.uri: _below(uri, info) for info in found}
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
    values = {info.uri: _hive_values(inside[info.uri]) for info in files} if hive else {}
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
