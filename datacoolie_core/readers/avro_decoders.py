"""Who decodes the records of an Avro schema: the engine, fast, or fastavro, which knows all types."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.avro_types import (
    PLAIN,
    AvroType,
    arrow_library,
    is_decimal,
    kind_of_entry,
)

if TYPE_CHECKING:
    from datacoolie_core.readers.union import Schema

Decode = Callable[[bytes], pl.DataFrame]
"""A small Avro file that is not packed → its rows."""
_ENGINE_LOGICAL = {
    "date",
    "time-millis",
    "time-micros",
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
    "uuid",
}


def engine_decodes(schema: Any) -> bool:
    """Return whether the engine's own decoder reads a schema, and reads it right."""
    if isinstance(schema, str):
        return schema in PLAIN and schema != "null"
    if isinstance(schema, list):
        branches = cast("list[Any]", schema)
        others = [branch for branch in branches if branch != "null"]
        return len(branches) == 2 and len(others) == 1 and engine_decodes(others[0])
    if not isinstance(schema, dict):
        return False
    entry = cast("dict[str, Any]", schema)
    kind, logical = kind_of_entry(entry), entry.get("logicalType")
    if logical is not None and logical not in _ENGINE_LOGICAL and kind != "long":
        return logical == "decimal" and kind == "bytes"
    if kind == "record":
        return all(engine_decodes(one.get("type")) for one in entry.get("fields", []))
    if kind == "array":
        return engine_decodes(entry.get("items"))
    # it panics at enumerations that can be null
    return kind in PLAIN and engine_decodes(kind)


def undressed(schema: Any) -> Any:
    """Return a schema whose moments and identifiers are the plain numbers and bytes they are."""
    if isinstance(schema, list):
        return [undressed(branch) for branch in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    entry = cast("dict[str, Any]", schema)
    kept = {
        key: value
        for key, value in entry.items()
        if key != "logicalType" or (value == "decimal" and is_decimal(entry))
    }
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = undressed(kept[key])
    if "fields" in kept:
        fields = cast("list[dict[str, Any]]", kept["fields"])
        kept["fields"] = [{"name": one["name"], "type": undressed(one["type"])} for one in fields]
    return kept


def by_engine(schema: Schema) -> Decode:
    """Return the engine's decoder.

    Args:
        schema: The types that its columns shall have.
    """

    def decode(data: bytes) -> pl.DataFrame:
        # moments in nanoseconds come as numbers
        return pl.read_avro(io.BytesIO(data)).cast(cast("Any", schema))

    return decode


def by_fastavro(fields: dict[str, AvroType], schema: Schema, place: str) -> Decode:
    """Return fastavro as a decoder of records whose schema is :func:`undressed`.

    Args:
        fields: Of the records.
        schema: The types that the columns shall have.
        place: What messages call the file.

    Raises:
        ReadError: The package is not there.
    """
    try:
        import fastavro
    except ImportError as error:
        raise ReadError(
            "its schema has maps, unions or named types, which need the package fastavro",
            place=place,
            remedy="Install it: pip install 'datacoolie[avro]'.",
            code="missing_package",
        ) from error
    pa = arrow_library()

    def decode(data: bytes) -> pl.DataFrame:
        records = cast("list[dict[str, Any]]", list(fastavro.reader(io.BytesIO(data))))
        columns: dict[str, Any] = {}
        for name, one in fields.items():
            values = [record[name] for record in records]
            if one.convert is not None:
                change = one.convert
                values = [None if value is None else change(value) for value in values]
            try:
                columns[name] = pa.array(values, one.arrow)
            except pa.ArrowInvalid as error:
                raise ReadError(
                    str(error),
                    place=f"{place}, column '{name}'",
                    remedy="Write the file with one type for the field that holds all its values.",
                    code="bad_value",
                ) from error
        return pl.DataFrame(pa.table(columns)).cast(cast("Any", schema))

    return decode
