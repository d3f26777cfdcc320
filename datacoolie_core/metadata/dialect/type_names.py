"""The types of CAST, as the logical types that hints have too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.dialect.grammar import DialectError
from datacoolie_core.metadata.hint_types import HintTypeError, LogicalType, parse_type

if TYPE_CHECKING:
    from sqlglot import exp

    from datacoolie_core.metadata.hint_type_names import Kind

_KINDS: dict[str, Kind] = {
    "BOOLEAN": "bool",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR"), "string"),
    **dict.fromkeys(("BINARY", "VARBINARY"), "binary"),
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMP"), "timestamp"),
    **dict.fromkeys(("TIMESTAMPNTZ", "DATETIME", "DATETIME2"), "timestamp_ntz"),
    "TIME": "time",
}


def type_of(node: exp.DataType) -> LogicalType:
    """Return the type that a CAST names.

    Raises:
        DialectError: No column can have it.
    """
    name = node.this if isinstance(node.this, str) else node.this.name
    if name in _KINDS:
        return LogicalType(_KINDS[name])
    written = node.sql(dialect="spark")
    try:
        if name in ("DECIMAL", "USERDEFINED", "UNKNOWN"):
            return parse_type(written)
    except HintTypeError as error:
        raise DialectError(f"CAST: {error}", error.suggestion) from error
    raise DialectError(f"CAST: a value can't be made a {written.lower()} here")
