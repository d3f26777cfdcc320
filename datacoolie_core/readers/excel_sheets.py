"""One sheet of a workbook: its header, its rows, and cells that are errors."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from datacoolie_core.engines.names import listed, remedy_for
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.excel_values import refined, same_texts, without_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fastexcel import ExcelReader

    from datacoolie_core.readers.excel_options import ExcelOptions

_HEAD = 1000
_BLANK = re.compile(r"""'String\("\s*"\)""")
_TYPES: tuple[Literal["float", "datetime", "boolean"], ...] = ("float", "datetime", "boolean")


@dataclass(frozen=True)
class Sheet:
    """A sheet that was read.

    Attributes:
        name: Its name.
        frame: Its rows.
        warnings: Code and message.
    """

    name: str
    frame: pl.DataFrame
    warnings: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass
class SheetReading:
    """What is being read of one sheet.

    Attributes:
        reader: The open workbook.
        path: Where it is.
        name: Of the sheet.
        place: What messages call it.
        options: How it is read.
        warnings: Code and message, so far.
    """

    reader: ExcelReader
    path: str
    name: str
    place: str
    options: ExcelOptions
    warnings: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def sheet(self, texts: Callable[[str], bool]) -> Sheet:
        """Return the sheet.

        Args:
            texts: Says which columns shall be text.

        Raises:
            ReadError: Its header can't be used, or it is empty and must not be.
        """
        head = self._load(0, {}, rows=self._head_rows(), all_text=True)[0]
        names, start = self._header(head)
        if not names:
            self._refuse_empty(pl.DataFrame())
            return Sheet(self.name, pl.DataFrame())
        frame, errors = self._load(start, {}, all_text=not self.options.infer)
        columns = self._chosen(names, frame)
        bad = {(row, at) for row, at, reason in errors if at in columns and _is_error(reason)}
        # beside numbers the library takes words such as NULL and NaN for what they are not
        again = {at for _, at, reason in errors if not _is_error(reason) and not _is_blank(reason)}
        again |= {
            at
            for at, column in columns.items()
            if frame.to_series(at).dtype.is_float()
            and (texts(column) or frame.to_series(at).is_nan().any())
        }
        if again:
            whole, _ = self._load(start, dict.fromkeys(again, "string"))
            frame = frame.with_columns(whole.to_series(at) for at in sorted(again))
        frame = self._without_words(start, frame, columns)
        if self._may_have_errors():
            bad |= self._hidden_errors(start, frame, columns)
        if bad:
            self.warnings.append(_error_cells(self.place, bad, start, columns))
        result = self._finished(frame, columns, {row for row, _ in bad})
        self._refuse_empty(result)
        return Sheet(self.name, result, self.warnings)

    def _refuse_empty(self, frame: pl.DataFrame) -> None:
        if self.options.fail_if_empty and not frame.height:
            raise ReadError(
                "the sheet has no rows",
                place=self.place,
                remedy="Fill it, or leave read_options.raise_if_empty out.",
                code="empty_sheet",
            )

    def _head_rows(self) -> int:
        return max(self.options.header_row or 0, self.options.skip) + _HEAD

    def _load(
        self,
        start: int,
        dtypes: Mapping[int, str],
        *,
        rows: int | None = None,
        all_text: bool = False,
    ) -> tuple[pl.DataFrame, list[tuple[int, int, str]]]:
        """Return cells from a row on, and row, column and reason of those left out as null."""
        import fastexcel

        wanted: Any = "string" if all_text else dict(dtypes) or None
        try:
            sheet = cast("Any", self.reader).load_sheet(
                self.name,
                header_row=None,
                skip_rows=start,
                n_rows=rows,
                schema_sample_rows=None,
                dtypes=wanted,
            )
            batch, errors = sheet.to_arrow_with_errors()
        except fastexcel.FastExcelError as error:
            raise ReadError(
                f"the sheet can't be read: {str(error).splitlines()[0]}",
                place=self.place,
                remedy="Save the workbook anew.",
                code="bad_file",
            ) from error
        frame = pl.DataFrame(batch)
        found: list[Any] = [] if errors is None else errors.errors
        return frame, [(*one.offset_position, one.detail) for one in found]

    def _header(self, head: pl.DataFrame) -> tuple[list[str | None], int]:
        """Return the columns' names, None for those without, and the first row of data."""
        options = self.options
        if not options.header:
            numbered = [f"column_{number}" for number in range(1, head.width + 1)]
            return list(numbered), options.skip + options.skip_after
        place = options.header_row
        if place is None:
            filled = head.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
            places = filled.arg_true()
            place = next((int(one) for one in places if one >= options.skip), None)
        if place is None or place >= head.height:
            return [], 0
        names = [None if name is None or not name.strip() else name for name in head.row(place)]
        return names, place + 1 + options.skip_after

    def _chosen(self, names: Sequence[str | None], frame: pl.DataFrame) -> dict[int, str]:
        """Return place → name of the columns that are read.

        Raises:
            ReadError: Two of them have one name, or one is not there.
        """
        found: dict[int, str] = {}
        unnamed: list[str] = []
        for at, name in enumerate(names):
            empty = frame.to_series(at).null_count() == frame.height
            if name is None and self.options.drop_columns and empty:
                continue
            found[at] = name or f"column_{at + 1}"
            unnamed += [] if name else [found[at]]
        chosen = self._selected(found)
        twice = [name for name in chosen.values() if [*chosen.values()].count(name) > 1]
        if twice:
            raise ReadError(
                f"the header names {listed(dict.fromkeys(twice))} more than once",
                place=self.place,
                remedy="Give each column its own name, or choose with read_options.columns.",
                code="duplicate_header",
            )
        told = [name for name in unnamed if name in chosen.values()]
        if told:
            message = f"{self.place}: columns without a name are read as {listed(told)}"
            self.warnings.append(("unnamed_columns", message))
        return chosen

    def _selected(self, found: dict[int, str]) -> dict[int, str]:
        wanted = self.options.columns
        if wanted is None:
            return found
        missing = [one for one in wanted if one not in found and one not in found.values()]
        if missing:
            raise ReadError(
                f"there is no column {missing[0]!r}",
                place=self.place,
                remedy=remedy_for(str(missing[0]), found.values()),
                code="missing_column",
            )
        return {at: name for at, name in found.items() if at in wanted or name in wanted}

    def _without_words(
        self, start: int, frame: pl.DataFrame, columns: Mapping[int, str]
    ) -> pl.DataFrame:
        """Return cells without words that stand for nothing, in the type of the others."""
        for at, column in columns.items():
            before = frame.to_series(at)
            texts = without_words(before, self.options.null_words(column))
            if texts.null_count() == before.null_count():
                continue
            typed = texts
            for kind in _TYPES if self.options.infer else ():
                cells = self._load(start, {at: kind})[0].to_series(at)
                if same_texts(texts, cells):
                    typed = cells
                    break
            frame = frame.with_columns(typed)
        return frame

    def _may_have_errors(self) -> bool:
        """Return whether a cell may be an error; the file says it where that is cheap to know."""
        if not self.path.lower().endswith((".xlsx", ".xlsm")):
            return True
        with zipfile.ZipFile(self.path) as archive:
            sheets = [one for one in archive.namelist() if one.startswith("xl/worksheets/")]
            return any(b't="e"' in archive.read(one) for one in sheets if one.endswith(".xml"))

    def _hidden_errors(
        self, start: int, frame: pl.DataFrame, columns: Mapping[int, str]
    ) -> set[tuple[int, int]]:
        """Return row and column of cells that are errors in columns of text."""
        texts = [
            at
            for at in columns
            if frame.to_series(at).dtype == pl.String and frame.to_series(at).null_count()
        ]
        if not texts:
            return set()
        # no cell of these is a duration, so each is told with what it is
        _, told = self._load(start, dict.fromkeys(texts, "duration"))
        return {(row, at) for row, at, reason in told if at in texts and _is_error(reason)}

    def _finished(
        self, frame: pl.DataFrame, columns: Mapping[int, str], bad: set[int]
    ) -> pl.DataFrame:
        """Return the columns that are read, without rows of empty cells; an error is not empty."""
        chosen = frame.select(frame.to_series(at).alias(name) for at, name in columns.items())
        if self.options.drop_rows:
            filled = pl.any_horizontal(pl.all().is_not_null())
            chosen = chosen.filter(filled | pl.int_range(pl.len()).is_in(sorted(bad)))
        return chosen.select(refined(column) for column in chosen.iter_columns())


def _is_error(reason: str) -> bool:
    """Return whether a cell that was left out holds an error, such as ``#N/A``."""
    return "'Error(" in reason


def _is_blank(reason: str) -> bool:
    return _BLANK.search(reason) is not None


def _error_cells(
    place: str, cells: set[tuple[int, int]], start: int, columns: Mapping[int, str]
) -> tuple[str, str]:
    named = [f"{columns[at]} in row {start + row + 1}" for row, at in sorted(cells)]
    return ("error_cells", f"{place}: cells with an error are read as null: {listed(named)}")
