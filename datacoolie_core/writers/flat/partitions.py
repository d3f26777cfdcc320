"""Folders of flat files: ``column=value`` for partitions, dated ones for the day of a load."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.partitions import NULL_FOLDER, encoded_value, folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_FORMATS = {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H"}


def text_of(value: Any) -> str | None:
    """Return a partition value as the folder's name holds it, before it is percent-encoded.

    >>> text_of(Decimal("-0.50")), text_of(date(2026, 1, 2)), text_of(None)
    ('-0.50', '2026-01-02', None)
    """
    return f"{value:f}" if isinstance(value, Decimal) else encoded_value(value)


def refuse_ambiguous(partition: Mapping[str, Any]) -> None:
    """Raise if a reader would take a partition value for null.

    Raises:
        WriteError: Names the column.
    """
    for name, value in partition.items():
        if value in ("", NULL_FOLDER):
            raise WriteError(
                f"partition column '{name}' holds the text {value!r}, which a folder's name can't"
                " tell from null",
                remedy=f"Fill it, or make it null: partition_columns: [{{column: {name},"
                f" expression: \"NULLIF({name}, '')\"}}].",
                code="empty_partition_value",
            )


def folder_of(partition: Mapping[str, Any]) -> str:
    """Return the relative folder of a partition; empty without partition columns."""
    return folder(list(partition), [text_of(value) for value in partition.values()])


def value_of(text: str | None, dtype: pl.DataType) -> Any:
    """Return the value that a folder's name stands for.

    >>> value_of("2026-01-02", pl.Date()), value_of("true", pl.Boolean())
    (datetime.date(2026, 1, 2), True)
    """
    if text is None:
        return None
    if isinstance(dtype, pl.Boolean):
        return text == "true"
    if isinstance(dtype, pl.Datetime):
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if dtype.time_zone else moment
    if isinstance(dtype, pl.Date):
        return date.fromisoformat(text)
    if isinstance(dtype, pl.Decimal):
        return Decimal(text)
    if dtype.is_numeric():
        return int(text) if dtype.is_integer() else float(text)
    return text


def values_in(path: str) -> dict[str, str | None]:
    """Return the partition values that a file's path tells, as text."""
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {
        unquote(key): None if value == NULL_FOLDER else unquote(value) for key, _, value in pairs
    }


def check_partitions(named: Sequence[str], schema: pl.Schema) -> None:
    """Raise if a batch can't be parted by some columns.

    Raises:
        WriteError: A column is missing, has no plain values, or makes a folder that readers
            pass over.
    """
    missing = [name for name in named if name not in schema]
    if missing:
        raise WriteError(
            f"partition column {missing[0]!r} is not among the columns {list(schema)}",
            remedy="Correct partition_columns; names are as they are after name cleaning.",
            code="missing_column",
        )
    unfit = [name for name in named if not _plain(schema[name])]
    if unfit:
        raise WriteError(
            f"partition column {unfit[0]!r} is {str(schema[unfit[0]]).lower()}",
            remedy="Partition by a plain column, such as a date or a short text.",
            code="unsupported_partition_type",
        )
    hidden = [name for name in named if name.startswith(("_", "."))]
    if hidden:
        raise WriteError(
            f"the folders of partition column {hidden[0]!r} would be hidden: readers pass over"
            " names that start with _ or .",
            remedy="Rename the column, or partition by another one.",
            code="unsupported_partition_name",
        )
    if named and len(named) == len(schema):
        raise WriteError(
            "every column is a partition column, so that no data is left",
            remedy="Partition by fewer columns.",
            code="no_columns",
        )


def _plain(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Datetime):
        return dtype.time_unit != "ns"
    other = isinstance(dtype, pl.Date | pl.String | pl.Boolean | pl.Null)
    return other or (dtype.is_numeric() and not isinstance(dtype, pl.Float16))


def dated_folder(pattern: str | None, now: datetime) -> str:
    """Return the folder of a load's instant, empty without a pattern.

    >>> dated_folder("{year}/{month}/{day}", datetime(2026, 1, 2))
    '2026/01/02'

    Args:
        pattern: ``date_folder_partitions`` of the connection.
        now: In UTC.

    Raises:
        WriteError: An unknown placeholder, or a folder that readers pass over.
    """
    if not pattern:
        return ""
    unknown = [name for name in _PLACEHOLDER.findall(pattern) if name not in _FORMATS]
    if unknown:
        raise WriteError(
            f"'{{{unknown[0]}}}' is no part of a date",
            place="date_folder_partitions",
            remedy="Use {year}, {month}, {day} and {hour}.",
            code="bad_option",
        )
    levels = [level for level in pattern.replace("\\", "/").split("/") if level]
    if any(level.startswith(("_", ".")) for level in levels):
        raise WriteError(
            f"the folders of '{pattern}' would be hidden: readers pass over names that start with"
            " _ or .",
            place="date_folder_partitions",
            remedy="Let each level start with another character.",
            code="bad_option",
        )
    return "/".join(
        _PLACEHOLDER.sub(lambda found: now.strftime(_FORMATS[found[1]]), level) for level in levels
    )


def dated_pattern(pattern: str | None) -> re.Pattern[str]:
    """Return what matches the dated folder at the front of a path; without a pattern, nothing."""
    levels = [level for level in (pattern or "").replace("\\", "/").split("/") if level]
    parts = (
        "".join(
            r"\d+" if index % 2 else re.escape(piece)
            for index, piece in enumerate(_PLACEHOLDER.split(level))
        )
        for level in levels
    )
    return re.compile("".join(f"{part}/" for part in parts))
