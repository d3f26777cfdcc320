"""Bring a frame's columns into the shape of its table: order, types, names that are new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import types
from datacoolie_core.writers.not_null import Watch
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from datacoolie_core.writers.not_null import Demands


_SHOWN_ITEMS = 5
"""How many items of a list a message shows."""


@dataclass(frozen=True)
class Aligned:
    """A frame whose columns are the table's.

    Attributes:
        frame: The columns in the order of ``schema``, cast; consume it once.
        schema: The table's columns after the load: its own, then those that are new.
        added: Columns that the table must gain first, or that must gain struct fields.
        losses: Column → a value that did not survive; filled while the frame is consumed.
        nulls: Path → nulls where none may be; filled while the frame is consumed.
        absent: Columns that may not be null and that the batch does not have.
    """

    frame: pl.LazyFrame
    schema: pl.Schema
    added: pl.Schema
    losses: dict[str, str] = field(default_factory=dict[str, str])
    nulls: dict[str, int] = field(default_factory=dict[str, int])
    absent: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise if a value that passed through the frame can't be kept.

        Raises:
            WriteError: Names the columns; one value that is lost, or how many are missing.
        """
        if self.nulls:
            told = ", ".join(f"'{path}' ({count} rows)" for path, count in self.nulls.items())
            raise WriteError(
                f"nulls in columns of the table that may not be null: {told}",
                remedy="Fill or filter them in the transform.",
                code="null_not_allowed",
            )
        if self.losses:
            told = "; ".join(f"column '{name}': {what}" for name, what in self.losses.items())
            raise WriteError(
                f"values that the table's type can't hold: {told}",
                remedy="Round or cast the column in the transform, or widen the table's type.",
                code="value_lost",
            )

    def check_complete(self) -> None:
        """Raise if new rows would lack a value that the table demands.

        Raises:
            WriteError: Names the columns.
        """
        if self.absent:
            raise WriteError(
                f"the batch has no column {', '.join(map(repr, self.absent))}, which may not be"
                " null in the table",
                remedy="Add it in the transform (additional_columns).",
                code="null_not_allowed",
            )


def align(frame: pl.LazyFrame, table: pl.Schema | None, demands: Demands | None = None) -> Aligned:
    """Return a frame as it will be stored.

    Args:
        frame: As the transforms give it.
        table: The table's columns that are kept; None for a new table and for loads that
            replace the schema.
        demands: What may not be null.

    Raises:
        WriteError: A type that Delta does not have, a type conflict, names that differ in case
            only; every column concerned is named.
    """
    source = frame.collect_schema()
    stored = _stored(source)
    _refuse_case_twins(stored, table or pl.Schema())
    target, added, conflicts = _target(stored, table)
    if conflicts:
        raise _conflict(conflicts)
    losses: dict[str, str] = {}
    nulls: dict[str, int] = {}
    columns = [_column(name, source.get(name), kind, losses) for name, kind in target.items()]
    wanted = demands or {}
    watched = [
        pl.col(name).map_batches(
            Watch(name, wanted[name], nulls), return_dtype=target[name], is_elementwise=True
        )
        for name in wanted
        if name in source
    ]
    aligned = frame.select(columns)
    ready = aligned.with_columns(watched) if watched else aligned
    return Aligned(ready, target, added, losses, nulls, _absent(wanted, source))


def _conflict(conflicts: list[str]) -> WriteError:
    return WriteError(
        f"types that do not go together: {'; '.join(conflicts)}",
        remedy="Cast the column (transform.schema_hints), or load into a new table.",
        code="type_conflict",
    )


def _absent(wanted: Demands, source: pl.Schema) -> tuple[str, ...]:
    return tuple(
        name
        for name, asked in wanted.items()
        if name not in source and any(demand.path == name for demand in asked)
    )


def _stored(source: pl.Schema) -> dict[str, pl.DataType]:
    stored: dict[str, pl.DataType] = {}
    refused: list[str] = []
    for name, dtype in source.items():
        kind = types.stored_type(dtype)
        if kind is None:
            refused.append(f"'{name}' is {delta_name(dtype)} ({types.help_for(dtype)})")
        else:
            stored[name] = kind
    if refused:
        raise WriteError(
            f"types that Delta does not have: {'; '.join(refused)}",
            remedy="Cast these columns in the transform.",
            code="unsupported_type",
        )
    if not stored:
        raise WriteError("there is no column to write", code="no_columns")
    return stored


def _refuse_case_twins(stored: dict[str, pl.DataType], table: pl.Schema) -> None:
    seen = {name.lower(): name for name in table}
    for name in stored:
        twin = seen.setdefault(name.lower(), name)
        if twin != name:
            raise WriteError(
                f"columns '{twin}' and '{name}' differ in upper and lower case only",
                remedy="Rename one of them; most engines take such names for the same column.",
                code="case_collision",
            )


def _target(
    stored: dict[str, pl.DataType], table: pl.Schema | None
) -> tuple[pl.Schema, pl.Schema, list[str]]:
    target = dict(table or {})
    added: dict[str, pl.DataType] = {}
    conflicts: list[str] = []
    for name, kind in stored.items():
        if name not in target:
            target[name] = added[name] = types.without_null(kind)
            continue
        both = types.united(kind, target[name])
        if both is None:
            path, own, there = types.conflict(name, kind, target[name], types.united)
            conflicts.append(
                f"column '{path}' is {delta_name(there)} in the table"
                f" and {delta_name(own)} in the batch"
            )
        elif both != target[name]:
            target[name] = added[name] = both
    return pl.Schema(target), pl.Schema(added if table is not None else {}), conflicts


def _column(
    name: str, source: pl.DataType | None, target: pl.DataType, losses: dict[str, str]
) -> pl.Expr:
    if source is None:
        return pl.lit(None, dtype=target).alias(name)
    if source == target:
        return pl.col(name)
    shaped = _shaped(pl.col(name), source, target)
    if not types.may_lose(source, target):
        return shaped.alias(name)
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
        cast_ = self._cast(values, self.source, self.target)
        if self.name not in self.losses:
            lost = values.filter(values.ne_missing(self._cast(cast_, self.target, self.source)))
            if len(lost):
                self.losses[self.name] = f"{_shown(lost)} is not exact as {delta_name(self.target)}"
        return cast_

    @staticmethod
    def _cast(values: pl.Series, source: pl.DataType, target: pl.DataType) -> pl.Series:
        frame = values.to_frame("v")
        return frame.select(_shaped(pl.col("v"), source, target, strict=False)).to_series()


def _shown(values: pl.Series) -> str:
    """Return the first value as text; a nanosecond has no Python value that could be shown."""
    if isinstance(values.dtype, pl.List | pl.Array) and values[0] is not None:
        items = cast("pl.Series", values[0]).head(_SHOWN_ITEMS)
        return f"[{', '.join(_shown(items[at : at + 1]) for at in range(len(items)))}]"
    if isinstance(values.dtype, pl.Struct) and values[0] is not None:
        fields = values.head(1).struct.unnest().get_columns()
        return f"{{{', '.join(f'{field.name}: {_shown(field)}' for field in fields)}}}"
    plain = isinstance(values.dtype, pl.Datetime | pl.Time) or values.dtype.is_numeric()
    return str(values.cast(pl.String)[0] if plain else values[0])


def _shaped(
    value: pl.Expr, source: pl.DataType, target: pl.DataType, *, strict: bool = True
) -> pl.Expr:
    """Cast by name: polars' own struct cast wants the same fields in the same order."""
    if source == target:
        return value
    if isinstance(target, pl.Struct) and isinstance(source, pl.Struct):
        kinds = {f.name: cast("pl.DataType", f.dtype) for f in source.fields}
        fields = [
            _shaped(value.struct.field(f.name), kinds[f.name], kind, strict=strict).alias(f.name)
            if f.name in kinds
            else pl.lit(None, dtype=kind).alias(f.name)
            for f in target.fields
            for kind in [cast("pl.DataType", f.dtype)]
        ]
        return pl.when(value.is_not_null()).then(pl.struct(fields))
    if isinstance(target, pl.List) and isinstance(source, pl.List | pl.Array):
        as_list = value.cast(pl.List(cast("pl.DataType", source.inner)))
        inner = cast("pl.DataType", source.inner)
        kind = cast("pl.DataType", target.inner)
        return as_list.list.eval(_shaped(pl.element(), inner, kind, strict=strict))
    return value.cast(target, strict=strict)
