"""The objects of a JSON document, one after another, without the document in memory."""

from __future__ import annotations

import codecs
import json
import re
from typing import IO, TYPE_CHECKING, Any

from datacoolie_core.readers.json_trouble import kind_of, no_constant

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 20
_BLANK = re.compile(r"[ \t\r\n]*")
_TO_NEXT = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_MARGIN = 64
"""Errors this near to the end of what was read may be due to what was not read yet."""


class RecordTrouble(ValueError):  # noqa: N818 - it never reaches a user
    """The document is not as it should be.

    Attributes:
        remedy: What to do.
    """

    def __init__(self, message: str, remedy: str = "Correct the file.") -> None:
        super().__init__(message)
        self.remedy = remedy


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


# numbers that are too big are left to the engine, which finds them without a call for each
_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=no_constant)


class Records:
    """The objects of a document, in turn: those of an array, or the only one.

    Each is given as it is written, on one line. What is in memory is the part of the document that
    was read last.

    Args:
        raw: The document, in UTF-8.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._ended = False
        self._text, self._at = "", 0
        # where the text in memory begins in the document
        self._line, self._column = 1, 1
        self._number = self._start = 0

    @property
    def line(self) -> int:
        """The line in which the object that was given last starts."""
        return self._position(self._start)[0]

    def __iter__(self) -> Iterator[str]:
        """Return the objects.

        Raises:
            RecordTrouble: It is no JSON, or no array of objects.
        """
        first = self._next()
        if first == "[":
            yield from self._entries()
        elif first:
            yield self._record()
        if self._next():
            raise self._trouble(
                "more follows after the document",
                remedy="Set read_options.multiLine to false if the file has one document a line.",
            )

    def _entries(self) -> Iterator[str]:
        self._at += 1
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield self._record()
            to_next = _TO_NEXT.match(self._text, self._at)
            if to_next:
                self._at = to_next.end()
                continue
            end = self._next()
            if end not in (",", "]") or not end:
                raise self._trouble("expecting ',' or ']' after an entry of the array")
            self._at += 1
            if end == "]":
                return
            self._next()

    def _record(self) -> str:
        """Return the object that starts here, and go on behind it."""
        self._number += 1
        size = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or self._is_certain(error):
                    raise self._trouble(error.msg, error.pos) from error
            except (ValueError, RecursionError) as error:
                raise self._trouble(str(error)) from error
            else:
                if end < len(self._text) or self._ended:
                    return self._checked(value, end)
            self._more(size)
            size *= 2

    def _checked(self, value: Any, end: int) -> str:
        if not isinstance(value, dict):
            raise self._trouble(
                f"record {self._number} is {kind_of(value)}, not an object",
                remedy="Make the file an array of objects, or one object.",
            )
        written = self._text[self._at : end]
        self._start, self._at = self._at, end
        if "\n" in written or "\r" in written:
            # inside of a text there is no line end
            return written.replace("\r", " ").replace("\n", " ")
        return written

    def _is_certain(self, error: json.JSONDecodeError) -> bool:
        cut = error.pos > len(self._text) - _MARGIN or error.msg.startswith("Unterminated")
        return not cut

    def _next(self) -> str:
        """Return the next character that is not blank, empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._more(_CHUNK)

    def _more(self, size: int) -> None:
        """Read on; what lies before the place is forgotten."""
        self._line, self._column = self._position(self._at)
        data = self._raw.read(size)
        self._ended = not data
        self._text = self._text[self._at :] + self._decode(data, self._ended)
        self._at = 0

    def _position(self, at: int) -> tuple[int, int]:
        """Return line and column of a place in the text."""
        lines = self._text.count("\n", 0, at)
        if not lines:
            return self._line, self._column + at
        return self._line + lines, at - self._text.rfind("\n", 0, at)

    def _trouble(self, message: str, at: int | None = None, **given: str) -> RecordTrouble:
        line, column = self._position(self._at if at is None else at)
        return RecordTrouble(f"line {line}, column {column}: {message}", **given)
