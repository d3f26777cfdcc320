"""CSV files, plain or packed (``.gz``, ``.zst``, ``.zip``): text unless the options say else.

A wholly blank line is no row, but in files of one column it is a null: there it may be a value. In
an object store, where the engine reads the files itself, it is a row of nulls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.names import listed
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.csv_layout import has_blank_lines, header_line, without_blank_lines
from datacoolie_core.readers.csv_moments import iso_moments, with_moments
from datacoolie_core.readers.csv_trouble import csv_diagnosis, ragged_rows
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.hints import hints_of
from datacoolie_core.readers.local_files import LocalFile, LocalFiles, opened
from datacoolie_core.readers.options import (
    character,
    character_or_none,
    count,
    count_or_all,
    flag,
    one_of,
    read_options,
    text,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.hint_types import LogicalType
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source

SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".csv.zip", ".zip")
_MEMBERS = (".csv",)
OPTIONS: dict[str, Any] = {
    "has_header": flag,
    "separator": character,
    "comment_prefix": text,
    "quote_char": character_or_none,
    "skip_rows": count,
    "skip_lines": count,
    "skip_rows_after_header": count,
    "null_values": texts,
    "empty_string_is_null": flag,
    "infer_schema": flag,
    "infer_schema_length": count_or_all,
    "try_parse_dates": flag,
    "ignore_errors": flag,
    "n_rows": count,
    "encoding": text,
    "low_memory": flag,
    "eol_char": character,
    "truncate_ragged_lines": flag,
    "decimal_comma": flag,
    "missing_columns": one_of("insert", "raise"),
}
ALIASES = {
    "header": "has_header",
    "sep": "separator",
    "delimiter": "separator",
    "quote": "quote_char",
    "comment": "comment_prefix",
    "null_value": "null_values",
    "charset": "encoding",
    "line_sep": "eol_char",
}
_BEFORE_HEADER = ("skip_rows", "skip_lines", "comment_prefix")
_RENAMED = re.compile(r"_duplicated_\d+$")
_UTF8 = {"utf8", "utf-8", "utf8-lossy", "utf-8-lossy", "utf-8-sig", "utf8-sig"}


def open_csv(request: ReadRequest) -> Source:
    """Return a scan of a source's CSV files.

    Raises:
        ReadError: A file or an option can't be used.
    """
    options: dict[str, Any] = {"infer_schema": False, "missing_columns": "insert"}
    options |= read_options(request.dataflow, OPTIONS, ALIASES)
    strict = options.pop("missing_columns") == "raise"
    limit = options.pop("n_rows", None)
    found = discover(request, SUFFIXES)
    local = LocalFiles(
        storage_options=request.dataflow.source.connection.configure.storage_options,
        suffixes=_MEMBERS,
        encoding=_foreign_encoding(options),
    )
    try:
        files = [file for info in found.files for file in local.add(info)]
        opened = [_opened(file, options, local, request.dataflow) for file in files]
        headed = [(one.file, one.schema) for one in opened]
        by_path = {one.file.path: one for one in opened}
        if strict:
            _check_same(headed)
        return scanned(
            [ScannedFile(file, schema) for file, schema in headed if schema],
            found,
            lambda paths, schema: _scan(paths, schema, by_path),
            close=local.close,
            diagnose=csv_diagnosis(
                files, options, {name for one in opened for name in one.moments}
            ),
            warnings=_warnings(headed, files, options),
            limit=limit,
            request=request,
        )
    except BaseException:
        local.close()
        raise


def _foreign_encoding(options: dict[str, Any]) -> str | None:
    encoding = str(options.pop("encoding", "utf8")).lower()
    if encoding in _UTF8:
        if encoding.endswith("-lossy"):
            options["encoding"] = "utf8-lossy"
        return None
    import codecs

    try:
        return codecs.lookup(encoding).name
    except LookupError as error:
        raise ReadError(
            f"there is no encoding '{encoding}'",
            place="read_options",
            remedy="Name one such as utf-8, latin-1, cp1252 or utf-16.",
            code="bad_option",
        ) from error


@dataclass(frozen=True)
class _Opened:
    """A file as the engine shall read it; no columns for an empty one."""

    file: LocalFile
    options: dict[str, Any]
    schema: dict[str, pl.DataType]
    moments: dict[str, LogicalType]


def _opened(
    file: LocalFile, options: dict[str, Any], local: LocalFiles, dataflow: Dataflow
) -> _Opened:
    _check_line_ends(file, options)
    options, header = _from_header(file, options)
    schema = _schema(file, options)
    hints = hints_of(dataflow)
    # what the inferred type would lose (zeros in front, digits) the hint could not bring back
    schema = {
        name: dtype if hints.of(name) is None else pl.String() for name, dtype in schema.items()
    }
    several = len(schema) > 1 and options.get("eol_char", "\n") == "\n"
    if several and file.is_local and has_blank_lines(file.path):
        file = local.rewritten(file, lambda raw: without_blank_lines(raw, options, header))
    return _Opened(file, options, schema, iso_moments(file.path, options, schema))


def _check_line_ends(file: LocalFile, options: Mapping[str, Any]) -> None:
    """Refuse a file whose lines end in a carriage return alone: it would be one long header."""
    if not file.is_local or "eol_char" in options:
        return
    with opened(file.path) as raw:
        start = raw.read(1 << 16)
    if b"\r" in start and b"\n" not in start:
        raise ReadError(
            "its lines end in a carriage return alone",
            place=file.info.uri,
            remedy='Set read_options.line_sep to "\\r".',
            code="line_ends",
        )


def _from_header(file: LocalFile, options: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return options that lead straight to the header's line, and its number.

    The engine takes a blank line that follows a comment or a skipped row for the header.
    """
    usual = options.get("has_header", True)
    if usual and not any(options.get(name) for name in _BEFORE_HEADER):
        return options, 1
    if not file.is_local or options.get("eol_char", "\n") != "\n":
        return options, 1
    header = header_line(file.path, options)
    if header is None:
        return options, 1
    others = {key: value for key, value in options.items() if key not in _BEFORE_HEADER[:2]}
    return {**others, "skip_lines": header - 1}, header


def _scan(
    paths: Sequence[str], schema: dict[str, pl.DataType], by_path: dict[str, _Opened]
) -> pl.LazyFrame:
    first = by_path[paths[0]]
    options, moments = first.options, first.moments
    if any((by_path[path].options, by_path[path].moments) != (options, moments) for path in paths):
        return pl.concat([_scan([path], schema, by_path) for path in paths], how="vertical")
    # Files of one header only: with a wider schema, extra_columns or missing_columns, the engine
    # puts the surplus of a ragged row into another column or drops it, without a word.
    frame = pl.scan_csv(
        list(paths),
        schema={name: pl.String() if name in moments else schema[name] for name in schema},
        include_file_paths=SCANNED_PATH,
        glob=False,
        raise_if_empty=False,
        **{key: value for key, value in options.items() if not key.startswith("infer_schema")},
    )
    return with_moments(frame, moments) if moments else frame


def _schema(file: LocalFile, options: dict[str, Any]) -> dict[str, pl.DataType]:
    """Return a file's columns; none for an empty file."""
    try:
        scan = pl.scan_csv(file.path, glob=False, raise_if_empty=False, **options)
        schema = dict(scan.collect_schema())
    except pl.exceptions.NoDataError:
        return {}
    except pl.exceptions.DuplicateError as error:
        raise _repeated(file, _first_row(file, options)) from error
    except pl.exceptions.PolarsError as error:
        known = csv_diagnosis([file], options)(error)
        if known is None:
            raise ReadError(str(error).splitlines()[0], place=file.info.uri) from error
        raise known from error
    if options.get("has_header", True) and any(_RENAMED.search(name) for name in schema):
        names = _first_row(file, options)
        if len(names) > len(set(names)):
            raise _repeated(file, names)
    # integers of more than 64 bits fit no table: as text they keep their digits
    return {n: pl.String() if dtype == pl.Int128 else dtype for n, dtype in schema.items()}


def _first_row(file: LocalFile, options: dict[str, Any]) -> list[str]:
    skipped = {"has_header", "skip_rows_after_header", "infer_schema", "try_parse_dates"}
    reading = {key: value for key, value in options.items() if key not in skipped}
    reading |= {"truncate_ragged_lines": True, "infer_schema": False, "n_rows": 20}
    head = pl.scan_csv(file.path, glob=False, has_header=False, **reading).collect()
    for row in head.iter_rows():
        names = [name for name in row if name]
        if names:
            return names
    return []


def _repeated(file: LocalFile, names: Sequence[str]) -> ReadError:
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    return ReadError(
        f"the header names {listed(twice)} more than once",
        place=file.info.uri,
        remedy="Give each column its own name, or read without the header: header: false.",
        code="duplicate_header",
    )


def _check_same(headed: Sequence[tuple[LocalFile, dict[str, pl.DataType]]]) -> None:
    filled = [(file, schema) for file, schema in headed if schema]
    every = dict.fromkeys(name for _, schema in filled for name in schema)
    for file, schema in filled:
        missing = [name for name in every if name not in schema]
        if missing:
            raise ReadError(
                f"the file has no column {listed(missing)}, others have",
                place=file.info.uri,
                remedy="Set read_options.missing_columns to insert to read nulls there.",
                code="missing_column",
            )


def _warnings(
    headed: Sequence[tuple[LocalFile, dict[str, pl.DataType]]],
    found: Sequence[LocalFile],
    options: dict[str, Any],
) -> list[tuple[str, str]]:
    warnings: list[tuple[str, str]] = []
    empty = [file.name for file, schema in headed if not schema]
    if empty:
        warnings.append(("empty_file", f"nothing in {listed(empty)}"))
    if options.get("truncate_ragged_lines"):
        warnings += _cut(headed, found, options)
    return warnings


def _cut(
    headed: Sequence[tuple[LocalFile, dict[str, pl.DataType]]],
    found: Sequence[LocalFile],
    options: dict[str, Any],
) -> list[tuple[str, str]]:
    remote = any(not file.is_local for file in found)
    count = sum(
        ragged_rows(file.path, options, len(schema))
        for file, (_, schema) in zip(found, headed, strict=True)
        if file.is_local and schema
    )
    if not count and not remote:
        return []
    rows = "what" if remote else f"{count} {'row has' if count == 1 else 'rows have'} more fields"
    message = (
        "truncate_ragged_lines: what stands behind the last column of a row is dropped"
        if remote
        else f"truncate_ragged_lines: {rows} than columns; what stands behind the last column is"
        " dropped"
    )
    return [("ragged_lines_cut", message)]
