"""Metadata from one form into another: JSON, YAML, Excel; nothing is lost, or nothing is written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core import storage
from datacoolie_core.errors import MetadataError, Problem, SettingsError
from datacoolie_core.metadata.arrange import MODELS, arranged, same
from datacoolie_core.metadata.files import find_files
from datacoolie_core.metadata.layout import Form, Layout, Parts, is_file, placed
from datacoolie_core.metadata.loader import read_files
from datacoolie_core.metadata.positions import TextOrigin
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.sections import (
    SECTIONS,
    Entry,
    Section,
    Sections,
    collect,
    layers_of,
)
from datacoolie_core.metadata.text_files import overlay_files, text_file
from datacoolie_core.metadata.workbook import read_workbook
from datacoolie_core.metadata.workbook_write import Row, sheet_mapping, sheet_rows, write_workbook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from datacoolie_core.metadata.places import Document

_COMMENT = re.compile(r"^\s*#|\s# ", re.MULTILINE)


@dataclass
class Conversion:
    """What a conversion gives; nothing is written yet.

    Attributes:
        files: URI → content, in the order of writing.
        notes: What people should know.
        counts: Section → how many entries there are.
    """

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    notes: list[str] = field(default_factory=list[str])
    counts: dict[str, int] = field(default_factory=dict[str, int])


def convert(
    paths: str | Sequence[str],
    output: str,
    *,
    to: Form,
    layout: Layout = "single",
    project_dir: str = ".",
) -> Conversion:
    """Return metadata in another form, each file read back and compared.

    Overlays in ``environments`` come along; they become YAML where the rest becomes Excel, which
    has no place for patches.

    Args:
        paths: Files and folders, as `load_metadata` takes them.
        output: A file for ``single``, a folder for ``split``; a folder for ``single`` gets a file
            ``metadata``.
        to: The form.
        layout: All in one file, or a file for each section and stage.
        project_dir: What relative paths are relative to.

    Raises:
        MetadataError: The metadata can't be read, or the form can't hold all of it.
        SettingsError: Nothing can be read there.
    """
    problems: list[Problem] = []
    found = find_files([paths] if isinstance(paths, str) else paths, project_dir)
    documents = read_files(found.files, project_dir, problems)
    sections = collect(documents, strict=True)
    _stop_if(problems + found.problems + sections.problems + list(_cells(sections)))
    target = storage.resolve(output, project_dir)
    folder = target.rpartition("/")[0] if is_file(target) else target
    done = Conversion(counts={name: len(getattr(sections, name)) for name in SECTIONS})
    more = _top_keys(documents, to, done)
    for uri, parts in placed(sections, target, to, layout):
        done.files[uri] = _written(uri, parts, more if not done.files else {}, to, problems)
    overlays = overlay_files(found.environments, folder, project_dir, to, problems)
    _stop_if(problems)
    if any(_has_comments(document) for document in documents):
        done.notes.append("comments are not carried over")
    if found.environments and not overlays:
        done.notes.append("the overlays in environments stay as they are")
    _look_around(done, target, folder)
    done.files |= overlays
    return done


def write(done: Conversion, *, overwrite: bool = False) -> None:
    """Write the files of a conversion.

    Args:
        done: What `convert` returned.
        overwrite: Whether files that are there are replaced.

    Raises:
        SettingsError: Files are there, or the folder holds other metadata.
    """
    there = [uri for uri in done.files if storage.exists(uri)]
    if there and not overwrite:
        raise SettingsError(
            f"{len(there)} of the files are there: {', '.join(there[:3])}",
            place="--output",
            remedy="Give another place, or --overwrite.",
            code="output_exists",
        )
    for uri, content in done.files.items():
        storage.write_atomic(uri, content)


def _cells(sections: Sections) -> Iterable[Problem]:
    """Yield what was found in cells of workbooks."""
    for name in SECTIONS:
        entries: list[Entry] = getattr(sections, name)
        for entry in entries:
            yield from (entry.problem(one) for one in entry.found if one.kind != "echo")


def _stop_if(problems: Iterable[Problem]) -> None:
    errors = [one for one in problems if one.severity == "error"]
    if errors:
        raise MetadataError(errors)


def _top_keys(documents: Iterable[Document], to: Form, done: Conversion) -> dict[str, Any]:
    """Return what stands beside the sections, of all files together."""
    found: dict[str, Any] = {}
    for document in documents:
        for _, layer in layers_of(document):
            for key in ("$schema", "extensions"):
                if layer.get(key) is None:
                    continue
                if key in found and found[key] != layer[key]:
                    message = f"other files have another {key}; one file can't hold both"
                    raise MetadataError([Problem(message=message, source=document.source)])
                found[key] = layer[key]
    if to == "excel":
        schema = found.pop("$schema", None)
        if schema is not None:
            done.notes.append("$schema is left out: a workbook has no place for it")
        if found:
            message = "a workbook has no place for extensions of a whole file"
            raise MetadataError([Problem(message=message, source="metadata", field="extensions")])
    return found


def _written(
    uri: str, parts: Parts, more: Mapping[str, Any], to: Form, problems: list[Problem]
) -> bytes:
    """Return the content of a file, after it was read back and compared."""
    if to == "excel":
        before = len(problems)
        rows: dict[Section, list[Row]] = {
            section: sheet_rows(section, entries, problems) for section, entries in parts.items()
        }
        content = write_workbook(rows) if len(problems) == before else b""
        if content:
            back = read_workbook(content, uri)
            problems += _differences(parts, collect([back], strict=True))
        return content
    document = {**more, **_document(parts)}
    return text_file(uri, document, problems)


def _document(parts: Parts) -> dict[str, Any]:
    held = {
        section: [arranged(entry.raw, MODELS[section]) for entry in entries]
        for section, entries in parts.items()
    }
    return {name: entries for name, entries in held.items() if entries} or {"dataflows": []}


def _differences(parts: Parts, back: Sections) -> Iterable[Problem]:
    """Yield where a workbook that is read back says something else."""
    for section, entries in parts.items():
        others: list[Entry] = getattr(back, section)
        found = [sheet_mapping(section, entry) for entry in others]
        for index, entry in enumerate(entries):
            meant = sheet_mapping(section, entry)
            read = found[index] if index < len(found) else None
            if not same(meant, read):
                path = _first_difference(meant, read)
                yield entry.problem(Finding(path or None, "a workbook can't hold this as it is"))


def _first_difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        for key in [*left, *right]:
            if not same(left.get(key), right.get(key)):
                return _first_difference(
                    left.get(key), right.get(key), f"{path}.{key}" if path else key
                )
    return path


def _has_comments(document: Document) -> bool:
    origin = document.origin
    if not isinstance(origin, TextOrigin) or document.source.lower().endswith(".json"):
        return False
    return _COMMENT.search(origin.text) is not None


def _look_around(done: Conversion, target: str, folder: str) -> None:
    """Find metadata that would be read together with what is written."""
    if not storage.exists(folder):
        return
    listed = (info.uri for info in storage.list_files(folder))
    others = [uri for uri in listed if is_file(uri) and uri not in done.files]
    if target != folder:
        others = [uri for uri in others if _is_metadata(uri)]
    names = ", ".join(uri.rpartition("/")[2] for uri in others[:3])
    if others and target != folder:
        done.notes.append(f"the folder also holds {names}: read as a whole, it has both")
    elif others:
        raise SettingsError(
            f"the folder holds other metadata: {names}",
            place=target,
            remedy="A folder is read as a whole. Give an empty folder, or move these away.",
            code="output_not_empty",
        )


def _is_metadata(uri: str) -> bool:
    (document, *_) = read_files([uri], "", []) or [None]
    return document is not None and any(
        section in layer for _, layer in layers_of(document) for section in SECTIONS
    )
