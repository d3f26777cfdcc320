"""Overlays: what an environment adds to the metadata, replaces in it and patches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BeforeValidator, ValidationError

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.base import Model
from datacoolie_core.metadata.coercions import object_or_none
from datacoolie_core.metadata.places import Path, Place, steps_of
from datacoolie_core.metadata.problems import Finding, findings
from datacoolie_core.metadata.sections import (
    PATCHES,
    SECTIONS,
    Entry,
    Section,
    Sections,
    collect,
    layers_of,
    problem_at,
)
from datacoolie_core.redaction import HIDDEN, looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from datacoolie_core.errors import Problem
    from datacoolie_core.metadata.places import Document, Origin

_TYPES: dict[str, Section] = {
    "connection": "connections",
    "dataflow": "dataflows",
    "schema_hint": "schema_hints",
}
_FIXED: dict[Section, tuple[str, ...]] = {
    "connections": ("name", "connection_id"),
    "dataflows": ("name", "dataflow_id"),
    "schema_hints": ("connection_name", "connection_id", "schema_name", "table_name"),
}
"""What tells entries apart: a patch can't change it."""

_IDS: dict[Section, str] = {"connections": "connection_id", "dataflows": "dataflow_id"}
_ABSENT = object()


def _singular(value: Any) -> Any:
    return value.strip().lower().removesuffix("s") if isinstance(value, str) else value


class Match(Model):
    """Which entries a patch is for."""

    type: Annotated[Literal["connection", "dataflow", "schema_hint"], BeforeValidator(_singular)]
    """What they are."""
    where: dict[str, Any]
    """Field → the value that it has, or a list of such values; empty for all."""


class Patch(Model):
    """A change of entries that are there."""

    match: Match
    """Which entries."""
    patch: dict[str, Any]
    """Laid over them: mappings are merged, everything else is replaced, null removes."""


def apply_overlays(base: Sections, overlays: Sequence[Document], *, strict: bool) -> list[Problem]:
    """Lay the documents of an environment over the metadata, and return what is wrong.

    Args:
        base: The metadata; it is changed.
        overlays: Documents with sections, ``patches``, or both.
        strict: Whether an unknown key at the top is an error.
    """
    added = collect(overlays, strict=strict, more_keys=(PATCHES,))
    problems = list(added.problems)
    for section in SECTIONS:
        _lay(getattr(base, section), getattr(added, section))
    for document in overlays:
        for path, layer in layers_of(document):
            if PATCHES in layer:
                where = (*path, PATCHES)
                problems += _apply_all(base, document, where, layer[PATCHES])
    return problems


def _lay(entries: list[Entry], added: Iterable[Entry]) -> None:
    """Replace what is the same, add the rest."""
    places = {id(entry): place for place, entry in enumerate(entries)}
    for new in added:
        same = [entry for entry in entries if id(entry) in places and _same(entry, new)]
        if len(same) == 1:
            place = places.pop(id(same[0]))  # once: a second one is a duplicate, and told as such
            entries[place] = _with_id_of(same[0], new)
        else:
            entries.append(new)


def _same(entry: Entry, new: Entry) -> bool:
    if new.section == "schema_hints":
        return _table(entry) == _table(new)
    if new.text(_IDS[new.section]):
        return entry.identity == new.identity
    stage = new.text("stage")
    return entry.name == new.name and (stage is None or entry.text("stage") == stage)


def _table(entry: Entry) -> tuple[str, ...]:
    return tuple((entry.text(key) or "").casefold() for key in _FIXED["schema_hints"])


def _with_id_of(entry: Entry, new: Entry) -> Entry:
    """Return an entry that keeps the id of the one it replaces: state is kept under it."""
    key = _IDS.get(new.section)
    if key is None or new.text(key) or not entry.text(key):
        return new
    return replace(new, raw={**new.raw, key: entry.text(key)})


def _apply_all(base: Sections, document: Document, path: Path, patches: Any) -> Iterator[Problem]:
    if not isinstance(patches, list):
        yield problem_at(document, path, "expected a list", field=PATCHES)
        return
    for index, raw in enumerate(cast("list[Any]", patches)):
        for finding in _apply_one(base, document.origin, (*path, index), raw):
            inside = f".{finding.field}" if finding.field else ""
            yield problem_at(
                document,
                (*path, index, *steps_of(finding.field or "")),
                finding.message,
                field=f"{PATCHES}[{index}]{inside}",
                suggestion=finding.suggestion,
            )


def _apply_one(base: Sections, origin: Origin, path: Path, raw: Any) -> Iterator[Finding]:
    if not isinstance(raw, dict):
        yield Finding(None, "expected a mapping with match and patch")
        return
    try:
        patch = Patch.model_validate(raw)
    except ValidationError as error:
        yield from findings(error, Patch)
        return
    section = _TYPES[patch.match.type]
    fixed = [key for key in _FIXED[section] if key in patch.patch]
    if fixed:
        message = "a patch can't change what tells entries apart; replace the whole entry"
        yield from (Finding(f"patch.{key}", message) for key in fixed)
        return
    entries: list[Entry] = getattr(base, section)
    wanted = dict(_conditions(patch.match.where))
    matching = [place for place, entry in enumerate(entries) if _matches(entry, wanted)]
    if not matching:
        yield _no_match(patch.match.type, entries, wanted)
    for place in matching:
        entries[place] = _patched(entries[place], patch.patch, origin, (*path, "patch"))


def _conditions(where: Mapping[str, Any], *prefix: str | int) -> Iterator[tuple[Path, Any]]:
    """Yield field and value: ``source.table: x`` is the same as ``source: {table: x}``."""
    for key, value in where.items():
        path = (*prefix, *steps_of(key))
        if isinstance(value, dict) and value:
            yield from _conditions(cast("dict[str, Any]", value), *path)
        else:
            yield path, value


def _matches(entry: Entry, wanted: Mapping[Path, Any]) -> bool:
    return all(_has(entry, path, value) for path, value in wanted.items())


def _has(entry: Entry, path: Path, wanted: Any) -> bool:
    value = _value(entry, path)
    return value == wanted or (isinstance(wanted, list) and value in cast("list[Any]", wanted))


def _value(entry: Entry, path: Path) -> Any:
    if path == (_IDS.get(entry.section),):
        return entry.identity
    here: Any = entry.raw
    for step in path:
        here = _mapping(here)
        here = None if here is None else here.get(str(step))
    return here


def _mapping(value: Any) -> dict[str, Any] | None:
    """Return a mapping, also one that is written as JSON text."""
    return object_or_none(value) if isinstance(value, dict | str) else None


def _no_match(kind: str, entries: Iterable[Entry], wanted: Mapping[Path, Any]) -> Finding:
    known = list(entries)
    for path, value in wanted.items():
        if not any(_has(entry, path, value) for entry in known):
            field = ".".join(str(step) for step in path)
            there = {str(one) for entry in known if (one := _value(entry, path)) is not None}
            meant = nearest(value, there) if isinstance(value, str) else None
            shown = HIDDEN if looks_secret(field) else value
            return Finding(f"match.where.{field}", f"no {kind} has {shown!r} there", meant)
    what = "there is none" if not known else "no entry has all of these together"
    return Finding("match.where", f"no {kind} matches; {what}")


def _patched(entry: Entry, patch: dict[str, Any], origin: Origin, path: Path) -> Entry:
    layered = _Layered(entry.origin, len(entry.path), patch, origin, path, entry.source)
    found = tuple(
        one for one in entry.found if not _sets(patch, steps_of(one.field or "")) or not one.field
    )
    return replace(entry, raw=merged(entry.raw, patch), origin=layered, found=found)


def merged(value: Any, patch: Any) -> Any:
    """Return a value with a patch laid over it, as JSON merge patches are (RFC 7396).

    >>> merged({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 4, "d": None}})
    {'a': 1, 'b': {'c': 4}}
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(_mapping(value) or {})
    for key, part in cast("dict[str, Any]", patch).items():
        if part is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), part)
    return result


def _sets(patch: dict[str, Any], path: Path) -> bool:
    """Whether a patch says what a field is, and not only what is inside it."""
    here: Any = patch
    for step in path:
        if not isinstance(here, dict):
            return True
        here = cast("dict[str, Any]", here).get(str(step), _ABSENT)
    return here is not _ABSENT and not isinstance(here, dict)


@dataclass(frozen=True)
class _Layered:
    """Where the parts of a patched entry are: in its own file, or in that of the patch."""

    base: Origin | None
    depth: int
    patch: dict[str, Any]
    overlay: Origin
    path: Path
    source: str

    @property
    def ready(self) -> bool:
        return self.base is None or self.base.ready

    def place(self, path: Path) -> Place:
        inside = path[self.depth :]
        if inside and _sets(self.patch, inside):
            return self.overlay.place((*self.path, *inside))
        return self.base.place(path) if self.base else Place(self.source)
