"""Dates and times whose types a CSV file's reader infers."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from datacoolie_core.errors import ReadError

INFERRED = {"infer_schema": True, "try_parse_dates": True}


def test_iso_texts_become_dates_timestamps_and_instants(reading):
    reading.write(
        "t/a.csv",
        "day,at,since\n2025-01-31,2025-01-31 10:00:00,2025-01-31T10:00:00.5+02:00\n,,\n",
    )
    flow = reading.flow(options=INFERRED)
    assert reading.rows(flow) == [
        (
            date(2025, 1, 31),
            datetime(2025, 1, 31, 10),
            datetime(2025, 1, 31, 8, 0, 0, 500_000, UTC),
        ),
        (None, None, None),
    ]


def test_other_forms_are_the_engines(reading):
    reading.write("t/a.csv", "day,id\n31/01/2025,1\n01/02/2025,2\n")
    assert reading.rows(reading.flow(options=INFERRED)) == [
        (date(2025, 1, 31), 1),
        (date(2025, 2, 1), 2),
    ]


def test_forms_may_change_between_rows_and_files(reading):
    reading.write("t/a.csv", "at\n2025-01-31T10:00:00\n2025-01-31T10:00:00.25\n")
    reading.write("t/b.csv", "at\n2025-02-01 11:30\n")
    found = reading.rows(reading.flow(options=INFERRED))
    assert sorted(found) == [
        (datetime(2025, 1, 31, 10),),
        (datetime(2025, 1, 31, 10, 0, 0, 250_000),),
        (datetime(2025, 2, 1, 11, 30),),
    ]


@pytest.mark.parametrize(
    ("bad", "kind"), [("soon", "timestamp_ntz"), ("2025-02-30T00:00:00", "timestamp_ntz")]
)
def test_a_later_text_that_is_no_moment_is_named_with_file_line_and_column(reading, bad, kind):
    good = "2025-01-31T10:00:00"
    reading.write("t/a.csv", f"id,at\n1,{good}\n")
    reading.write("t/b.csv", "id,at\n" + f"1,{good}\n" * 150 + f"2,{bad}\n")
    with pytest.raises(ReadError) as caught:
        reading.rows(reading.flow(options=INFERRED))
    told = str(caught.value)
    assert "t/b.csv, column 'at'" in told
    assert f"{bad!r} is no {kind} (line 152), the type inferred from the rows before it" in told


def test_errors_can_be_nulls(reading):
    reading.write("t/a.csv", "at\n" + "2025-01-31T10:00:00\n" * 150 + "soon\n")
    flow = reading.flow(options={**INFERRED, "ignore_errors": True})
    assert reading.rows(flow)[-1] == (None,)


def test_a_finer_fraction_is_refused_not_cut(reading):
    at = "2025-01-31T10:00:00.1234567"
    reading.write("t/a.csv", "at\n" + "2025-01-31T10:00:00.123456\n" * 150 + f"{at}\n")
    with pytest.raises(ReadError, match=at):
        reading.rows(reading.flow(options=INFERRED))


def test_a_hint_counts_not_what_was_inferred(reading):
    reading.write("t/a.csv", "at\n2025-01-31T10:00:00\n")
    frame, _ = reading.read(reading.flow(options=INFERRED, hints={"at": "string"}))
    assert frame.schema["at"] == pl.String
