"""The lines of a CSV file as text: where its header is, and which lines are wholly blank."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from datacoolie_core.readers.local_files import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CHUNK = 1 << 20
_EMPTY = (b"\n", b"\r\n")


class _Lines:
    """The lines of a text for the CSV parser, comments left out, counted as the file has them."""

    def __init__(self, text: IO[str], comment: str | None) -> None:
        self._text = text
        self._comment = comment
        self.number = 0
        self.start = 0
        self.between = True

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        for line in self._text:
            self.number += 1
            if self.between and self._comment and line.startswith(self._comment):
                continue
            if self.between:
                self.start, self.between = self.number, False
            # the engine takes a carriage return for text, the parser for the end of the line
            return line if "\r" not in line else line.rstrip("\r\n").replace("\r", " ") + "\n"
        raise StopIteration


@dataclass(frozen=True)
class BrokenLine:
    """A line that is no CSV: why, in the parser's words."""

    reason: str


def csv_rows(
    path: str, options: Mapping[str, Any], *, strict: bool = False
) -> Iterator[tuple[int, list[str] | BrokenLine]]:
    """Return line number and fields of each row from the header on; blank lines are left out.

    Args:
        path: A local file.
        options: As given to the engine.
        strict: Quotes must be closed, and nothing may follow them.
    """
    quote = options.get("quote_char", '"')
    reading: dict[str, Any] = {"delimiter": options.get("separator", ","), "strict": strict}
    reading |= {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    with opened(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="\n")
        lines = _Lines(text, options.get("comment_prefix"))
        for _ in range(int(options.get("skip_lines", 0))):
            lines.number += bool(text.readline())
        skip, begun = int(options.get("skip_rows", 0)), False
        reader = csv.reader(lines, **reading)
        while True:
            lines.between = True
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield lines.start, BrokenLine(str(error))
                return
            if row is None:
                return
            begun = begun or bool(row)
            if begun and skip:
                skip -= 1
            elif row:
                yield lines.start, row


def header_line(path: str, options: Mapping[str, Any]) -> int | None:
    """Return the number of the first line that counts, None if there is none."""
    return next((line for line, _ in csv_rows(path, options)), None)


def has_blank_lines(path: str) -> bool:
    """Return whether two line ends follow each other somewhere; inside quotes they may."""
    end = b""
    with opened(path) as raw:
        while chunk := raw.read(_CHUNK):
            chunk = end + chunk
            if b"\n\n" in chunk or (b"\r" in chunk and b"\n\r\n" in chunk):
                return True
            end = chunk[-2:]
    return False


def without_blank_lines(raw: IO[bytes], options: Mapping[str, Any], header: int) -> Iterator[bytes]:
    """Return the lines of a file without the blank ones after its header.

    Args:
        raw: The file.
        options: As given to the engine; rows that it shall skip after the header stay as they are.
        header: The number of the header's line.
    """
    quote = (options.get("quote_char", '"') or "").encode()
    comment = (options.get("comment_prefix") or "").encode()
    kept = int(options.get("skip_rows_after_header", 0)) + header
    quoted = False
    for number, line in enumerate(raw, 1):
        if quoted or number <= kept or line not in _EMPTY:
            yield line
        if number < header or (comment and not quoted and line.startswith(comment)):
            continue
        # as the engine finds its line ends: a quote opens or closes, wherever it stands
        if quote and line.count(quote) % 2:
            quoted = not quoted
