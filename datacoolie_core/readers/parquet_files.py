"""Parquet files; columns of many files are united by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.local_files import LocalFiles
from datacoolie_core.readers.options import count, flag, one_of, read_options
from datacoolie_core.readers.parquet_footers import footer, passed_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source
    from datacoolie_core.readers.union import Schema

SUFFIXES = (".parquet", ".parq")
OPTIONS: dict[str, Any] = {
    "n_rows": count,
    "parallel": one_of("auto", "columns", "row_groups", "prefiltered", "none"),
    "use_statistics": flag,
    "low_memory": flag,
    "cache": flag,
}


def open_parquet(request: ReadRequest) -> Source:
    """Return a scan of a source's parquet files.

    Raises:
        ReadError: A file or an option can't be used, or types of one column don't fit together.
    """
    options = read_options(request.dataflow, OPTIONS, {})
    limit = options.pop("n_rows", None)
    found = discover(request, SUFFIXES)
    storage_options = request.dataflow.source.connection.configure.storage_options
    local = LocalFiles(storage_options=storage_options, suffixes=SUFFIXES)

    def scan(paths: Sequence[str], _schema: dict[str, pl.DataType]) -> pl.LazyFrame:
        return pl.scan_parquet(
            list(paths),
            glob=False,
            hive_partitioning=False,
            include_file_paths=SCANNED_PATH,
            storage_options=storage_options or None,
            **options,
        )

    try:
        files = [file for info in found.files for file in local.add(info)]
        known = [(file, footer(file, storage_options)) for file in files]
        entries = [ScannedFile(file, one.schema) for file, one in known]

        def unneeded(schema: Schema) -> list[bool]:
            return passed_by(known, schema, request)

        return scanned(
            entries,
            found,
            scan,
            close=local.close,
            diagnose=_no_diagnosis,
            limit=limit,
            request=request,
            unneeded=None if limit is not None else unneeded,
        )
    except BaseException:
        local.close()
        raise


def _no_diagnosis(_error: Exception) -> None:
    """Parquet errors name their file themselves."""
