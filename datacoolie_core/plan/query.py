"""``source.query``: SQL as it stands, or the name of a file that holds it.

The shape of the text decides. A file is always named relative to a root: no absolute path, no
URI, no ``..``, no link that leads out.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import DataCoolieError, MissingPathError, PreparationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacoolie_core.metadata.models import Dataflow

_FILE = re.compile(r"[\w./-]+\.sql", re.IGNORECASE)
_PATH_START = re.compile(r"[/~\\.]|[A-Za-z]:[\\/]|[A-Za-z][A-Za-z0-9+.\-]*://")
_SQL_NAME = re.compile(r"\S*\.sql(?![A-Za-z0-9_])\S*", re.IGNORECASE)
_ESCAPED = re.compile(r"%(2f|5c|2e|00)", re.IGNORECASE)
_ARTIFACT = "artifact:"


@dataclass(frozen=True)
class Inline:
    """A query that is SQL itself."""

    sql: str


@dataclass(frozen=True)
class FileRef:
    """A query in a file below a SQL root.

    Attributes:
        reference: As written.
        path: Its safe parts joined by slashes.
    """

    reference: str
    path: str


@dataclass(frozen=True)
class ArtifactRef(FileRef):
    """A query in a file below the artifact root (``artifact:/…``)."""


def classify(query: str) -> Inline | FileRef | ArtifactRef:
    """Return what a query is, by its shape alone.

    >>> classify("orders/new.sql")
    FileRef(reference='orders/new.sql', path='orders/new.sql')
    >>> classify("SELECT * FROM orders")
    Inline(sql='SELECT * FROM orders')

    Raises:
        PreparationError: It looks like a path, but not like one that may be read.
    """
    text = query.strip()
    if text.startswith(("--", "/*")):
        return Inline(query)
    if text.startswith(_ARTIFACT):
        return ArtifactRef(text, _artifact_path(text))
    if _FILE.fullmatch(text):
        return FileRef(text, _safe_path(text, text))
    if _PATH_START.match(text) or _SQL_NAME.fullmatch(text):
        raise _outside(text)
    return Inline(query)


def is_inline(query: str) -> bool:
    """Return whether a query is SQL itself; a path that may not be read is not."""
    try:
        return isinstance(classify(query), Inline)
    except PreparationError:
        return False


def _artifact_path(text: str) -> str:
    rest = text.removeprefix(_ARTIFACT)
    if not rest.startswith("/") or rest == "/":
        raise PreparationError(
            f"'{text}' names no file",
            place="source.query",
            remedy="Write artifact:/folder/file.sql.",
            code="bad_query_reference",
        )
    path = _safe_path(rest.removeprefix("/"), text)
    if path == "manifest.json":
        raise _outside(text)
    return path


def _safe_path(path: str, reference: str) -> str:
    unsafe = path.startswith(("/", "~")) or _ESCAPED.search(path)
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if unsafe or not parts or any(_is_unsafe(part) for part in parts):
        raise _outside(reference)
    return "/".join(parts)


def _is_unsafe(part: str) -> bool:
    control = any(unicodedata.category(character) == "Cc" for character in part)
    return part == ".." or control or any(character in part for character in "\\?#")


def _outside(reference: str) -> PreparationError:
    shown = reference if reference.isprintable() else repr(reference)
    return PreparationError(
        f"'{shown}' leads outside the SQL root, or is no plain path",
        place="source.query",
        remedy="Name the file relative to the SQL root, without '..', links or escapes.",
        code="outside_sql_root",
    )


def read_query_file(reference: FileRef, sql_roots: Sequence[str], artifact_root: str | None) -> str:
    """Return the SQL text of a file.

    With one root the path may carry the root's own folder name in front or not; with several it
    must, to say which. Without SQL roots it is taken below the artifact root as it is.

    Args:
        reference: From `classify`.
        sql_roots: Absolute paths or URIs.
        artifact_root: Absolute path or URI.

    Raises:
        PreparationError: There is no such file, it is empty, or it lies outside its root.
    """
    places = _places(reference, list(dict.fromkeys(sql_roots)), artifact_root)
    for root, path in places:
        uri = storage.join(root, path)
        try:
            text = storage.read_text(uri)
        except MissingPathError:
            continue
        except DataCoolieError as error:
            raise _failed(reference, error.message, error.remedy, error.code) from error
        _check_inside(reference, root, uri)
        if not text.strip():
            raise _failed(reference, f"{uri} is empty", "Write its query.", "empty_query_file")
        return text
    tried = " or ".join(storage.join(root, path) for root, path in places)
    raise _failed(
        reference,
        f"there is no file {tried}",
        "Correct the name, or set the SQL root (--sql-path).",
        "missing_query_file",
    )


def _places(
    reference: FileRef, roots: Sequence[str], artifact_root: str | None
) -> list[tuple[str, str]]:
    if isinstance(reference, ArtifactRef) or not roots:
        if artifact_root is None:
            raise _failed(
                reference, "there is no root for it", "Set the SQL root (--sql-path).", "no_root"
            )
        return [(artifact_root, reference.path)]
    first, _, rest = reference.path.partition("/")
    named = [root for root in roots if rest and _folder(root) == first]
    if len(roots) == 1:
        return [(roots[0], reference.path), *((root, rest) for root in named)]
    if len(named) == 1:
        return [(named[0], rest)]
    folders = ", ".join(f"'{_folder(root)}'" for root in roots)
    raise _failed(
        reference,
        f"its first folder must name one of several SQL roots: {folders}",
        "Write the root's folder in front; give roots different folder names.",
        "ambiguous_sql_root",
    )


def _folder(root: str) -> str:
    return root.rstrip("/").rpartition("/")[2]


def _check_inside(reference: FileRef, root: str, uri: str) -> None:
    if storage.is_remote(root):
        return  # a store has no links
    if not Path(uri).resolve().is_relative_to(Path(root).resolve()):
        raise _outside(reference.reference)


def _failed(reference: FileRef, message: str, remedy: str | None, code: str) -> PreparationError:
    return PreparationError(
        f"'{reference.reference}': {message}", place="source.query", remedy=remedy, code=code
    )


def load_query(
    dataflow: Dataflow,
    *,
    project_dir: str,
    sql_roots: Sequence[str] = (),
    artifact_root: str | None = None,
) -> str | None:
    """Return the SQL text of a dataflow's query, None if it has no query.

    Args:
        dataflow: Any dataflow.
        project_dir: The project root; without other roots, files are named relative to it.
        sql_roots: Relative ones start at the project root.
        artifact_root: Root of ``artifact:/…``; the project root if there is none.

    Raises:
        PreparationError: The query's file can't be used; it names the dataflow and the reference.
    """
    if dataflow.source.query is None:
        return None
    try:
        found = classify(dataflow.source.query)
        if isinstance(found, Inline):
            return found.sql
        roots = [storage.resolve(root, project_dir) for root in sql_roots]
        fallback = storage.resolve(artifact_root or ".", project_dir)
        return read_query_file(found, roots, fallback)
    except PreparationError as error:
        error.dataflow = dataflow.dataflow_id
        raise


def query_reader(
    project_dir: str, sql_roots: Sequence[str] = (), artifact_root: str | None = None
) -> Callable[[Dataflow], str | None]:
    """Return a function that gives the SQL text of a dataflow's query, for the graph."""

    def read(dataflow: Dataflow) -> str | None:
        return load_query(
            dataflow, project_dir=project_dir, sql_roots=sql_roots, artifact_root=artifact_root
        )

    return read
