"""Which file, line and field of JSON made the engine stop."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.local_files import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacoolie_core.readers.local_files import LocalFile

_PIECE = 16 * 2**20
LARGEST = 2**127 - 1
_KINDS: dict[type[Any], str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True)
class JsonFile:
    """One document a line, as the engine reads it.

    Attributes:
        file: What is scanned.
        place: Says where in the file as it was found a line of it comes from.
    """

    file: LocalFile
    place: Callable[[int], str] = "line {}".format


@dataclass(frozen=True)
class _Seen:
    """Where a field had a value of a kind."""

    kind: str
    place: str
    uri: str


class BadNumber(ValueError):  # noqa: N818 - it never reaches a user
    """A number that JSON does not have, or that no double holds."""


def no_constant(written: str) -> float:
    """Refuse ``NaN`` and ``Infinity``.

    Raises:
        BadNumber: Always.
    """
    raise BadNumber(f"{written} is no JSON number")


def finite(written: str) -> float:
    """Return a number.

    Raises:
        BadNumber: It is too big.
    """
    value = float(written)
    if math.isinf(value):
        raise BadNumber(f"{written[:40]} is too big for a number")
    return value


def whole(written: str) -> int:
    """Return an integer.

    Raises:
        BadNumber: It has more digits than any column holds.
    """
    value = int(written) if len(written) < len(str(LARGEST)) + 2 else LARGEST + 1
    if abs(value) > LARGEST:
        raise BadNumber(f"{written[:40]} is too big for a number")
    return value


_STRICT = json.JSONDecoder(parse_constant=no_constant, parse_float=finite, parse_int=whole)


def json_diagnosis(files: Sequence[JsonFile]) -> Callable[[Exception], ReadError | None]:
    """Return what explains an error of the JSON parser by reading the files again, in Python."""

    def diagnose(error: Exception) -> ReadError | None:
        if not isinstance(error, pl.exceptions.PolarsError):
            return None
        readable = [one for one in files if one.file.is_local]
        for one in readable:
            found = _bad_line(one)
            if found is not None:
                return found
        # beside a text all else is text too, unless the types come from the first lines only
        return _mixed(readable, texts=False) or _mixed(readable, texts=True)

    return diagnose


def _bad_line(one: JsonFile) -> ReadError | None:
    with opened(one.file.path) as raw:
        for line, content in enumerate(raw, 1):
            trouble = _trouble(content)
            if trouble is not None:
                return _refused(one, line, trouble)
    return None


def _refused(one: JsonFile, line: int, trouble: str) -> ReadError:
    return ReadError(
        f"{one.place(line)} is no JSON document: {trouble}",
        place=one.file.info.uri,
        remedy="Correct or remove it.",
        code="bad_json",
    )


def _trouble(content: bytes) -> str | None:
    """Return what is wrong with a line, None for a good one and a blank one."""
    if not content.strip():
        return None
    try:
        document: Any = _STRICT.decode(content.decode("utf-8"))
        if b"\\u" in content:
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except UnicodeEncodeError:
        return "it has half of a surrogate pair"
    except json.JSONDecodeError as error:
        return f"{error.msg} (column {error.colno})"
    except (ValueError, RecursionError) as error:
        return str(error)
    return None if isinstance(document, dict) else f"it is {kind_of(document)}, not an object"


def kind_of(value: Any) -> str:
    """Return what a value is called.

    >>> kind_of([1]), kind_of(None)
    ('a list', 'null')
    """
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "null")


def _mixed(files: Sequence[JsonFile], *, texts: bool) -> ReadError | None:
    """Return the first field that has values of two kinds which no column holds together."""
    seen: dict[str, _Seen] = {}
    for one in files:
        with opened(one.file.path) as raw:
            for line, document in documents(raw):
                for path, value in _leaves(document, ""):
                    if isinstance(value, str) and not texts:
                        continue
                    now = _Seen(kind_of(value), one.place(line), one.file.info.uri)
                    before = seen.setdefault(path, now)
                    if before.kind != now.kind:
                        return _two_kinds(path, before, now, value)
    return None


def pieces(path: str) -> Iterator[bytes]:
    """Return the lines of a file, as many at once as make a piece of some size."""
    with opened(path) as raw:
        rest = b""
        while data := raw.read(_PIECE):
            end = data.rfind(b"\n") + 1
            if end:
                yield rest + data[:end]
                rest = b""
            rest += data[end:]
        if rest:
            yield rest


def documents(raw: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return line number and document of each line that is an object."""
    for line, content in enumerate(raw, 1):
        if content.strip():
            document = json.loads(content)
            if isinstance(document, dict):
                yield line, cast("dict[str, Any]", document)


def field_names(one: JsonFile) -> list[str]:
    """Return the fields of a file's documents, in order of appearance."""
    with opened(one.file.path) as raw:
        return list(dict.fromkeys(name for _, document in documents(raw) for name in document))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Return the path of each value, lists and objects themselves too, but no null."""
    if path and value is not None:
        yield path, value
    if isinstance(value, dict):
        for name, entry in cast("dict[str, Any]", value).items():
            yield from _leaves(entry, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for entry in cast("list[Any]", value):
            yield from _leaves(entry, f"{path}[]")


def _two_kinds(path: str, before: _Seen, now: _Seen, value: Any) -> ReadError:
    where = f" of {before.uri}" if before.uri != now.uri else ""
    return ReadError(
        f"it is {before.kind} in {before.place}{where} and {now.kind} in {now.place}:"
        f" {_shown(value)}",
        place=f"{now.uri}, column '{path}'",
        remedy="Correct the source, or add a schema hint that makes the column a string (and leave"
        " infer_schema_length out, so that all lines are looked at).",
        code="mixed_types",
    )


def _shown(value: Any) -> str:
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
