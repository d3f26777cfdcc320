"""What a result says of the table, also when nothing was loaded."""

from __future__ import annotations

import polars as pl


def test_a_skipped_load_still_tells_rows_and_columns_of_the_table(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 2]}))
    first = project.run_one()
    second = project.run_one()
    assert (first.status, second.status) == ("succeeded", "skipped")
    assert first.table_rows == second.table_rows == 2
    assert second.schema == first.schema
    assert second.schema["id"] == "long"


def test_a_load_without_a_table_tells_neither(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", pl.DataFrame({"id": []}, schema={"id": pl.Int64}))
    result = project.run_one()
    assert result.status == "skipped"
    assert result.table_rows is None
    assert result.schema == {}
