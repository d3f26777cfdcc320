"""Slot 18: stable hashes, over values as the schema hints left them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.engines.stable_hash import hash_tag, stable_hash
from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    import polars as pl

    from datacoolie_core.metadata.models import Dataflow, HashColumn


def _wanted(dataflow: Dataflow) -> bool:
    return bool(dataflow.transform.hash_columns)


def _apply(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    made: dict[str, tuple[pl.Expr, pl.DataType]] = {}
    for index, rule in enumerate(dataflow.transform.hash_columns):
        place = f"transform.hash_columns[{index}].columns"
        found = found_columns(rule.columns, shaped.schema, dataflow, context, place=place)
        if len(found) < len(rule.columns):
            # a hash over fewer columns would be another hash under the same name
            text = f"{place}: '{rule.target_column}' is not made: some of its columns are missing"
            context.warnings.append(("hash_left_out", text))
            continue
        name = match(rule.target_column, shaped.schema) or rule.target_column
        made[name] = _hash(rule, list(found.values()), shaped, place)
    return shaped.with_columns(**made).with_ours_last(dataflow) if made else shaped


def _hash(
    rule: HashColumn, names: list[str], shaped: Shaped, place: str
) -> tuple[pl.Expr, pl.DataType]:
    columns = {name: shaped.schema[name] for name in names}
    for name, dtype in columns.items():
        if hash_tag(dtype) is None:
            raise TransformError(
                f"'{name}' is {dtype}: only text, whole numbers, booleans and dates can be hashed",
                place=place,
                remedy="Give it such a type with a schema hint, or leave it out.",
                code="wrong_type",
            )
    return stable_hash(columns, rule.algorithm)


SLOT = Slot(18, "hashes", _wanted, _apply)
