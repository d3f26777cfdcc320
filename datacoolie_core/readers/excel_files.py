"""Excel workbooks (``.xlsx``, ``.xlsm``, ``.xlsb``, ``.xls``) and OpenDocument sheets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.readers.discovery import Discovery, discover
from datacoolie_core.readers.excel_options import ExcelOptions, excel_options
from datacoolie_core.readers.excel_workbook import Workbook
from datacoolie_core.readers.file_columns import SCANNED_PATH
from datacoolie_core.readers.file_scan import ScannedFile, scanned
from datacoolie_core.readers.hints import hinted_type, hints_of
from datacoolie_core.readers.local_files import LocalFile, LocalFiles
from datacoolie_core.readers.union import all_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source
    from datacoolie_core.readers.union import Schema

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_OWNER = "~$"
"""What Excel puts in front of the name while somebody has the workbook open."""


def open_excel(request: ReadRequest) -> Source:
    """Return the rows of a source's workbooks; columns of sheets and files are united by name.

    A sheet is read as a whole and kept in a temporary file: no more than one is in memory.

    Raises:
        ReadError: A workbook, a sheet, its header or an option can't be used.
    """
    options = excel_options(request.dataflow)
    found = _without_owners(discover(request, SUFFIXES))
    storage_options = request.dataflow.source.connection.configure.storage_options
    local = LocalFiles(storage_options=storage_options, suffixes=SUFFIXES, fetch_all=True)
    warnings: list[tuple[str, str]] = []
    try:
        files = [file for info in found.files for file in local.add(info)]
        sheets = [one for file in files for one in _sheets(file, options, request, local, warnings)]
        return scanned(
            sheets,
            found,
            _scan,
            close=local.close,
            diagnose=lambda _error: None,
            warnings=warnings,
            limit=options.limit,
            request=request,
            otherwise=all_text,
        )
    except BaseException:
        local.close()
        raise


def _without_owners(found: Discovery) -> Discovery:
    files = [info for info in found.files if not _name(info.uri).startswith(_OWNER)]
    return replace(found, files=tuple(files))


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def _sheets(
    file: LocalFile,
    options: ExcelOptions,
    request: ReadRequest,
    local: LocalFiles,
    warnings: list[tuple[str, str]],
) -> list[ScannedFile]:
    book = Workbook(file.path, file.info.uri)
    texts = _text_columns(request.dataflow)
    kept: list[ScannedFile] = []
    for name in book.sheet_names(options.sheets):
        sheet = book.sheet(name, options, lambda column: column.casefold() in texts)
        warnings += sheet.warnings
        if not sheet.frame.width:
            warnings.append(("empty_sheet", f"{file.info.uri}: sheet '{name}' is empty"))
            continue
        path = local.temporary(".parquet")
        sheet.frame.write_parquet(path, compression="lz4")
        kept.append(ScannedFile(LocalFile(file.info, str(path)), dict(sheet.frame.schema)))
    return kept


def _text_columns(dataflow: Dataflow) -> set[str]:
    """Return the columns, in lower case, whose hint says that they are text."""
    return {
        name
        for name, hint in hints_of(dataflow).folded.items()
        if hinted_type(name, hint, dataflow).kind == "string"
    }


def _scan(paths: Sequence[str], _schema: Schema) -> pl.LazyFrame:
    return pl.scan_parquet(
        list(paths), glob=False, hive_partitioning=False, include_file_paths=SCANNED_PATH
    )
