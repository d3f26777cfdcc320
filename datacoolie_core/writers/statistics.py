"""Statistics of a new file, from its parquet footer, as the Delta protocol wants them.

Readers skip files by these, so every bound holds for sure or is left out: long strings are cut
(the maximum with a character above all others), timestamps are in milliseconds (the maximum
rounded up), a float column with a NaN or an infinity has no bounds, nested and binary columns have
none at all.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.storage import is_remote
from datacoolie_core.writers.objects import handler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from datacoolie_core.writers.tables import Place

_FEW = 100_000
_INDEXED = 32
_TEXT = 32
_ABOVE_ALL = "\U0010ffff"
_BOUNDED = (
    pl.Int8,
    pl.Int16,
    pl.Int32,
    pl.Int64,
    pl.Float32,
    pl.Float64,
    pl.Decimal,
    pl.String,
    pl.Boolean,
    pl.Date,
    pl.Datetime,
)


@dataclass
class FileStatistics:
    """What is known of one file.

    Attributes:
        rows: Row count.
        lowest: Column → lower bound, as Python values.
        highest: Column → upper bound.
        nulls: Column → null count.
    """

    rows: int
    lowest: dict[str, Any] = field(default_factory=dict)
    highest: dict[str, Any] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the ``stats`` text of an add action.

        A bound without its counterpart makes some readers skip the file, so both or none.
        """
        low, high = _texts(self.lowest, _lower), _texts(self.highest, _upper)
        both = [name for name in low if name in high]
        parts = {
            "minValues": _object({name: low[name] for name in both}),
            "maxValues": _object({name: high[name] for name in both}),
            "nullCount": _object({name: str(count) for name, count in self.nulls.items()}),
        }
        body = ",".join(f'"{name}":{text}' for name, text in parts.items())
        return f'{{"numRecords":{self.rows},{body}}}'


def indexed_columns(
    schema: pl.Schema, configuration: Mapping[str, str], extra: Iterable[str] = ()
) -> list[str]:
    """Return the columns that get statistics.

    Args:
        schema: The columns of the data files, in the table's order.
        configuration: The table's properties: ``delta.dataSkippingStatsColumns`` and
            ``delta.dataSkippingNumIndexedCols`` (32 by default, -1 for all) count.
        extra: Columns that loads search by (keys, watermarks); they always get some.
    """
    if listed := configuration.get("delta.dataSkippingStatsColumns"):
        first = {name.strip().strip("`") for name in listed.split(",")}
    else:
        count = int(configuration.get("delta.dataSkippingNumIndexedCols") or _INDEXED)
        names = list(schema)
        first = set(names if count < 0 else names[:count])
    wanted = first | set(extra)
    return [
        name for name, dtype in schema.items() if name in wanted and isinstance(dtype, _BOUNDED)
    ]


def file_statistics(
    place: Place, path: str, schema: pl.Schema, columns: Sequence[str]
) -> FileStatistics:
    """Return the statistics of a parquet file of the table.

    Args:
        place: The table.
        path: Relative to the table.
        schema: The types of the file's columns.
        columns: Those wanted, see :func:`indexed_columns`.
    """
    footer = _footer(place, path)
    found = FileStatistics(rows=footer.num_rows)
    bounds = {name: _Bounds(text=isinstance(schema[name], pl.String)) for name in columns}
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            # a nested leaf has a path with dots; a top-level name may have dots, too
            if (known := bounds.get(chunk.path_in_schema)) is not None:
                known.add(chunk.statistics)
    floats = [n for n in columns if isinstance(schema[n], pl.Float32 | pl.Float64)]
    for name in _with_nan(place, path, floats, footer.num_rows):
        bounds[name].bounded = False
    for name, known in bounds.items():
        known.tell(name, found)
    return found


def _footer(place: Place, path: str) -> Any:
    import pyarrow.parquet as pq

    read = cast("Callable[..., Any]", pq.read_metadata)  # pyright: ignore[reportUnknownMemberType]
    if not is_remote(place.uri):
        return read(place.path(path))
    import pyarrow.fs

    wrap = cast("Callable[[Any], Any]", pyarrow.fs.PyFileSystem)  # pyright: ignore[reportUnknownMemberType]
    return read(path, filesystem=wrap(handler(place)))


def _with_nan(place: Place, path: str, floats: Sequence[str], rows: int) -> list[str]:
    """The footer's bounds leave NaN out, and comparisons in readers do not."""
    if not floats:
        return []
    if rows <= _FEW and not is_remote(place.uri):
        return _few_with_nan(place.path(path), floats)
    scan = pl.scan_parquet(
        place.path(path), glob=False, hive_partitioning=False, storage_options=place.options
    )
    flags = scan.select(pl.col(floats).is_nan().any()).collect(engine="streaming")
    return [name for name in floats if flags[name][0]]


def _few_with_nan(path: str, floats: Sequence[str]) -> list[str]:
    """Of a small file: starting an engine's query would take longer than reading it."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    is_nan, some = (cast("Callable[..., Any]", getattr(pc, name)) for name in ("is_nan", "any"))
    file = cast("Any", pq).ParquetFile(path)
    table = file.read(columns=list(floats), use_threads=False)
    return [name for name in floats if some(is_nan(table.column(name))).as_py()]


@dataclass
class _Bounds:
    """The bounds of one column over the row groups of a file."""

    text: bool
    bounded: bool = True
    nulls: int | None = 0
    lowest: Any = None
    highest: Any = None

    def add(self, statistics: Any) -> None:
        if statistics is None or not statistics.has_null_count:
            self.nulls, self.bounded = None, False
            return
        if self.nulls is not None:
            self.nulls += statistics.null_count
        if statistics.num_values == 0 or not self.bounded:
            return
        if not statistics.has_min_max:
            self.bounded = False
            return
        self._widen(statistics)

    def _widen(self, statistics: Any) -> None:
        try:
            low, high = self._of(statistics)
        except (ValueError, OverflowError):
            # a date that Python can't hold
            self.bounded = False
            return
        self.lowest = low if self.lowest is None else min(self.lowest, low)
        self.highest = high if self.highest is None else max(self.highest, high)

    def _of(self, statistics: Any) -> tuple[Any, Any]:
        if not self.text:
            return statistics.min, statistics.max
        low, _ = _valid_text(statistics.min_raw)
        high, cut = _valid_text(statistics.max_raw)
        return low, high + _ABOVE_ALL if cut else high

    def tell(self, name: str, found: FileStatistics) -> None:
        if self.nulls is not None:
            found.nulls[name] = self.nulls
        if self.bounded and self.lowest is not None:
            found.lowest[name] = self.lowest
            found.highest[name] = self.highest


def _valid_text(raw: bytes) -> tuple[str, bool]:
    """Polars cuts long bounds at 64 bytes, and the last ones need not be a character any more."""
    try:
        return raw.decode(), False
    except UnicodeDecodeError as error:
        return raw[: error.start].decode(), True


def _texts(values: Mapping[str, Any], literal: Callable[[Any], str | None]) -> dict[str, str]:
    told = {name: literal(value) for name, value in values.items()}
    return {name: text for name, text in told.items() if text is not None}


def _object(texts: Mapping[str, str]) -> str:
    return f"{{{','.join(f'{_text(name)}:{text}' for name, text in texts.items())}}}"


def _text(value: str) -> str:
    # delta-rs misreads characters that are escaped as two halves
    return json.dumps(value, ensure_ascii=False)


def _lower(value: Any) -> str | None:
    if isinstance(value, str):
        return _text(value[:_TEXT])
    if isinstance(value, datetime):
        return _timestamp(value.replace(microsecond=value.microsecond // 1000 * 1000))
    return _plain(value)


def _upper(value: Any) -> str | None:
    if isinstance(value, str):
        return _text(value if len(value) <= _TEXT else value[:_TEXT] + _ABOVE_ALL)
    if not isinstance(value, datetime):
        return _plain(value)
    try:
        return _timestamp(value + timedelta(microseconds=-value.microsecond % 1000))
    except OverflowError:
        # the end of all time, a favourite of validity ranges, has no next millisecond
        return _timestamp(value, "microseconds")


def _timestamp(value: datetime, precision: str = "milliseconds") -> str:
    zone = "Z" if value.tzinfo else ""
    return json.dumps(f"{value.replace(tzinfo=None).isoformat(timespec=precision)}{zone}")


def _plain(value: Any) -> str | None:
    if isinstance(value, float):
        return json.dumps(value) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    return json.dumps(value)
