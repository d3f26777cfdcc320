"""Avro schemas: the column types that they stand for, and how decoded values become Arrow's.

A map is a list of ``{key, value}``, an enumeration a text, a union of numbers the wider number, a
union of a text with other plain values a text. Other unions have no column type and are refused.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[Any], Any]

PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NUMBERS = ("int", "long", "float", "double")
_DIGITS = 38
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}


class AvroTypeTrouble(ValueError):  # noqa: N818 - it never reaches a user
    """A field has a type that no column can have.

    Attributes:
        field: Its path.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.field = path


@dataclass(frozen=True)
class AvroType:
    """How the values of a type are held.

    Attributes:
        arrow: In Arrow.
        convert: Makes a decoded value one that Arrow takes; None if it is one.
    """

    arrow: Any
    convert: Convert | None = None


@dataclass
class _Names:
    """Named types seen so far, and those that are being described."""

    known: dict[str, Any] = field(default_factory=dict[str, Any])
    open: set[str] = field(default_factory=set[str])


def arrow_fields(schema: Any) -> dict[str, AvroType]:
    """Return the fields of a file's records.

    Raises:
        AvroTypeTrouble: A field's type has no column type, or the file has no records.
    """
    record = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    if kind_of_entry(record) != "record":
        raise AvroTypeTrouble("", "its schema is no record")
    return _record_fields(record, "", _Names())


def engine_schema(fields: dict[str, AvroType]) -> dict[str, pl.DataType]:
    """Return the engine's types of fields."""
    pa = arrow_library()

    empty = pa.schema([(name, one.arrow) for name, one in fields.items()]).empty_table()
    return dict(pl.DataFrame(empty).schema)


def arrow_library() -> Any:
    """Return pyarrow, which has no types of its own."""
    import pyarrow as pa

    return cast("Any", pa)


def kind_of_entry(entry: dict[str, Any]) -> str:
    """Return the name of a schema object's type, empty if it is described inside."""
    kind = entry.get("type")
    return kind if isinstance(kind, str) else ""


def _record_fields(record: dict[str, Any], path: str, names: _Names) -> dict[str, AvroType]:
    return {
        str(one["name"]): _described(one["type"], f"{path}{one['name']}", names)
        for one in record.get("fields", [])
    }


def _described(schema: Any, path: str, names: _Names) -> AvroType:
    if isinstance(schema, list):
        return _union(cast("list[Any]", schema), path, names)
    if isinstance(schema, dict):
        entry = cast("dict[str, Any]", schema)
        inner = entry.get("type")
        if isinstance(inner, dict | list):
            return _described(inner, path, names)
        return _entry(entry, path, names)
    if schema in PLAIN:
        return AvroType(_plain(schema))
    return _named(str(schema), path, names)


def _named(name: str, path: str, names: _Names) -> AvroType:
    known = names.known.get(name) or names.known.get(name.rpartition(".")[2])
    if known is None:
        raise AvroTypeTrouble(path, f"there is no type '{name}'")
    if str(known.get("name")) in names.open:
        raise AvroTypeTrouble(path, f"its type '{name}' contains itself")
    return _entry(known, path, names)


def _entry(entry: dict[str, Any], path: str, names: _Names) -> AvroType:
    kind = kind_of_entry(entry)
    if kind in ("record", "enum", "fixed"):
        names.known[str(entry["name"])] = entry
        names.known[str(entry["name"]).rpartition(".")[2]] = entry
    logical = _logical(entry, path)
    if logical is not None:
        return logical
    if kind == "record":
        return _struct(entry, path, names)
    if kind in ("array", "map"):
        return _several(entry, path, names)
    if kind in ("enum", "fixed"):
        return AvroType(_plain("string" if kind == "enum" else "bytes"))
    if kind in PLAIN:
        return AvroType(_plain(kind))
    return _named(kind, path, names)


def _struct(entry: dict[str, Any], path: str, names: _Names) -> AvroType:
    pa = arrow_library()

    name = str(entry["name"])
    names.open.add(name)
    fields = _record_fields(entry, f"{path}.", names)
    names.open.discard(name)
    if not fields:
        raise AvroTypeTrouble(path, "it is a record without fields")
    arrow = pa.struct([(key, one.arrow) for key, one in fields.items()])
    changed = {key: one.convert for key, one in fields.items() if one.convert is not None}

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return {**value, **{key: _given(change, value[key]) for key, change in changed.items()}}

    return AvroType(arrow, convert if changed else None)


def _several(entry: dict[str, Any], path: str, names: _Names) -> AvroType:
    pa = arrow_library()

    is_map = kind_of_entry(entry) == "map"
    inner = _described(entry["values" if is_map else "items"], f"{path}[]", names)
    change = inner.convert
    if is_map:
        pair = pa.struct([("key", pa.string()), ("value", inner.arrow)])
        return AvroType(
            pa.list_(pair),
            lambda value: [{"key": k, "value": _given(change, v)} for k, v in value.items()],
        )
    if change is None:
        return AvroType(pa.list_(inner.arrow))
    return AvroType(pa.list_(inner.arrow), lambda value: [_given(change, one) for one in value])


def _given(change: Convert | None, value: Any) -> Any:
    return value if value is None or change is None else change(value)


def _union(branches: list[Any], path: str, names: _Names) -> AvroType:
    described = [_described(one, path, names) for one in branches if one != "null"]
    if not described:
        return AvroType(_plain("null"))
    if len(described) == 1:
        return described[0]
    kinds = {_scalar(one) for one in branches if one != "null"}
    if kinds <= set(_NUMBERS):
        whole = kinds <= {"int", "long"}
        return AvroType(_plain("long" if whole else "double"))
    if kinds <= {"bytes", "fixed"}:
        return AvroType(_plain("bytes"))
    if "string" in kinds and kinds <= {"string", "boolean", *_NUMBERS}:
        return AvroType(_plain("string"), _as_text)
    shown = ", ".join(sorted(json.dumps(one)[:40] for one in branches))
    raise AvroTypeTrouble(path, f"it is a union of types that share no column: {shown}")


def _scalar(branch: Any) -> str:
    if isinstance(branch, str):
        return branch
    entry = cast("dict[str, Any]", branch) if isinstance(branch, dict) else {}
    if entry.get("logicalType"):
        return (
            "string" if entry["logicalType"] == "uuid" and kind_of_entry(entry) == "string" else ""
        )
    return "string" if kind_of_entry(entry) == "enum" else kind_of_entry(entry)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _plain(kind: str) -> Any:
    pa = arrow_library()

    return {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.large_binary(),
        "string": pa.large_string(),
    }[kind]


def is_decimal(entry: dict[str, Any]) -> bool:
    """Return whether a schema object says decimal where it may."""
    return entry.get("logicalType") == "decimal" and kind_of_entry(entry) in ("bytes", "fixed")


def _logical(entry: dict[str, Any], path: str) -> AvroType | None:
    """Return a logical type; None for a plain one, and for one that nobody knows."""
    pa = arrow_library()

    kind, logical = kind_of_entry(entry), str(entry.get("logicalType", ""))
    if is_decimal(entry):
        return _decimal(entry, path)
    if logical == "uuid" and kind == "fixed":
        return AvroType(pa.large_string(), lambda value: str(uuid.UUID(bytes=value)))
    if logical == "date" and kind == "int":
        return AvroType(pa.date32())
    family, _, unit = logical.rpartition("-")
    if unit not in _UNITS or kind not in ("int", "long"):
        return None
    short = cast("Any", _UNITS[unit])
    if family == "time":
        return AvroType(pa.time32("ms") if kind == "int" else pa.time64(short))
    zones = {"timestamp": "UTC", "local-timestamp": None}
    return AvroType(pa.timestamp(short, zones[family])) if family in zones else None


def _decimal(entry: dict[str, Any], path: str) -> AvroType:
    pa = arrow_library()

    precision, scale = int(entry.get("precision", 0)), int(entry.get("scale", 0))
    if not 0 < precision <= _DIGITS or not 0 <= scale <= precision:
        raise AvroTypeTrouble(path, f"no column holds decimal({precision},{scale})")
    return AvroType(pa.decimal128(precision, scale))
