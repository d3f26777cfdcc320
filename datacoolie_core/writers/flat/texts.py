"""Values from the texts that CSV and JSON files hold, exactly as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDE = (pl.UInt64, pl.Int128, pl.UInt128, pl.Decimal, pl.Null)


def as_text(dtype: pl.DataType) -> pl.DataType:
    """Return the type in which a column is read from JSON: text for what JSON has no value for.

    >>> as_text(pl.List(pl.Date())), as_text(pl.Int8())
    (List(String), Int64)
    """
    if isinstance(dtype, pl.List):
        return pl.List(as_text(cast("pl.DataType", dtype.inner)))
    if isinstance(dtype, pl.Struct):
        return pl.Struct(
            [pl.Field(f.name, as_text(cast("pl.DataType", f.dtype))) for f in dtype.fields]
        )
    if dtype.is_temporal() or isinstance(dtype, _WIDE):
        return pl.String()
    # the engine's JSON readers know these numbers alone
    return pl.Int64() if dtype.is_integer() else pl.Float64() if dtype.is_float() else dtype


def from_text(
    value: pl.Expr, source: pl.DataType, target: pl.DataType, options: Mapping[str, Any]
) -> pl.Expr:
    """Return the value that a text stands for.

    Args:
        value: Of type ``source``.
        source: Text, or a nested type with text in it.
        target: The type that was written.
        options: Write options: formats of dates and times.
    """
    if source == target:
        return value
    if isinstance(target, pl.List) and isinstance(source, pl.List):
        inner, kind = cast("pl.DataType", source.inner), cast("pl.DataType", target.inner)
        return value.list.eval(from_text(pl.element(), inner, kind, options))
    if isinstance(target, pl.Struct) and isinstance(source, pl.Struct):
        kinds = {f.name: cast("pl.DataType", f.dtype) for f in source.fields}
        fields = [
            from_text(
                value.struct.field(f.name),
                kinds[f.name],
                cast("pl.DataType", f.dtype),
                options,
            ).alias(f.name)
            for f in target.fields
        ]
        return pl.when(value.is_not_null()).then(pl.struct(fields))
    return _leaf(value, target, options)


def _leaf(value: pl.Expr, target: pl.DataType, options: Mapping[str, Any]) -> pl.Expr:
    if isinstance(target, pl.Datetime):
        return _moment(value, target, options.get("datetime_format"))
    if isinstance(target, pl.Date):
        return value.str.to_date(options.get("date_format") or "%F")
    if isinstance(target, pl.Time):
        return value.str.to_time(options.get("time_format") or "%T%.f")
    if isinstance(target, pl.Boolean):
        return value.replace_strict({"true": True, "false": False}, return_dtype=pl.Boolean)
    if isinstance(target, pl.Null):
        return pl.lit(None, dtype=pl.Null())
    if options.get("decimal_comma") and not target.is_integer():
        value = value.str.replace(",", ".", literal=True)
    return value.cast(target)


def _moment(value: pl.Expr, target: pl.Datetime, pattern: str | None) -> pl.Expr:
    if target.time_zone:
        form = pattern or "%FT%T%.f%z"
        moments = value.str.to_datetime(form, time_unit=target.time_unit, time_zone="UTC")
        return moments.dt.convert_time_zone(target.time_zone)
    text = value if pattern else value.str.replace(" ", "T", literal=True)
    return text.str.to_datetime(pattern or "%FT%T%.f", time_unit=target.time_unit)
