"""Excel workbooks: headers, mixed columns, words for nothing, errors, sheets, old kinds."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from typing import Any

import openpyxl
import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.excel_values import refined
from tests.core.old_workbooks import compound, old_excel, open_document


def book(*sheets: list[list[Any]], **named: list[list[Any]]) -> bytes:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    given_sheets = {f"S{number}": rows for number, rows in enumerate(sheets, 1)} | named
    for name, rows in given_sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    target = io.BytesIO()
    workbook.save(target)
    return target.getvalue()


def refused(reading, flow) -> str:
    with pytest.raises(ReadError) as caught:
        reading.read(flow)
    return str(caught.value)


def warned(batch, code: str) -> str:
    return next(message for found, message in batch.warnings if found == code)


def test_cells_have_the_type_of_their_column(reading):
    day, moment = dt.date(2024, 1, 5), dt.datetime(2024, 1, 5, 10, 30)
    rows = [
        ["id", "price", "day", "moment", "yes", "name"],
        [1, 1.5, day, moment, True, " a "],
        [None, 2, None, dt.datetime(2024, 1, 6), None, None],
        [3, None, dt.date(2023, 1, 1), None, False, "b"],
    ]
    reading.write("t/a.xlsx", book(rows))
    frame, _ = reading.read(reading.flow("excel"))
    assert frame.schema == {
        "id": pl.Int64,
        "price": pl.Float64,
        "day": pl.Date,
        "moment": pl.Datetime("us"),
        "yes": pl.Boolean,
        "name": pl.String,
    }
    assert frame.rows() == [
        (1, 1.5, day, moment, True, " a "),
        (None, 2.0, None, dt.datetime(2024, 1, 6), None, None),
        (3, None, dt.date(2023, 1, 1), None, False, "b"),
    ]


@pytest.mark.parametrize("hints", [{}, {"employee id": "string"}])
def test_an_id_column_of_numbers_and_texts_is_text(reading, hints):
    """excel-mixed-id-column."""
    rows = [["Employee ID", "Name"], [1001, "A"], ["US00011", "B"], [1002, "C"]]
    reading.write("t/a.xlsx", book(rows))
    assert reading.rows(reading.flow("excel", hints=hints)) == [
        ("1001", "A"),
        ("US00011", "B"),
        ("1002", "C"),
    ]


def test_whole_numbers_of_a_text_column_have_no_fraction(reading):
    reading.write("t/a.xlsx", book([["code"], [1001], [1002.5], [123456789012345]]))
    rows = reading.rows(reading.flow("excel", hints={"code": "string"}))
    assert rows == [("1001",), ("1002.5",), ("123456789012345",)]


def test_a_column_of_numbers_here_and_texts_in_another_file_is_text(reading):
    reading.write("t/a.xlsx", book([["id"], [1001], [1002]]))
    reading.write("t/b.xlsx", book([["id"], ["US1"]]))
    reading.write("t/c.xlsx", book([["id"], [7], [0.5]]))
    flow = reading.flow("excel")
    assert reading.rows(flow) == [("1001",), ("1002",), ("US1",), ("7",), ("0.5",)]


def test_words_for_nothing_are_null_and_the_rest_are_numbers(reading):
    """excel-null-words."""
    reading.write("t/a.xlsx", book([["id", "qty"], [1, 5], [2, "NULL"], [3, 7]]))
    flow = reading.flow("excel", options={"null_values": ["NULL"]})
    assert reading.rows(flow) == [(1, 5), (2, None), (3, 7)]


@pytest.mark.parametrize("word", ["NULL", "n/a", "NaN", "None", "#N/A"])
@pytest.mark.parametrize(("value", "shown"), [(5, "5"), (True, "true"), (0.5, "0.5")])
def test_words_that_are_not_declared_are_not_lost(reading, word, value, shown):
    """excel-null-words."""
    workbook = openpyxl.load_workbook(io.BytesIO(book([["id", "c"], [1, value], [2, "?"]])))
    cell = workbook["S1"]["B3"]
    cell.value, cell.data_type = word, "s"
    target = io.BytesIO()
    workbook.save(target)
    reading.write("t/a.xlsx", target.getvalue())
    assert reading.rows(reading.flow("excel")) == [(1, shown), (2, word)]


def test_a_formula_that_gives_no_character_is_null_among_numbers(reading):
    made = zipfile.ZipFile(io.BytesIO(book([["n"], [5], [6], [7]])))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in made.namelist():
            plain = b'<c r="A3" t="n"><v>6</v></c>'
            formula = b'<c r="A3" t="str"><f>""</f><v></v></c>'
            archive.writestr(name, made.read(name).replace(plain, formula))
    assert plain in made.read("xl/worksheets/sheet1.xml")
    reading.write("t/a.xlsx", target.getvalue())
    flow = reading.flow("excel", options={"drop_empty_rows": False})
    assert reading.rows(flow) == [(5,), (None,), (7,)]


def test_texts_that_look_like_numbers_stay_texts_beside_words_for_nothing(reading):
    reading.write("t/a.xlsx", book([["zip", "day"], ["0870", "-"], ["-", dt.date(2024, 1, 5)]]))
    frame, _ = reading.read(reading.flow("excel", options={"null_values": "-"}))
    assert frame.rows() == [("0870", None), (None, dt.date(2024, 1, 5))]


def test_words_for_nothing_can_be_those_of_a_column(reading):
    reading.write("t/a.xlsx", book([["a", "b"], ["x", "x"], ["y", 1]]))
    flow = reading.flow("excel", options={"null_values": {"b": "x"}})
    assert reading.rows(flow) == [("x", None), ("y", 1)]


def test_cells_with_errors_are_null_and_told(reading):
    workbook = openpyxl.load_workbook(
        io.BytesIO(
            book(
                [["n", "t", "only"], [1, "x", "#N/A"], ["#DIV/0!", "#REF!", "#N/A"], [3, "y", "z"]]
            )
        )
    )
    target = io.BytesIO()
    workbook.save(target)
    path = reading.write("t/a.xlsx", target.getvalue())
    frame, batch = reading.read(reading.flow("excel"))
    assert frame.rows() == [(1, "x", None), (None, None, None), (3, "y", "z")]
    message = warned(batch, "error_cells")
    assert message.startswith(f"{path}, sheet 'S1': cells with an error are read as null: ")
    for cell in ("n in row 3", "t in row 3", "only in row 2", "only in row 3"):
        assert cell in message


def test_percents_are_fractions_and_times_are_texts(reading):
    rows = [
        ["pct", "time", "took"],
        [0.25, dt.time(10, 30), dt.timedelta(hours=30, seconds=1.5)],
        [1, None, dt.timedelta(seconds=-5)],
    ]
    workbook = openpyxl.load_workbook(io.BytesIO(book(rows)))
    for cell in workbook["S1"]["A"][1:]:
        cell.number_format = "0.00%"
    target = io.BytesIO()
    workbook.save(target)
    reading.write("t/a.xlsx", target.getvalue())
    assert reading.rows(reading.flow("excel")) == [
        (0.25, "10:30:00", "30:00:01.500"),
        (1.0, None, "-00:00:05"),
    ]


def test_what_lies_around_the_table_is_no_row_and_no_column(reading):
    sheet = [[], [], [None, "id", "name", None], [], [None, 1, "a"], [], [None, 2, "b"], []]
    workbook = openpyxl.load_workbook(io.BytesIO(book(sheet)))
    workbook["S1"].cell(row=3, column=9).number_format = "0.00"
    target = io.BytesIO()
    workbook.save(target)
    reading.write("t/a.xlsx", target.getvalue())
    frame, _ = reading.read(reading.flow("excel"))
    assert frame.to_dicts() == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_a_column_with_values_but_no_name_is_kept_and_told(reading):
    reading.write("t/a.xlsx", book([["id", None, "x"], [1, "kept", 2]]))
    frame, batch = reading.read(reading.flow("excel"))
    assert frame.to_dicts() == [{"id": 1, "column_2": "kept", "x": 2}]
    assert "'column_2'" in warned(batch, "unnamed_columns")


def test_a_header_twice_is_refused_unless_the_columns_are_chosen(reading):
    path = reading.write("t/a.xlsx", book([["id", "amount", "amount"], [1, 10, 20]]))
    message = refused(reading, reading.flow("excel"))
    assert message.startswith(f"read, {path}, sheet 'S1': the header names 'amount' more than once")
    assert reading.rows(reading.flow("excel", options={"columns": [0, 2]})) == [(1, 20)]
    assert "'amount'" in refused(reading, reading.flow("excel", options={"columns": ["amount"]}))
    assert reading.rows(reading.flow("excel", options={"use_columns": "id"})) == [(1,)]


def test_a_column_that_is_not_there_is_refused(reading):
    reading.write("t/a.xlsx", book([["id"], [1]]))
    message = refused(reading, reading.flow("excel", options={"columns": ["idd"]}))
    assert "there is no column 'idd'" in message


@pytest.mark.parametrize(
    "options",
    [
        {"header_row": 2},
        {"skip_rows": 2},
        {"read_options": {"header_row": 2}},
        {"skip_rows": 1, "engine": "calamine"},
    ],
)
def test_the_header_may_stand_below_a_title(reading, options):
    reading.write("t/a.xlsx", book([["Sales 2024", None], [], ["id", "name"], [1, "a"]]))
    frame, _ = reading.read(reading.flow("excel", options=options))
    assert frame.to_dicts() == [{"id": 1, "name": "a"}]


def test_rows_after_the_header_and_rows_at_the_end_can_be_left_out(reading):
    reading.write("t/a.xlsx", book([["id"], ["(number)"], [1], [2], [3]]))
    options = {"skip_rows_after_header": 1, "n_rows": 2}
    assert reading.rows(reading.flow("excel", options=options)) == [(1,), (2,)]
    nested = {"read_options": {"skip_rows": 1, "n_rows": 2}}
    assert reading.rows(reading.flow("excel", options=nested)) == [(1,), (2,)]


def test_without_a_header_columns_are_numbered(reading):
    reading.write("t/a.xlsx", book([[1, "a"], [2, "b"]]))
    frame, _ = reading.read(reading.flow("excel", options={"header": "false"}))
    assert frame.to_dicts() == [
        {"column_1": 1, "column_2": "a"},
        {"column_1": 2, "column_2": "b"},
    ]


@pytest.mark.parametrize("option", [{"infer_schema_length": 0}, {"inferSchema": "false"}])
def test_without_inference_all_cells_are_text(reading, option):
    reading.write("t/a.xlsx", book([["id", "yes"], [1, True], [2.5, None]]))
    assert reading.rows(reading.flow("excel", options=option)) == [("1", "true"), ("2.5", None)]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, [1]),
        ({"sheet_id": 2}, [2]),
        ({"sheet_name": "Mar"}, [3]),
        ({"sheet_name": ["Mar", "Jan"]}, [3, 1]),
        ({"sheet_id": [1, 2]}, [1, 2]),
        ({"sheet_id": 0}, [1, 2, 3]),
    ],
)
def test_sheets_are_chosen_by_name_or_number_and_put_together(reading, options, ids):
    reading.write(
        "t/a.xlsx", book(Jan=[["id"], [1]], Feb=[["x", "id"], ["f", 2]], Mar=[["id"], [3]])
    )
    frame, _ = reading.read(reading.flow("excel", options=options))
    assert frame["id"].to_list() == ids


def test_a_sheet_that_is_not_there_is_refused(reading):
    path = reading.write("t/a.xlsx", book(Jan=[["id"], [1]]))
    message = refused(reading, reading.flow("excel", options={"sheet_name": "Jam"}))
    assert message.startswith(f"read, {path}: there is no sheet 'Jam'")
    assert "'Jan'" in message


def test_a_sheet_without_rows_gives_no_rows(reading):
    """W64."""
    reading.write("t/a.xlsx", book([]))
    batch = reading.open(reading.flow("excel"))
    assert batch.empty
    assert "sheet 'S1' is empty" in warned(batch, "empty_sheet")
    reading.write("t/b.xlsx", book([["id"]]))
    reading.write("t/c.xlsx", book([["id"], [1]]))
    assert reading.rows(reading.flow("excel")) == [(1,)]
    flow = reading.flow("excel", table="t/b.xlsx", options={"raise_if_empty": True})
    assert "the sheet has no rows" in refused(reading, flow)


def test_the_file_that_excel_keeps_beside_an_open_workbook_is_no_workbook(reading):
    reading.write("t/a.xlsx", book([["id"], [1]]))
    reading.write("t/~$a.xlsx", b"somebody")
    assert reading.rows(reading.flow("excel")) == [(1,)]


@pytest.mark.parametrize(("suffix", "made"), [("xls", old_excel), ("ODS", open_document)])
def test_old_and_open_workbooks_are_read(reading, suffix, made):
    reading.write(f"t/a.{suffix}", made([["id", "name"], [1.0, "a"], ["x", "b"]]))
    assert reading.rows(reading.flow("excel")) == [("1", "a"), ("x", "b")]


def test_a_workbook_with_a_password_says_so(reading):
    path = reading.write("t/a.xlsx", compound("EncryptedPackage", b"secret"))
    assert refused(reading, reading.flow("excel")) == (
        f"read, {path}: the workbook is protected by a password. Save it without one."
    )


@pytest.mark.parametrize(
    "content", [b"id,name\n1,a\n", book([["id"], [1]])[:300]], ids=["text", "cut"]
)
def test_a_file_that_is_no_workbook_is_named(reading, content):
    path = reading.write("t/a.xlsx", content)
    message = refused(reading, reading.flow("excel"))
    assert message.startswith(f"read, {path}: the file is no workbook: ")


def test_an_option_without_meaning_is_refused(reading):
    reading.write("t/a.xlsx", book([["id"], [1]]))
    for options in ({"sheet_nam": "x"}, {"sheet_id": "one"}, {"read_options": {"eager": True}}):
        assert "read_options" in refused(reading, reading.flow("excel", options=options))


@given(st.lists(st.none() | st.floats(allow_nan=False)))
def test_numbers_become_integers_only_if_none_changes(values):
    found = refined(pl.Series("n", values, dtype=pl.Float64))
    assert [None if one is None else float(one) for one in found.to_list()] == values
    present = [one for one in values if one is not None]
    whole = all(one.is_integer() and abs(one) <= 2**53 for one in present)
    assert found.dtype == (pl.Null if not present else pl.Int64 if whole else pl.Float64)
