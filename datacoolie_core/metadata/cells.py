"""Cells of a workbook into values: where the file knows text and numbers only, and only there."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core.metadata.coercions import to_list
from datacoolie_core.metadata.documents import repeated_key, strict_json

if TYPE_CHECKING:
    from datacoolie_core.metadata.columns import Kind

_TRUE = frozenset(("true", "yes", "1", "on", "t", "y"))
_FALSE = frozenset(("false", "no", "0", "off", "f", "n"))
_WHOLE = re.compile(r"[-+]?\d+(\.0+)?")
_ESCAPED = re.compile(r"_x((?![Dd][89A-Fa-f])[0-9A-Fa-f]{4})_")
_TO_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)|[\x00-\x08\x0b-\x1f\ufffe\uffff]")


class CellError(Exception):
    """A cell that does not hold what its column takes; the text says so."""


def unescaped(text: str) -> str:
    r"""Return the text of a cell: the file writes what XML can't hold as ``_x000D_``.

    >>> unescaped("a_x000D_b"), unescaped("_x005F_x000D_")
    ('a\rb', '_x000D_')
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def escaped(text: str) -> str:
    r"""Return a text as the file holds it.

    >>> escaped("a\rb"), escaped("_x000D_")
    ('a_x000D_b', '_x005F_x000D_')
    """
    return _TO_ESCAPE.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def read_cell(value: Any, kind: Kind) -> Any:
    """Return the value of a cell that is not blank.

    Args:
        value: As the workbook has it.
        kind: What its column takes.

    Raises:
        CellError: It holds something else.
    """
    if isinstance(value, date | time | timedelta):
        value = _moment(value)
    if kind == "flag":
        return _flag(value)
    if kind == "integer":
        return _whole(value)
    if kind == "list":
        return _list(value)
    if kind == "object":
        return _object(value)
    return _anything(value) if kind == "any" else _text(value)


def _moment(value: date | time | timedelta) -> str:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()  # a cell with a date alone has midnight too
    return str(value) if isinstance(value, timedelta) else value.isoformat()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _flag(value: Any) -> bool:
    word = _text(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise CellError(f"expected true or false, got {_shown(value)}")
    return word in _TRUE


def _whole(value: Any) -> int:
    text = _text(value).strip()
    if isinstance(value, bool) or not _WHOLE.fullmatch(text):
        raise CellError(f"expected a whole number, got {_shown(value)}")
    return int(text.partition(".")[0])


def _list(value: Any) -> list[Any]:
    if not isinstance(value, str):
        return [_text(value)]
    if value.lstrip().startswith(("[", "{")):
        found = _json(value, "a list, with commas or as JSON")
        return cast("list[Any]", found) if isinstance(found, list) else [found]
    return list(to_list(value))


def _object(value: Any) -> Any:
    found = _json(value, "a JSON object") if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise CellError("expected a JSON object")  # what it holds may be a secret
    return cast("dict[str, Any]", found)


def _anything(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            return _json(value, "JSON")
        except CellError:
            return value  # a text that happens to begin so
    return value


def _json(text: str, expected: str) -> Any:
    try:
        found, repeated = strict_json(text)
    except json.JSONDecodeError as error:
        raise CellError(
            f"expected {expected}; broken JSON at character {error.pos + 1}: {error.msg}"
        ) from None
    except (ValueError, RecursionError):
        raise CellError(f"expected {expected}; this JSON can't be read") from None
    if repeated:
        raise CellError(repeated_key(repeated[0]))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"text '{value[:57]}...'" if len(value) > 60 else f"text '{value}'"
    return _text(value)
