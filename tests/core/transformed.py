"""What the transforms make of a frame; ``reading`` is the fixture that makes dataflows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from datacoolie_core.errors import MetadataError, TransformError
from datacoolie_core.transforms.apply import TransformContext, apply

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SYSTEM = ["__created_at", "__updated_at", "__updated_by", "__dataflow_run_id"]


def context(**given: Any) -> TransformContext:
    return TransformContext(run_id="run-1", now=NOW, **given)


def shaped(reading, frame: pl.DataFrame, **given) -> pl.DataFrame:
    """Return the transformed frame with its system columns."""
    lazy, _ = apply(frame.lazy(), reading.flow(**given), context())
    found = lazy.collect(engine="streaming")
    assert found.schema == lazy.collect_schema(), "the plan promised other types"
    return found


def rows(reading, frame: pl.DataFrame, **given) -> list[dict[str, Any]]:
    return shaped(reading, frame, **given).drop(SYSTEM).to_dicts()


def column(reading, values: Any, dtype: Any = None, name: str = "a", **given) -> list[Any]:
    """Return what becomes of one column, whose type must stay."""
    frame = pl.DataFrame({name: pl.Series(values, dtype=dtype)})
    found = shaped(reading, frame, **given)
    return found[name].to_list()


def refused(reading, frame: pl.DataFrame, **given) -> str:
    """Return why nothing is even planned."""
    with pytest.raises(TransformError) as caught:
        apply(frame.lazy(), reading.flow(**given), context())
    assert not caught.value.retryable
    return str(caught.value)


def warned(reading, frame: pl.DataFrame, **given) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the columns that are left, and the warnings."""
    told = context()
    lazy, _ = apply(frame.lazy(), reading.flow(**given), told)
    names = [name for name in lazy.collect_schema().names() if name not in SYSTEM]
    return names, told.warnings


def problems(reading, **given) -> list[str]:
    """Return what is wrong with the metadata: ``field: message``."""
    with pytest.raises(MetadataError) as caught:
        reading.flow(**given)
    return [f"{problem.field}: {problem.message}" for problem in caught.value.problems]
