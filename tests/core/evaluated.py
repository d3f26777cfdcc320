"""Expressions of the metadata's SQL, evaluated."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from datacoolie_core.engines.polars_sql import Session, typed_expression

NOW = datetime(2024, 3, 31, 22, 30, tzinfo=UTC)
INSTANT = pl.Datetime("us", "UTC")


def value(written: str, frame: pl.DataFrame | None = None, **session) -> list:
    rows = pl.DataFrame({"one": [1]}) if frame is None else frame
    expr, dtype = typed_expression(
        written, dict(rows.schema), place="p", session=Session(**{"now": NOW, **session})
    )
    found = rows.lazy().select(pl.col(rows.columns[0]).alias("__"), v=expr)
    whole = found.collect()["v"]
    assert whole.dtype == dtype
    assert whole.equals(found.collect(engine="streaming")["v"])
    return whole.to_list()


def kind(written: str, **columns: pl.DataType) -> pl.DataType:
    return typed_expression(written, columns, place="p")[1]
