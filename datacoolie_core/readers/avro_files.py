"""Avro files, block by block: a file is never in memory as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.avro_blocks import (
    AvroTrouble,
    Container,
    blocks,
    read_container,
    small_file,
)
from datacoolie_core.readers.avro_decoders import (
    Decode,
    by_engine,
    by_fastavro,
    engine_decodes,
    undressed,
)
from datacoolie_core.readers.avro_types import AvroTypeTrouble, arrow_fields, engine_schema
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.local_files import LocalFile, LocalFiles, opened
from datacoolie_core.readers.options import count, read_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source
    from datacoolie_core.readers.union import Schema

_PLAIN = (".avro",)
SUFFIXES = (".avro", ".avro.gz", ".avro.zst", ".avro.zip")
OPTIONS: dict[str, Any] = {"n_rows": count}
_ROWS = 50_000
_BYTES = 32 * 2**20
_DAMAGED = (
    AvroTrouble,
    OSError,
    EOFError,
    ValueError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)
"""What unpacking and decoding raise; the engine's decoder panics at bytes that make no sense."""


@dataclass(frozen=True)
class _Opened:
    """A file with a header: its columns, and what decodes its records."""

    file: LocalFile
    schema: Schema
    container: Container
    written: Any
    decode: Decode


def open_avro(request: ReadRequest) -> Source:
    """Return the rows of a source's Avro files; columns of several files are united by name.

    Raises:
        ReadError: A file, a field's type or an option can't be used.
    """
    limit = read_options(request.dataflow, OPTIONS, {}).get("n_rows")
    found = discover(request, SUFFIXES)
    storage_options = request.dataflow.source.connection.configure.storage_options
    local = LocalFiles(storage_options=storage_options, suffixes=_PLAIN, fetch_all=True)
    troubles: list[ReadError] = []
    try:
        files = [file for info in found.files for file in local.add(info)]
        known = [one for file in files if (one := _opened(file)) is not None]
        by_path = {one.file.path: one for one in known}

        def scan(paths: Sequence[str], schema: Schema) -> pl.LazyFrame:
            return _scan([by_path[path] for path in paths], schema, troubles)

        return scanned(
            [ScannedFile(one.file, one.schema) for one in known],
            found,
            scan,
            close=local.close,
            diagnose=lambda _error: troubles[0] if troubles else None,
            limit=limit,
            request=request,
        )
    except BaseException:
        local.close()
        raise


def _opened(file: LocalFile) -> _Opened | None:
    try:
        with opened(file.path) as raw:
            container = read_container(raw)
        if container is None:
            return None
        fields = arrow_fields(container.schema)
    except AvroTypeTrouble as error:
        raise ReadError(
            f"{f'field {error.field!r}: ' if error.field else ''}{error}",
            place=file.info.uri,
            remedy="Write the file with a type that a table's column can have.",
            code="unsupported_type",
        ) from error
    except (AvroTrouble, OSError) as error:
        raise _bad_file(file, error) from error
    schema = engine_schema(fields)
    if engine_decodes(container.schema):
        return _Opened(file, schema, container, container.schema, by_engine(schema))
    written = undressed(container.schema)
    return _Opened(file, schema, container, written, by_fastavro(fields, schema, file.info.uri))


def _bad_file(file: LocalFile, error: Exception) -> ReadError:
    return ReadError(
        f"the file is no whole Avro file: {error}",
        place=file.info.uri,
        remedy="Replace or remove the file.",
        code="bad_file",
    )


def _frames(one: _Opened) -> Iterator[pl.DataFrame]:
    """Return the rows of a file in frames of some blocks each.

    Raises:
        ReadError: The file is damaged.
    """
    waiting: list[tuple[int, bytes]] = []
    try:
        with opened(one.file.path) as raw:
            read_container(raw)
            for part in blocks(raw, one.container):
                waiting.append(part)
                rows, size = sum(n for n, _ in waiting), sum(len(data) for _, data in waiting)
                if rows >= _ROWS or size >= _BYTES:
                    yield one.decode(small_file(one.written, waiting))
                    waiting = []
        if waiting:
            yield one.decode(small_file(one.written, waiting))
    except _DAMAGED as error:
        raise _bad_file(one.file, error) from error


def _scan(files: Sequence[_Opened], schema: Schema, troubles: list[ReadError]) -> pl.LazyFrame:
    """Return a lazy frame that decodes while it is consumed."""

    def generate(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for one in files:
            try:
                for frame in _frames(one):
                    part = frame.with_columns(pl.lit(one.file.path).alias(SCANNED_PATH))
                    if left is not None:
                        part = part.head(left)
                        left -= part.height
                    part = part if columns is None else part.select(columns)
                    yield part if predicate is None else part.filter(predicate)
                    if left == 0:
                        return
            except ReadError as error:
                # the engine makes errors anew from their text
                troubles.append(error)
                raise

    return register_io_source(
        generate, schema={**schema, SCANNED_PATH: pl.String()}, validate_schema=True
    )
