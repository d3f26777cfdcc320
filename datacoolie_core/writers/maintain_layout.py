"""Which files of a table are worth writing anew: small ones, or all for a z-order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.log import read_entry
from datacoolie_core.writers.maintain_compact import Rewritten, rewrite
from datacoolie_core.writers.maintain_properties import size_of, why_not_rewritten
from datacoolie_core.writers.maintain_request import INFO, Operation, Upkeep, megabytes
from datacoolie_core.writers.staging import ROWS_PER_FILE
from datacoolie_core.writers.tables import LiveFile, live_files, open_table, table_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.maintain_request import OperationName

TARGET = 100 * 1024**2
_ZORDER_BYTES = 256 * 1024**2
_BITS = 12
_Z = "\0z"


def compact(upkeep: Upkeep) -> Operation:
    """Put small files of a partition together, up to the target size or a million rows.

    A file of half that or more is left as it is, so that a second pass finds nothing to do.

    Raises:
        WriteError: Nothing was changed.
    """
    table = open_table(upkeep.place)
    if table is None:
        return Operation("compact", "skipped", "the table is not there")
    reason = why_not_rewritten(table)
    if reason is not None:
        return Operation("compact", "skipped", reason)
    target = _target_size(upkeep, table.metadata().configuration)
    bins = bins_of(live_files(table), target)
    return _rewritten("compact", upkeep, table, bins, {"operation": "compact"})


def _target_size(upkeep: Upkeep, configuration: Mapping[str, str]) -> int:
    own = configuration.get("delta.targetFileSize")
    return upkeep.options.target_size or (size_of(own) if own else None) or TARGET


def bins_of(files: Sequence[LiveFile], target: int) -> list[list[LiveFile]]:
    """Return groups of at least two small files of a partition, neighbours in time together.

    Args:
        files: Of the table, newest first, as delta-rs lists them.
        target: Bytes of a group at most.
    """
    bins: list[list[LiveFile]] = []
    for small in _by_partition(one for one in reversed(files) if _is_small(one, target)):
        current: list[LiveFile] = []
        size = rows = 0
        for file in small:
            fits = size + file.size <= target and rows + (file.rows or 0) <= ROWS_PER_FILE
            if current and not fits:
                bins.append(current)
                current, size, rows = [], 0, 0
            current.append(file)
            size, rows = size + file.size, rows + (file.rows or 0)
        bins.append(current)
    return [one for one in bins if len(one) > 1]


def _is_small(file: LiveFile, target: int) -> bool:
    return file.removable and file.size < target / 2 and (file.rows or 0) < ROWS_PER_FILE / 2


def _by_partition(files: Iterable[LiveFile]) -> list[list[LiveFile]]:
    found: dict[tuple[tuple[str, str | None], ...], list[LiveFile]] = {}
    for file in files:
        found.setdefault(tuple(file.partition_values.items()), []).append(file)
    return list(found.values())


def zorder(upkeep: Upkeep) -> Operation:
    """Order the rows of each partition along a z-curve, a quarter of a GiB at a time.

    Nothing is done while no rows came since the last time.

    Raises:
        WriteError: A column is unknown or can't be ordered; nothing was changed.
    """
    table = open_table(upkeep.place)
    if table is None:
        return Operation("zorder", "skipped", "the table is not there")
    reason = why_not_rewritten(table)
    if reason is not None:
        return Operation("zorder", "skipped", reason)
    columns = _checked(upkeep, table)
    if _still_ordered(upkeep, table, columns):
        return Operation("zorder", "succeeded", "no rows came since the last time")
    bins: list[list[LiveFile]] = []
    for files in _by_partition(one for one in reversed(live_files(table)) if one.removable):
        bins += _chunks(files)
    info = {"operation": "zorder", "columns": columns}
    return _rewritten("zorder", upkeep, table, bins, info, columns)


def _chunks(files: Sequence[LiveFile]) -> list[list[LiveFile]]:
    chunks: list[list[LiveFile]] = [[]]
    size = 0
    for file in files:
        if chunks[-1] and size + file.size > _ZORDER_BYTES:
            chunks.append([])
            size = 0
        chunks[-1].append(file)
        size += file.size
    return chunks


def _checked(upkeep: Upkeep, table: DeltaTable) -> list[str]:
    schema, keys = table_schema(table), table.metadata().partition_columns
    for name in upkeep.options.zorder_columns:
        wrong = (
            f"there is no column '{name}'"
            if name not in schema
            else f"'{name}' is a partition column, whose files lie apart anyway"
            if name in keys
            else f"'{name}' is nested"
            if schema[name].is_nested() or schema[name] == pl.Binary
            else None
        )
        if wrong:
            raise WriteError(
                f"zorder_columns: {wrong}",
                place=upkeep.place.uri,
                remedy=f"The table has {', '.join(schema)}.",
                code="zorder_column",
            )
    return list(upkeep.options.zorder_columns)


def _still_ordered(upkeep: Upkeep, table: DeltaTable, columns: Sequence[str]) -> bool:
    for version in range(table.version(), -1, -1):
        entry = read_entry(upkeep.place, version)
        if entry is None or entry.adds_rows or entry.info.get("operation") == "RESTORE":
            return False
        info: Any = entry.info.get(INFO) or {}
        if info.get("operation") == "zorder":
            return info.get("columns") == list(columns)
        if info.get("operation") == "compact":
            return False
    return False


def along_curve(frame: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """Return the rows ordered by the interleaved bits of the columns' ranks; nulls come first."""
    bits = max(1, min(_BITS, 60 // len(columns)))
    codes = [
        (pl.col(name).rank("dense") * (2**bits - 1) // pl.col(name).n_unique())
        .fill_null(0)
        .cast(pl.UInt64)
        for name in columns
    ]
    terms = [
        (code // 2**bit % 2) * 2 ** (bit * len(codes) + position)
        for position, code in enumerate(codes)
        for bit in range(bits)
    ]
    return frame.with_columns(pl.sum_horizontal(terms).alias(_Z)).sort(_Z).drop(_Z)


def _rewritten(
    name: OperationName,
    upkeep: Upkeep,
    table: DeltaTable,
    bins: Sequence[Sequence[LiveFile]],
    info: dict[str, Any],
    columns: Sequence[str] = (),
) -> Operation:
    count, size = sum(map(len, bins)), sum(file.size for one in bins for file in one)
    if not bins:
        return Operation(name, "succeeded", "nothing to do: the files are large enough")
    if upkeep.options.dry_run:
        text = f"dry run: {count} files ({megabytes(size)}) would become about {len(bins)}"
        return Operation(name, "skipped", text, details={"files_planned": count})
    arrange = partial(along_curve, columns=columns) if columns else None
    return _told(name, rewrite(upkeep, table, bins, info, arrange))


def _told(name: OperationName, done: Rewritten) -> Operation:
    removed = [file for piece in done.pieces for file in piece.sources]
    added = [file for piece in done.pieces for file in piece.files]
    text = f"{len(removed)} files became {len(added)}"
    if done.lost:
        text += f"; {done.lost} groups were changed by others meanwhile, they wait for next time"
    return Operation(
        name,
        "succeeded",
        text,
        files_added=len(added),
        files_removed=len(removed),
        bytes_added=sum(file.size for file in added),
        bytes_removed=sum(file.size for file in removed),
        details={"groups_lost": done.lost},
    )
