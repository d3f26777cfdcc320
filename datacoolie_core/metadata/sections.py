"""Documents taken apart into entries, each with the place that it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast

from datacoolie_core.errors import Problem, nearest
from datacoolie_core.metadata.identity import id_from_name
from datacoolie_core.metadata.problems import Finding

ModelT = TypeVar("ModelT")
Section = Literal["connections", "dataflows", "schema_hints"]
SECTIONS: tuple[Section, ...] = ("connections", "dataflows", "schema_hints")
_TOP_KEYS = (*SECTIONS, "metadata", "extensions", "$schema")
_KINDS: dict[Section, Literal["connection", "dataflow", "schema_hints"]] = {
    "connections": "connection",
    "dataflows": "dataflow",
    "schema_hints": "schema_hints",
}


@dataclass(frozen=True)
class Entry:
    """One connection, dataflow or group of schema hints as it was written."""

    section: Section
    raw: dict[str, Any]
    source: str
    index: int

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
        return Problem(
            message=finding.message,
            source=self.source,
            dataflow=self.label,
            field=finding.field,
            suggestion=finding.suggestion,
            severity=finding.severity,
            kind=_KINDS[self.section],
        )


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


def collect(documents: Iterable[tuple[str, Any]], *, strict: bool) -> Sections:
    """Take documents apart; what has the wrong shape becomes a problem.

    Args:
        documents: The name of each source, and what it holds.
        strict: Whether an unknown key at the top is an error.
    """
    sections = Sections()
    for source, document in documents:
        _collect_one(sections, source, document, strict=strict)
    return sections


def _collect_one(sections: Sections, source: str, document: Any, *, strict: bool) -> None:
    if not isinstance(document, Mapping):
        message = "expected a mapping with connections, dataflows or schema_hints"
        sections.problems.append(Problem(message=message, source=source))
        return
    top = cast("Mapping[str, Any]", document)
    inner = top.get("metadata")
    layers = [top, cast("Mapping[str, Any]", inner)] if isinstance(inner, Mapping) else [top]
    found = False
    for layer in layers:
        sections.problems.extend(_unknown_keys(layer, source, strict=strict))
        for section in SECTIONS:
            if section in layer:
                found = True
                _take(sections, section, layer[section], source)
    if not found:
        message = "holds none of the sections connections, dataflows and schema_hints"
        sections.problems.append(Problem(message=message, source=source))


def _unknown_keys(layer: Mapping[str, Any], source: str, *, strict: bool) -> Iterable[Problem]:
    for key in layer:
        if key not in _TOP_KEYS:
            yield Problem(
                message=f"unknown key '{key}'{'' if strict else ', ignored'}",
                source=source,
                field=key,
                suggestion=nearest(key, _TOP_KEYS),
                severity="error" if strict else "warning",
            )


def _take(sections: Sections, section: Section, items: Any, source: str) -> None:
    entries: list[Entry] = getattr(sections, section)
    if items is None:
        return
    if not isinstance(items, list):
        message = "expected a list"
        sections.problems.append(Problem(message=message, source=source, field=section))
        return
    for index, raw in enumerate(cast("list[Any]", items)):
        if isinstance(raw, dict):
            entries.append(Entry(section, cast("dict[str, Any]", raw), source, index))
        else:
            field_path = f"{section}[{index}]"
            message = "expected a mapping"
            sections.problems.append(Problem(message=message, source=source, field=field_path))
