"""What the engine's JSON parser would change without a word, found before it can.

It rounds an integer beyond 2^53 beside fractions, and digits that no double has where a text or a
decimal is wanted; it makes half of a surrogate pair a null character.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.engines.dtypes import instance
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.json_trouble import JsonFile
from datacoolie_core.readers.local_files import opened

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from datacoolie_core.readers.local_files import LocalFiles
    from datacoolie_core.readers.union import Schema

_LONG = r"[:\[,]\s*-?\d[\d.]{15}"
"""A number with so many digits that a double may not hold them."""
_HALF = r"\\u[dD][89a-fA-F]"
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_EXACT = 2**53


class _Written(float):
    """A number with a fraction that remembers how it was written."""

    written: str = ""

    @staticmethod
    def of(text: str) -> _Written:
        value = _Written(text)
        value.written = text
        return value


@dataclass(frozen=True)
class Suspicions:
    """What the lines of a file look like.

    Attributes:
        long: There may be numbers of many digits.
        halves: There may be halves of surrogate pairs.
    """

    long: bool = False
    halves: bool = False

    def or_in(self, lines: bytes) -> Suspicions:
        """Return these, or what some more lines look like."""
        line = pl.col("line")
        halves = line.str.contains(_HALF) & line.str.replace_all(_PAIR, "").str.contains(_HALF)
        found = pl.scan_lines(lines).select(line.str.contains(_LONG).any(), halves.any().alias("h"))
        long, half = found.collect(engine="streaming").row(0)
        return Suspicions(self.long or bool(long), self.halves or bool(half))


def refuse_halves(one: JsonFile) -> None:
    """Refuse a file with text that is no text.

    Raises:
        ReadError: It names the line.
    """
    with opened(one.file.path) as raw:
        for number, content in enumerate(raw, 1):
            if b"\\u" not in content:
                continue
            try:
                json.dumps(json.loads(content), ensure_ascii=False).encode("utf-8")
            except UnicodeEncodeError as error:
                raise ReadError(
                    f"{one.place(number)} has half of a surrogate pair, which is no character",
                    place=one.file.info.uri,
                    remedy="Correct the line.",
                    code="bad_text",
                ) from error


def refuse_rounding(one: JsonFile, schema: Schema) -> None:
    """Refuse integers that would be rounded, since others of their field have a fraction.

    Args:
        one: The file.
        schema: The types that it is read with.

    Raises:
        ReadError: It names line, field and value.
    """
    floats = {name: dtype for name, dtype in schema.items() if has_floats(dtype)}
    if not floats:
        return
    with opened(one.file.path) as raw:
        for number, content in enumerate(raw, 1):
            document: dict[str, Any] = json.loads(content) if content.strip() else {}
            for name, dtype in floats.items():
                for path, value in _rounded(document.get(name), dtype, name):
                    raise ReadError(
                        f"{value} in {one.place(number)} is an integer that no double holds, and"
                        " other values of the field have a fraction",
                        place=f"{one.file.info.uri}, column '{path}'",
                        remedy="Add a schema hint for the column: a decimal, or a string."
                        if path == name
                        else f"Add a schema hint that makes '{name}' a string: its JSON text.",
                        code="inexact_number",
                    )


def has_floats(dtype: pl.DataType) -> bool:
    """Return whether there is a double in a type, at any depth."""
    if isinstance(dtype, pl.Struct):
        return any(has_floats(instance(entry.dtype)) for entry in dtype.fields)
    if isinstance(dtype, pl.List):
        return has_floats(instance(dtype.inner))
    return dtype.is_float()


def _rounded(value: Any, dtype: pl.DataType, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(dtype, pl.Struct) and isinstance(value, dict):
        document = cast("dict[str, Any]", value)
        for entry in dtype.fields:
            inner = instance(entry.dtype)
            yield from _rounded(document.get(entry.name), inner, f"{path}.{entry.name}")
    elif isinstance(dtype, pl.List) and isinstance(value, list):
        for entry in cast("list[Any]", value):
            yield from _rounded(entry, instance(dtype.inner), f"{path}[]")
    elif dtype.is_float() and type(value) is int and abs(value) > _EXACT and float(value) != value:
        yield path, value


def with_digits(one: JsonFile, columns: Collection[str], local: LocalFiles) -> JsonFile:
    """Return a copy of a file in which all values of some columns are texts, as they are written.

    Args:
        one: The file.
        columns: Which.
        local: Keeps the copy.
    """
    decoder = json.JSONDecoder(parse_float=cast("Any", _Written.of))

    def changed(raw: IO[bytes]) -> Iterator[bytes]:
        for content in raw:
            if not content.strip():
                yield content
                continue
            document = cast("dict[str, Any]", decoder.decode(content.decode("utf-8")))
            for name in columns:
                if name in document:
                    document[name] = _as_written(document[name])
            yield json.dumps(document).encode() + b"\n"

    return JsonFile(local.rewritten(one.file, changed), one.place)


def _as_written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.written if isinstance(value, _Written) else json.dumps(value)
