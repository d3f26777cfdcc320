"""Slot 5: value rules clean columns as the source has them, before they get their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.dtypes import is_one_of
from datacoolie_core.engines.scalars import scalar_literal
from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.missing import found_columns
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.metadata.models import Dataflow, ValueRule


def _wanted(dataflow: Dataflow) -> bool:
    return bool(dataflow.transform.value_rules)


def cleaned(shaped: Shaped, dataflow: Dataflow, context: TransformContext | None = None) -> Shaped:
    """Return the columns as a dataflow's value rules leave them.

    Args:
        shaped: As the source has them.
        dataflow: Its rules apply by ``order``, then as they are listed.
        context: Gets a warning for each column that is not there; None if nobody asks.
    """
    rules = enumerate(dataflow.transform.value_rules)
    for index, rule in sorted(rules, key=lambda placed: placed[1].order):
        place = f"transform.value_rules[{index}]"
        found = found_columns(
            rule.columns, shaped.schema, dataflow, context, place=f"{place}.columns"
        )
        changed = {
            column: _changed(rule, column, shaped.schema[column], place)
            for column in dict.fromkeys(found.values())
        }
        shaped = shaped.with_columns(**changed) if changed else shaped
    return shaped


def _changed(
    rule: ValueRule, column: str, dtype: pl.DataType, place: str
) -> tuple[pl.Expr, pl.DataType]:
    if rule.operation == "fill_null":
        return _filled(rule, column, dtype, place)
    if dtype == pl.Null:
        return pl.col(column), dtype
    if not is_one_of(dtype, pl.String, pl.Categorical, pl.Enum):
        raise TransformError(
            f"{rule.operation} changes text, but '{column}' is {dtype}",
            place=place,
            remedy="Take the column out of the rule; value rules come before schema hints.",
            code="wrong_type",
        )
    try:
        return _ON_TEXT[rule.operation](rule, pl.col(column).cast(pl.String)), pl.String()
    except pl.exceptions.PolarsError as error:
        raise TransformError(
            f"the pattern can't be used: {str(error).strip().splitlines()[-1]}",
            place=f"{place}.pattern",
            remedy="Write it in another way.",
            code="bad_pattern",
        ) from error


def _filled(
    rule: ValueRule, column: str, dtype: pl.DataType, place: str
) -> tuple[pl.Expr, pl.DataType]:
    if rule.value is None:
        raise TransformError("fill_null needs a value", place=place, remedy="Give it one.")
    if is_one_of(dtype, pl.Categorical, pl.Enum):
        dtype = pl.String()
    try:
        literal = scalar_literal(rule.value, dtype)
    except ValueError as error:
        raise TransformError(
            f"'{column}' can't be filled: {error}",
            place=f"{place}.value",
            remedy="Give a value of the column's type; value rules come before schema hints.",
            code="wrong_type",
        ) from error
    if dtype == pl.Null:
        dtype = pl.select(literal).to_series().dtype
    return pl.col(column).cast(dtype).fill_null(literal), dtype


def _trimmed(_rule: ValueRule, text: pl.Expr) -> pl.Expr:
    return text.str.strip_chars()


def _in_case(rule: ValueRule, text: pl.Expr) -> pl.Expr:
    return text.str.to_uppercase() if rule.mode == "upper" else text.str.to_lowercase()


def _replaced(rule: ValueRule, text: pl.Expr) -> pl.Expr:
    # the engine would take $1 for a group
    literal = rule.replacement.replace("$", "$$")
    replaced = text.str.replace_all(rule.pattern or "", literal)
    # a pattern is compiled when rows come; this asks before anything is read
    pl.Series(["x"]).str.contains(rule.pattern or "")
    return replaced


def _without_empty(_rule: ValueRule, text: pl.Expr) -> pl.Expr:
    return pl.when(text != "").then(text)


def _mapped(rule: ValueRule, text: pl.Expr) -> pl.Expr:
    mapping = rule.mapping or {}
    default = text if rule.on_unmapped == "keep" else None
    return text.replace_strict(
        list(mapping), list(mapping.values()), default=default, return_dtype=pl.String
    )


_ON_TEXT: dict[str, Callable[[ValueRule, pl.Expr], pl.Expr]] = {
    "trim": _trimmed,
    "case": _in_case,
    "regex_replace": _replaced,
    "empty_to_null": _without_empty,
    "map": _mapped,
}

SLOT = Slot(5, "values", _wanted, cleaned)
