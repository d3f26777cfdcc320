"""Values at any depth of a column that a format can't hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable


def columns_with(
    rows: pl.DataFrame, leaf: Callable[[pl.Expr, pl.DataType], pl.Expr | None]
) -> list[str]:
    """Return the columns that hold a value for which a check says yes.

    Args:
        rows: A piece of a batch.
        leaf: Gives the check for values of a plain type; None where nothing can be wrong.
    """
    checks = {
        name: check
        for name, dtype in rows.schema.items()
        if (check := _within(pl.col(name), dtype, leaf)) is not None
    }
    if not checks:
        return []
    found = rows.select(
        check.fill_null(value=False).any().alias(name) for name, check in checks.items()
    ).row(0)
    return [name for name, broken in zip(checks, found, strict=True) if broken]


def _within(
    value: pl.Expr, dtype: pl.DataType, leaf: Callable[[pl.Expr, pl.DataType], pl.Expr | None]
) -> pl.Expr | None:
    if isinstance(dtype, pl.List | pl.Array):
        inner = cast("pl.DataType", dtype.inner)
        inside = _within(pl.element(), inner, leaf)
        if inside is None:
            return None
        return value.cast(pl.List(inner)).list.eval(inside).list.any()
    if isinstance(dtype, pl.Struct):
        parts = [
            part
            for f in dtype.fields
            if (part := _within(value.struct.field(f.name), cast("pl.DataType", f.dtype), leaf))
            is not None
        ]
        return pl.any_horizontal(parts) if parts else None
    return leaf(value, dtype)
