"""A workbook: whether it can be opened, and its sheets."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from datacoolie_core.engines.names import remedy_for
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.excel_sheets import Sheet, SheetReading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastexcel import ExcelReader

    from datacoolie_core.readers.excel_options import ExcelOptions

_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_KNOWN = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


class Workbook:
    """A workbook on this machine.

    Args:
        path: Where it is.
        uri: What messages call it.

    Raises:
        ReadError: It can't be opened.
    """

    def __init__(self, path: str, uri: str) -> None:
        self._uri = uri
        self._path = path
        self._reader = self._open()

    def _open(self) -> ExcelReader:
        try:
            import fastexcel
        except ImportError as error:
            raise ReadError(
                "Excel workbooks need the package fastexcel",
                place=self._uri,
                remedy="Install it: pip install 'datacoolie[excel]'.",
                code="missing_package",
            ) from error
        # it warns of each column without values
        logging.getLogger("fastexcel").addHandler(logging.NullHandler())
        known = self._path.lower().endswith(_KNOWN)
        try:
            return fastexcel.read_excel(self._path if known else Path(self._path).read_bytes())
        except (fastexcel.FastExcelError, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ReadError:
        if "assword" in str(error) or _is_encrypted(self._path):
            return ReadError(
                "the workbook is protected by a password",
                place=self._uri,
                remedy="Save it without one.",
                code="password_protected",
            )
        return ReadError(
            f"the file is no workbook: {str(error).splitlines()[0]}",
            place=self._uri,
            remedy="Replace or remove the file; its ending must be that of its kind"
            f" ({', '.join(_KNOWN)}).",
            code="bad_file",
        )

    def sheet_names(self, wanted: Sequence[str | int]) -> list[str]:
        """Return the names of sheets.

        Args:
            wanted: Names, or numbers from 1; 0 is all of them.

        Raises:
            ReadError: There is no such sheet.
        """
        names = self._reader.sheet_names
        chosen: list[str] = []
        for one in wanted:
            if one == 0:
                chosen += names
            elif isinstance(one, int) and one <= len(names):
                chosen.append(names[one - 1])
            elif one in names:
                chosen.append(str(one))
            else:
                raise ReadError(
                    f"there is no sheet {one!r}",
                    place=self._uri,
                    remedy=remedy_for(str(one), names),
                    code="missing_sheet",
                )
        return list(dict.fromkeys(chosen))

    def sheet(self, name: str, options: ExcelOptions, texts: Callable[[str], bool]) -> Sheet:
        """Return the rows of a sheet.

        Args:
            name: Of the sheet.
            options: How it is read.
            texts: Says which columns shall be text.

        Raises:
            ReadError: Its header can't be used, or it is empty and must not be.
        """
        place = f"{self._uri}, sheet '{name}'"
        return SheetReading(self._reader, self._path, name, place, options).sheet(texts)


def _is_encrypted(path: str) -> bool:
    with Path(path).open("rb") as raw:
        if raw.read(len(_COMPOUND)) != _COMPOUND:
            return False
        return _ENCRYPTED in raw.read(1 << 24)
