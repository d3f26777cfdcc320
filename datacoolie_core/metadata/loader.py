"""Metadata files and folders into one validated scope."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacoolie_core import storage
from datacoolie_core.errors import MetadataError, Problem, StorageError
from datacoolie_core.metadata.documents import DocumentError, read_document
from datacoolie_core.metadata.files import Found, find_files, shown, unreadable
from datacoolie_core.metadata.places import Document, Unplaced
from datacoolie_core.metadata.scope import OnInvalid, Rules, build
from datacoolie_core.metadata.sections import Sections, collect

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from datacoolie_core.metadata.models import Metadata


def load_metadata(
    paths: str | Sequence[str],
    *,
    project_dir: str | None = None,
    strict: bool = True,
    on_invalid: OnInvalid = "fail",
    environment: str | None = None,
) -> Metadata:
    """Return the validated metadata of files and folders.

    Args:
        paths: Files (.json, .yaml, .yml, .xlsx) or folders, which are read with all their
            subfolders, except those named ``environments``.
        project_dir: What relative paths are relative to; the working directory if None.
        strict: False turns unknown keys alone into warnings.
        on_invalid: ``quarantine`` keeps the valid dataflows and puts the others into
            ``Metadata.invalid``.
        environment: The name of a folder in ``environments``, whose overlays are laid over the
            rest; None reads no overlay.

    Raises:
        MetadataError: Something is wrong; it carries all problems.
        SettingsError: There is no such environment.
    """
    root = project_dir or str(Path.cwd())
    found = find_files([paths] if isinstance(paths, str) else paths, root, environment)
    with _no_collection():
        sections = _read_all(found, root, on_invalid, strict=strict)
        scope = build(sections, Rules(strict=strict), on_invalid)
    return scope.model_copy(update={"environment": environment}) if environment else scope


def _read_all(found: Found, root: str, on_invalid: OnInvalid, *, strict: bool) -> Sections:
    problems = list(found.problems)
    base = read_files(found.files, root, problems, strict=strict)
    sections = collect(base, strict=strict)
    if found.overlays:
        from datacoolie_core.metadata.overlays import apply_overlays

        wrong: list[Problem] = []
        overlays = read_files(found.overlays, root, wrong, strict=strict)
        wrong += apply_overlays(sections, overlays, strict=strict)
        errors = [problem for problem in wrong if problem.severity == "error"]
        if errors and on_invalid == "quarantine":
            # without it the rest would run as it is elsewhere: on other data, into other tables
            raise MetadataError(errors)
        problems += wrong
    sections.problems[:0] = problems
    return sections


def read_files(
    uris: Iterable[str], root: str, problems: list[Problem], *, strict: bool = True
) -> list[Document]:
    """Return the documents of files, without those that can't be read.

    Args:
        uris: The files.
        root: The project root, which messages leave out of names.
        problems: What could not be read is added here.
        strict: Whether an unknown column of a workbook is an error.
    """
    documents: list[Document] = []
    for uri in uris:
        source = shown(uri, root)
        try:
            documents.append(_read(storage.read_bytes(uri), source, strict=strict))
        except DocumentError as error:
            problems.extend(error.problems)
        except StorageError as error:
            problems.append(unreadable(source, error))
    return documents


def _read(content: bytes, source: str, *, strict: bool) -> Document:
    if source.lower().endswith(".xlsx"):
        from datacoolie_core.metadata.workbook import read_workbook

        return read_workbook(content, source, strict=strict)
    return read_document(content, source)


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
        placed = (Document(source, held, Unplaced(source)) for source, held in documents)
        sections = collect(placed, strict=strict)
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
