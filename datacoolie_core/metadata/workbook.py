"""Excel workbooks as metadata: a sheet for each section, a row for each entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from datacoolie_core.errors import Problem, nearest
from datacoolie_core.metadata.cells import CellError, read_cell, unescaped
from datacoolie_core.metadata.columns import CONFIGURE, Column, columns_of, configure_column
from datacoolie_core.metadata.documents import DocumentError
from datacoolie_core.metadata.places import Document, Path, Place
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.sections import SECTIONS, Section
from datacoolie_core.metadata.sheets import BadCell, Sheet, read_sheets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Header = list[Column | str | None]
_GROUP = ("connection_name", "connection_id", "schema_name", "table_name")


@dataclass(frozen=True)
class _Row:
    sheet: str
    number: int


@dataclass
class SheetOrigin:
    """Where the entries of a workbook are: their sheets, rows and columns."""

    source: str
    ready: bool = True
    rows: dict[tuple[str, int], _Row] = field(default_factory=dict[tuple[str, int], _Row])
    hints: dict[tuple[int, int], _Row] = field(default_factory=dict[tuple[int, int], _Row])
    headers: dict[str, dict[tuple[str, ...], str]] = field(
        default_factory=dict[str, "dict[tuple[str, ...], str]"]
    )

    def place(self, path: Path) -> Place:
        """Return the row of an entry, and the column of a part of it."""
        section, index = str(path[0]) if path else "", path[1] if len(path) > 1 else -1
        row = self.rows.get((section, cast("int", index)))
        if row is None:
            return Place(self.source)
        inside = path[2:]
        if section == "schema_hints" and len(inside) > 1:
            row = self.hints.get((cast("int", index), cast("int", inside[1])), row)
            inside = ("hints", *inside[2:])
        return Place(self.source, row.number, row.sheet, self._column(section, row.sheet, inside))

    def _column(self, section: str, sheet: str, path: Path) -> str | None:
        """Return the column that holds a field; where none does, the one that would."""
        there = self.headers[sheet]
        possible = {one.path: one.header for one in columns_of(cast("Section", section)).values()}
        for known in (there, possible):
            for length in range(len(path), 0, -1):
                header = known.get(cast("tuple[str, ...]", path[:length]))
                if header is not None:
                    return header
        return None


@dataclass
class _Reading:
    """What a workbook gave so far."""

    source: str
    strict: bool
    origin: SheetOrigin
    content: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict[str, "list[dict[str, Any]]"]
    )
    problems: list[Problem] = field(default_factory=list[Problem])
    found: dict[tuple[str, int], list[Finding]] = field(
        default_factory=dict[tuple[str, int], "list[Finding]"]
    )
    groups: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])

    def note(
        self,
        sheet: str,
        message: str,
        *,
        row: int | None = None,
        suggestion: str | None = None,
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        self.problems.append(
            Problem(
                message=message,
                source=self.source,
                sheet=sheet,
                line=row,
                suggestion=suggestion,
                severity=severity,
            )
        )


def read_workbook(content: bytes, source: str, *, strict: bool = True) -> Document:
    """Return what the sheets connections, dataflows and schema_hints hold.

    Other sheets are passed over, unless their name looks like a misspelt one.

    Args:
        content: The bytes of the .xlsx file.
        source: Its name, for messages.
        strict: Whether an unknown column is an error; else a warning.

    Raises:
        DocumentError: The workbook can't be read, or has none of these sheets.
    """
    reading = _Reading(source, strict, SheetOrigin(source))
    for sheet in read_sheets(content, source):
        section = _section(sheet.title)
        if section is not None:
            _read_sheet(reading, section, sheet)
            continue
        meant = nearest(sheet.title, SECTIONS, cutoff=80)
        if meant is not None:
            reading.note(sheet.title, "a sheet of this name is not read", suggestion=meant)
    if not reading.content:
        message = "holds none of the sheets connections, dataflows and schema_hints"
        raise DocumentError([*reading.problems, Problem(message=message, source=source)])
    return Document(source, reading.content, reading.origin, reading.problems, reading.found)


def _section(title: str) -> Section | None:
    name = _plain(title)
    return next((section for section in SECTIONS if section == name), None)


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "_")


def _read_sheet(reading: _Reading, section: Section, sheet: Sheet) -> None:
    reading.content.setdefault(section, [])
    if sheet.hidden:
        message = "this sheet is hidden; it is read all the same"
        reading.note(sheet.title, message, severity="warning")
    for cells, top, _ in sheet.merged:
        message = f"the cells {cells} are merged, so all but the first are empty. Unmerge them"
        reading.note(sheet.title, message, row=top)
    if not sheet.rows:
        return
    (first, names), *rows = sheet.rows
    header = _header(reading, section, sheet.title, first, names)
    known = (one for one in header if isinstance(one, Column))
    reading.origin.headers[sheet.title] = {one.path: one.header for one in known}
    for number, cells in rows:
        raw, found = _entry(header, cells, strict=reading.strict)
        if any(top <= number <= bottom for _, top, bottom in sheet.merged):
            found.append(Finding(None, "it has merged cells", kind="echo"))
        row = _Row(sheet.title, number)
        if section == "schema_hints":
            _add_hint(reading, raw, found, row)
        else:
            _add(reading, section, raw, found, row)
    _note_nameless(reading, sheet.title, header, rows)


def _header(
    reading: _Reading, section: Section, sheet: str, row: int, names: Sequence[Any]
) -> _Header:
    """Return the column of each cell of the first row; as text what is no column."""
    header: _Header = []
    for value in names:
        name = _name(value)
        column = _column(section, name)
        if column in header and column is not None:
            reading.note(sheet, f"there are two columns '{column.header}'", row=row)
            column = None
        elif column is None and name:
            reading.note(
                sheet,
                f"unknown column '{name}'{'' if reading.strict else ', ignored'}",
                row=row,
                suggestion=nearest(name, columns_of(section)),
                severity="error" if reading.strict else "warning",
            )
        header.append(column or name or None)
    return header


def _name(value: Any) -> str:
    if value is None or isinstance(value, BadCell):
        return ""
    return unescaped(str(value)).strip()


def _column(section: Section, name: str) -> Column | None:
    plain = _plain(name)
    known = columns_of(section).get(plain)
    if known is None and section == "connections" and plain.startswith(CONFIGURE):
        key = name[len(CONFIGURE) :]  # as written: the layer below may tell cases apart
        return configure_column(key) if key else None
    return known


def _entry(
    header: _Header, cells: Sequence[Any], *, strict: bool
) -> tuple[dict[str, Any], list[Finding]]:
    raw: dict[str, Any] = {}
    found: list[Finding] = []
    known: list[tuple[Column, Any]] = []
    for place, value in enumerate(cells):
        column = header[place] if place < len(header) else None
        if isinstance(column, Column):
            known.append((column, value))
        elif value is not None and (strict or column is None):
            # the column is reported once; the entry can't be used all the same
            found.append(Finding(None, f"unknown column '{column}'", kind="echo"))
    for column, value in sorted(known, key=lambda pair: len(pair[0].path)):
        if value is None:
            continue
        try:
            if isinstance(value, BadCell):
                raise CellError(value.message)  # noqa: TRY301 - one way to report a cell
            plain = unescaped(value) if isinstance(value, str) else value
            _set(raw, column.path, read_cell(plain, column.kind))
        except CellError as error:
            found.append(Finding(column.field, str(error)))
    return raw, found


def _set(raw: dict[str, Any], path: Sequence[str], value: Any) -> None:
    here = raw
    for step in path[:-1]:
        here = here.setdefault(step, {})
    here[path[-1]] = value


def _add(
    reading: _Reading, section: Section, raw: dict[str, Any], found: list[Finding], row: _Row
) -> None:
    entries = reading.content[section]
    key = (section, len(entries))
    reading.origin.rows[key] = row
    reading.found[key] = found
    entries.append(raw)


def _add_hint(reading: _Reading, raw: dict[str, Any], found: Iterable[Finding], row: _Row) -> None:
    """Put a row's hint into the group of its table; the rows of a table need not be neighbours."""
    entries = reading.content["schema_hints"]
    hint = raw.pop("hints", {})
    key = tuple(str(raw.get(name, "")).strip().casefold() for name in _GROUP)
    index = reading.groups.setdefault(key, len(entries))
    if index == len(entries):
        _add(reading, "schema_hints", {**raw, "hints": []}, [], row)
    hints = entries[index]["hints"]
    reading.origin.hints[index, len(hints)] = row
    reading.found["schema_hints", index] += _of_hint(found, len(hints))
    hints.append(hint)


def _of_hint(found: Iterable[Finding], index: int) -> list[Finding]:
    """Return findings of one row as those of a hint in its group."""
    return [
        Finding(f"hints[{index}]{one.field[5:]}", one.message)
        if one.field and one.field.startswith("hints.")
        else one
        for one in found
    ]


def _note_nameless(
    reading: _Reading, sheet: str, header: _Header, rows: Iterable[tuple[int, Sequence[Any]]]
) -> None:
    from openpyxl.utils import get_column_letter

    told: set[int] = set()
    for number, cells in rows:
        for place, value in enumerate(cells):
            nameless = place >= len(header) or header[place] is None
            if nameless and value is not None and place not in told:
                told.add(place)
                letter = get_column_letter(place + 1)
                reading.note(sheet, f"column {letter} has a value but no name", row=number)
