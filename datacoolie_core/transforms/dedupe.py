"""Slot 20: one row a key, the newest; the same one in every run."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.engines.names import match
from datacoolie_core.plan.columns import NameMode, clean_name
from datacoolie_core.plan.scd2 import effective_expression, keeps_history, one_version_a_file
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow

_RANK = "__dc_newest_"


def keys_of(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the columns that make a key: those of the transform, else the merge keys.

    With scd2 several rows of a key are its versions, unless each file says one thing of a key.
    """
    own = dataflow.transform.deduplicate_columns
    if own or not keeps_history(dataflow):
        return own or dataflow.destination.merge_keys
    if one_version_a_file(dataflow):
        return (*dataflow.destination.merge_keys, *order_of(dataflow))
    return ()


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


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    keys = _keys(shaped, dataflow, context)
    if not keys:
        return shaped
    order = _order(shaped, dataflow, context)
    newest = [value for name in order for value in _sort_keys(name, shaped.schema[name])]
    if _keeps_ties(dataflow):
        return shaped.with_frame(_with_ties(shaped.frame, keys, newest))
    # rows that agree in every column are one row, so this order leaves nothing to chance; NaN and
    # null tie as order values, so floats stand here once more
    told = {*keys, *(name for name in order if not shaped.schema[name].is_float())}
    rest = [
        pl.col(name)
        for name, dtype in shaped.schema.items()
        if name not in told and not is_one_of(dtype, pl.Object, pl.Unknown)
    ]
    ordered = shaped.frame.sort([*newest, *rest], descending=True, nulls_last=True)
    return shaped.with_frame(ordered.unique(subset=keys, keep="first", maintain_order=True))


def _keys(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> list[str]:
    """Return the columns of a key; none where merge keys stand in that are computed later on."""
    names = keys_of(dataflow)
    if not dataflow.transform.deduplicate_columns:
        mode = dataflow.transform.configure.column_name_mode
        named = _as_in(shaped.schema, mode)
        columns = [
            match(name, shaped.schema) or named.get(clean_name(name, mode)) for name in names
        ]
        return [] if None in columns else [column for column in columns if column is not None]
    place = "transform.deduplicate_columns"
    found = found_columns(names, shaped.schema, dataflow, context, place=place, policy="error")
    return list(dict.fromkeys(found.values()))


def _as_in(columns: Iterable[str], mode: NameMode) -> dict[str, str]:
    """Return the columns by the names that the table has for them."""
    return {clean_name(column, mode): column for column in columns}


def _order(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> list[str]:
    place = (
        "transform.latest_data_columns"
        if dataflow.transform.latest_data_columns
        else "source.watermark_columns"
    )
    names = order_of(dataflow)
    found = found_columns(names, shaped.schema, dataflow, context, place=place, policy="error")
    effective = effective_expression(dataflow) if keeps_history(dataflow) else None
    newest = None if effective is None else match(effective.strip(), shaped.schema)
    return list(dict.fromkeys([*found.values(), *([] if newest is None else [newest])]))


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
