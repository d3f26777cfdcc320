"""The sheets of a workbook, and what in them would else be lost without a word."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

from datacoolie_core.errors import Problem
from datacoolie_core.metadata.documents import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOT_ZIPPED = "is no .xlsx workbook"
_OLD = bytes.fromhex("d0cf11e0")
"""How files of the older format begin, and workbooks with a password."""

_SUSPECT = re.compile(rb"<(?:\w+:)?(?:f|mergeCell)[ >/]")
_ERRORS = (zipfile.BadZipFile, ParseError, KeyError, ValueError, TypeError, AttributeError, OSError)
"""What openpyxl lets through for a workbook that is not well-formed."""


@dataclass(frozen=True)
class BadCell:
    """A cell without a value that could be used; the message says why."""

    message: str


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook.

    Attributes:
        title: Its name.
        hidden: Whether people don't see it.
        merged: Ranges of merged cells, each with its first and last row.
        rows: The number of each row that is not blank, from 1 on, and its cells; None for blank
            ones.
    """

    title: str
    hidden: bool
    merged: tuple[tuple[str, int, int], ...]
    rows: tuple[tuple[int, list[Any]], ...]


@dataclass
class _Hazards:
    """What only a second, slower reading shows."""

    merged: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict[Any, Any])
    formulas: set[tuple[str, int | None, int | None]] = field(
        default_factory=set[tuple[str, int | None, int | None]]
    )


def read_sheets(content: bytes, source: str) -> list[Sheet]:
    """Return the sheets of a workbook.

    Args:
        content: The bytes of the file.
        source: Its name, for messages.

    Raises:
        DocumentError: It is no workbook that can be read.
    """
    try:
        import openpyxl
    except ImportError:
        remedy = "reading workbooks needs openpyxl. Install datacoolie-dagster[excel]"
        raise DocumentError([Problem(message=remedy, source=source)]) from None
    if content.startswith(_OLD):
        message = f"{_NOT_ZIPPED}: it has a password, or is an older .xls. Save it as .xlsx"
        raise DocumentError([Problem(message=message, source=source)])
    try:
        hazards = _hazards(content)
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        return [_sheet(one, hazards) for one in book.worksheets]
    except _ERRORS as error:
        message = f"{_NOT_ZIPPED}, or a broken one: {error}"
        raise DocumentError([Problem(message=message, source=source)]) from None


def _hazards(content: bytes) -> _Hazards:
    import openpyxl

    found = _Hazards()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        if not any(_SUSPECT.search(archive.read(name)) for name in sheets):
            return found
    for sheet in openpyxl.load_workbook(io.BytesIO(content)).worksheets:
        ranges = sorted(sheet.merged_cells.ranges, key=lambda one: (one.min_row, one.min_col))
        found.merged[sheet.title] = [(one.coord, one.min_row, one.max_row) for one in ranges]
        for row in sheet.iter_rows():
            found.formulas.update(
                (sheet.title, cell.row, cell.column) for cell in row if cell.data_type == "f"
            )
    return found


def _sheet(sheet: Any, hazards: _Hazards) -> Sheet:
    sheet.reset_dimensions()  # some programs write wrong ones, and rows would be cut off
    title: str = sheet.title
    return Sheet(
        title=title,
        hidden=sheet.sheet_state != "visible",
        merged=tuple(hazards.merged.get(title, ())),
        rows=tuple(_rows(sheet, title, hazards)),
    )


def _rows(sheet: Any, title: str, hazards: _Hazards) -> Iterator[tuple[int, list[Any]]]:
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells = [
            _cell(cell, (title, number, place) in hazards.formulas)
            for place, cell in enumerate(row, start=1)
        ]
        if any(cell is not None for cell in cells):
            yield number, cells


def _cell(cell: Any, is_formula: bool) -> Any:
    value = cell.value
    if value is None and is_formula:
        return BadCell(
            "this formula has no stored value. Open and save the workbook in a spreadsheet "
            "program, or write the value itself"
        )
    if value is not None and cell.data_type == "e":
        return BadCell(f"it shows the error {value}")
    return None if isinstance(value, str) and not value.strip() else value
