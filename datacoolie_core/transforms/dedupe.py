"""Slot 20: one row a key, the newest; the same one in every run."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.plan.scd2 import keeps_history
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow

_RANK = "__dc_newest_"


def keys_of(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the columns that make a key: those of the transform, else the merge keys.

    With scd2 the merge keys don't count: several rows of a key are its versions.
    """
    own = dataflow.transform.deduplicate_columns
    return own if own or keeps_history(dataflow) else dataflow.destination.merge_keys


def order_of(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the columns that say what is newest: those of the transform, else the watermark."""
    return dataflow.transform.latest_data_columns or dataflow.source.watermark_columns


def _wanted(dataflow: Dataflow) -> bool:
    return bool(keys_of(dataflow) and order_of(dataflow))


def _keeps_ties(dataflow: Dataflow) -> bool:
    if dataflow.transform.configure.deduplicate_by_rank:
        return True
    replaced = dataflow.destination.load_type == "merge_overwrite"
    return replaced and not dataflow.transform.deduplicate_columns


def _apply(shaped: Shaped, dataflow: Dataflow, _context: TransformContext) -> Shaped:
    keys = _columns(keys_of(dataflow), shaped, dataflow, "deduplicate_columns")
    order = _columns(order_of(dataflow), shaped, dataflow, "latest_data_columns")
    if not keys or not order:
        return shaped
    newest = [value for name in order for value in _sort_keys(name, shaped.schema[name])]
    if _keeps_ties(dataflow):
        return shaped.with_frame(_with_ties(shaped.frame, keys, newest))
    # rows that agree in every column are one row, so this order leaves nothing to chance
    rest = [
        pl.col(name)
        for name, dtype in shaped.schema.items()
        if name not in (*keys, *order) and not is_one_of(dtype, pl.Object, pl.Unknown)
    ]
    ordered = shaped.frame.sort([*newest, *rest], descending=True, nulls_last=True)
    return shaped.with_frame(ordered.unique(subset=keys, keep="first", maintain_order=True))


def _columns(names: tuple[str, ...], shaped: Shaped, dataflow: Dataflow, field: str) -> list[str]:
    place = f"transform.{field}"
    found = found_columns(names, shaped.schema, dataflow, place=place)
    return list(dict.fromkeys(found.values()))


def _sort_keys(name: str, dtype: pl.DataType) -> list[pl.Expr]:
    """Return what a column is sorted by: NaN is null, and text of numbers goes by number."""
    value = pl.col(name)
    if dtype.is_float():
        return [value.fill_nan(None)]
    if dtype == pl.String:
        return [value.cast(pl.Float64, strict=False).fill_nan(None), value]
    return [value]


def _with_ties(frame: pl.LazyFrame, keys: list[str], newest: list[pl.Expr]) -> pl.LazyFrame:
    names = [f"{_RANK}{index}" for index in range(len(newest))]
    ranked = frame.with_columns(
        value.alias(name) for name, value in zip(names, newest, strict=True)
    )
    ranked = ranked.sort(names, descending=True, nulls_last=True)
    same = [pl.col(name).eq_missing(pl.col(name).first().over(keys)) for name in names]
    return ranked.filter(reduce(lambda one, other: one & other, same)).drop(names)


SLOT = Slot(20, "dedupe", _wanted, _apply)
