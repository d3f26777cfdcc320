"""JSON and YAML text into plain mappings: fast, and strict about what both leave open.

The YAML reader builds on the events of the C parser, which is three times as fast as its
loader. It reads scalars as YAML 1.1 does, with two differences that keep the document within
JSON's types: dates and times stay text, and keys are always text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from datacoolie_core.errors import Problem
from datacoolie_core.metadata.places import Document
from datacoolie_core.metadata.positions import TextOrigin, json_lines

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{form: True for word in ("yes", "true", "on") for form in (word, word.title(), word.upper())},
    **{
        form: False
        for word in ("no", "false", "off")
        for form in (word, word.title(), word.upper())
    },
}
_INTEGER = re.compile(r"[-+]?(?:0b_*[01][01_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"


class DocumentError(Exception):
    """A document that can't be read; the problems say where."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def read_document(content: bytes, source: str) -> Document:
    """Return the document in a file's bytes.

    Args:
        content: The bytes of the file, UTF-8.
        source: The name of the file; its extension decides between JSON and YAML.

    Raises:
        DocumentError: The syntax is broken, or a key is given twice.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DocumentError([_problem(source, line, "this is not UTF-8 text")]) from None
    is_json = source.lower().endswith(".json")
    parsed = _parse_json(text, source) if is_json else _parse_yaml(text, source)
    return Document(source, parsed, TextOrigin(source, text))


def _problem(source: str, line: int, message: str) -> Problem:
    return Problem(message=message, source=source, line=line)


def strict_json(text: str) -> tuple[Any, list[str]]:
    """Return a JSON value, and the keys that a mapping in it has twice.

    Raises:
        JSONDecodeError: It is no JSON.
    """
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(items)
        if len(mapping) != len(items):
            seen: set[str] = set()
            repeated.extend(key for key, _ in items if key in seen or seen.add(key))
        return mapping

    def constant(word: str) -> NoReturn:
        raise json.JSONDecodeError(f"{word} is not JSON", text, max(text.find(word), 0))

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant), repeated


def _parse_json(text: str, source: str) -> Any:
    try:
        document, repeated = strict_json(text)
    except json.JSONDecodeError as error:
        message = f"broken JSON at column {error.colno}: {error.msg}"
        raise DocumentError([_problem(source, error.lineno, message)]) from None
    except RecursionError:
        raise DocumentError([Problem(message="nested too deeply", source=source)]) from None
    except ValueError as error:
        raise DocumentError([_too_long(error, source)]) from None
    if repeated:
        twice = json_lines(text).repeated
        raise DocumentError([_problem(source, line, repeated_key(key)) for key, line in twice])
    return document


def repeated_key(key: str) -> str:
    """Return what is said of a key that a mapping has twice."""
    return f"the key '{key}' is given twice in one mapping"


def _parse_yaml(text: str, source: str) -> Any:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _YamlReader(yaml.parse(text, Loader=loader), source).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError([_problem(source, line, f"broken YAML: {what}")]) from None
    except yaml.YAMLError as error:
        raise DocumentError([_problem(source, 1, f"broken YAML: {error}")]) from None
    except RecursionError:
        raise DocumentError([Problem(message="nested too deeply", source=source)]) from None
    except ValueError as error:
        raise DocumentError([_too_long(error, source)]) from None


def _too_long(error: ValueError, source: str) -> Problem:
    # Python refuses whole numbers of more than 4,300 digits
    return Problem(message=f"a number can't be read: {error}", source=source)


class _YamlReader:
    """Builds one document out of parser events."""

    def __init__(self, events: Any, source: str) -> None:
        self._next: Callable[[], Any] = iter(events).__next__
        self._source = source
        self._anchors: dict[str, Any] = {}
        self._plain: dict[str, Any] = dict(_WORDS)
        self._problems: list[Problem] = []

    def document(self) -> Any:
        self._next()  # stream start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        document = self._value(self._next())
        self._next()  # document end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            self._report(after, "a second document begins here; put each in a file of its own")
        if self._problems:
            raise DocumentError(self._problems)
        return document

    def _report(self, event: Any, message: str) -> None:
        self._problems.append(_problem(self._source, event.start_mark.line + 1, message))

    def _value(self, event: Any) -> Any:
        kind = event.__class__
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
        elif kind is yaml.AliasEvent:
            return self._alias(event)
        else:
            value = self._mapping() if kind is yaml.MappingStartEvent else self._sequence()
            if event.tag is not None and event.tag not in (f"{_TAG}map", f"{_TAG}seq"):
                self._report(event, f"the tag {event.tag} is not allowed")
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            self._report(event, f"no anchor '{event.anchor}' stands before this")
            return None
        return self._anchors[event.anchor]

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag is not None and event.tag != "!":
            return self._tagged(event, text)
        if not event.implicit[0] or event.tag == "!":
            return text
        plain = self._plain
        if text not in plain:
            plain[text] = _number_or_text(text)
        return plain[text]

    def _tagged(self, event: Any, text: str) -> Any:
        kind = event.tag.removeprefix(_TAG)
        if kind == "str":
            return text
        value = _WORDS[text] if text in _WORDS else _number_or_text(text)
        expected = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(kind)
        if expected is None:
            self._report(event, f"the tag {event.tag} is not allowed")
        elif not isinstance(value, expected):
            self._report(event, f"'{text}' is no {kind}")
        return value

    def _sequence(self) -> list[Any]:
        items: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            items.append(self._value(event))
        return items

    def _mapping(self) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: list[Any] = []
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._key(event)
            value = self._value(self._next())
            if key == _MERGE and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
                self._check_merge(event, merged)
            elif key in mapping:
                self._report(event, repeated_key(key))
            else:
                mapping[key] = value
        for other in merged:  # the first one that has a key wins
            mapping = {**other, **mapping} if isinstance(other, dict) else mapping
        return mapping

    def _key(self, event: Any) -> str:
        if type(event) is yaml.ScalarEvent:
            if event.anchor is not None:
                self._anchors[event.anchor] = event.value
            return event.value
        if type(event) is yaml.AliasEvent:
            return str(self._alias(event))
        self._report(event, "a key must be text, this one is a mapping or a list")
        self._value(event)
        return ""

    def _check_merge(self, event: Any, merged: list[Any]) -> None:
        if not all(isinstance(other, dict) for other in merged):
            self._report(event, "'<<' takes a mapping or a list of mappings")


def _number_or_text(text: str) -> Any:
    if text[0] not in "-+.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    if text.lstrip("+-").lower() in (".inf", ".nan"):
        return float(text.replace(".", "", 1))
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    if digits.startswith(("0b", "0x")) or digits == "0":
        value = int(digits, 0)
    else:
        value = int(digits, 8 if digits.startswith("0") else 10)
    return -value if text.startswith("-") else value
