"""What parquet files say of themselves: their columns, and whether a bounded read needs them.

A file whose highest watermark is below the bound is not scanned at all: a plan over a thousand old
files costs more than the load of the one that is new.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.clock import utc_now
from datacoolie_core.errors import DataCoolieError, ReadError
from datacoolie_core.readers.bounds import fitted_state
from datacoolie_core.readers.watermark_columns import watermark_column
from datacoolie_core.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.local_files import LocalFile
    from datacoolie_core.readers.union import Schema

REMEMBERED = 4096
_SETTLED = timedelta(seconds=5)
"""A file this old can't have been rewritten in the tick of its time stamp unseen."""
_EXACT = ("number", "date", "clock", "instant")


@dataclass(frozen=True)
class Footer:
    """What a file's footer says.

    Attributes:
        schema: Its columns.
        highest: Column → its maximum, for columns that are known to have no null; filled as asked.
    """

    schema: Schema
    highest: dict[str, Any] = field(default_factory=dict[str, Any])


_remembered: OrderedDict[tuple[str, int, datetime], Footer] = OrderedDict()
_schemas: dict[tuple[tuple[str, pl.DataType], ...], Schema] = {}
_lock = Lock()


def footer(file: LocalFile, storage_options: Mapping[str, str]) -> Footer:
    """Return a file's footer; one that was read before and has not changed is not read again.

    Raises:
        ReadError: It is no whole parquet file.
    """
    key = (file.path, file.info.size, file.info.modified_at)
    lasting = not is_remote(file.info.uri) and file.info.modified_at < utc_now() - _SETTLED
    with _lock:
        known = _remembered.get(key) if lasting else None
    if known is not None:
        return known
    found = Footer(_shared(_schema(file, storage_options)))
    if lasting:
        with _lock:
            _remembered[key] = found
            while len(_remembered) > REMEMBERED:
                _remembered.popitem(last=False)
    return found


def _shared(schema: Schema) -> Schema:
    """Return an equal schema that another file has already: comparing those costs nothing."""
    with _lock:
        if len(_schemas) > REMEMBERED:
            _schemas.clear()
        return _schemas.setdefault(tuple(schema.items()), schema)


def _schema(file: LocalFile, storage_options: Mapping[str, str]) -> Schema:
    try:
        scan = pl.scan_parquet(
            file.path,
            glob=False,
            hive_partitioning=False,
            storage_options=dict(storage_options) or None,
        )
        return dict(scan.collect_schema())
    except pl.exceptions.PolarsError as error:
        raise ReadError(
            f"the file is no whole parquet file: {str(error).splitlines()[0]}",
            place=file.info.uri,
            remedy="Replace or remove the file.",
            code="bad_file",
        ) from error


def passed_by(
    files: Sequence[tuple[LocalFile, Footer]], schema: Schema, request: ReadRequest
) -> list[bool]:
    """Return for each file whether no row of it can be above the bound of a normal read.

    Args:
        files: All files of the source.
        schema: Their united columns.
        request: Says the bound.
    """
    bounds = _bounds(schema, request)
    if not bounds or len(files) < 2:
        return [False] * len(files)
    return [
        file.is_local and _is_below(file, known, bounds, inclusive=request.inclusive)
        for file, known in files
    ]


def _bounds(schema: Schema, request: ReadRequest) -> dict[str, Scalar]:
    """Return column → bound, empty where statistics can't tell rows above from others."""
    if request.window is not None or not request.lower:
        return {}
    found: dict[str, Scalar] = {}
    try:
        for name in request.dataflow.source.watermark_columns:
            dtype = schema.get(name)
            if dtype is None or dtype == pl.String or name not in request.lower:
                return {}
            column = watermark_column(name, pl.LazyFrame(schema=schema), schema, request.dataflow)
            if not column.plain or column.family not in _EXACT:
                return {}
            found[column.column] = fitted_state(request.lower[name], column)
    except DataCoolieError:
        return {}  # the read itself explains it
    return found


def _is_below(
    file: LocalFile, known: Footer, bounds: Mapping[str, Scalar], *, inclusive: bool
) -> bool:
    missing = [column for column in bounds if column not in known.highest]
    if missing:
        known.highest.update(_highest(file.path, missing))
    for column, bound in bounds.items():
        top = known.highest[column]
        if not _comparable(top, bound) or top > bound or (inclusive and top == bound):
            return False
    return True


def _comparable(top: Any, bound: Scalar) -> bool:
    if isinstance(top, datetime) and isinstance(bound, datetime):
        return (top.tzinfo is None) == (bound.tzinfo is None)
    if isinstance(top, datetime) or isinstance(bound, datetime):
        return False
    numbers = (int, Decimal)
    if isinstance(top, numbers) and isinstance(bound, numbers):
        return not isinstance(top, bool) and not isinstance(bound, bool)
    return isinstance(top, date) and isinstance(bound, date)


def _highest(path: str, columns: Sequence[str]) -> dict[str, Any]:
    """Return column → maximum; None where a row group has nulls, or does not say."""
    import pyarrow.parquet as pq

    try:
        metadata: Any = cast("Any", pq).read_metadata(path)
    except (OSError, ValueError):
        return dict.fromkeys(columns)
    indexes: dict[str, int] = {
        metadata.schema.column(index).path: index for index in range(metadata.num_columns)
    }
    return {
        column: _column_maximum(metadata, indexes[column]) if column in indexes else None
        for column in columns
    }


def _column_maximum(metadata: Any, index: int) -> Any:
    tops: list[Any] = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        if metadata.row_group(group).num_rows == 0:
            continue
        if statistics is None or not statistics.has_min_max or not statistics.has_null_count:
            return None
        if statistics.null_count:
            return None
        tops.append(statistics.max)
    return max(tops) if tops else None
