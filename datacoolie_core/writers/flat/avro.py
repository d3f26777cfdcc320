"""Avro files through fastavro, which keeps the types that polars' own writer does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.flat.inside import columns_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_CODECS = {"uncompressed": "null", "deflate": "deflate", "bzip2": "bzip2", "xz": "xz"}
_TYPES: dict[type[pl.DataType], Any] = {
    pl.Boolean: "boolean",
    pl.Int32: "int",
    pl.Int64: "long",
    pl.Float32: "float",
    pl.Float64: "double",
    pl.String: "string",
    pl.Binary: "bytes",
    pl.Date: {"type": "int", "logicalType": "date"},
    pl.Time: {"type": "long", "logicalType": "time-micros"},
}
_READ_AT_ONCE = 50_000


class Avro:
    """Avro's object container files.

    Args:
        schema: The columns of every file.
        options: Compression.
    """

    def __init__(self, schema: pl.Schema, options: Mapping[str, Any]) -> None:
        self._fastavro = fastavro()
        self._schema = avro_schema(schema)
        self._codec = _CODECS[options.get("compression", "uncompressed")]

    def append(self, path: Path, rows: pl.DataFrame, *, first: bool) -> None:
        """Add rows as blocks."""
        _refuse_fine_times(rows)
        with path.open("wb" if first else "a+b") as file:
            self._fastavro.writer(file, self._schema, rows.iter_rows(named=True), codec=self._codec)

    def finish(self, path: Path) -> None:
        """An Avro file has no end."""


def fastavro() -> Any:
    """Return the library that reads and writes Avro.

    Raises:
        WriteError: It is not installed.
    """
    try:
        import fastavro as library
    except ImportError as error:
        raise WriteError(
            "Avro files need the package fastavro",
            remedy="Install it: pip install 'datacoolie-dagster[avro]'.",
            code="missing_package",
        ) from error
    return library


def avro_schema(schema: pl.Schema) -> dict[str, Any]:
    """Return columns as an Avro record; every one may be null.

    Raises:
        WriteError: A name that Avro does not allow.
    """
    fields = [_field(name, dtype, name) for name, dtype in schema.items()]
    return {"type": "record", "name": "row", "fields": fields}


def _field(name: str, dtype: pl.DataType, path: str) -> dict[str, Any]:
    if not _NAME.match(name):
        raise WriteError(
            f"Avro has no field names such as '{name}' (column '{path}')",
            remedy="Use letters a to z, digits and underscores (transform.rename_columns), or"
            " another format.",
            code="unsupported_column_name",
        )
    kind = _type(dtype, path)
    return {"name": name, "type": "null" if kind == "null" else ["null", kind], "default": None}


def _type(dtype: pl.DataType, path: str) -> Any:
    if isinstance(dtype, pl.Null):
        return "null"
    if isinstance(dtype, pl.Decimal):
        digits = {"precision": dtype.precision or 38, "scale": dtype.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if isinstance(dtype, pl.Datetime):
        kind = "timestamp-micros" if dtype.time_zone else "local-timestamp-micros"
        return {"type": "long", "logicalType": kind}
    if isinstance(dtype, pl.List):
        inner = _type(cast("pl.DataType", dtype.inner), f"{path}.element")
        return {"type": "array", "items": "null" if inner == "null" else ["null", inner]}
    if isinstance(dtype, pl.Struct):
        fields = [
            _field(f.name, cast("pl.DataType", f.dtype), f"{path}.{f.name}") for f in dtype.fields
        ]
        # record names are global in a schema
        name = "r_" + re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", path)
        return {"type": "record", "name": name, "fields": fields}
    return _TYPES[dtype.base_type()]


def _refuse_fine_times(rows: pl.DataFrame) -> None:
    bad = columns_with(rows, _finer)
    if bad:
        raise WriteError(
            f"Avro keeps times of day to the microsecond, and column '{bad[0]}' holds a finer one",
            remedy="Round it in the transform, or write it as text.",
            code="value_lost",
        )


def _finer(value: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    return value.to_physical() % 1000 != 0 if isinstance(dtype, pl.Time) else None


def read_avro(path: Path, schema: pl.Schema) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file in pieces; columns that it lacks are null.

    Args:
        path: On this machine.
        schema: The columns wanted.
    """
    with path.open("rb") as file:
        piece: list[dict[str, Any]] = []
        for row in fastavro().reader(file):
            piece.append({name: row.get(name) for name in schema})
            if len(piece) == _READ_AT_ONCE:
                yield pl.DataFrame(piece, schema=schema)
                piece = []
        yield pl.DataFrame(piece, schema=schema)
