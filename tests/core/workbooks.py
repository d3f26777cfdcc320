"""Workbooks as people make them, for tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openpyxl

CONNECTIONS = [
    ["name", "connection_type", "format", "configure"],
    ["files", "file", "csv", '{"base_path": "in"}'],
    ["lake", "lakehouse", "delta", '{"base_path": "lake"}'],
]
FLOWS = [
    [
        "name",
        "stage",
        "source_connection_name",
        "source_table",
        "destination_connection_name",
        "destination_table",
    ],
    ["orders", "bronze", "files", "orders", "lake", "orders"],
]


def workbook(**sheets: list[list[Any]]) -> openpyxl.Workbook:
    """Return a workbook with these sheets, row by row."""
    book = openpyxl.Workbook()
    del book["Sheet"]
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return book


def save(path: Path, book: openpyxl.Workbook | None = None, **sheets: list[list[Any]]) -> Path:
    """Write a workbook; without sheets of these names it has two connections and a dataflow."""
    if book is None:
        book = workbook(**{"connections": CONNECTIONS, "dataflows": FLOWS, **sheets})
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    book.save(buffer)
    path.write_bytes(buffer.getvalue())
    return path


def flows(columns: dict[str, Any], *more: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of a sheet ``dataflows``: a good dataflow each, with these cells."""
    extra = list(dict.fromkeys(key for one in (columns, *more) for key in one))
    header = [*FLOWS[0], *(key for key in extra if key not in FLOWS[0])]
    rows = []
    for number, cells in enumerate((columns, *more)):
        base = dict(zip(FLOWS[0], FLOWS[1], strict=True)) | {"name": f"flow_{number}"}
        rows.append([(base | cells).get(name) for name in header])
    return [header, *rows]
