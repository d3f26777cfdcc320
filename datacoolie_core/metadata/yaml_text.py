"""Mappings into YAML text that people like to read and every reader understands alike."""

from __future__ import annotations

import re
from typing import Any, cast

import yaml

_WIDTH = 88
_MISREAD = re.compile(
    r"y|n|Y|N|[-+]?(\d[\d_]*)(\.[\d_]*)?([eE][-+]?\d+)?|0o[0-7]+|[-+]?\.?(inf|nan)",
    re.IGNORECASE,
)
"""Plain text that some readers take for a boolean or a number; PyYAML quotes the rest itself."""

_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_BLOCK_LINE = re.compile(r"[ \t]+$", re.MULTILINE)
_STRING = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)

    def represent(self, data: Any) -> None:
        node: Any = cast("Any", self).represent_data(data)
        _compact(node, in_list=False)
        self.serialize(node)


def _text(dumper: Any, text: str) -> yaml.ScalarNode:
    style = None
    if _BREAK.search(text):
        style = "|" if _fits_a_block(text) else '"'
    elif _MISREAD.fullmatch(text):
        style = "'"
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _text)


def write_yaml(document: Any) -> str:
    """Return a document as YAML text, its keys in the order that they have.

    >>> print(write_yaml({"on": "yes", "at": "1e5", "keys": ["id"]}), end="")
    'on': 'yes'
    at: '1e5'
    keys: [id]

    Args:
        document: Of mappings, lists, text, numbers, booleans and None.
    """
    return cast("Any", yaml).dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20
    )


def _fits_a_block(text: str) -> bool:
    plain = text.replace("\n", "").replace("\t", "")
    return text[0] not in " \t\n" and plain.isprintable() and not _BLOCK_LINE.search(text)


def _compact(node: Any, *, in_list: bool) -> None:
    """Write short lists of values, and short mappings that are items of a list, in one line."""
    if isinstance(node, yaml.SequenceNode):
        items = cast("list[Any]", node.value)
        node.flow_style = not items or _fits(items)
        for item in items:
            _compact(item, in_list=True)
    elif isinstance(node, yaml.MappingNode):
        pairs = cast("list[tuple[Any, Any]]", node.value)
        parts = [part for pair in pairs for part in pair]
        node.flow_style = not parts or (in_list and _fits(parts))
        for _, value in pairs:
            _compact(value, in_list=False)


def _fits(nodes: list[Any]) -> bool:
    return (
        all(isinstance(node, yaml.ScalarNode) and not _BREAK.search(node.value) for node in nodes)
        and sum(len(node.value) + 2 for node in nodes) <= _WIDTH - 20
    )
