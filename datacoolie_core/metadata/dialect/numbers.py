"""Functions on numbers."""

from __future__ import annotations

from datacoolie_core.metadata.dialect.function import function

NUMBERS = (
    function("abs", "number", "Without its sign.", "abs(-2.5)"),
    function("sign, signum", "number", "-1, 0 or 1, as DOUBLE.", "sign(-3)"),
    function("negative", "number", "With the other sign.", "negative(3)"),
    function("positive", "number", "The number itself.", "positive(3)"),
    function("round", "number, [digits]", "Halves go away from zero.", "round(2.345, 2)"),
    function("bround", "number, [digits]", "Halves go to the even digit.", "bround(2.345, 2)"),
    function("floor", "number", "The whole number below.", "floor(-1.5)"),
    function("ceil, ceiling", "number", "The whole number above.", "ceil(1.2)"),
    function("mod", "number, by", "The remainder, as %: it has the number's sign.", "mod(-7, 3)"),
    function("pmod", "number, by", "The remainder that is never negative.", "pmod(-7, 3)"),
    function("div", "number, by", "The whole quotient, as DIV.", "div(-7, 2)"),
    function("pow, power", "number, exponent", "The power, as DOUBLE.", "pow(2, 10)"),
    function("sqrt", "number", "The square root.", "sqrt(2.25)"),
    function("cbrt", "number", "The cube root.", "cbrt(27)"),
    function("exp", "number", "The power of e.", "exp(0)"),
    function("ln", "number", "The logarithm to e; null at or below 0.", "ln(1)"),
    function("log", "base_or_number, [number]", "log(base, number), or ln.", "log(2, 8)"),
    function("log10", "number", "The logarithm to 10.", "log10(1000)"),
    function("log2", "number", "The logarithm to 2.", "log2(8)"),
    function("log1p", "number", "ln(1 + number).", "log1p(0)"),
    function("sin", "number", "The sine of radians.", "sin(0)"),
    function("cos", "number", "The cosine of radians.", "cos(0)"),
    function("tan", "number", "The tangent of radians.", "tan(0)"),
    function("cot", "number", "The cotangent of radians.", "round(cot(1), 4)"),
    function("asin", "number", "Radians of a sine.", "asin(0)"),
    function("acos", "number", "Radians of a cosine.", "acos(1)"),
    function("atan", "number", "Radians of a tangent.", "atan(0)"),
    function("atan2", "y, x", "Radians of a direction.", "atan2(0, 1)"),
    function("degrees", "number", "From radians.", "degrees(pi())"),
    function("radians", "number", "From degrees.", "round(radians(180), 4)"),
    function("pi", "", "The number.", "round(pi(), 4)"),
    function("e", "", "The number.", "round(e(), 4)"),
    function(
        "greatest",
        "value, value, ...",
        "The greatest; nulls are left out.",
        "greatest(1, null, 2.5)",
    ),
    function("least", "value, value, ...", "The least; nulls are left out.", "least(1, null, 2.5)"),
    function("isnan", "number", "Whether it is NaN; a null is not.", "isnan(double('NaN'))"),
    function(
        "nanvl", "number, instead", "The second where the first is NaN.", "nanvl(double('NaN'), 0)"
    ),
    function("try_divide", "number, by", "The quotient; null where `by` is 0.", "try_divide(1, 0)"),
    function("bit_count", "number", "How many bits are set.", "bit_count(7)"),
)

CASTS = (
    function("boolean", "value", "CAST(value AS BOOLEAN).", "boolean('yes')"),
    function("tinyint", "value", "CAST(value AS TINYINT).", "tinyint('7')"),
    function("smallint", "value", "CAST(value AS SMALLINT).", "smallint('7')"),
    function("int", "value", "CAST(value AS INT).", "int('7')"),
    function("bigint", "value", "CAST(value AS BIGINT).", "bigint('7')"),
    function("float", "value", "CAST(value AS FLOAT).", "float('0.5')"),
    function("double", "value", "CAST(value AS DOUBLE).", "double('0.5')"),
    function("string", "value", "CAST(value AS STRING).", "string(0.5)"),
)
