"""Types for a frame some of whose values can't have them: these are seen apart, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.casts import Cast, cast_expression, engine_type
from datacoolie_core.engines.lenient import lenient_cast, reasons
from datacoolie_core.transforms.quarantine import Lost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.transforms.quarantine import BadRows
    from datacoolie_core.transforms.slots import Shaped

SOURCE = "\0source"
"""Holds the row as it was read, where value rules change it before it gets its types."""


@dataclass(frozen=True)
class Conversion:
    """What a column becomes.

    Attributes:
        cast: Column, type and how its values are written.
        own: The type that it has.
        default: Stands for a null, in the new type; None for nothing.
    """

    cast: Cast
    own: pl.DataType
    default: Any = None

    @property
    def wanted(self) -> pl.DataType:
        """The type that it gets."""
        return engine_type(self.cast.target)

    @property
    def exact(self) -> pl.Expr:
        """The expression that raises for the first bad value."""
        return self.filled(cast_expression(self.cast, self.own))

    @property
    def lenient(self) -> pl.Expr:
        """The expression that gives null for bad values, without the default."""
        return lenient_cast(self.cast, self.own)

    def filled(self, value: pl.Expr) -> pl.Expr:
        """Return an expression with the default in place of null."""
        if self.default is None:
            return value
        return value.fill_null(pl.lit(self.default, self.wanted))


def with_source(shaped: Shaped) -> Shaped:
    """Return a frame that carries its rows as they are now; the schema does not name them."""
    whole = pl.struct([pl.col(name) for name in shaped.schema]).alias(SOURCE)
    return shaped.with_frame(shaped.frame.with_columns(whole))


def tolerant(shaped: Shaped, stages: Sequence[Sequence[Conversion]], bad: BadRows) -> Shaped:
    """Return a frame with its types; bad values are null, or their rows are taken out.

    Args:
        shaped: May carry its source rows.
        stages: Conversions that follow each other.
        bad: Sees the bad values.
    """
    types = {one.cast.column: one.wanted for stage in stages for one in stage}
    schema = {**shaped.schema, **types}
    frame = shaped.frame.map_batches(
        _Typing(stages, bad), schema=schema, streamable=True, validate_output_schema=False
    )
    return type(shaped)(frame, schema)


class _Typing:
    """Gives frames their types; called from several threads."""

    def __init__(self, stages: Sequence[Sequence[Conversion]], bad: BadRows) -> None:
        self._stages = [stage for stage in stages if stage]
        self._bad = bad

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with its types, without the rows that may not go on."""
        result, lost = frame, list[Lost]()
        for stage in self._stages:
            after = result.with_columns(one.lenient for one in stage)
            for one in stage:
                lost += _lost(one, result[one.cast.column], after[one.cast.column])
            filled = [
                one.filled(pl.col(one.cast.column)) for one in stage if one.default is not None
            ]
            result = after.with_columns(filled) if filled else after
        if lost:
            self._bad.see(_source(frame), lost)
            if self._bad.policy == "quarantine":
                stays = pl.repeat(value=True, n=frame.height, eager=True, dtype=pl.Boolean)
                for one in lost:
                    stays = stays.scatter(one.rows, values=False)
                result = result.filter(stays)
        return result.drop(SOURCE, strict=False)


def _lost(one: Conversion, before: pl.Series, after: pl.Series) -> list[Lost]:
    if after.null_count() == before.null_count():
        return []
    places = (before.is_not_null() & after.is_null()).arg_true()
    values = before[places]
    texts = values.cast(pl.String, strict=False)
    return [Lost(one.cast.column, places, texts, reasons(one.cast, values))]


def _source(frame: pl.DataFrame) -> pl.DataFrame:
    return frame[SOURCE].struct.unnest() if SOURCE in frame.columns else frame
