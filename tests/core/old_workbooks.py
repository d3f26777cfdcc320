"""Workbooks that no library here writes: compound files, as Excel 97 has them, and OpenDocument."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

_SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_MINI = 4096


def compound(name: str, content: bytes) -> bytes:
    """Return a compound file of one stream, which is as long as needs no small sectors."""
    content = content.ljust(_MINI, b"\0")
    content += bytes(-len(content) % _SECTOR)
    count = len(content) // _SECTOR
    # sector 0 is the allocation table, 1 the directory, the stream follows
    table = [_FAT, _END, *range(3, count + 2), _END]
    fat = struct.pack("<128I", *table, *[_FREE] * (128 - len(table)))
    directory = _entry("Root Entry", 5, 1, _END, 0) + _entry(name, 2, _FREE, 2, len(content))
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    header += struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIIII", 0, 1, 1, 0, _MINI, _END, 0, _END, 0, 0)
    header += struct.pack("<108I", *[_FREE] * 108)
    return header + fat + directory.ljust(_SECTOR, b"\0") + content


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    written = name.encode("utf-16-le") + b"\0\0"
    entry = written.ljust(64, b"\0") + struct.pack("<HBB", len(written), kind, 1)
    entry += struct.pack("<III", _FREE, _FREE, child) + bytes(16 + 4 + 16)
    return entry + struct.pack("<IQ", start, size)


def old_excel(rows: list[list[Any]]) -> bytes:
    """Return a workbook of Excel 97: texts and numbers in one sheet."""
    name = b"S1"
    globals_ = [(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0))]
    bound = struct.pack("<IBBBB", 0, 0, 0, len(name), 0) + name
    start = sum(4 + len(data) for _, data in globals_) + 4 + len(bound) + 4
    bound = struct.pack("<I", start) + bound[4:]
    sheet = [(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0))]
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            place = struct.pack("<HHH", r, c, 0)
            if isinstance(value, str):
                text = struct.pack("<HB", len(value), 0) + value.encode("latin-1")
                sheet.append((0x204, place + text))
            else:
                sheet.append((0x203, place + struct.pack("<d", value)))
    records = [*globals_, (0x85, bound), (0x0A, b""), *sheet, (0x0A, b"")]
    return compound(
        "Workbook", b"".join(struct.pack("<HH", kind, len(data)) + data for kind, data in records)
    )


def open_document(rows: list[list[Any]]) -> bytes:
    """Return an OpenDocument spreadsheet: texts and numbers in one sheet."""
    space = "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(
        f'xmlns:{short}="{space}:{short}:1.0"' for short in ("office", "table", "text")
    )
    cells = "".join(
        f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {names}><office:body><office:spreadsheet>'
        f'<table:table table:name="S1">{cells}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", f'<manifest xmlns="{space}:manifest:1.0"/>')
        archive.writestr("content.xml", content)
    return target.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return (
            '<table:table-cell office:value-type="string">'
            f"<text:p>{value}</text:p></table:table-cell>"
        )
    return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
