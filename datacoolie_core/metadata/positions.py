"""The lines of JSON and YAML text: read a second time, and only when there is something to say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import yaml

from datacoolie_core.metadata.places import Path, Place

_PART = re.compile(r'\n|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_MERGE = "<<"


@dataclass
class _Node:
    line: int
    parts: dict[str | int, _Node] = field(default_factory=dict[str | int, "_Node"])


@dataclass
class JsonLines:
    """The lines of a JSON text that is well-formed.

    Attributes:
        top: The outermost value.
        repeated: Keys that a mapping has twice, with the line of the second.
    """

    top: _Node = field(default_factory=lambda: _Node(1))
    repeated: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


def json_lines(text: str) -> JsonLines:
    """Return where the keys and items of a JSON text are."""
    lines = JsonLines()
    stack: list[tuple[_Node, bool]] = []
    key: str | None = None
    line = 1
    for match in _PART.finditer(text):
        part = match[0]
        if part == "\n":
            line += 1
        elif part in "}]":
            stack.pop()
        elif part in ",:":
            key = None if part == "," else key
        elif stack and not stack[-1][1] and key is None:
            key = _note_key(lines, stack[-1][0], part, line)
        else:
            node = _value_node(lines.top, stack, key, line)
            if part in "{[":
                stack.append((node, part == "["))
                key = None
    return lines


def _note_key(lines: JsonLines, owner: _Node, written: str, line: int) -> str:
    key: str = json.loads(written)
    if key in owner.parts:
        lines.repeated.append((key, line))
    owner.parts[key] = _Node(line)
    return key


def _value_node(top: _Node, stack: list[tuple[_Node, bool]], key: str | None, line: int) -> _Node:
    if not stack:
        return top
    owner, is_list = stack[-1]
    step: str | int = len(owner.parts) if is_list else key or ""
    return owner.parts.setdefault(step, _Node(line))


class TextOrigin:
    """Where the parts of a JSON or YAML file are."""

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        self.text = text

    @property
    def ready(self) -> bool:
        """Whether the text has been read a second time already."""
        return "_tree" in self.__dict__

    @cached_property
    def _tree(self) -> Any:
        if self.source.lower().endswith(".json"):
            return json_lines(self.text).top
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            return yaml.compose(self.text, Loader=loader)
        except RecursionError:
            return None  # composing nests deeper than reading did; the message does without

    def place(self, path: Path) -> Place:
        """Return the line of the innermost part that exists on a path."""
        return Place(self.source, self._line(path))

    def _line(self, path: Path) -> int | None:
        tree = self._tree
        if isinstance(tree, _Node):
            return _json_line(tree, path)
        return None if tree is None else _yaml_line(tree, path)


def _json_line(node: _Node, path: Path) -> int:
    for step in path:
        if step not in node.parts:
            break
        node = node.parts[step]
    return node.line


def _yaml_line(node: Any, path: Path) -> int:
    line: int = node.start_mark.line
    for step in path:
        found = _yaml_part(node, step)
        if found is None:
            break
        mark, node = found
        line = mark.line
    return line + 1


def _yaml_part(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Return where a key or an item begins, and its value."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        items: list[Any] = node.value
        return (items[step].start_mark, items[step]) if step < len(items) else None
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs: list[tuple[Any, Any]] = node.value
    for key, value in pairs:
        if key.value == step:
            return key.start_mark, value
    for key, value in pairs:
        if key.value == _MERGE:
            others = value.value if isinstance(value, yaml.SequenceNode) else [value]
            found = next(filter(None, (_yaml_part(one, step) for one in others)), None)
            if found is not None:
                return found
    return None
