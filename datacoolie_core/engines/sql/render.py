"""Values as text, in the form that Spark gives them."""

from __future__ import annotations

import polars as pl

from datacoolie_core.engines.sql.kinds import kind_of, shown
from datacoolie_core.engines.sql.values import SqlError

_LEAST_PLAIN, _MOST_PLAIN = 1e-3, 1e7
"""Between these, a DOUBLE is written without an exponent."""
_CLOCK = "%Y-%m-%d %H:%M:%S%.6f"


def rendered(expr: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return a value as text.

    Raises:
        SqlError: It is a list or struct.
    """
    kind = kind_of(dtype)
    if kind in ("list", "struct", "other"):
        raise SqlError(
            f"a value of type {shown(dtype)} has no text",
            "Take an element or field of it first.",
        )
    if kind == "float":
        return _number(expr)
    if kind in ("instant", "wall"):
        clock = expr.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return moment(clock if kind == "instant" else expr)
    return expr.cast(pl.String)


def moment(clock: pl.Expr) -> pl.Expr:
    """Return a timestamp without a zone as text: as many digits of the second as it has."""
    whole = clock.dt.to_string(_CLOCK)
    return whole.str.replace(r"\.0+$", "").str.replace(r"(\.\d*[1-9])0+$", "${1}")


def _number(expr: pl.Expr) -> pl.Expr:
    plain = expr.cast(pl.String)
    size = expr.abs()
    near = (size == 0) | ((size >= _LEAST_PLAIN) & (size < _MOST_PLAIN))
    return (
        pl.when(expr.is_nan())
        .then(pl.lit("NaN"))
        .when(expr.is_infinite())
        .then(pl.when(expr > 0).then(pl.lit("Infinity")).otherwise(pl.lit("-Infinity")))
        .when(near)
        .then(plain)
        .otherwise(_with_exponent(plain))
    )


def _with_exponent(plain: pl.Expr) -> pl.Expr:
    """Return 12345678.9, 1e+20 and 0.00012 as 1.23456789E7, 1.0E20 and 1.2E-4."""
    parts = plain.str.extract_groups(r"^(-?)0*(\d*)(?:\.(\d+))?(?:e([+-]?\d+))?$")
    sign, whole = parts.struct[0], parts.struct[1]
    fraction, power = parts.struct[2].fill_null(""), parts.struct[3].cast(pl.Int32).fill_null(0)
    zeros = fraction.str.len_chars() - fraction.str.strip_chars_start("0").str.len_chars()
    above = whole.str.len_chars().cast(pl.Int32) - 1
    below = -zeros.cast(pl.Int32) - 1
    exponent = power + pl.when(whole == "").then(below).otherwise(above)
    digits = pl.concat_str(whole, fraction).str.strip_chars_start("0").str.strip_chars_end("0")
    rest = digits.str.slice(1)
    shown_rest = pl.when(rest == "").then(pl.lit("0")).otherwise(rest)
    head = digits.str.slice(0, 1)
    return pl.concat_str(sign, head, pl.lit("."), shown_rest, pl.lit("E"), exponent.cast(pl.String))
