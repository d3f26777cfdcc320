"""Columns that may not be null: delta-rs does not check files that it did not write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import polars as pl

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True)
class Demand:
    """A place in a column that may not be null.

    Attributes:
        path: Such as ``params.oid``; elements of a list are ``element``.
        broken: Whether a row breaks it.
    """

    path: str
    broken: pl.Expr


Demands = Mapping[str, tuple[Demand, ...]]
"""Column → what it demands."""


def demands_of(table: DeltaTable | None) -> Demands:
    """Return what a table's columns demand; generated columns demand nothing of a batch."""
    if table is None:
        return {}
    fields: list[dict[str, Any]] = json.loads(table.schema().to_json())["fields"]
    found = {
        field["name"]: tuple(_demands(field, field["name"], pl.col(field["name"])))
        for field in fields
        if "delta.generationExpression" not in (field.get("metadata") or {})
    }
    return {name: demands for name, demands in found.items() if demands}


def _demands(field: Mapping[str, Any], path: str, value: pl.Expr) -> list[Demand]:
    own = [] if field.get("nullable", True) else [Demand(path, value.is_null())]
    return [*own, *_inner(field["type"], path, value)]


def _inner(kind: Any, path: str, value: pl.Expr) -> list[Demand]:
    if not isinstance(kind, dict):
        return []
    nested = cast("dict[str, Any]", kind)
    if nested["type"] == "struct":
        # a field of a struct that is null itself is not missing
        return [
            Demand(demand.path, value.is_not_null() & demand.broken)
            for field in nested["fields"]
            for demand in _demands(
                field, f"{path}.{field['name']}", value.struct.field(field["name"])
            )
        ]
    if nested["type"] == "array":
        nullable = nested.get("containsNull", True)
        element: dict[str, Any] = {"type": nested["elementType"], "nullable": nullable}
        return [
            Demand(demand.path, value.list.eval(demand.broken).list.any())
            for demand in _demands(element, f"{path}.element", pl.element())
        ]
    return []


@dataclass(frozen=True)
class Watch:
    """Lets a column pass piece by piece and notes what breaks its demands.

    Attributes:
        name: The column.
        demands: Of the column.
        broken: Path → where it was seen; filled here.
    """

    name: str
    demands: tuple[Demand, ...]
    broken: dict[str, int]

    def __call__(self, values: pl.Series) -> pl.Series:
        """Return the values as they are."""
        flags = values.to_frame(self.name).select(
            demand.broken.fill_null(value=False).sum().alias(demand.path) for demand in self.demands
        )
        for path, count in flags.row(0, named=True).items():
            if count:
                self.broken[path] = self.broken.get(path, 0) + count
        return values
