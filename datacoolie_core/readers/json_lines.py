"""JSON lines: one document a line; every field of every line counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.dtypes import instance
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.discovery import Discovery, discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.hints import hinted_type, hints_of
from datacoolie_core.readers.json_exact import (
    Suspicions,
    has_floats,
    refuse_halves,
    refuse_rounding,
    with_digits,
)
from datacoolie_core.readers.json_trouble import JsonFile, field_names, json_diagnosis, pieces
from datacoolie_core.readers.local_files import LocalFiles
from datacoolie_core.readers.options import count, count_or_all, flag, read_options
from datacoolie_core.readers.union import Schema, beside_text, united

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source

PLAIN = (".jsonl", ".ndjson", ".json")
SUFFIXES = tuple(f"{suffix}{packed}" for suffix in PLAIN for packed in ("", ".gz", ".zst", ".zip"))
OPTIONS: dict[str, Any] = {
    "infer_schema": flag,
    "infer_schema_length": count_or_all,
    "n_rows": count,
    "low_memory": flag,
    "ignore_errors": flag,
    "batch_size": count,
    "multi_line": flag,
}
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Reading:
    """How the lines of a source are read.

    Attributes:
        dataflow: Whose hints count.
        local: Keeps temporary files.
        options: Of the engine.
        all_text: No types are inferred.
    """

    dataflow: Dataflow
    local: LocalFiles
    options: dict[str, Any]
    all_text: bool = False

    def exact_columns(self) -> dict[str, str]:
        """Return column in lower case → kind of its hint, where the digits count."""
        hints = hints_of(self.dataflow)
        kinds = {
            name: hinted_type(name, hint, self.dataflow).kind for name, hint in hints.folded.items()
        }
        return {name: kind for name, kind in kinds.items() if kind in ("string", "decimal")}


def open_json_lines(request: ReadRequest) -> Source:
    """Return a scan of a source's JSON lines.

    Types come from all lines (``infer_schema_length`` limits how many), so a field that appears
    late is not lost; a field that is a number here and a text there is read as text.

    Raises:
        ReadError: A file or an option can't be used, or types of one field don't fit together.
    """
    options = read_options(request.dataflow, OPTIONS, {})
    if options.pop("multi_line", False):
        raise ReadError(
            "format 'jsonl' has one document a line, multi_line can't be true",
            place="read_options",
            remedy="Remove the option, or use format 'json'.",
            code="bad_option",
        )
    return open_lines(request, options, SUFFIXES)


def open_lines(request: ReadRequest, options: dict[str, Any], suffixes: Sequence[str]) -> Source:
    """Return a scan of files that have one document a line.

    Args:
        request: What is read.
        options: The source's read options.
        suffixes: Endings that belong to the format.

    Raises:
        ReadError: A file can't be used, or types of one field don't fit together.
    """
    found = discover(request, suffixes)
    storage_options = request.dataflow.source.connection.configure.storage_options
    local = LocalFiles(
        storage_options=storage_options, suffixes=PLAIN, link_patterns=True, fetch_all=True
    )
    try:
        files = [file for info in found.files for file in local.add(info)]
        lines = [JsonFile(local.without_mark(file, _BOM)) for file in files]
        return scanned_lines(lines, found, request, options, local)
    except BaseException:
        local.close()
        raise


def scanned_lines(
    files: Sequence[JsonFile],
    found: Discovery,
    request: ReadRequest,
    options: dict[str, Any],
    local: LocalFiles,
) -> Source:
    """Return the documents of files as one frame.

    Args:
        files: One document a line.
        found: Where they come from.
        request: What is read.
        options: The source's read options.
        local: Keeps temporary files.

    Raises:
        ReadError: A file can't be used, or types of one field don't fit together.
    """
    engine: dict[str, Any] = {"infer_schema_length": None, **options}
    limit = engine.pop("n_rows", None)
    all_text = not engine.pop("infer_schema", True)
    reading = Reading(request.dataflow, local, engine, all_text)
    headed = [known for one in files if (known := _headed(one, reading)) is not None]
    whole = united(((one.lines.file.info.uri, one.schema) for one in headed), otherwise=beside_text)
    filled = headed if whole else []
    checked = [ScannedFile(_exact(one, whole, reading).file, one.schema) for one in filled]

    def scan(paths: Sequence[str], schema: Schema) -> pl.LazyFrame:
        return pl.scan_ndjson(
            list(paths),
            schema=schema,
            include_file_paths=SCANNED_PATH,
            **engine,
        )

    return scanned(
        checked,
        found,
        scan,
        close=local.close,
        diagnose=json_diagnosis([one.lines for one in filled]),
        one_scan=True,
        limit=limit,
        request=request,
        otherwise=beside_text,
    )


@dataclass(frozen=True)
class _Headed:
    """A file and its columns.

    Attributes:
        lines: The file.
        inferred: The types that its values have.
        schema: The types to read it with: text where the digits that are written count.
        suspicions: What its lines look like.
    """

    lines: JsonFile
    inferred: Schema
    schema: Schema
    suspicions: Suspicions


def _headed(one: JsonFile, reading: Reading) -> _Headed | None:
    exact = reading.exact_columns()
    try:
        survey = _survey(one, reading)
    except pl.exceptions.SchemaError as error:
        # a column that shall be text need not have one type
        names = field_names(one)
        texts = [name for name in names if reading.all_text or name.casefold() in exact]
        if not texts:
            raise _explained(one, error) from error
        one = with_digits(one, texts, reading.local)
        survey = _survey_of_texts(one, reading)
    if survey is None:
        return None
    inferred, suspicions = survey

    def wanted(name: str, dtype: pl.DataType) -> pl.DataType:
        kind = "string" if reading.all_text else exact.get(name.casefold())
        text = kind == "string" or (kind is not None and not dtype.is_nested())
        return pl.String() if text else _storable(dtype)

    schema = {name: wanted(name, dtype) for name, dtype in inferred.items()}
    return _Headed(one, inferred, schema, suspicions)


def _survey_of_texts(one: JsonFile, reading: Reading) -> tuple[Schema, Suspicions] | None:
    try:
        return _survey(one, reading)
    except pl.exceptions.SchemaError as error:
        raise _explained(one, error) from error


def _survey(one: JsonFile, reading: Reading) -> tuple[Schema, Suspicions] | None:
    """Return the types of a file's values and what its lines look like, None if it has none.

    Raises:
        pl.exceptions.SchemaError: Values of a field have no common type.
        ReadError: It is no JSON.
    """
    schemas: list[Schema] = []
    suspicions = Suspicions()
    limited = reading.options["infer_schema_length"] is not None
    try:
        # the engine would hold the whole file in memory to infer its types
        for number, lines in enumerate(pieces(one.file.path)):
            suspicions = suspicions.or_in(lines)
            if lines.strip() and not (limited and number):
                scan = pl.scan_ndjson(lines, **reading.options)
                schemas.append(dict(scan.collect_schema()))
    except pl.exceptions.SchemaError:
        raise
    except (OSError, EOFError, pl.exceptions.PolarsError) as error:
        raise _explained(one, error) from error
    return (_together(one, schemas), suspicions) if schemas else None


def _together(one: JsonFile, schemas: Sequence[Schema]) -> Schema:
    place = one.file.info.uri
    try:
        return united(((place, schema) for schema in schemas), otherwise=beside_text)
    except ReadError as error:
        if error.code != "type_conflict":
            raise
        raise pl.exceptions.SchemaError(error.message) from error


def _explained(one: JsonFile, error: Exception) -> ReadError:
    return json_diagnosis([one])(error) or ReadError(
        str(error).splitlines()[0], place=one.file.info.uri, code="bad_file"
    )


def _storable(dtype: pl.DataType) -> pl.DataType:
    """Return a type without integers of more than 64 bits, which no table has: texts keep them."""
    if isinstance(dtype, pl.Struct):
        return pl.Struct({one.name: _storable(instance(one.dtype)) for one in dtype.fields})
    if isinstance(dtype, pl.List):
        return pl.List(_storable(instance(dtype.inner)))
    return pl.String() if dtype == pl.Int128 else dtype


def _exact(one: _Headed, whole: Schema, reading: Reading) -> JsonFile:
    """Return a file of which the engine changes no digit and no character.

    Raises:
        ReadError: There is none: it holds what no column of its types can.
    """
    found = one.suspicions
    if found.halves:
        refuse_halves(one.lines)
    if found.long and any(has_floats(whole[name]) for name in one.schema):
        refuse_rounding(one.lines, {name: whole[name] for name in one.schema})
    exact = reading.exact_columns()
    as_written = [
        name
        for name, dtype in one.inferred.items()
        if whole[name] == pl.String
        and (
            (dtype.is_float() and (found.long or exact.get(name.casefold()) != "decimal"))
            or (dtype == pl.String and found.long)
        )
    ]
    return with_digits(one.lines, as_written, reading.local) if as_written else one.lines
