"""From the type that a column has to the one that a hint gives it: exact, or an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.date_patterns import engine_pattern
from datacoolie_core.engines.dtypes import bits, is_one_of
from datacoolie_core.engines.moments import date_of, instant_of, time_of, wall_clock_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.metadata.hint_types import LogicalType

_SIMPLE: dict[str, pl.DataType] = {
    "bool": pl.Boolean(),
    "int8": pl.Int8(),
    "int16": pl.Int16(),
    "int32": pl.Int32(),
    "int64": pl.Int64(),
    "float32": pl.Float32(),
    "float64": pl.Float64(),
    "string": pl.String(),
    "binary": pl.Binary(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
    "time": pl.Time(),
}
_YES = ("true", "t", "yes", "y", "on")
_NO = ("false", "f", "no", "n", "off")
_WHOLE = r"^[+-]?\d+(?:\.0*)?$"
_ZERO = r"^[+-]?0+(?:\.0*)?$"
_EXACT_IN_DOUBLE = 53


@dataclass(frozen=True)
class Cast:
    """What one column shall become.

    Attributes:
        column: Its name, for messages.
        target: The type.
        pattern: How dates and times are written, in Java's or the ``%`` form; None is ISO 8601.
        zone: The zone of dates and times without one; None is UTC.
    """

    column: str
    target: LogicalType
    pattern: str | None = None
    zone: str | None = None


def engine_type(target: LogicalType) -> pl.DataType:
    """Return the engine's type of a logical type.

    >>> from datacoolie_core.metadata.hint_types import parse_type
    >>> engine_type(parse_type("DECIMAL(10,2)"))
    Decimal(precision=10, scale=2)
    """
    if target.kind == "decimal":
        return pl.Decimal(target.precision or 38, target.scale or 0)
    return _SIMPLE[target.kind]


def named(target: LogicalType) -> str:
    """Return how messages call a type: as a hint would write it.

    >>> from datacoolie_core.metadata.hint_types import parse_type
    >>> named(parse_type("NUMERIC(10,2)")), named(parse_type("BIGINT"))
    ('decimal(10,2)', 'int64')
    """
    if target.kind == "decimal":
        return f"decimal({target.precision or 38},{target.scale or 0})"
    return target.kind


def cast_expression(cast: Cast, own: pl.DataType) -> pl.Expr:
    """Return the expression that gives a column its type.

    A value that the type can't hold makes the frame raise :class:`BadValue`, or the engine's own
    error, when it is computed.

    Args:
        cast: What is wanted.
        own: The type that the column has.

    Raises:
        ValueError: There is no way from the one type to the other, or the pattern has no meaning.
    """
    column = pl.col(cast.column)
    wanted = engine_type(cast.target)
    if own == wanted or own == pl.Null:
        return column.cast(wanted)
    convert = conversion(cast, own, wanted)
    if convert is None:
        return column.cast(wanted)
    checked = convert

    def converted(series: pl.Series) -> pl.Series:
        return checked(series).cast(wanted)

    return column.map_batches(converted, return_dtype=wanted, is_elementwise=True)


def conversion(
    cast: Cast, own: pl.DataType, wanted: pl.DataType
) -> Callable[[pl.Series], pl.Series] | None:
    """Return how values are converted; None where the engine's own cast is exact or raises.

    Args:
        cast: What is wanted.
        own: The type that the column has.
        wanted: The engine's type of what is wanted.

    Raises:
        ValueError: There is no way from the one type to the other, or the pattern has no meaning.
    """
    kind = cast.target.kind
    if own.is_nested() and kind != "string":
        raise ValueError(f"a column of type {own} can't become {kind}")
    if kind in ("date", "time", "timestamp", "timestamp_ntz"):
        return _moment_conversion(cast, own)
    if kind == "bool":
        return _bool_conversion(cast, own)
    if wanted.is_numeric():
        return _number_conversion(cast, own, wanted)
    if own.is_nested() or is_one_of(own, pl.Object, pl.Unknown):
        raise ValueError(f"a column of type {own} can't become {kind}")
    return None


def _moment_conversion(cast: Cast, own: pl.DataType) -> Callable[[pl.Series], pl.Series]:
    if not (own.is_temporal() or own == pl.String) or own.base_type() is pl.Duration:
        raise ValueError(f"a column of type {own} can't become {cast.target.kind}")
    pattern = engine_pattern(cast.pattern) if cast.pattern else None
    makers = {
        "date": date_of,
        "time": time_of,
        "timestamp": instant_of,
        "timestamp_ntz": wall_clock_of,
    }
    return makers[cast.target.kind](cast.column, pattern, cast.zone)


def _bool_conversion(cast: Cast, own: pl.DataType) -> Callable[[pl.Series], pl.Series]:
    """A word for true or false, or a whole number: 0 is false, every other one true."""
    if not (own.is_numeric() or own == pl.String):
        raise ValueError(f"a column of type {own} can't become bool")

    def truth(series: pl.Series) -> pl.Series:
        texts = series.cast(pl.String).str.strip_chars().str.to_lowercase()
        whole, zero = texts.str.contains(_WHOLE), texts.str.contains(_ZERO)
        yes, no = texts.is_in(_YES), texts.is_in(_NO)
        BadValue.check(cast.column, series, ~(yes | no | whole), "bool")
        return yes | (whole & ~zero)

    return truth


def _number_conversion(
    cast: Cast, own: pl.DataType, wanted: pl.DataType
) -> Callable[[pl.Series], pl.Series] | None:
    if own == pl.String:
        if wanted.is_float():
            return _finite_float(cast, wanted)
        return _exact_decimal(cast, wanted) if wanted.is_decimal() else None
    if own == pl.Float64 and wanted == pl.Float32:
        return _finite_float(cast, wanted)
    if own == pl.Boolean or _always_fits(own, wanted):
        return None
    if not own.is_numeric():
        raise ValueError(f"a column of type {own} can't become {cast.target.kind}")

    def there_and_back(series: pl.Series) -> pl.Series:
        result = series.cast(wanted, strict=False)
        lost = result.is_null() | (result.cast(series.dtype, strict=False) != series)
        BadValue.check(cast.column, series, lost.fill_null(value=True), named(cast.target))
        return result

    return there_and_back


def _always_fits(own: pl.DataType, wanted: pl.DataType) -> bool:
    if wanted.is_float():
        # a declared float is approximate by nature; only big integers would change unseen
        return not own.is_integer() or (bits(own) < _EXACT_IN_DOUBLE and wanted == pl.Float64)
    # the engine refuses what does not fit
    return own.is_integer() and wanted.is_integer()


def _finite_float(cast: Cast, wanted: pl.DataType) -> Callable[[pl.Series], pl.Series]:
    """Refuse what only overflow would make infinite; a value that says inf is one."""

    def finite(series: pl.Series) -> pl.Series:
        result = series.cast(wanted, strict=False)
        if series.dtype == pl.String:
            said = series.str.contains(r"(?i)^\s*[+-]?inf(inity)?\s*$")
        else:
            said = series.is_infinite()
        lost = result.is_null() | (result.is_infinite() & ~said)
        BadValue.check(cast.column, series, lost, named(cast.target))
        return result

    return finite


def _exact_decimal(cast: Cast, wanted: pl.DataType) -> Callable[[pl.Series], pl.Series]:
    scale = cast.target.scale or 0
    # digits that the scale has no place for, or an exponent, which the engine would round
    longer = rf"\.\d{{{scale}}}0*[1-9]|[eE]"

    def exact(series: pl.Series) -> pl.Series:
        result = series.cast(wanted, strict=False)
        lost = result.is_null() | series.str.contains(longer)
        BadValue.check(cast.column, series, lost, named(cast.target))
        return result

    return exact
