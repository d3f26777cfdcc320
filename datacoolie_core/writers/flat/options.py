"""``write_options`` of flat files: the connection's and the destination's, checked by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from datacoolie_core.engines.names import remedy_for
from datacoolie_core.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacoolie_core.metadata.models import Destination
    from datacoolie_core.writers.flat.types import FileFormat

MAX_ROWS = "max_rows_per_file"
ROWS_PER_FILE = 1_000_000
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALIASES = {
    "header": "include_header",
    "sep": "separator",
    "quote": "quote_char",
    "null": "null_value",
    "codec": "compression",
}


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise ValueError("expected true or false")


def _number(value: Any) -> int:
    number = int(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError("expected a whole number, 0 or more")
    return number


def _rows(value: Any) -> int:
    number = _number(value)
    if not number:
        raise ValueError("expected 1 or more")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a text")
    return value.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r")


def _character(value: Any) -> str:
    text = _text(value)
    if len(text.encode()) != 1:
        raise ValueError("expected one ASCII character")
    return text


def _one_of(*choices: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value in choices:
            return value
        raise ValueError(f"expected {' or '.join(choices)}")

    return check


def _statistics(value: Any) -> Any:
    return value if value == "full" else _flag(value)


_PACKED = {
    "compression": _one_of("uncompressed", "gzip", "zstd"),
    "compression_level": _number,
}
_KNOWN: dict[FileFormat, dict[str, Callable[[Any], Any]]] = {
    "parquet": {
        "compression": _one_of("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"),
        "compression_level": _number,
        "statistics": _statistics,
        "row_group_size": _rows,
        "data_page_size": _rows,
    },
    "csv": {
        **_PACKED,
        "separator": _character,
        "quote_char": _character,
        "quote_style": _one_of("necessary", "always", "non_numeric", "never"),
        "include_header": _flag,
        "null_value": _text,
        "line_terminator": _text,
        "date_format": _text,
        "datetime_format": _text,
        "time_format": _text,
        "float_scientific": _flag,
        "float_precision": _number,
        "decimal_comma": _flag,
    },
    "json": _PACKED,
    "jsonl": _PACKED,
    "avro": {"compression": _one_of("uncompressed", "deflate", "bzip2", "xz")},
}


def write_options(destination: Destination, form: FileFormat) -> dict[str, Any]:
    """Return the write options of a destination: its own win over the connection's.

    Names in camel case are read as snake case.

    Raises:
        WriteError: The format has no such option, or the option no such value; it is named.
    """
    known = {**_KNOWN[form], MAX_ROWS: _rows}
    given = {**destination.connection.configure.write_options}
    given.update(destination.configure.write_options)
    options: dict[str, Any] = {}
    for name, value in given.items():
        snake = _CAMEL.sub("_", name).lower()
        option = _ALIASES.get(snake, snake)
        if option not in known:
            raise WriteError(
                f"format '{form}' has no write option '{name}'",
                place="write_options",
                remedy=remedy_for(snake, known),
                code="unknown_option",
            )
        options[option] = _converted(name, value, known[option])
    return options


def _converted(name: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        raise WriteError(
            f"{value!r} is no value of the write option '{name}': {error}",
            place="write_options",
            remedy="Correct the option.",
            code="bad_option",
        ) from error


def suffix_of(form: FileFormat, options: Mapping[str, Any]) -> str:
    """Return the ending of a file's name.

    >>> suffix_of("csv", {"compression": "gzip"})
    '.csv.gz'
    """
    packed = {"gzip": ".gz", "zstd": ".zst"}.get(options.get("compression", ""), "")
    return f".{form}{packed if form in ('csv', 'json', 'jsonl') else ''}"
