"""Which file and line of CSV files made the engine stop."""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.names import listed
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.csv_layout import BrokenLine, csv_rows
from datacoolie_core.readers.local_files import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from datacoolie_core.readers.local_files import LocalFile

_UNPARSED = re.compile(
    r"could not parse `(?P<value>.*?)` as dtype `(?P<type>[^`]*)` at column '(?P<column>.*?)'",
    re.DOTALL,
)
_CUT = "set read_options.truncate_ragged_lines to drop what stands behind the last column."


def csv_diagnosis(
    files: Sequence[LocalFile], options: dict[str, Any], moments: Collection[str] = ()
) -> Callable[[Exception], ReadError | None]:
    """Return what explains an error of the CSV parser by reading the files once more, in Python.

    Args:
        files: The files as they were found.
        options: As given to the engine.
        moments: Columns whose texts the reader itself makes dates or times.
    """

    def diagnose(error: Exception) -> ReadError | None:
        trouble = BadValue.trouble(error)
        if trouble is not None:
            inferred = trouble.column in moments
            return (
                _misfit(files, options, trouble.column, trouble.value, trouble.target)
                if inferred
                else None
            )
        message = str(error)
        readable = [file for file in files if file.is_local]
        if "found more fields than defined" in message:
            return _ragged(readable, options) or _unplaced_ragged(files)
        if "invalid utf-8" in message:
            return _not_utf8(readable) or _unplaced_encoding(files)
        unparsed = _UNPARSED.search(message)
        if unparsed is None:
            return None
        # any text is a text: only its quotes can be wrong
        broken = _broken_quotes(readable, options) if unparsed["type"] == "str" else None
        return broken or _bad_value(files, options, unparsed)

    return diagnose


def ragged_rows(path: str, options: dict[str, Any], expected: int) -> int:
    """Return how many rows of a local file have more fields than it has columns."""
    rows = (row for _, row in csv_rows(path, options))
    return sum(1 for row in rows if not isinstance(row, BrokenLine) and len(row) > expected)


def _ragged(files: Sequence[LocalFile], options: dict[str, Any]) -> ReadError | None:
    for file in files:
        expected = 0
        for line, row in csv_rows(file.path, options):
            if isinstance(row, BrokenLine):
                break
            if not expected:
                expected = len(row)
            elif len(row) > expected:
                return ReadError(
                    f"line {line} has {len(row)} fields, {expected} are expected",
                    place=file.info.uri,
                    remedy=f"Correct the line, or {_CUT}",
                    code="ragged_rows",
                )
    return None


def _unplaced_ragged(files: Sequence[LocalFile]) -> ReadError:
    return ReadError(
        "a row has more fields than the header",
        place=_named(files),
        remedy=f"Correct the row, or {_CUT}",
        code="ragged_rows",
    )


def _named(files: Sequence[LocalFile]) -> str:
    return files[0].info.uri if len(files) == 1 else listed(file.info.uri for file in files)


def _broken_quotes(files: Sequence[LocalFile], options: dict[str, Any]) -> ReadError | None:
    for file in files:
        for line, row in csv_rows(file.path, options, strict=True):
            if isinstance(row, BrokenLine):
                return ReadError(
                    f"a quote of the row in line {line} is not closed, or text follows it",
                    place=file.info.uri,
                    remedy="Correct the line, or set read_options.quote_char to the character that"
                    " quotes (null for none).",
                    code="bad_quotes",
                )
    return None


def _bad_value(
    files: Sequence[LocalFile], options: dict[str, Any], unparsed: re.Match[str]
) -> ReadError:
    return _misfit(files, options, unparsed["column"], unparsed["value"], unparsed["type"])


def _misfit(
    files: Sequence[LocalFile], options: dict[str, Any], column: str, value: str, wanted: str
) -> ReadError:
    found = _file_and_line(files, options, column, value)
    uri, line = found or (_named(files), None)
    where = "" if line is None else f" (line {line})"
    return ReadError(
        f"{value!r} is no {wanted}{where}, the type inferred from the rows before it",
        place=f"{uri}, column '{column}'",
        remedy="Read as text (infer_schema: false) and add a schema hint, or raise"
        " infer_schema_length.",
        code="bad_value",
    )


def _file_and_line(
    files: Sequence[LocalFile], options: dict[str, Any], column: str, value: str
) -> tuple[str, int] | None:
    for file in files:
        place: int | None = None
        for line, row in csv_rows(file.path, options) if file.is_local else ():
            if isinstance(row, BrokenLine):
                break
            if place is None:
                if column not in row:
                    break
                place = row.index(column)
            elif place < len(row) and row[place] == value:
                return file.info.uri, line
    return None


def _unplaced_encoding(files: Sequence[LocalFile]) -> ReadError:
    return ReadError(
        "there is text that is not UTF-8",
        place=_named(files),
        remedy="Set read_options.encoding to the file's encoding, such as cp1252.",
        code="bad_encoding",
    )


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
