"""CSV files, plain or packed (``.gz``, ``.zst``, ``.zip``): text unless the options say else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.names import listed
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.csv_trouble import csv_diagnosis
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.local_files import LocalFile, LocalFiles
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
    from collections.abc import Sequence

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
        headed = [(file, _schema(file, options)) for file in files]
        if strict:
            _check_same(headed)
        return scanned(
            [ScannedFile(file, schema) for file, schema in headed if schema],
            found,
            lambda paths, schema: _scan(paths, schema, options),
            close=local.close,
            diagnose=csv_diagnosis(files, options),
            warnings=_warnings(headed, options),
            limit=limit,
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


def _scan(
    paths: Sequence[str], schema: dict[str, pl.DataType], options: dict[str, Any]
) -> pl.LazyFrame:
    # Files of one header only: with a wider schema, extra_columns or missing_columns, the engine
    # puts the surplus of a ragged row into another column or drops it, without a word.
    return pl.scan_csv(
        list(paths),
        schema=schema,
        include_file_paths=SCANNED_PATH,
        glob=False,
        raise_if_empty=False,
        **{key: value for key, value in options.items() if not key.startswith("infer_schema")},
    )


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
    headed: Sequence[tuple[LocalFile, dict[str, pl.DataType]]], options: dict[str, Any]
) -> list[tuple[str, str]]:
    warnings: list[tuple[str, str]] = []
    empty = [file.name for file, schema in headed if not schema]
    if empty:
        warnings.append(("empty_file", f"nothing in {listed(empty)}"))
    if options.get("truncate_ragged_lines"):
        message = "truncate_ragged_lines: what stands behind the last column of a row is dropped"
        warnings.append(("ragged_lines_cut", message))
    return warnings
