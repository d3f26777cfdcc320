"""Partition values as the Delta protocol writes them, and the folders that hold them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Sequence

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# what delta-rs leaves as it is when it writes a path into the log
_LOGGED = "!$&'()+,-./:;=@_~"


def check_partition_columns(named: Sequence[str], schema: pl.Schema) -> None:
    """Raise if a table can't be partitioned so.

    Args:
        named: The partition columns.
        schema: All columns.

    Raises:
        WriteError: Names the column.
    """
    missing = [name for name in named if name not in schema]
    if missing:
        raise WriteError(
            f"partition column {missing[0]!r} is not among the columns {list(schema)}",
            remedy="Correct partition_columns; names are as they are after name cleaning.",
            code="missing_column",
        )
    nested = [n for n in named if isinstance(schema[n], pl.List | pl.Struct | pl.Binary)]
    if nested:
        raise WriteError(
            f"partition column {nested[0]!r} is {delta_name(schema[nested[0]])}",
            remedy="Partition by a plain column, such as a date or a short text.",
            code="unsupported_partition_type",
        )
    broken = [name for name in named if any(c in "/\\=" or c < " " for c in name)]
    if broken:
        raise WriteError(
            f"partition column {broken[0]!r} has a name that no folder can carry: engines would read"
            " its values as null, or not at all",
            remedy="Rename it (transform.rename_columns): without '/', '\\', '=' and control"
            " characters.",
            code="unsupported_column_name",
        )
    if named and len(named) == len(schema):
        raise WriteError(
            "every column is a partition column, so that no data is left",
            remedy="Partition by fewer columns.",
            code="no_columns",
        )


def encoded_value(value: Any) -> str | None:
    """Return a partition value as the log holds it.

    >>> encoded_value(Decimal("1.50")), encoded_value(True), encoded_value(date(2026, 1, 2))
    ('1.50', 'true', '2026-01-02')

    Raises:
        WriteError: For a value that delta-rs spells in a way that no reader understands.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return plain.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        if value < 0 and value != value.to_integral_value():
            # delta-rs spells -0.05 as 0.-5 and -1.05 as -1.-5, and the table can't be read
            raise WriteError(
                f"the partition value {value} would make the table unreadable",
                remedy="Partition by another column, or by this one as text (partition_columns "
                "with an expression).",
                code="unsupported_partition_value",
            )
        return f"{value:f}"
    return str(value)


def folder(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return the relative folder of a partition, in Hive's spelling.

    >>> folder(["region", "day"], ["a/b", None])
    'region=a%2Fb/day=__HIVE_DEFAULT_PARTITION__'
    """
    parts = (
        f"{_folder_name(name)}={NULL_FOLDER if value is None else quote(value, safe='')}"
        for name, value in zip(names, values, strict=True)
    )
    return "/".join(parts)


def _folder_name(name: str) -> str:
    """Return a column's name as readers look for it in a folder: as it is, where a path allows."""
    return "".join(
        quote(one, safe="") if one in "/\\=" or ord(one) < ord(" ") else one for one in name
    )


def path_of(logged: str) -> tuple[str, bool]:
    """Return the path that a log entry means, and whether a removal would meet it.

    delta-rs spells the path of a removal itself. Another engine may have spelled the file's path
    in another way; such a removal would leave the file in the table, without a word.
    """
    path = unquote(logged)
    return path, "://" not in logged and quote(path, safe=_LOGGED) == logged
