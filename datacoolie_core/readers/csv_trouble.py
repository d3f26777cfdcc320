"""Which file and line of CSV files made the engine stop."""

from __future__ import annotations

import csv
import io
import re
from typing import IO, TYPE_CHECKING, Any

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.local_files import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacoolie_core.readers.local_files import LocalFile

_UNPARSED = re.compile(
    r"could not parse `(?P<value>.*?)` as dtype `(?P<type>.*?)` at column '(?P<column>.*?)'"
)


def csv_diagnosis(
    files: Sequence[LocalFile], options: dict[str, Any]
) -> Callable[[Exception], ReadError | None]:
    """Return what explains an error of the CSV parser by reading the files once more, in Python.

    Args:
        files: The files that were scanned.
        options: As given to the engine.
    """

    def diagnose(error: Exception) -> ReadError | None:
        message = str(error)
        if "found more fields than defined" in message:
            return _ragged(files, options)
        if "invalid utf-8" in message:
            return _not_utf8(files)
        unparsed = _UNPARSED.search(message)
        if unparsed:
            return ReadError(
                f"{unparsed['value']!r} is no {unparsed['type']}, the type inferred from the rows"
                " before it",
                place=f"column '{unparsed['column']}'",
                remedy="Read as text (infer_schema: false) and add a schema hint, or raise"
                " infer_schema_length.",
                code="bad_value",
            )
        return None

    return diagnose


def _ragged(files: Sequence[LocalFile], options: dict[str, Any]) -> ReadError | None:
    for file in files:
        expected = 0
        for line, row in _rows(file, options):
            if not expected:
                expected = len(row)
            elif len(row) > expected:
                return ReadError(
                    f"line {line} has {len(row)} fields, {expected} are expected",
                    place=file.info.uri,
                    remedy="Correct the line, or set read_options.truncate_ragged_lines to drop"
                    " what stands behind the last column.",
                    code="ragged_rows",
                )
    return None


def _rows(file: LocalFile, options: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    quote = options.get("quote_char", '"')
    reading: dict[str, Any] = {"delimiter": options.get("separator", ",")}
    reading |= {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    with opened(file.path) as raw:
        plain = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="")
        for _ in range(int(options.get("skip_rows", 0) or options.get("skip_lines", 0))):
            plain.readline()
        reader = csv.reader(plain, **reading)
        line = 1
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1


def _not_utf8(files: Sequence[LocalFile]) -> ReadError | None:
    for file in files:
        with opened(file.path) as raw:
            line = _first_bad_line(raw)
        if line is not None:
            return ReadError(
                f"line {line} is not UTF-8",
                place=file.info.uri,
                remedy="Set read_options.encoding to the file's encoding, such as cp1252.",
                code="bad_encoding",
            )
    return None


def _first_bad_line(raw: IO[bytes]) -> int | None:
    for line, content in enumerate(raw, 1):
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            return line
    return None
