"""Type names of schema hints, read into one small set of logical types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.hint_type_names import (
    DEFAULT_DECIMAL,
    DIALECT_ALIASES,
    FIXED_DECIMAL,
    KINDS,
    Dialect,
    Kind,
)

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Connection

_SHAPE = re.compile(r"(?P<name>[a-z_][a-z0-9_ ]*)(?:\((?P<size>[^()]*)\)(?P<tail>[a-z ]*))?")
_OTHERS: tuple[Dialect, ...] = ("postgresql", "mysql", "mssql", "oracle", "sqlite", "spark_sql")
_SIZE = re.compile(r"-?\d+|\*|max")
_MAX_PRECISION = 38
_SINGLE = 24
"""Up to this many bits a FLOAT(n) is a single precision number."""


class HintTypeError(ValueError):
    """A type name that no dialect knows, or a size that can't be."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.suggestion = suggestion


@dataclass(frozen=True)
class LogicalType:
    """The type that a column should have, whatever a dialect calls it.

    Attributes:
        kind: Which type.
        precision: All digits of a decimal; None for other kinds.
        scale: Its digits after the point; None for other kinds.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None


def dialect_name(text: str) -> Dialect:
    """Return the dialect that a name or alias stands for.

    Raises:
        HintTypeError: There is no such dialect.
    """
    found = DIALECT_ALIASES.get(" ".join(text.lower().split()))
    if found is None:
        suggestion = nearest(text, DIALECT_ALIASES)
        raise HintTypeError(f"unknown SQL dialect '{text}'", suggestion)
    return found


def hint_dialect(connection: Connection) -> Dialect:
    """Return the dialect in which the hints of a source connection name their types."""
    configure = connection.configure
    text = configure.schema_hint_type_system or configure.database_type
    return dialect_name(text) if text else "spark_sql"


@lru_cache(maxsize=4096)
def parse_type(
    name: str,
    dialect: str = "spark_sql",
    precision: int | None = None,
    scale: int | None = None,
) -> LogicalType:
    """Return what a type name means.

    A name that the dialect does not have, such as DATETIME in Spark, is read by its meaning in
    the dialects that do.

    >>> parse_type("DECIMAL(18, 2)")
    LogicalType(kind='decimal', precision=18, scale=2)
    >>> parse_type("DATETIME").kind, parse_type("NUMBER", "oracle", 9, 0)
    ('timestamp_ntz', LogicalType(kind='decimal', precision=9, scale=0))

    Args:
        name: The type as written, in any case, with or without its size.
        dialect: Whose name it is; an alias will do.
        precision: All digits of a decimal, where the name does not say.
        scale: Digits after the point, where the name does not say.

    Raises:
        HintTypeError: No dialect has the name, or the size can't be.
    """
    base, sizes = _taken_apart(name)
    spoken = dialect_name(dialect)
    tried: tuple[Dialect, ...] = (spoken, *_OTHERS)
    home: Dialect | None = next((known for known in tried if base in KINDS[known]), None)
    if home is None:
        known = {known for names in KINDS.values() for known in names}
        raise HintTypeError(f"unknown type '{name}'", nearest(base, known))
    kind = _sized_kind(home, base, KINDS[home][base], sizes)
    if kind != "decimal":
        return LogicalType(kind)
    fixed = FIXED_DECIMAL.get((home, base))
    return LogicalType(kind, *(fixed or _decimal_size(name, home, sizes, precision, scale)))


def _taken_apart(name: str) -> tuple[str, tuple[int, ...]]:
    found = _SHAPE.fullmatch(" ".join(name.lower().split()))
    if found is None:
        raise HintTypeError(f"'{name}' is not the name of a type")
    size = (found["size"] or "").strip().removesuffix(" char").removesuffix(" byte")
    base = " ".join(f"{found['name']} {found['tail'] or ''}".split())
    parts = [part.strip() for part in size.split(",") if part.strip()]
    if len(parts) > 2 or not all(_SIZE.fullmatch(part) for part in parts):
        raise HintTypeError(f"'{name}' has a size that can't be read")
    sizes = [_MAX_PRECISION if part == "*" else int(part) for part in parts if part != "max"]
    return base.removesuffix(" zerofill").removesuffix(" signed"), tuple(sizes)


def _sized_kind(dialect: Dialect, base: str, kind: Kind, sizes: tuple[int, ...]) -> Kind:
    if dialect == "mysql" and base == "tinyint" and sizes == (1,):
        return "bool"
    if dialect == "mysql" and base == "bit" and sizes not in ((), (1,)):
        return "binary"
    if base == "float" and dialect in ("postgresql", "mssql") and sizes:
        return "float32" if sizes[0] <= _SINGLE else "float64"
    return kind


def _decimal_size(
    name: str,
    dialect: Dialect,
    sizes: tuple[int, ...],
    precision: int | None,
    scale: int | None,
) -> tuple[int, int]:
    inside = (sizes[0] if sizes else None, sizes[1] if len(sizes) > 1 else None)
    for word, written, given in (("precision", inside[0], precision), ("scale", inside[1], scale)):
        if written is not None and given is not None and written != given:
            raise HintTypeError(f"'{name}' has {word} {written}, but {word} says {given}")
    whole = precision if inside[0] is None else inside[0]
    after = scale if inside[1] is None else inside[1]
    if whole is None:
        default = DEFAULT_DECIMAL[dialect]
        whole, after = default if after is None else (max(default[0], after), after)
    after = 0 if after is None else after
    if after < 0 and dialect == "oracle":
        # digits before the point are rounded away there, and take up room here
        whole, after = whole - after, 0
    if not 1 <= whole <= _MAX_PRECISION:
        raise HintTypeError(f"'{name}' has precision {whole}; it must be 1 to {_MAX_PRECISION}")
    if not 0 <= after <= whole:
        raise HintTypeError(f"'{name}' has scale {after}; it must be 0 to {whole}, its precision")
    return whole, after
