"""Read options of Excel workbooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core.readers.options import count, count_or_all, flag, one_of, read_options, texts

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def _several(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(count(one) for one in _several(value))


def _names(value: Any) -> tuple[str, ...]:
    names = _several(value)
    if not names or not all(isinstance(one, str) and one for one in names):
        raise ValueError("expected a name or a list of names")
    return tuple(names)


def _columns(value: Any) -> tuple[int, ...] | tuple[str, ...]:
    return _numbers(value) if all(type(one) is int for one in _several(value)) else _names(value)


def _nested(value: Any) -> dict[str, Any]:
    """Check the options that polars hands on to its Excel engine."""
    known = {"header_row": count, "skip_rows": count, "n_rows": count}
    if not isinstance(value, dict) or not set(cast("dict[str, Any]", value)) <= set(known):
        raise ValueError(f"expected an object of {', '.join(known)}")
    given = cast("dict[str, Any]", value)
    return {name: known[name](entry) for name, entry in given.items() if entry is not None}


OPTIONS: dict[str, Any] = {
    "sheet_name": _names,
    "sheet_id": _numbers,
    "has_header": flag,
    "header_row": count,
    "skip_rows": count,
    "skip_rows_after_header": count,
    "n_rows": count,
    "columns": _columns,
    "null_values": texts,
    "infer_schema": flag,
    "infer_schema_length": count_or_all,
    "drop_empty_rows": flag,
    "drop_empty_cols": flag,
    "raise_if_empty": flag,
    "engine": one_of("calamine", "openpyxl", "xlsx2csv"),
    "read_options": _nested,
}
ALIASES = {
    "header": "has_header",
    "sheet": "sheet_name",
    "sheets": "sheet_name",
    "use_columns": "columns",
    "null_value": "null_values",
}


@dataclass(frozen=True)
class ExcelOptions:
    """How workbooks are read.

    Attributes:
        sheets: Names, or numbers from 1; 0 is all of them.
        header: The first row that counts has the columns' names.
        header_row: Which row has them, from 0; None is the first one with a value.
        skip: Rows to leave out before the header.
        skip_after: Rows to leave out after it.
        limit: Rows to read at most, over all files.
        columns: Names, or numbers from 0; None is all.
        nulls: Texts that stand for nothing: in all columns, or in each of some.
        infer: Cells give their columns types; otherwise all is text.
        drop_rows: Rows without any value are no rows.
        drop_columns: Columns without a name and without any value are no columns.
        fail_if_empty: A sheet must have rows.
    """

    sheets: tuple[str | int, ...] = (1,)
    header: bool = True
    header_row: int | None = None
    skip: int = 0
    skip_after: int = 0
    limit: int | None = None
    columns: tuple[int, ...] | tuple[str, ...] | None = None
    nulls: str | list[str] | dict[str, str] | None = None
    infer: bool = True
    drop_rows: bool = True
    drop_columns: bool = True
    fail_if_empty: bool = False

    def null_words(self, column: str) -> list[str]:
        """Return the texts that stand for nothing in a column."""
        if isinstance(self.nulls, dict):
            return [self.nulls[column]] if column in self.nulls else []
        return [self.nulls] if isinstance(self.nulls, str) else list(self.nulls or ())


def excel_options(dataflow: Dataflow) -> ExcelOptions:
    """Return the options of a dataflow's source.

    Raises:
        ReadError: An option has no such name or value.
    """
    given = read_options(dataflow, OPTIONS, ALIASES)
    engine: dict[str, Any] = given.pop("read_options", {})
    names: tuple[str, ...] = given.get("sheet_name", ())
    return ExcelOptions(
        sheets=names or given.get("sheet_id", (1,)),
        header=given.get("has_header", True),
        header_row=given.get("header_row", engine.get("header_row")),
        skip=given.get("skip_rows", 0),
        skip_after=given.get("skip_rows_after_header", engine.get("skip_rows", 0)),
        limit=given.get("n_rows", engine.get("n_rows")),
        columns=given.get("columns"),
        nulls=given.get("null_values"),
        infer=given.get("infer_schema", True) and given.get("infer_schema_length", 1) != 0,
        drop_rows=given.get("drop_empty_rows", True),
        drop_columns=given.get("drop_empty_cols", True),
        fail_if_empty=given.get("raise_if_empty", False),
    )
