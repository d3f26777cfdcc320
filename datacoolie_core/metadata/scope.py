"""Entries into validated metadata, with every problem found on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from datacoolie_core.errors import MetadataError, Problem
from datacoolie_core.metadata import checks, hints, references
from datacoolie_core.metadata.base import Model
from datacoolie_core.metadata.identity import id_from_name
from datacoolie_core.metadata.models import (
    Connection,
    Dataflow,
    InvalidDataflow,
    Metadata,
    SchemaHintGroup,
)
from datacoolie_core.metadata.problems import Finding, findings
from datacoolie_core.metadata.repair import best_effort, without
from datacoolie_core.metadata.sections import Entry, Loaded, Sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ModelT = TypeVar("ModelT", bound=Model)
OnInvalid = Literal["fail", "quarantine"]


@dataclass(frozen=True)
class Rules:
    """How strictly a scope is read.

    Attributes:
        strict: Whether an unknown key is an error; else it is a warning.
        text_values: Whether text may stand for numbers and booleans (Excel, databases).
    """

    strict: bool = True
    text_values: bool = False


def build(sections: Sections, rules: Rules, on_invalid: OnInvalid) -> Metadata:
    """Return the validated scope.

    Raises:
        MetadataError: Something is wrong and ``on_invalid`` is ``fail``; it has all problems.
    """
    connections = [_load(item, Connection, {}, rules) for item in sections.connections]
    references.check_connections(connections)
    registry = references.Registry(connections)
    context = {"find_connection": registry.find}
    flows = [_load(item, Dataflow, context, rules) for item in sections.dataflows]
    references.check_dataflows(flows)
    groups = [_load(item, SchemaHintGroup, {}, rules) for item in sections.schema_hints]
    hints.attach(groups, flows, registry.find)
    return _assemble(sections.problems, connections, flows, groups, on_invalid)


def _load(
    entry: Entry, model: type[ModelT], context: dict[str, Any], rules: Rules
) -> Loaded[ModelT]:
    strict = False if rules.text_values else None
    raw, found = entry.raw, list(entry.found)
    partial: ModelT | None = None
    try:
        partial = model.model_validate(raw, strict=strict, context=context)
    except ValidationError as error:
        found += _not_yet(findings(error, model), entry.found)
        if not rules.strict:
            found = [_forgiven(item) for item in found]
            raw = without(raw, _unknown_keys(error))
            partial = _retry(model, raw, strict, context)
        if partial is None:
            partial = best_effort(model, raw, error, context)
    if partial is not None:
        touched = [path for item in found for path in _about(item)]
        found += [item for item in _check(partial) if not _concerns(item, touched)]
    return Loaded(entry, partial, found)


def _not_yet(new: Iterable[Finding], found: Iterable[Finding]) -> list[Finding]:
    """Return findings about other fields: a cell that could not be read is not missing too."""
    touched = [finding.field for finding in found if finding.field]
    return [item for item in new if not _concerns(item, touched)]


def _retry(
    model: type[ModelT], raw: dict[str, Any], strict: bool | None, context: dict[str, Any]
) -> ModelT | None:
    try:
        return model.model_validate(raw, strict=strict, context=context)
    except ValidationError:
        return None


def _unknown_keys(error: ValidationError) -> Iterator[tuple[int | str, ...]]:
    return (item["loc"] for item in error.errors() if item["type"] == "extra_forbidden")


def _forgiven(finding: Finding) -> Finding:
    if finding.kind != "unknown_key":
        return finding
    message = f"{finding.message}, ignored"
    return Finding(finding.field, message, finding.suggestion, "warning", finding.kind)


def _check(model: Model) -> Iterable[Finding]:
    if isinstance(model, Connection):
        return checks.check_connection(model)
    return checks.check_dataflow(model) if isinstance(model, Dataflow) else ()


def _about(finding: Finding) -> Iterator[str]:
    # a misspelt key is also about the key that was meant
    path = finding.field or ""
    yield path
    if finding.suggestion and finding.kind == "unknown_key":
        yield ".".join([*path.split(".")[:-1], finding.suggestion])


def _concerns(finding: Finding, touched: list[str]) -> bool:
    field_path = finding.field or ""
    return any(_within(path, field_path) or _within(field_path, path) for path in touched)


def _within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _assemble(
    problems: list[Problem],
    connections: list[Loaded[Connection]],
    flows: list[Loaded[Dataflow]],
    groups: list[Loaded[SchemaHintGroup]],
    on_invalid: OnInvalid,
) -> Metadata:
    everything: list[Loaded[Any]] = [*connections, *flows, *groups]
    found = problems + [
        item.entry.problem(finding)
        for item in everything
        for finding in item.findings
        if finding.kind != "echo"
    ]
    errors = [problem for problem in found if problem.severity == "error"]
    if errors and on_invalid == "fail":
        raise MetadataError(errors)
    return Metadata(
        connections=tuple(_usable(connections)),
        dataflows=tuple(_usable(flows)),
        invalid=(*_invalid_flows(flows), *_invalid_sources(problems, groups)),
        warnings=tuple(_warnings(found)),
        origins={
            item.model.dataflow_id: item.entry.source for item in flows if item.model is not None
        },
    )


def _warnings(found: Iterable[Problem]) -> Iterator[Problem]:
    for problem in found:
        if problem.severity == "warning":
            yield problem
        elif problem.dataflow is not None and problem.kind != "dataflow":
            # a connection that no dataflow uses would else be passed over in silence
            yield replace(problem, severity="warning")


def _usable(loaded: Iterable[Loaded[ModelT]]) -> Iterator[ModelT]:
    return (item.model for item in loaded if item.model is not None and not item.broken)


def _invalid_flows(flows: Iterable[Loaded[Dataflow]]) -> Iterator[InvalidDataflow]:
    for item in flows:
        if item.broken:
            entry = item.entry
            yield InvalidDataflow(
                label=entry.label,
                dataflow_id=entry.identity,
                stage=entry.text("stage"),
                problems=tuple(
                    entry.problem(finding)
                    for finding in item.findings
                    if finding.severity == "error"
                ),
            )


def _invalid_sources(
    problems: list[Problem], groups: Iterable[Loaded[SchemaHintGroup]]
) -> Iterator[InvalidDataflow]:
    by_source: dict[str, list[Problem]] = {}
    homeless = [problem for problem in problems if problem.severity == "error"]
    homeless += [
        item.entry.problem(finding)
        for item in groups
        for finding in item.findings
        if finding.kind == "homeless" or item.model is None
    ]
    for problem in homeless:
        by_source.setdefault(problem.source, []).append(problem)
    for source, found in by_source.items():
        yield InvalidDataflow(label=source, dataflow_id=id_from_name(source), problems=tuple(found))
