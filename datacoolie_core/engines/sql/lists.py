"""Functions on lists and structs."""

from __future__ import annotations

import polars as pl

from datacoolie_core.engines.dtypes import instance
from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.engines.sql.branches import unified
from datacoolie_core.engines.sql.coerce import to_text, to_type, to_whole
from datacoolie_core.engines.sql.kinds import kind_of, shown
from datacoolie_core.engines.sql.values import Call, Handler, SqlError, Value, int32, text, truth


def list_of(value: Value, what: str) -> tuple[pl.Expr, pl.DataType]:
    """Return a list, and the type of its elements.

    Raises:
        SqlError: The value is no list.
    """
    if isinstance(value.dtype, pl.Array):
        return value.expr.arr.to_list(), instance(value.dtype.inner)
    if isinstance(value.dtype, pl.List):
        return value.expr, instance(value.dtype.inner)
    raise SqlError(f"{what}: a value of type {shown(value.dtype)} is no list")


def field(value: Value, name: str) -> Value:
    """Return a field of a struct; case does not matter.

    Raises:
        SqlError: The value is no struct, or has no such field.
    """
    if not isinstance(value.dtype, pl.Struct):
        raise SqlError(f"a value of type {shown(value.dtype)} has no field '{name}'")
    types = {one.name: instance(one.dtype) for one in value.dtype.fields}
    found = match(name, types)
    if found is None:
        raise SqlError(f"there is no field '{name}'", remedy_for(name, types), "missing_column")
    return Value(value.expr.struct.field(found), types[found])


def element(value: Value, index: pl.Expr, *, beyond_is_null: bool) -> Value:
    """Return an element of a list, counted from 0.

    Raises:
        SqlError: The value is no list.
    """
    expr, inner = list_of(value, "[…]")
    place = pl.when(index >= 0).then(index).otherwise(expr.list.len().cast(pl.Int64))
    return Value(expr.list.get(place, null_on_oob=beyond_is_null), inner)


def _size(call: Call) -> Value:
    expr, _ = list_of(call.value(0), call.name)
    return int32(expr.list.len())


def _array(call: Call) -> Value:
    values = unified(call.values(), call.scope, call.name)
    made = pl.concat_list([value.expr for value in values])
    return Value(made, pl.List(values[0].dtype))


def _element_at(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    place = to_whole(call.value(1), call.scope).expr
    index = pl.when(place > 0).then(place - 1).when(place < 0).then(place)
    return Value(expr.list.get(index, null_on_oob=True), inner)


def _get(call: Call) -> Value:
    index = to_whole(call.value(1), call.scope).expr
    return element(call.value(0), index, beyond_is_null=True)


def _contains(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    wanted = to_type(call.value(1), inner, call.scope)
    found = expr.list.contains(wanted.expr, nulls_equal=False)
    unsure = ~found & (expr.list.drop_nulls().list.len() < expr.list.len())
    return truth(pl.when(wanted.expr.is_not_null() & ~unsure).then(found))


def _join(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    if kind_of(inner) not in ("text", "int", "bool", "date", "decimal"):
        raise SqlError(f"{call.name}: elements of type {shown(inner)} have no text")
    texts = expr.cast(pl.List(pl.String))
    return text(texts.list.join(call.constant(1, str, "the separator"), ignore_nulls=True))


def _position(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    wanted = to_type(call.value(1), inner, call.scope)
    if not wanted.is_constant:
        raise SqlError("array_position: what is searched must be a constant")
    hits = expr.list.eval(pl.element() == wanted.expr)
    place = hits.list.arg_max().cast(pl.Int64) + 1
    found = pl.when(hits.list.any()).then(place).otherwise(0)
    return Value(pl.when(expr.is_not_null()).then(found), pl.Int64())


def _sorted(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    return Value(expr.list.sort(nulls_last=call.name == "array_sort"), pl.List(inner))


def _slice(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    start, length = (to_whole(call.value(index), call.scope).expr for index in (1, 2))
    begin = pl.when(start > 0).then(start - 1).otherwise(start)
    return Value(expr.list.slice(begin, length), pl.List(inner))


def _one_of(method: str) -> Handler:
    def handler(call: Call) -> Value:
        expr, inner = list_of(call.value(0), call.name)
        return Value(expr.list.max() if method == "max" else expr.list.min(), inner)

    return handler


def _distinct(call: Call) -> Value:
    expr, inner = list_of(call.value(0), call.name)
    return Value(expr.list.unique(maintain_order=True), pl.List(inner))


def _struct(call: Call) -> Value:
    values = call.values()
    names = [
        value.expr.meta.output_name() if value.expr.meta.is_column() else f"col{number}"
        for number, value in enumerate(values, 1)
    ]
    return _of(dict(zip(names, values, strict=True)))


def _named_struct(call: Call) -> Value:
    if len(call) % 2:
        raise SqlError("named_struct: names and values come in pairs")
    names = [call.constant(index, str, "a name") for index in range(0, len(call), 2)]
    return _of({name: call.value(2 * index + 1) for index, name in enumerate(names)})


def _of(fields: dict[str, Value]) -> Value:
    made = pl.struct(value.expr.alias(name) for name, value in fields.items())
    return Value(made, pl.Struct({name: value.dtype for name, value in fields.items()}))


def joined_text(value: Value) -> Value:
    """Return a value as text."""
    return to_text(value)


FUNCTIONS: dict[str, Handler] = {
    "size": _size,
    "array": _array,
    "element_at": _element_at,
    "get": _get,
    "array_contains": _contains,
    "array_join": _join,
    "array_distinct": _distinct,
    "array_max": _one_of("max"),
    "array_min": _one_of("min"),
    "array_position": _position,
    "sort_array": _sorted,
    "slice": _slice,
    "struct": _struct,
    "named_struct": _named_struct,
}
