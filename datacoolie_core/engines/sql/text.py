"""Functions on text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.sql.coerce import to_text, to_whole
from datacoolie_core.engines.sql.kinds import kind_of
from datacoolie_core.engines.sql.values import Call, Handler, SqlError, Value, int32, text, truth

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_CHR = 255


def text_of(call: Call, index: int) -> pl.Expr:
    """Return an argument as text."""
    return to_text(call.value(index)).expr


def whole_of(call: Call, index: int) -> pl.Expr:
    """Return an argument as a whole number."""
    return to_whole(call.value(index), call.scope).expr


def _simple(make: Callable[[pl.Expr], pl.Expr]) -> Handler:
    return lambda call: text(make(text_of(call, 0)))


def _length(call: Call) -> Value:
    value = call.value(0)
    if kind_of(value.dtype) == "binary":
        return int32(value.expr.bin.size())
    return int32(to_text(value).expr.str.len_chars())


def _initcap(call: Call) -> Value:
    words = text_of(call, 0).str.to_lowercase().str.split(" ")
    one = pl.element()
    capital = pl.concat_str(one.str.slice(0, 1).str.to_uppercase(), one.str.slice(1))
    return text(words.list.eval(capital).list.join(" "))


def _concat(call: Call) -> Value:
    values = call.values()
    if all(kind_of(value.dtype) == "list" for value in values):
        return Value(pl.concat_list(value.expr for value in values), values[0].dtype)
    return text(pl.concat_str([to_text(value).expr for value in values]))


def _concat_ws(call: Call) -> Value:
    separator = call.constant(0, str, "the separator")
    parts: list[pl.Expr] = []
    for value in call.values(1):
        if kind_of(value.dtype) == "list":
            joined = value.expr.cast(pl.List(pl.String)).list.join(separator, ignore_nulls=True)
            parts.append(pl.when(value.expr.list.drop_nulls().list.len() > 0).then(joined))
        else:
            parts.append(to_text(value).expr)
    return text(pl.concat_str(parts, separator=separator, ignore_nulls=True))


def _substring(call: Call) -> Value:
    value, start = text_of(call, 0), call.value(1)
    length = whole_of(call, 2) if len(call) > 2 else None
    return text(substring(value, to_whole(start, call.scope), length))


def substring(value: pl.Expr, start: Value, length: pl.Expr | None) -> pl.Expr:
    """Return a part of a text; places count from 1, and negative ones from the end."""
    if isinstance(start.constant, int) and start.constant >= 0:
        kept = None if length is None else pl.max_horizontal(length, 0)
        part = value.str.slice(max(start.constant - 1, 0), kept)
        return part if length is None else pl.when(length.is_not_null()).then(part)
    size = value.str.len_chars().cast(pl.Int64)
    place = start.expr
    begin = pl.when(place > 0).then(place - 1).when(place < 0).then(size + place).otherwise(place)
    end = size if length is None else begin + length
    from_here = pl.max_horizontal(begin, 0)
    part = value.str.slice(from_here, pl.max_horizontal(end - from_here, 0))
    return pl.when(begin.is_not_null() & end.is_not_null()).then(part)


def _left(call: Call) -> Value:
    count = pl.max_horizontal(whole_of(call, 1), 0)
    return text(text_of(call, 0).str.slice(0, count))


def _right(call: Call) -> Value:
    value, count = text_of(call, 0), pl.max_horizontal(whole_of(call, 1), 0)
    size = value.str.len_chars().cast(pl.Int64)
    return text(value.str.slice(pl.max_horizontal(size - count, 0), count))


def _trim(call: Call) -> Value:
    characters = call.constant(1, str, "the characters") if len(call) > 1 else " "
    return text(text_of(call, 0).str.strip_chars(characters))


def _padded(call: Call) -> Value:
    value, length = text_of(call, 0), call.constant(1, int, "the length")
    fill = call.constant(2, str, "the fill") if len(call) > 2 else " "
    length = max(length, 0)
    cut = value.str.slice(0, length)
    if not fill:
        return text(cut)
    missing = length - cut.str.len_chars().cast(pl.Int64)
    filling = pl.lit((fill * length)[:length]).str.slice(0, missing)
    left = call.name == "lpad"
    return text(pl.concat_str(filling, cut) if left else pl.concat_str(cut, filling))


def _replace(call: Call) -> Value:
    value, search = text_of(call, 0), call.constant(1, str, "what is searched")
    by = text_of(call, 2) if len(call) > 2 else pl.lit("")
    return text(value.str.replace_all(search, by, literal=True) if search else value)


def _translate(call: Call) -> Value:
    value = text_of(call, 0)
    before, after = call.constant(1, str, "`from`"), call.constant(2, str, "`to`")
    pairs: dict[str, str] = {}
    for index, letter in enumerate(before):
        pairs.setdefault(letter, after[index : index + 1])
    return text(value.str.replace_many(list(pairs), list(pairs.values())) if pairs else value)


def _reverse(call: Call) -> Value:
    value = call.value(0)
    if kind_of(value.dtype) == "list":
        return Value(value.expr.list.reverse(), value.dtype)
    return text(to_text(value).expr.str.reverse())


def _repeat(call: Call) -> Value:
    times = pl.max_horizontal(whole_of(call, 1), 0)
    value = text_of(call, 0)
    joined = value.repeat_by(times).list.join("")
    return text(pl.when(value.is_not_null()).then(joined))


def _space(call: Call) -> Value:
    return text(pl.lit(" " * max(call.constant(0, int, "the number"), 0)))


def _split_part(call: Call) -> Value:
    separator, number = call.constant(1, str, "the separator"), call.constant(2, int, "the number")
    if not separator or number == 0:
        raise SqlError("split_part: the separator can't be empty, and parts count from 1")
    parts = text_of(call, 0).str.split(separator)
    found = parts.list.get(number - 1 if number > 0 else number, null_on_oob=True)
    return text(pl.when(parts.is_not_null()).then(found.fill_null("")))


def _substring_index(call: Call) -> Value:
    value = text_of(call, 0)
    separator, count = call.constant(1, str, "the separator"), call.constant(2, int, "the count")
    if not separator or count == 0:
        return text(pl.when(value.is_not_null()).then(pl.lit("")))
    parts = value.str.split(separator)
    kept = parts.list.head(count) if count > 0 else parts.list.tail(-count)
    return text(kept.list.join(separator))


def place_of(value: pl.Expr, part: pl.Expr) -> pl.Expr:
    """Return where a part begins, in characters from 1; 0 where it is not, null of a null."""
    before = value.str.splitn(part, 2).struct.field("field_0").str.len_chars().cast(pl.Int32) + 1
    place = pl.when(value.str.contains(part, literal=True)).then(before).otherwise(0)
    found = pl.when(part == "").then(pl.lit(1, dtype=pl.Int32)).otherwise(place)
    return pl.when(value.is_not_null() & part.is_not_null()).then(found)


def _instr(call: Call) -> Value:
    return int32(place_of(text_of(call, 0), text_of(call, 1)))


def _locate(call: Call) -> Value:
    part, value = text_of(call, 0), text_of(call, 1)
    start = call.constant(2, int, "where to begin") if len(call) > 2 else 1
    if start < 1:
        return int32(pl.when(value.is_not_null() & part.is_not_null()).then(pl.lit(0)))
    found = place_of(value.str.slice(start - 1), part)
    return int32(pl.when(found > 0).then(found + (start - 1)).otherwise(found))


def _contains(call: Call) -> Value:
    return truth(text_of(call, 0).str.contains(text_of(call, 1), literal=True))


def _ascii(call: Call) -> Value:
    value = text_of(call, 0).str.slice(0, 1)
    hexed = value.cast(pl.Binary).bin.encode("hex")
    # the bits of UTF-8 that are the character's own: 7, or 5, 4, 3 of the first byte and 6 of others
    code = pl.lit(0, dtype=pl.Int64)
    for place in range(4):
        byte = hexed.str.slice(2 * place, 2).str.to_integer(base=16, strict=False)
        first = value.str.len_bytes()
        own = (
            byte % 64
            if place
            else byte
            % pl.when(first == 1)
            .then(128)
            .otherwise(pl.lit(2, dtype=pl.Int64).pow(7 - first.cast(pl.Int64)).cast(pl.Int64))
        )
        code = pl.when(byte.is_null()).then(code).otherwise(code * 64 + own)
    return int32(pl.when(value.is_not_null()).then(code))


def _chr(call: Call) -> Value:
    code = call.constant(0, int, "the code")
    if code < 0:
        return text(pl.lit(""))
    return text(pl.lit(chr(code % (_MOST_CHR + 1))))


def _json(call: Call) -> Value:
    value, path = text_of(call, 0), call.constant(1, str, "the path")
    return text(value.str.json_path_match(path))


FUNCTIONS: dict[str, Handler] = {
    "upper": _simple(lambda value: value.str.to_uppercase()),
    "lower": _simple(lambda value: value.str.to_lowercase()),
    "ltrim": _simple(lambda value: value.str.strip_chars_start(" ")),
    "rtrim": _simple(lambda value: value.str.strip_chars_end(" ")),
    "initcap": _initcap,
    "length": _length,
    "octet_length": lambda call: int32(text_of(call, 0).str.len_bytes()),
    "bit_length": lambda call: int32(text_of(call, 0).str.len_bytes() * 8),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "substring": _substring,
    "left": _left,
    "right": _right,
    "trim": _trim,
    "lpad": _padded,
    "rpad": _padded,
    "replace": _replace,
    "translate": _translate,
    "reverse": _reverse,
    "repeat": _repeat,
    "space": _space,
    "split_part": _split_part,
    "substring_index": _substring_index,
    "instr": _instr,
    "locate": _locate,
    "contains": _contains,
    "startswith": lambda call: truth(text_of(call, 0).str.starts_with(text_of(call, 1))),
    "endswith": lambda call: truth(text_of(call, 0).str.ends_with(text_of(call, 1))),
    "ascii": _ascii,
    "chr": _chr,
    "get_json_object": _json,
}
