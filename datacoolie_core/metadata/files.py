"""Which files hold the metadata, and which the overlays of an environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import (
    MetadataError,
    MissingPathError,
    Problem,
    SettingsError,
    StorageError,
    nearest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ENVIRONMENTS = "environments"
READABLE = (".json", ".yaml", ".yml", ".xlsx")
_OTHER_SHEETS = (".xls", ".xlsm", ".xlsb", ".ods")
_LOCK = "~$"
"""How the names of files begin that a spreadsheet program leaves beside an open workbook."""


@dataclass
class Found:
    """The files of a scope, each once, in the order in which they are read.

    Attributes:
        files: The metadata itself.
        overlays: What the chosen environment lays over it.
        environments: Name → the files of each environment.
        problems: Files that can't be read, beside others that can.
    """

    files: list[str] = field(default_factory=list[str])
    overlays: list[str] = field(default_factory=list[str])
    environments: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    problems: list[Problem] = field(default_factory=list[Problem])


def find_files(paths: Sequence[str], root: str, environment: str | None = None) -> Found:
    """Return the files below paths.

    A path that does not exist, or a folder without metadata, is an error even where invalid
    dataflows are quarantined: nothing at all could be loaded from it.

    Args:
        paths: Files and folders.
        root: What relative paths are relative to.
        environment: Whose overlays are wanted.

    Raises:
        MetadataError: A path can't be read.
        SettingsError: There is no such environment.
    """
    found = Found()
    wrong: list[Problem] = []
    for path in paths:
        try:
            _look(found, path, root, wrong)
        except StorageError as error:
            wrong.append(unreadable(path, error))
    if not paths:
        wrong.append(Problem(message="no metadata was named", source="metadata"))
    if wrong:
        raise MetadataError(wrong)
    found.files = list(dict.fromkeys(found.files))
    if environment is not None:
        found.overlays = _overlays(found, environment, root)
    return found


def shown(uri: str, root: str) -> str:
    """Return how messages call a file: relative to the project root where it lies below it."""
    base = storage.resolve(".", root).rstrip("/") + "/"
    return uri.removeprefix(base)


def unreadable(source: str, error: StorageError) -> Problem:
    """Return what is said of a file or folder that can't be read."""
    if isinstance(error, MissingPathError):
        message = "there is no such file or folder; relative paths start at the project root"
        return Problem(message=message, source=source)
    remedy = f". {error.remedy}" if error.remedy else ""
    return Problem(message=f"{error.message}{remedy}", source=source)


def _look(found: Found, path: str, root: str, wrong: list[Problem]) -> None:
    uri = storage.resolve(path, root)
    listed = list(_listed(uri))
    base: list[str] = []
    for file, name in listed:
        parts = PurePosixPath(name).parts
        if ENVIRONMENTS in parts[:-1]:
            _note_overlay(found, file, parts[parts.index(ENVIRONMENTS) + 1 :])
        else:
            base.append(file)
    if [file for file, _ in listed] == [uri]:
        _beside(found, uri)
    refused = [
        Problem(message=_REFUSED, source=shown(file, root))
        for file in base
        if file.lower().endswith(_OTHER_SHEETS)
    ]
    readable = [file for file in base if file.lower().endswith(READABLE)]
    found.files += readable
    if readable:
        found.problems += refused
    else:
        nothing = Problem(message=_nothing_to_read(base, uri), source=path)
        wrong += refused or [nothing]


_REFUSED = "only .xlsx workbooks can be read; open it in a spreadsheet program and save it as .xlsx"


def _beside(found: Found, file: str) -> None:
    """Find the environments of a file that was named itself: they are beside it."""
    folder = storage.join(file.rpartition("/")[0], ENVIRONMENTS)
    if storage.exists(folder):
        for one, name in _listed(folder):
            _note_overlay(found, one, PurePosixPath(name).parts)


def _note_overlay(found: Found, file: str, parts: Sequence[str]) -> None:
    """Note a file of an environment: a folder of that name, or a file of that name."""
    name = parts[0] if len(parts) > 1 else PurePosixPath(parts[0]).stem
    files = found.environments.setdefault(name, [])
    if file.lower().endswith(READABLE) and file not in files:
        files.append(file)


def _listed(uri: str) -> Iterator[tuple[str, str]]:
    """Yield the files below a path with their names there, in an order that ignores case."""
    files = storage.list_files(uri, recursive=True, include_hidden=True)
    names = {info.uri: info.uri.removeprefix(uri).strip("/") for info in files}
    for file in sorted(names, key=lambda file: (file.casefold(), file)):
        parts = names[file].split("/")
        if not any(part.startswith((".", _LOCK)) for part in parts):
            yield file, names[file]


def _nothing_to_read(files: Sequence[str], uri: str) -> str:
    if list(files) == [uri]:
        return f"this kind of file can't be read; it must be one of {', '.join(READABLE)}"
    return f"holds no metadata file ({', '.join(READABLE)})"


def _overlays(found: Found, environment: str, root: str) -> list[str]:
    if environment in found.environments:
        return found.environments[environment]
    there = sorted(found.environments)
    raise SettingsError(
        f"there is no environment '{environment}'",
        place=_folders(found.files, root),
        remedy=_remedy(environment, there),
        code="unknown_environment",
    )


def _remedy(environment: str, there: Sequence[str]) -> str:
    if not there:
        return f"There are none: overlays are read from a folder {ENVIRONMENTS}/{environment}."
    meant = nearest(environment, there)
    known = f"There are: {', '.join(there)}."
    return f"Did you mean '{meant}'? {known}" if meant else known


def _folders(files: Iterable[str], root: str) -> str:
    folders = dict.fromkeys(shown(file, root).rpartition("/")[0] for file in files)
    return (
        storage.join(min(folders, key=len), ENVIRONMENTS).lstrip("/") if folders else ENVIRONMENTS
    )
