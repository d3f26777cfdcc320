"""Documents taken apart into entries, each with the place that it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast

from datacoolie_core.errors import Problem, nearest
from datacoolie_core.metadata.files import ENVIRONMENTS
from datacoolie_core.metadata.identity import id_from_name
from datacoolie_core.metadata.places import Document, Origin, Path, Place, steps_of
from datacoolie_core.metadata.problems import Finding

ModelT = TypeVar("ModelT")
Section = Literal["connections", "dataflows", "schema_hints"]
SECTIONS: tuple[Section, ...] = ("connections", "dataflows", "schema_hints")
PATCHES = "patches"
"""The key of an overlay that only an environment can have."""

_TOP_KEYS = (*SECTIONS, "metadata", "extensions", "$schema")
_KINDS: dict[Section, Literal["connection", "dataflow", "schema_hints"]] = {
    "connections": "connection",
    "dataflows": "dataflow",
    "schema_hints": "schema_hints",
}


@dataclass(frozen=True)
class Entry:
    """One connection, dataflow or group of schema hints as it was written.

    Attributes:
        section: Which of them.
        raw: Its mapping.
        source: The name of its file.
        index: Its place in the section.
        origin: Tells where its parts are.
        path: Its path in the document.
        found: What was found while it was read.
    """

    section: Section
    raw: dict[str, Any]
    source: str
    index: int
    origin: Origin | None = None
    path: Path = ()
    found: tuple[Finding, ...] = ()

    def text(self, *keys: str) -> str | None:
        """Return the first of these keys that holds text that is not blank."""
        for key in keys:
            value = self.raw.get(key)
            if isinstance(value, str) and value.strip():
                return value.strip()
        return None

    @cached_property
    def name(self) -> str:
        """How people name it, readable even where the entry is broken."""
        name = self.text("name", "dataflow_id", "connection_id", "table_name")
        return name or f"#{self.index + 1}"

    @cached_property
    def label(self) -> str:
        """``stage/name`` of a dataflow, else the name."""
        stage = self.text("stage")
        return f"{stage}/{self.name}" if stage and self.text("name") else self.name

    @cached_property
    def identity(self) -> str:
        """The id of a dataflow or connection, readable even where the entry is broken."""
        key = "connection_id" if self.section == "connections" else "dataflow_id"
        return self.text(key) or id_from_name(self.name)

    def problem(self, finding: Finding) -> Problem:
        """Return a finding about this entry as a problem with its place."""
        place = self._place(finding)
        return Problem(
            message=finding.message,
            source=place.source,
            line=place.line,
            sheet=place.sheet,
            column=place.column,
            dataflow=self.label,
            field=finding.field,
            suggestion=finding.suggestion,
            severity=finding.severity,
            kind=_KINDS[self.section],
        )

    def _place(self, finding: Finding) -> Place:
        # the text is read once more for its lines, which is worth it for an error alone
        if self.origin is None or not (finding.severity == "error" or self.origin.ready):
            return Place(self.source)
        return self.origin.place((*self.path, *steps_of(finding.field or "")))


@dataclass
class Loaded(Generic[ModelT]):
    """An entry, its model as far as there is one, and what was found."""

    entry: Entry
    model: ModelT | None = None
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def broken(self) -> bool:
        """Whether it can't be used."""
        return any(item.severity == "error" for item in self.findings)


@dataclass
class Sections:
    """All entries of a scope, in the order of their documents."""

    connections: list[Entry] = field(default_factory=list[Entry])
    dataflows: list[Entry] = field(default_factory=list[Entry])
    schema_hints: list[Entry] = field(default_factory=list[Entry])
    problems: list[Problem] = field(default_factory=list[Problem])


def collect(
    documents: Iterable[Document], *, strict: bool, more_keys: Sequence[str] = ()
) -> Sections:
    """Take documents apart; what has the wrong shape becomes a problem.

    Args:
        documents: What the sources hold.
        strict: Whether an unknown key at the top is an error.
        more_keys: Keys at the top that others read; a document may hold them alone.
    """
    sections = Sections()
    for document in documents:
        sections.problems.extend(document.problems)
        _collect_one(sections, document, (*_TOP_KEYS, *more_keys), strict=strict)
    return sections


def layers_of(document: Document) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the mappings of a document that hold sections, with their paths."""
    if isinstance(document.content, Mapping):
        top = cast("Mapping[str, Any]", document.content)
        yield (), top
        inner = top.get("metadata")
        if isinstance(inner, Mapping):
            yield ("metadata",), cast("Mapping[str, Any]", inner)


def problem_at(document: Document, path: Path, message: str, **more: Any) -> Problem:
    """Return a problem with the place of a part of a document."""
    place = document.origin.place(path)
    return Problem(message=message, source=place.source, line=place.line, **more)


def _collect_one(
    sections: Sections, document: Document, known: tuple[str, ...], *, strict: bool
) -> None:
    found = False
    for path, layer in layers_of(document):
        sections.problems.extend(_unknown_keys(document, path, layer, known, strict=strict))
        found = found or any(key in layer for key in known[len(_TOP_KEYS) :])
        for section in SECTIONS:
            if section in layer:
                found = True
                _take(sections, section, document, path, layer[section])
    if not isinstance(document.content, Mapping):
        message = "expected a mapping with connections, dataflows or schema_hints"
        sections.problems.append(Problem(message=message, source=document.source))
    elif not found:
        message = "holds none of the sections connections, dataflows and schema_hints"
        sections.problems.append(Problem(message=message, source=document.source))


def _unknown_keys(
    document: Document,
    path: Path,
    layer: Mapping[str, Any],
    known: tuple[str, ...],
    *,
    strict: bool,
) -> Iterator[Problem]:
    for key in layer:
        if key not in known:
            home = f"; it belongs into a file in {ENVIRONMENTS}/NAME" if key == PATCHES else ""
            yield problem_at(
                document,
                (*path, key),
                f"unknown key '{key}'{home}{'' if strict else ', ignored'}",
                field=key,
                suggestion=nearest(key, known),
                severity="error" if strict else "warning",
            )


def _take(sections: Sections, section: Section, document: Document, path: Path, items: Any) -> None:
    entries: list[Entry] = getattr(sections, section)
    if items is None:
        return
    if not isinstance(items, list):
        found = problem_at(document, (*path, section), "expected a list", field=section)
        sections.problems.append(found)
        return
    origin, source = document.origin, document.source
    for index, raw in enumerate(cast("list[Any]", items)):
        where = (*path, section, index)
        if isinstance(raw, dict):
            mapping = cast("dict[str, Any]", raw)
            found = tuple(document.found.get((section, index), ()))
            entries.append(Entry(section, mapping, source, index, origin, where, found))
        else:
            name = f"{section}[{index}]"
            found = problem_at(document, where, "expected a mapping", field=name)
            sections.problems.append(found)
