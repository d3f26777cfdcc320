"""Slot 84: values are hidden, types stay. A null stays null: it hides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.buckets import bucket
from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.engines.names import listed
from datacoolie_core.engines.scalars import scalar_literal
from datacoolie_core.errors import TransformError
from datacoolie_core.plan.columns import clean_name
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext, trailing_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datacoolie_core.metadata.models import Dataflow, MaskingRule


def _wanted(dataflow: Dataflow) -> bool:
    return bool(dataflow.transform.masking_rules)


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    hidden: dict[str, tuple[pl.Expr, pl.DataType]] = {}
    for index, rule in enumerate(dataflow.transform.masking_rules):
        place = f"transform.masking_rules[{index}]"
        found = found_columns(
            rule.columns, shaped.schema, dataflow, context, place=f"{place}.columns"
        )
        _check_own(found.values(), dataflow, f"{place}.columns")
        for column in found.values():
            hidden[column] = _hidden(rule, column, shaped.schema[column], place)
    return shaped.with_columns(**hidden) if hidden else shaped


def _check_own(columns: Iterable[str], dataflow: Dataflow, place: str) -> None:
    """Refuse what the load needs as it is; metadata may name it as the table does."""
    mode = dataflow.transform.configure.column_name_mode
    destination = dataflow.destination
    needed = (
        *destination.merge_keys,
        *(one.column for one in destination.partition_columns),
        *trailing_columns(dataflow),
    )
    own = {clean_name(name, mode).casefold() for name in needed}
    wrong = [name for name in columns if clean_name(name, mode).casefold() in own]
    if wrong:
        raise TransformError(
            f"{listed(wrong)} can't be masked: the load needs it as it is",
            place=place,
            remedy="Merge keys, partition columns and system columns stay; hash them instead.",
            code="masked_key",
        )


def _hidden(
    rule: MaskingRule, column: str, dtype: pl.DataType, place: str
) -> tuple[pl.Expr, pl.DataType]:
    try:
        return _METHODS[rule.method](rule, pl.col(column), dtype), dtype
    except ValueError as error:
        raise TransformError(
            f"'{column}' can't be masked with {rule.method}: {error}",
            place=place,
            remedy="Use a method that fits the type, or give the column another type.",
            code="wrong_type",
        ) from error


def _redacted(rule: MaskingRule, column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if rule.value is None or dtype == pl.Null:
        return column
    return pl.when(column.is_not_null()).then(scalar_literal(rule.value, dtype))


def _nullified(_rule: MaskingRule, _column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    return pl.lit(None, dtype=dtype)


def _partial(rule: MaskingRule, column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Keep both ends; text that the ends would show whole is hidden whole."""
    if dtype == pl.Null:
        return column
    if not is_one_of(dtype, pl.String):
        raise ValueError(f"it hides text, the column is {dtype}")
    length = column.str.len_chars().cast(pl.Int64)
    kept = rule.keep_start + rule.keep_end
    stars = pl.lit("").str.pad_end(pl.when(length > kept).then(length - kept), rule.mask_char)
    head, tail = column.str.head(rule.keep_start), column.str.tail(rule.keep_end)
    whole = pl.lit("").str.pad_end(length, rule.mask_char)
    return pl.when(length > kept).then(pl.concat_str([head, stars, tail])).otherwise(whole)


def _bucketed(rule: MaskingRule, column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if rule.bucket_size is None:
        raise ValueError("it needs a bucket_size")
    return bucket(column, dtype, rule.bucket_size)


def _truncated(rule: MaskingRule, column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype == pl.Null:
        return column
    if not is_one_of(dtype, pl.Date, pl.Datetime):
        raise ValueError(f"it shortens dates and timestamps, the column is {dtype}")
    every = {"year": "1y", "month": "1mo", "day": "1d", "hour": "1h"}[rule.unit or "year"]
    if dtype == pl.Date and rule.unit == "hour":
        return column
    return column.dt.truncate(every)


_METHODS: dict[str, Callable[[MaskingRule, pl.Expr, pl.DataType], pl.Expr]] = {
    "redact": _redacted,
    "nullify": _nullified,
    "partial": _partial,
    "numeric_bucket": _bucketed,
    "date_truncate": _truncated,
}

SLOT = Slot(84, "masking", _wanted, _apply)
