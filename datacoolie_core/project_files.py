"""The files of a new project: what ``datacoolie init`` and Dagster's scaffolding write."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

from datacoolie_core.metadata.json_schema import schema_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

_SUFFIX = ".in"
"""Ends the names of templates that tools would else take for files of their own."""

SCHEMA_FILE = "metadata.schema.json"
"""What the first line of the metadata's files names, for editors."""

_NAME = "@NAME@"
_DOTTED = {"gitignore": ".gitignore"}


def project_files(*, example: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the path of each file of a new project, and its text.

    Args:
        example: Whether those with a query, a replay and an environment belong to it.
    """
    for kind in ("project", "example") if example else ("project",):
        root = files("datacoolie_core").joinpath("templates", kind)
        for path, file in _walk(root, ""):
            yield path, file.read_text("utf-8")
    yield SCHEMA_FILE, schema_text()


def write_project_files(
    folder: Path, title: str, templates: Iterable[tuple[str, str]]
) -> tuple[list[str], list[str]]:
    """Write files; return the paths of those written, and of those that were there and stay.

    Args:
        folder: Where they go.
        title: What the project is called.
        templates: Path and text of each, as `project_files` yields them.
    """
    written: list[str] = []
    kept: list[str] = []
    for path, text in templates:
        target = folder / path
        if target.exists():
            kept.append(path)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # in quotes it is a string of YAML, in which JSON's escapes mean the same
        filled = text.replace(f'"{_NAME}"', json.dumps(title)).replace(_NAME, title)
        target.write_text(filled, "utf-8", newline="\n")
        written.append(path)
    return written, kept


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for one in sorted(folder.iterdir(), key=lambda item: item.name):
        if one.is_dir():
            if one.name != "__pycache__":
                yield from _walk(one, f"{prefix}{one.name}/")
            continue
        name = one.name.removesuffix(_SUFFIX)
        yield f"{prefix}{_DOTTED.get(name, name)}", one
