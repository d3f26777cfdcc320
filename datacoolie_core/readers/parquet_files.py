"""Parquet files; columns of many files are united by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.local_files import LocalFile, LocalFiles
from datacoolie_core.readers.options import count, flag, one_of, read_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source

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
        entries = [ScannedFile(file, _schema(file, storage_options)) for file in files]
        return scanned(entries, found, scan, close=local.close, diagnose=_no_diagnosis, limit=limit)
    except BaseException:
        local.close()
        raise


def _no_diagnosis(_error: Exception) -> None:
    """Parquet errors name their file themselves."""


def _schema(file: LocalFile, storage_options: dict[str, str]) -> dict[str, pl.DataType]:
    try:
        scan = pl.scan_parquet(
            file.path,
            glob=False,
            hive_partitioning=False,
            storage_options=storage_options or None,
        )
        return dict(scan.collect_schema())
    except pl.exceptions.PolarsError as error:
        raise ReadError(
            f"the file is no whole parquet file: {str(error).splitlines()[0]}",
            place=file.info.uri,
            remedy="Replace or remove the file.",
            code="bad_file",
        ) from error
