"""JSON lines: one document a line; every field of every line counts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.hints import hinted_type, hints_of
from datacoolie_core.readers.local_files import LocalFile, LocalFiles, opened
from datacoolie_core.readers.options import count, count_or_all, flag, read_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacoolie_core.metadata.models import Dataflow
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
_UNPARSED = re.compile(r"cannot parse '(?P<value>.*?)' \(string\) as (?P<type>\w+)")
_BOM = b"\xef\xbb\xbf"


def open_json_lines(request: ReadRequest) -> Source:
    """Return a scan of a source's JSON lines.

    Types come from all lines (``infer_schema_length`` limits how many), so a field that appears
    late is not lost; a field that is a number here and a text there is read as text.

    Raises:
        ReadError: A file or an option can't be used, or types of one field don't fit together.
    """
    options = _options(request)
    limit = options.pop("n_rows", None)
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
        entries = [
            ScannedFile(file, _as_hinted(_schema(file, storage_options, options), request.dataflow))
            for file in files
        ]
        filled = [entry for entry in entries if entry.schema]
        return scanned(
            filled,
            found,
            scan,
            close=local.close,
            diagnose=_diagnosis(files),
            one_scan=True,
            limit=limit,
        )
    except BaseException:
        local.close()
        raise


def _options(request: ReadRequest) -> dict[str, Any]:
    options: dict[str, Any] = {"infer_schema_length": None}
    options |= read_options(request.dataflow, OPTIONS, {})
    if options.pop("multi_line", False):
        raise ReadError(
            "format 'jsonl' has one document a line, multi_line can't be true",
            place="read_options",
            remedy="Remove the option.",
            code="bad_option",
        )
    return options


def _as_hinted(schema: dict[str, pl.DataType], dataflow: Dataflow) -> dict[str, pl.DataType]:
    """Return the types to read with: as text where a hint wants the digits as they are written."""
    hints = hints_of(dataflow)

    def wanted(name: str, dtype: pl.DataType) -> pl.DataType:
        hint = None if dtype.is_nested() else hints.of(name)
        if hint is None:
            return dtype
        exact = hinted_type(name, hint, dataflow).kind in ("string", "decimal")
        return pl.String() if exact else dtype

    return {name: wanted(name, dtype) for name, dtype in schema.items()}


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
        if not isinstance(error, pl.exceptions.PolarsError):
            return None
        unparsed = _UNPARSED.search(str(error))
        for file in files:
            found = _bad_value(file, unparsed) if unparsed else _bad_line(file)
            if found is not None:
                return found
        return None

    return diagnose


def _bad_line(file: LocalFile) -> ReadError | None:
    for line, document in _documents(file):
        if not isinstance(document, dict):
            return ReadError(
                f"line {line} is no JSON document",
                place=file.info.uri,
                remedy="Correct or remove the line.",
                code="bad_json",
            )
    return None


def _bad_value(file: LocalFile, unparsed: re.Match[str]) -> ReadError | None:
    for line, document in _documents(file):
        fields = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
        for name, value in fields.items():
            if value == unparsed["value"]:
                return ReadError(
                    f"{value!r} in line {line} is no {unparsed['type']}, the type inferred from the"
                    " lines before it",
                    place=f"{file.info.uri}, column '{name}'",
                    remedy="Leave infer_schema_length out, so that all lines are looked at.",
                    code="bad_value",
                )
    return None


def _documents(file: LocalFile) -> Iterator[tuple[int, object]]:
    """Return line number and document of each line; None stands for one that is no JSON."""
    with opened(file.path) as raw:
        for line, content in enumerate(raw, 1):
            if content.strip():
                try:
                    yield line, json.loads(content)
                except ValueError:
                    yield line, None
