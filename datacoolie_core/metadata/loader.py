"""Metadata files and folders into one validated scope."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacoolie_core import storage
from datacoolie_core.errors import MetadataError, MissingPathError, Problem, StorageError
from datacoolie_core.metadata.documents import DocumentError, parse
from datacoolie_core.metadata.scope import OnInvalid, Rules, build
from datacoolie_core.metadata.sections import Sections, collect

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from datacoolie_core.metadata.models import Metadata

_READABLE = (".json", ".yaml", ".yml")
_SHEETS = (".xlsx", ".xls")


def load_metadata(
    paths: str | Sequence[str],
    *,
    project_dir: str | None = None,
    strict: bool = True,
    on_invalid: OnInvalid = "fail",
) -> Metadata:
    """Return the validated metadata of files and folders.

    Args:
        paths: Files (.json, .yaml, .yml) or folders, which are read with all their subfolders.
        project_dir: What relative paths are relative to; the working directory if None.
        strict: False turns unknown keys alone into warnings.
        on_invalid: ``quarantine`` keeps the valid dataflows and puts the others into
            ``Metadata.invalid``.

    Raises:
        MetadataError: Something is wrong; it carries all problems.
    """
    root = project_dir or str(Path.cwd())
    files, problems = _find_files([paths] if isinstance(paths, str) else paths, root)
    with _no_collection():
        sections = _read_all(files, root, problems, strict=strict)
        return build(sections, Rules(strict=strict), on_invalid)


def _read_all(
    files: Iterable[str], root: str, problems: list[Problem], *, strict: bool
) -> Sections:
    documents: list[tuple[str, Any]] = []
    for uri in files:
        source = _shown(uri, root)
        try:
            documents.append((source, parse(storage.read_bytes(uri), source)))
        except DocumentError as error:
            problems.extend(error.problems)
        except StorageError as error:
            problems.append(_unreadable(source, error))
    sections = collect(documents, strict=strict)
    sections.problems[:0] = problems
    return sections


def metadata_from_documents(
    documents: Iterable[tuple[str, Any]],
    *,
    strict: bool = True,
    on_invalid: OnInvalid = "fail",
    text_values: bool = False,
) -> Metadata:
    """Return the validated metadata of documents that are already parsed.

    Args:
        documents: The name of each source, for messages, and its mapping.
        strict: False turns unknown keys alone into warnings.
        on_invalid: As for `load_metadata`.
        text_values: Whether text may stand for numbers and booleans, as in Excel.

    Raises:
        MetadataError: Something is wrong; it carries all problems.
    """
    with _no_collection():
        sections = collect(documents, strict=strict)
        return build(sections, Rules(strict=strict, text_values=text_values), on_invalid)


@contextmanager
def _no_collection() -> Generator[None]:
    # thousands of long-lived objects are made and no garbage: looking for some in between
    # costs a third of the time
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _find_files(paths: Sequence[str], root: str) -> tuple[list[str], list[Problem]]:
    """Return the files to read, each once, and warnings about files left out.

    A path that does not exist, or a folder without metadata, is an error even where invalid
    dataflows are quarantined: nothing at all could be loaded from it.
    """
    files: dict[str, None] = {}
    left_out: list[Problem] = []
    missing: list[Problem] = []
    for path in paths:
        try:
            found = list(_listed(storage.resolve(path, root)))
        except StorageError as error:
            missing.append(_unreadable(path, error))
            continue
        readable = [uri for uri in found if uri.lower().endswith(_READABLE)]
        if not readable:
            missing.append(Problem(message=_nothing_to_read(found), source=path))
        files.update(dict.fromkeys(readable))
        sheets = (uri for uri in found if uri.lower().endswith(_SHEETS))
        left_out += [_left_out(_shown(uri, root)) for uri in sheets]
    if not paths:
        missing.append(Problem(message="no metadata was named", source="metadata"))
    if missing:
        raise MetadataError(missing)
    return list(files), left_out


def _listed(uri: str) -> Iterator[str]:
    found = storage.list_files(uri, recursive=True, include_hidden=True)
    names = {info.uri: info.uri.removeprefix(uri).strip("/") for info in found}
    visible = (
        path
        for path, name in names.items()
        if not any(part.startswith(".") for part in name.split("/"))
    )
    return iter(sorted(visible, key=lambda path: (path.casefold(), path)))


def _nothing_to_read(found: Sequence[str]) -> str:
    if len(found) == 1:
        return f"this kind of file can't be read; it must be one of {', '.join(_READABLE)}"
    return f"holds no metadata file ({', '.join(_READABLE)})"


def _left_out(source: str) -> Problem:
    message = "was not read: spreadsheets are not read from folders of JSON and YAML files"
    return Problem(message=message, source=source, severity="warning")


def _unreadable(source: str, error: StorageError) -> Problem:
    if isinstance(error, MissingPathError):
        message = "there is no such file or folder; relative paths start at the project root"
        return Problem(message=message, source=source)
    remedy = f". {error.remedy}" if error.remedy else ""
    return Problem(message=f"{error.message}{remedy}", source=source)


def _shown(uri: str, root: str) -> str:
    base = storage.resolve(".", root).rstrip("/") + "/"
    return uri.removeprefix(base)
