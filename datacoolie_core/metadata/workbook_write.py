"""Metadata into Excel workbooks, and what a workbook has no place for."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core.errors import SettingsError
from datacoolie_core.metadata.arrange import MODELS, comparable
from datacoolie_core.metadata.cells import escaped
from datacoolie_core.metadata.columns import Column, columns_of
from datacoolie_core.metadata.problems import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from datacoolie_core.errors import Problem
    from datacoolie_core.metadata.sections import Entry, Section

LONGEST = 32_767
"""How many characters a cell can have at most."""

_EXACT = 10**15
"""Spreadsheet programs keep whole numbers below this one exactly."""

_NESTED: dict[Section, tuple[str, ...]] = {
    "connections": (),
    "dataflows": ("source", "destination", "transform"),
    "schema_hints": ("hints",),
}
_WIDEST = 60
Row = dict[str, Any]


def sheet_rows(section: Section, entries: Iterable[Entry], problems: list[Problem]) -> list[Row]:
    """Return the rows of a section: column → the value of the cell.

    Args:
        section: Which section.
        entries: Its entries.
        problems: What has no place in a sheet is added here.
    """
    rows: list[Row] = []
    for entry in entries:
        mapping = sheet_mapping(section, entry)
        found: list[Finding] = []
        rows += (
            _hint_rows(mapping, found)
            if section == "schema_hints"
            else [_row(section, mapping, found)]
        )
        problems += [entry.problem(one) for one in found]
    return rows


def sheet_mapping(section: Section, entry: Entry) -> dict[str, Any]:
    """Return what an entry means, without what is blank or empty: a blank cell is none."""
    mapping = comparable(entry.raw, MODELS[section])
    mapping = {
        key: value for key, value in mapping.items() if key not in _NESTED[section] or value != {}
    }
    for path, column in ((one.path, one) for one in columns_of(section).values()):
        if column.kind == "text":
            _drop_blank(mapping, path)
    return mapping


def _drop_blank(value: Any, path: Sequence[str]) -> None:
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            _drop_blank(item, path)
    elif isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        inner = mapping.get(path[0])
        if len(path) > 1:
            _drop_blank(inner, path[1:])
        elif isinstance(inner, str) and not inner.strip():
            del mapping[path[0]]


def write_workbook(sheets: Mapping[Section, Sequence[Row]]) -> bytes:
    """Return a workbook with a sheet for each section.

    Args:
        sheets: Section → its rows.

    Raises:
        SettingsError: openpyxl is not installed.
    """
    try:
        import openpyxl
    except ImportError:
        raise SettingsError(
            "writing workbooks needs openpyxl", remedy="Install datacoolie-dagster[excel]."
        ) from None
    book = openpyxl.Workbook(write_only=True)
    for section, rows in sheets.items():
        _write_sheet(book.create_sheet(section), section, rows)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _write_sheet(sheet: Any, section: Section, rows: Sequence[Row]) -> None:
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    used = {header for row in rows for header in row}
    headers = [header for header in columns_of(section) if header in used]
    headers = headers or list(columns_of(section))[:1]
    for place, header in enumerate(headers, start=1):
        widest = max([len(header), *(len(str(row.get(header, ""))) for row in rows)])
        sheet.column_dimensions[get_column_letter(place)].width = min(widest, _WIDEST) + 2
    sheet.freeze_panes = "B2"
    bold = Font(bold=True)
    sheet.append([_cell(sheet, header, bold) for header in headers])
    for row in rows:
        sheet.append([_cell(sheet, row.get(header)) for header in headers])


def _cell(sheet: Any, value: Any, font: Any = None) -> Any:
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value=escaped(value) if isinstance(value, str) else value)
    if isinstance(value, str):
        cell.data_type = "s"  # else a text that begins with = is written as a formula
        cell.number_format = "@"
    if font is not None:
        cell.font = font
    return cell


def _hint_rows(group: dict[str, Any], found: list[Finding]) -> Iterator[Row]:
    shared = {key: value for key, value in group.items() if key not in ("hints", "extensions")}
    if "extensions" in group:
        found.append(_no_place("extensions", "a table's schema hints"))
    hints = cast("list[Any]", group.get("hints") or [])
    if not hints:
        found.append(
            Finding("hints", "a sheet has a row for each hint; without any nothing is left")
        )
    for index, hint in enumerate(hints):
        if not isinstance(hint, dict):
            found.append(
                Finding(f"hints[{index}]", "a workbook can't hold this: expected a mapping")
            )
            continue
        inside: list[Finding] = []
        yield _row("schema_hints", {**shared, "hints": hint}, inside)
        found += [
            Finding((one.field or "").replace("hints.", f"hints[{index}].", 1), one.message)
            for one in inside
        ]


def _row(section: Section, mapping: dict[str, Any], found: list[Finding]) -> Row:
    by_path = {column.path: column for column in columns_of(section).values()}
    row: Row = {}
    for path, value in _flat(mapping, _NESTED[section]):
        column = by_path.get(path)
        name = ".".join(path)
        if column is None:
            found.append(_no_place(name, f"the sheet {section}"))
        elif isinstance(value, dict) and column.kind == "text":
            what = "an inline connection" if path[-1] == "connection" else "a mapping"
            remedy = "; move it to connections and name it" if path[-1] == "connection" else ""
            found.append(Finding(name, f"a workbook can't hold {what}{remedy}"))
        else:
            _put(row, column, value, found)
    return row


def _flat(
    mapping: dict[str, Any], nested: Sequence[str], *prefix: str
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in mapping.items():
        if key in nested and not prefix and isinstance(value, dict):
            yield from _flat(cast("dict[str, Any]", value), (), key)
        else:
            yield (*prefix, key), value


def _put(row: Row, column: Column, value: Any, found: list[Finding]) -> None:
    try:
        held = _held(value, column)
        length = len(escaped(held).encode("utf-16-le")) // 2 if isinstance(held, str) else 0
    except UnicodeEncodeError:
        found.append(
            Finding(column.field, "half of a surrogate pair is no text that a file can hold")
        )
        return
    except ValueError:
        found.append(Finding(column.field, "a workbook can't hold a number that is not finite"))
        return
    if length > LONGEST:
        message = f"{length:,} characters do not fit into a cell of a workbook, {LONGEST:,} do"
        found.append(Finding(column.field, message))
    elif held is not None:
        row[column.header] = held


def _held(value: Any, column: Column) -> Any:
    """Return a value as its cell holds it."""
    if column.kind == "list" and isinstance(value, list):
        items = cast("list[Any]", value)
        return ", ".join(items) if _plain(items) else _json(items)
    if isinstance(value, dict | list):
        return _json(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _EXACT:
        return str(value)
    return value


def _plain(items: Sequence[Any]) -> bool:
    """Whether items can be written with commas in between."""
    return bool(items) and all(
        isinstance(item, str)
        and item
        and item == item.strip()
        and "," not in item
        and not item.startswith(("[", "{"))
        for item in items
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _no_place(field: str, where: str) -> Finding:
    return Finding(field, f"a workbook has no place for this in {where}")
