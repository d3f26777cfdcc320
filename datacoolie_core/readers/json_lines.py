"""JSON lines: one document a line; every field of every line counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.local_files import LocalFile, LocalFiles, opened
from datacoolie_core.readers.options import count, count_or_all, flag, read_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source

_PLAIN = (".jsonl", ".ndjson", ".json")
SUFFIXES = tuple(f"{suffix}{packed}" for suffix in _PLAIN for packed in ("", ".gz", ".zst", ".zip"))
OPTIONS: dict[str, Any] = {
    "infer_schema_length": count_or_all,
    "n_rows": count,
    "low_memory": flag,
    "ignore_errors": flag,
    "batch_size": count,
    "multi_line": flag,
}
_BOM = b"\xef\xbb\xbf"


def open_json_lines(request: ReadRequest) -> Source:
    """Return a scan of a source's JSON lines.

    Types come from all lines (``infer_schema_length`` limits how many), so a field that appears
    late is not lost; a field that is a number here and a text there is read as text.

    Raises:
        ReadError: A file or an option can't be used, or types of one field don't fit together.
    """
    options: dict[str, Any] = {"infer_schema_length": None}
    options |= read_options(request.dataflow, OPTIONS, {})
    if options.pop("multi_line", False):
        raise ReadError(
            "format 'jsonl' has one document a line, multi_line can't be true",
            place="read_options",
            remedy="Remove the option.",
            code="bad_option",
        )
    found = discover(request, SUFFIXES)
    storage_options = request.dataflow.source.connection.configure.storage_options
    local = LocalFiles(storage_options=storage_options, suffixes=_PLAIN, link_patterns=True)

    def scan(paths: Sequence[str], schema: dict[str, pl.DataType]) -> pl.LazyFrame:
        return pl.scan_ndjson(
            list(paths),
            schema=schema,
            include_file_paths=SCANNED_PATH,
            storage_options=storage_options or None,
            **options,
        )

    try:
        files = [file for info in found.files for file in local.add(info)]
        files = [local.without_mark(file, _BOM) for file in files]
        entries = [ScannedFile(file, _schema(file, storage_options, options)) for file in files]
        filled = [entry for entry in entries if entry.schema]
        diagnose = _diagnosis(files)
        return scanned(filled, found, scan, close=local.close, diagnose=diagnose, one_scan=True)
    except BaseException:
        local.close()
        raise


def _schema(
    file: LocalFile, storage_options: dict[str, str], options: dict[str, Any]
) -> dict[str, pl.DataType]:
    try:
        scan = pl.scan_ndjson(file.path, storage_options=storage_options or None, **options)
        return dict(scan.collect_schema())
    except pl.exceptions.PolarsError as error:
        if "empty reader" in str(error):
            return {}
        raise _diagnosis([file])(error) or ReadError(
            str(error).splitlines()[0], place=file.info.uri, code="bad_file"
        ) from error


def _diagnosis(files: Sequence[LocalFile]) -> Callable[[Exception], ReadError | None]:
    def diagnose(error: Exception) -> ReadError | None:
        if not isinstance(error, pl.exceptions.ComputeError):
            return None
        for file in files:
            found = _first_bad_line(file)
            if found is not None:
                return ReadError(
                    f"line {found} is no JSON document",
                    place=file.info.uri,
                    remedy="Correct or remove the line.",
                    code="bad_json",
                )
        return None

    return diagnose


def _first_bad_line(file: LocalFile) -> int | None:
    with opened(file.path) as raw:
        for line, content in enumerate(raw, 1):
            if not content.strip():
                continue
            try:
                document = json.loads(content)
            except ValueError:
                return line
            if not isinstance(document, dict):
                return line
    return None
