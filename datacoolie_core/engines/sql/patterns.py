"""Functions with regular expressions."""

from __future__ import annotations

import re

import polars as pl

from datacoolie_core.engines.sql.regex import engine_regex, matches, replacement
from datacoolie_core.engines.sql.text import text_of
from datacoolie_core.engines.sql.values import Call, Handler, SqlError, Value, int32, text

_TEXTS = pl.List(pl.String)
_MANY = "regexp_extract_all"


def _pattern(call: Call) -> str:
    return engine_regex(call.constant(1, str, "the pattern"))


def _replace(call: Call) -> Value:
    by = replacement(call.constant(2, str, "the replacement"))
    return text(text_of(call, 0).str.replace_all(_pattern(call), by))


def _extract(call: Call) -> Value:
    value, pattern = text_of(call, 0), _pattern(call)
    group = call.constant(2, int, "the group") if len(call) > 2 else 1
    if len(call) == 2 and not re.search(r"(?<!\\)\((?!\?)", pattern):
        group = 0
    try:
        pl.select(pl.lit("").str.extract(pattern, group))
    except pl.exceptions.PolarsError as error:
        raise SqlError(f"{call.name}: the pattern has no group {group}") from error
    found = value.str.extract(pattern, group).fill_null("")
    return text(pl.when(value.is_not_null()).then(found))


def _split(call: Call) -> Value:
    if len(call) > 2 and call.constant(2, int, "the limit") > 0:
        raise SqlError("split: only the limit -1 is known", "Use split_part for one of the parts.")
    value, pattern = text_of(call, 0), call.constant(1, str, "the pattern")
    if not re.search(r"[\\^$.|?*+()\[\]{}]", pattern):
        return Value(value.str.split(pattern), _TEXTS)
    return Value(value.str.split(engine_regex(pattern), literal=False), _TEXTS)


def _string_to_array(call: Call) -> Value:
    separator = call.constant(1, str, "the separator")
    return Value(text_of(call, 0).str.split(separator), _TEXTS)


FUNCTIONS: dict[str, Handler] = {
    "regexp_replace": _replace,
    "regexp_extract": _extract,
    _MANY: lambda call: Value(text_of(call, 0).str.extract_all(_pattern(call)), _TEXTS),
    "regexp_like": lambda call: matches(text_of(call, 0), call.constant(1, str, "the pattern")),
    "regexp_count": lambda call: int32(text_of(call, 0).str.count_matches(_pattern(call))),
    "split": _split,
    "string_to_array": _string_to_array,
}
