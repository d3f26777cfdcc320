"""One schema for many files: columns are united by name, types widened where nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from datacoolie_core.engines.casts import Cast, cast_expression
from datacoolie_core.engines.dtypes import bits, instance
from datacoolie_core.engines.names import listed, pattern_names
from datacoolie_core.errors import ReadError
from datacoolie_core.metadata.hint_types import LogicalType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Schema = dict[str, pl.DataType]
Rule = Callable[[pl.DataType, pl.DataType], pl.DataType | None]

_SIGNED: tuple[pl.DataType, ...] = (pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.Int128())
_UNSIGNED: tuple[pl.DataType, ...] = (pl.UInt8(), pl.UInt16(), pl.UInt32(), pl.UInt64())
_UNITS = ("ms", "us", "ns")
_MAX_PRECISION = 38
_EXACT = 2.0**53
"""Whole numbers below are what they look like in a float."""
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def united(
    schemas: Iterable[tuple[str, Mapping[str, pl.DataType]]], *, otherwise: Rule | None = None
) -> Schema:
    """Return the schema that holds the rows of all files, columns in order of appearance.

    Args:
        schemas: File and its schema.
        otherwise: What holds two types that no type holds without changing how values look.

    Raises:
        ReadError: Two files have types of one column that no type holds without loss; a column
            has a name that can't be used.
    """
    result: Schema = {}
    first_seen: dict[str, str] = {}
    before: Mapping[str, pl.DataType] | None = None
    for file, schema in schemas:
        if schema is before:
            continue
        before = schema
        refuse_patterns(schema, file)
        for name, dtype in schema.items():
            known = result.get(name)
            if known is None or known == pl.Null:
                first_seen[name] = file
            wider = dtype if known is None else widened(known, dtype)
            if wider is None and otherwise is not None and known is not None:
                wider = otherwise(known, dtype)
            if wider is None:
                raise ReadError(
                    f"its type is {known} in {first_seen[name]} and {dtype} in {file}",
                    place=f"column '{name}'",
                    remedy="Read the files with different types as different tables, or rewrite"
                    " one of them.",
                    code="type_conflict",
                )
            result[name] = wider
    return result


def refuse_patterns(columns: Iterable[str], place: str | None = None) -> None:
    """Refuse names that the engine takes for several columns wherever they are written.

    Raises:
        ReadError: It names them all.
    """
    wrong = pattern_names(columns)
    if wrong:
        raise ReadError(
            f"columns can't be called {listed(wrong)}: such a name means several columns",
            place=place,
            remedy="Rename them in the source.",
            code="unsupported_column_name",
        )


def widened(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    """Return the smallest type that holds the values of both without loss, None if there is none.

    >>> widened(pl.Int32(), pl.Int64()), widened(pl.Int32(), pl.String())
    (Int64, None)
    """
    if left == right or right == pl.Null:
        return left
    if left == pl.Null:
        return right
    for rule in (_numbers, _moments, _texts, _nested):
        wider = rule(left, right)
        if wider is not None:
            return wider
    return None


def _numbers(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    if not (left.is_numeric() and right.is_numeric()):
        return None
    if left.is_integer() and right.is_integer():
        return _integers(left, right)
    if left.is_decimal() or right.is_decimal():
        return _decimals(left, right)
    if left.is_float() and right.is_float():
        return pl.Float64()
    # big integers are checked one by one when they are read: not all fit a float
    return pl.Float64()


def _integers(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    width = max(bits(left), bits(right))
    if left.is_signed_integer() == right.is_signed_integer():
        family = _SIGNED if left.is_signed_integer() else _UNSIGNED
        return next((dtype for dtype in family if bits(dtype) >= width), None)
    unsigned = left if left.is_unsigned_integer() else right
    needed = max(width, 2 * bits(unsigned))
    return next((dtype for dtype in _SIGNED[:4] if bits(dtype) >= needed), None)


def _digits(dtype: pl.DataType) -> tuple[int, int] | None:
    if isinstance(dtype, pl.Decimal):
        return (dtype.precision or _MAX_PRECISION) - dtype.scale, dtype.scale
    if dtype.is_integer() and bits(dtype) in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[bits(dtype)], 0
    return None


def _decimals(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    one, other = _digits(left), _digits(right)
    if one is None or other is None:
        return None
    whole, scale = max(one[0], other[0]), max(one[1], other[1])
    return pl.Decimal(whole + scale, scale) if whole + scale <= _MAX_PRECISION else None


def _moments(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    if isinstance(left, pl.Datetime) and isinstance(right, pl.Datetime):
        if (left.time_zone is None) != (right.time_zone is None):
            return None
        finer = max(left, right, key=lambda dtype: _UNITS.index(dtype.time_unit))
        zone = left.time_zone if left.time_zone == right.time_zone else "UTC"
        return pl.Datetime(finer.time_unit, zone)
    pair = {left.base_type(), right.base_type()}
    if pair == {pl.Date, pl.Datetime}:
        moment = left if isinstance(left, pl.Datetime) else right
        zoned = isinstance(moment, pl.Datetime) and moment.time_zone is not None
        return None if zoned else moment
    return None


def _texts(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    kinds = {pl.String, pl.Categorical, pl.Enum}
    both = left.base_type() in kinds and right.base_type() in kinds
    return pl.String() if both else None


def beside_text(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    """Return text where one of two types is text: JSON has no other types of columns."""
    return pl.String() if pl.String in (left, right) else None


def all_text(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    """Return text for two types that are written plainly: cells have no column's type."""
    return None if left.is_nested() or right.is_nested() else pl.String()


def _nested(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    if isinstance(left, pl.List) and isinstance(right, pl.List):
        inner = widened(instance(left.inner), instance(right.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(left, pl.Struct) and isinstance(right, pl.Struct):
        fields = {entry.name: instance(entry.dtype) for entry in left.fields}
        for entry in right.fields:
            dtype = instance(entry.dtype)
            inner = widened(fields[entry.name], dtype) if entry.name in fields else dtype
            if inner is None:
                return None
            fields[entry.name] = inner
        return pl.Struct(fields)
    return None


def concatenated(
    scans: Sequence[tuple[pl.LazyFrame, Mapping[str, pl.DataType]]], schema: Schema
) -> pl.LazyFrame:
    """Return the rows of scans with different schemas as one frame of the united schema.

    Args:
        scans: Scan and its schema; other columns of a scan are kept at the end.
        schema: What :func:`united` gave.
    """
    fitted: list[pl.LazyFrame] = []
    for frame, own in scans:
        columns = [
            _fitted(name, own.get(name), dtype).alias(name) for name, dtype in schema.items()
        ]
        fitted.append(frame.select(*columns, cs.exclude(*{**schema, **own})))
    return fitted[0] if len(fitted) == 1 else pl.concat(fitted, how="vertical")


def number_as_text(column: pl.Expr) -> pl.Expr:
    """Return numbers as text, whole ones without a fraction."""
    whole = (column == column.round(0)) & (column.abs() < _EXACT)
    digits = column.cast(pl.Int64, strict=False).cast(pl.String)
    return pl.when(whole).then(digits).otherwise(column.cast(pl.String))


def _fitted(name: str, own: pl.DataType | None, wanted: pl.DataType) -> pl.Expr:
    if own is None:
        return pl.lit(None, dtype=wanted)
    column = pl.col(name)
    if own == wanted:
        return column
    if own.is_integer() and wanted.is_float():
        return cast_expression(Cast(name, LogicalType("float64")), own)
    if isinstance(own, pl.Datetime) and isinstance(wanted, pl.Datetime) and own.time_zone:
        return column.dt.convert_time_zone(wanted.time_zone or "UTC").cast(wanted)
    if own.is_float() and wanted == pl.String:
        return number_as_text(column)
    return column.cast(wanted)
