"""Bring a batch into the shape of the files that are there: order, types, names that are new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.flat import types
from datacoolie_core.writers.types import conflict, delta_name as shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacoolie_core.writers.flat.types import FileFormat


@dataclass(frozen=True)
class Shaped:
    """A batch as it will be written.

    Attributes:
        frame: The columns of ``schema``, in their order; consume it once.
        schema: The columns of the files that are there, then those that are new.
        losses: Column → a value that did not survive; filled while the frame is consumed.
    """

    frame: pl.LazyFrame
    schema: pl.Schema
    losses: dict[str, str] = field(default_factory=dict[str, str])

    def check(self) -> None:
        """Raise if a value that passed through the frame can't be kept.

        Raises:
            WriteError: Names the columns, and one value of each.
        """
        if self.losses:
            told = "; ".join(f"column '{name}': {what}" for name, what in self.losses.items())
            raise WriteError(
                f"values that the files can't hold: {told}",
                remedy="Round, fill or cast the column in the transform.",
                code="value_lost",
            )


def shape(frame: pl.LazyFrame, there: pl.Schema | None, form: FileFormat) -> Shaped:
    """Return a batch in the shape of a folder's files, or as it is for a folder without any.

    Columns that the files have and the batch lacks are null, so that all files of a folder look
    alike; new columns come last, and are null for the rows that are there.

    Args:
        frame: As the transforms give it.
        there: The columns of the files; None for a load that replaces them all.
        form: The format.

    Raises:
        WriteError: Types that the format does not have or that do not go together, names that
            differ in case only; every column concerned is named.
    """
    source = frame.collect_schema()
    stored = _stored(source, form)
    _refuse_case_twins([*(there or {}), *stored])
    target = _target(stored, there or pl.Schema())
    losses: dict[str, str] = {}
    columns = [_column(name, source.get(name), kind, losses) for name, kind in target.items()]
    return Shaped(frame.select(columns), target, losses)


def _stored(source: pl.Schema, form: FileFormat) -> dict[str, pl.DataType]:
    stored: dict[str, pl.DataType] = {}
    refused: list[str] = []
    for name, dtype in source.items():
        kind = types.storable(dtype, form)
        if kind is None:
            refused.append(f"'{name}' is {shown(dtype)} ({types.help_for(dtype)})")
        else:
            stored[name] = kind
    if refused:
        raise WriteError(
            f"{form} files can't hold these columns: {'; '.join(refused)}",
            remedy="Change these columns in the transform, or the format of the connection.",
            code="unsupported_type",
        )
    if not stored:
        raise WriteError("there is no column to write", code="no_columns")
    return stored


def _refuse_case_twins(names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            raise WriteError(
                f"columns '{twin}' and '{name}' differ in upper and lower case only",
                remedy="Rename one of them; most engines take such names for the same column.",
                code="case_collision",
            )


def _target(stored: Mapping[str, pl.DataType], there: pl.Schema) -> pl.Schema:
    target = dict(there)
    conflicts: list[str] = []
    for name, kind in stored.items():
        both = types.united(kind, target[name]) if name in target else kind
        if both is None:
            path, own, known = conflict(name, kind, target[name], types.united)
            conflicts.append(
                f"column '{path}' is {shown(known)} in the files that are there and"
                f" {shown(own)} in the batch"
            )
        else:
            target[name] = both
    if conflicts:
        raise WriteError(
            f"types that do not go together: {'; '.join(conflicts)}",
            remedy="Cast the column (transform.schema_hints), or load into another folder.",
            code="type_conflict",
        )
    return pl.Schema(target)


def _column(
    name: str, source: pl.DataType | None, target: pl.DataType, losses: dict[str, str]
) -> pl.Expr:
    if source is None:
        return pl.lit(None, dtype=target).alias(name)
    if source == target:
        return pl.col(name)
    if not types.may_lose(source, target):
        return cast_by_name(pl.col(name), source, target).alias(name)
    return pl.col(name).map_batches(
        _Checked(name, source, target, losses), return_dtype=target, is_elementwise=True
    )


@dataclass(frozen=True)
class _Checked:
    """Casts a column piece by piece and notes the first value that did not survive."""

    name: str
    source: pl.DataType
    target: pl.DataType
    losses: dict[str, str]

    def __call__(self, values: pl.Series) -> pl.Series:
        """Return the values cast."""
        result = _recast(values, self.source, self.target)
        if self.name not in self.losses:
            lost = values.filter(values.ne_missing(_recast(result, self.target, self.source)))
            if len(lost):
                self.losses[self.name] = f"{_text(lost)} is not exact as {shown(self.target)}"
        return result


def _recast(values: pl.Series, source: pl.DataType, target: pl.DataType) -> pl.Series:
    frame = values.to_frame("v")
    return frame.select(cast_by_name(pl.col("v"), source, target, strict=False)).to_series()


def _text(values: pl.Series) -> str:
    # a nanosecond has no Python value, nested values have no text
    return str(values[0] if values.dtype.is_nested() else values.cast(pl.String)[0])


def cast_by_name(
    value: pl.Expr, source: pl.DataType, target: pl.DataType, *, strict: bool = True
) -> pl.Expr:
    """Return a cast that takes struct fields by name; absent ones are null.

    Args:
        value: Of type ``source``.
        source: Its type.
        target: The type wanted.
        strict: Whether a value that can't be cast is an error, rather than null.
    """
    if source == target:
        return value
    if isinstance(target, pl.Struct) and isinstance(source, pl.Struct):
        kinds = {f.name: cast("pl.DataType", f.dtype) for f in source.fields}
        fields = [
            cast_by_name(value.struct.field(f.name), kinds[f.name], kind, strict=strict).alias(
                f.name
            )
            if f.name in kinds
            else pl.lit(None, dtype=kind).alias(f.name)
            for f in target.fields
            for kind in [cast("pl.DataType", f.dtype)]
        ]
        return pl.when(value.is_not_null()).then(pl.struct(fields))
    if isinstance(target, pl.List) and isinstance(source, pl.List | pl.Array):
        inner = cast("pl.DataType", source.inner)
        kind = cast("pl.DataType", target.inner)
        items = value.cast(pl.List(inner)).list
        return items.eval(cast_by_name(pl.element(), inner, kind, strict=strict))
    zoned = isinstance(target, pl.Datetime) and target.time_zone
    if zoned and isinstance(source, pl.Datetime) and source.time_zone:
        value = value.dt.convert_time_zone(zoned)
    return value.cast(target, strict=strict)
