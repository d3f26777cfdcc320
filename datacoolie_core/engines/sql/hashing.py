"""Hashes and encodings of bytes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.engines.sql.coerce import to_text
from datacoolie_core.engines.sql.kinds import kind_of
from datacoolie_core.engines.sql.values import Call, Handler, SqlError, Value, text

if TYPE_CHECKING:
    from collections.abc import Callable

_SEED = 42
_BITS = {0: "sha2_256", 224: "sha2_224", 256: "sha2_256", 384: "sha2_384", 512: "sha2_512"}


def _plug_in(expr: pl.Expr, space: str) -> Any:
    # the import registers the two name spaces
    importlib.import_module("polars_hash")
    return getattr(expr, space)


def _bytes(call: Call) -> pl.Expr:
    value = call.value(0)
    return value.expr if kind_of(value.dtype) == "binary" else to_text(value).expr


def _hash(space: str, name: str) -> Handler:
    return lambda call: text(getattr(_plug_in(_bytes(call), space), name)())


def _sha2(call: Call) -> Value:
    bits = call.constant(1, int, "the number of bits")
    if bits not in _BITS:
        raise SqlError(f"sha2: {bits} bits are none of 224, 256, 384 and 512")
    return text(getattr(_plug_in(_bytes(call), "chash"), _BITS[bits])())


def _xxhash64(call: Call) -> Value:
    value = call.value(0)
    if kind_of(value.dtype) not in ("text", "binary"):
        raise SqlError(
            "xxhash64: only the hash of a text is the same as that of Spark",
            "Write a CAST(… AS STRING) around the value, or use md5 or sha2.",
        )
    hashed = _plug_in(value.expr, "nchash").xxhash64(seed=_SEED)
    found = hashed.reinterpret(signed=True)
    return Value(pl.when(value.expr.is_null()).then(_SEED).otherwise(found), pl.Int64())


def _encoded(form: str) -> Callable[[pl.Expr], pl.Expr]:
    return lambda expr: expr.cast(pl.Binary).bin.encode("hex" if form == "hex" else "base64")


def _hex(call: Call) -> Value:
    value = call.value(0)
    if kind_of(value.dtype) == "int":
        raise SqlError("hex: only texts and binary values are known", "Write a CAST around it.")
    return text(_encoded("hex")(_bytes(call)).str.to_uppercase())


def _decoded(form: Any) -> Handler:
    return lambda call: Value(
        to_text(call.value(0)).expr.str.decode(form, strict=False), pl.Binary()
    )


FUNCTIONS: dict[str, Handler] = {
    "md5": _hash("nchash", "md5"),
    "sha1": _hash("nchash", "sha1"),
    "sha2": _sha2,
    "xxhash64": _xxhash64,
    "hex": _hex,
    "unhex": _decoded("hex"),
    "base64": lambda call: text(_encoded("base64")(_bytes(call))),
    "unbase64": _decoded("base64"),
}
