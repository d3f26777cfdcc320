"""Which type a SQLite column is read with: its declaration first, then what its values are.

SQLite keeps any value in any column, so the declaration alone can't be trusted. What is read is
``classes``: the storage classes of the values that a read will see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core.metadata.hint_type_names import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from datacoolie_core.metadata.hint_type_names import Kind
    from datacoolie_core.metadata.hint_types import LogicalType

Affinity = Literal["text", "numeric", "none"]
_MOMENTS = ("date", "timestamp", "timestamp_ntz", "time")
_INTEGERS = ("int8", "int16", "int32", "int64")
_FLOATS = ("float32", "float64", "decimal")
_NUMBERS = {"integer", "real"}


@dataclass(frozen=True)
class Declared:
    """What a column's declaration says.

    Attributes:
        text: As written; empty if there is none.
        kind: The type that it names, None if it names none that is known.
        affinity: What SQLite makes of values that are put in or compared.
    """

    text: str
    kind: Kind | None
    affinity: Affinity


def declared(text: str) -> Declared:
    """Return what a declaration means.

    >>> declared("VARCHAR(20)").kind, declared("UNSIGNED BIG INT").kind, declared("POINT").kind
    ('string', 'int64', None)
    """
    name = re.sub(r"\s*\(.*?\)\s*", " ", text).strip().lower()
    known = KINDS["sqlite"]
    kind: Kind | None = known.get(name) or next(
        (known[word] for word in name.split() if word in known), None
    )
    if kind == "decimal" and re.search(r"\(\s*\d+\s*(,\s*0\s*)?\)", text):
        kind = "int64"
    return Declared(text, kind, _affinity(name))


def _affinity(name: str) -> Affinity:
    """SQLite's own rules, in its order."""
    if "int" in name:
        return "numeric"
    if any(part in name for part in ("char", "clob", "text")):
        return "text"
    return "none" if not name or "blob" in name else "numeric"


@dataclass(frozen=True)
class Reading:
    """How one column is read.

    Attributes:
        dtype: Its type.
        convert: Makes values of it; None takes them as they are.
    """

    dtype: pl.DataType
    convert: Callable[[Sequence[object]], Sequence[object]] | None = None


@dataclass(frozen=True)
class Conflict:
    """Values that the column's type can't hold.

    Attributes:
        classes: Their storage classes.
        wanted: What the column should have held.
    """

    classes: tuple[str, ...]
    wanted: str


def reading(
    column: Declared, classes: Collection[str], hint: LogicalType | None, *, formatted: bool
) -> Reading | Conflict:
    """Return how a column is read, or what stands against it.

    Integers beside fractions are read as double; whether each of them is exact is for the caller
    to check. Numbers beside text need a hint, which then converts their text.

    Args:
        column: Its declaration.
        classes: ``integer``, ``real``, ``text``, ``blob``: what its values are, nulls apart.
        hint: The type that a schema hint wants.
        formatted: Whether that hint says how dates are written.
    """
    found = set(classes)
    if hint is not None and _as_text(found, hint, formatted=formatted):
        return Reading(pl.String(), _texts)
    if not found:
        return Reading(_without_values(column.kind))
    if len(found) > 1 and found != _NUMBERS:
        mixed_moment = column.kind in _MOMENTS and "blob" not in found
        return Reading(pl.String(), _texts) if mixed_moment else _conflict(column, found)
    if found <= _NUMBERS:
        return _number(column, found)
    wanted_number = column.kind == "bool" or column.kind in (*_INTEGERS, *_FLOATS)
    if hint is None and wanted_number:
        return _conflict(column, found)
    return Reading(pl.String() if found == {"text"} else pl.Binary())


def _as_text(found: set[str], hint: LogicalType, *, formatted: bool) -> bool:
    if "blob" in found:
        return False
    if hint.kind == "string":
        return True
    if hint.kind in _MOMENTS:
        # 20240131 in a column of dates is stored as a number
        return formatted or "text" in found
    return "text" in found and len(found) > 1


def _without_values(kind: Kind | None) -> pl.DataType:
    if kind is None:
        return pl.Null()
    if kind in _INTEGERS:
        return pl.Int64()
    if kind in _FLOATS:
        return pl.Float64()
    return {"bool": pl.Boolean(), "binary": pl.Binary()}.get(kind, pl.String())


def _number(column: Declared, found: set[str]) -> Reading:
    if "real" in found or column.kind in _FLOATS:
        return Reading(pl.Float64())
    if column.kind == "bool":
        return Reading(pl.Boolean(), _truths)
    return Reading(pl.Int64())


def _conflict(column: Declared, found: set[str]) -> Conflict:
    if column.kind is not None:
        own = {"string": "text", "binary": "blob"}.get(column.kind)
        odd = found - ({own} if own else _NUMBERS)
        return Conflict(tuple(sorted(odd or found)), f"it is declared {column.text}")
    rarest = sorted(found, key=("integer", "real", "text", "blob").index)
    return Conflict((rarest[-1],), f"other values are {rarest[0]}")


def _texts(values: Sequence[object]) -> list[object]:
    return [value if value is None or isinstance(value, str) else str(value) for value in values]


def _truths(values: Sequence[object]) -> list[object]:
    return [None if value is None else bool(value) for value in values]
