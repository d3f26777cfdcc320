"""What a person reads when a row breaks a load."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from datacoolie_core.errors import LoadError, ReadError, TransformError
from datacoolie_core.transforms.apply import TransformContext, apply
from datacoolie_core.transforms.explain import explain

CONTEXT = TransformContext(run_id="run-1", now=datetime(2026, 6, 1, tzinfo=UTC))


def broken(reading, flow) -> LoadError:
    batch = reading.open(flow)
    try:
        frame, _ = apply(batch.frame, flow, CONTEXT)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            frame.collect(engine="streaming")
        return explain(caught.value, batch, flow)
    finally:
        batch.close()


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("INT", "x7", "is no int32"),
        ("DECIMAL(5,1)", "1.25", "is no decimal(5,1)"),
        ("DATE", "01/02/2003", "is no date: expected ISO 8601"),
        ("BOOLEAN", "maybe", "is no bool"),
    ],
)
def test_a_bad_value_is_a_transform_error_with_column_value_and_file(reading, kind, value, shown):
    """W58: not a failure of the destination."""
    good = {"INT": "1", "DECIMAL(5,1)": "1.5", "DATE": "2003-02-01", "BOOLEAN": "true"}[kind]
    reading.write("t/a.csv", f"id,v\n1,{good}\n")
    path = reading.write("t/b.csv", f"id,v\n2,{good}\n3,{value}\n")
    error = broken(reading, reading.flow(hints={"V": kind}))
    assert isinstance(error, TransformError)
    assert str(error) == (
        f"transform, column 'v', {path}: the value '{value}' {shown}. "
        "Correct the source, or the schema hint of the column."
    )
    assert (error.code, error.retryable) == ("cast_failed", False)


def test_a_bad_value_of_a_table_has_no_file(reading):
    pl.DataFrame({"v": ["x"]}).write_delta(str(reading.root / "lake" / "t"))
    flow = reading.flow("delta", base_path="lake", hints={"v": "INT"})
    assert str(broken(reading, flow)).startswith(
        "transform, column 'v': the value 'x' is no int32."
    )


def test_a_broken_file_is_a_read_error(reading):
    path = reading.write("t/a.csv", "id,v\n1,2\n1,2,3\n")
    error = broken(reading, reading.flow(hints={"v": "INT"}))
    assert isinstance(error, ReadError)
    assert f"{path}: line 3 has 3 fields" in str(error)


def test_a_file_that_is_gone_is_a_read_error_that_time_may_cure(reading):
    path = reading.write("t/a.parquet", pl.DataFrame({"id": [1]}))
    flow = reading.flow("parquet")
    batch = reading.open(flow)
    path.unlink()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        batch.frame.collect(engine="streaming")
    error = explain(caught.value, batch, flow)
    assert isinstance(error, ReadError)
    assert error.retryable


def test_an_error_of_the_load_keeps_its_own_words(reading):
    reading.write("t/a.parquet", pl.DataFrame({"id": [1]}))
    flow = reading.flow("parquet")
    batch = reading.open(flow)
    known = TransformError("known")
    assert explain(known, batch, flow) is known
    stranger = KeyError("not ours")
    assert explain(stranger, batch, flow) is stranger
