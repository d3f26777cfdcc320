"""Write a frame as parquet files into a table's folder, without the table knowing them yet."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

from datacoolie_core import clock
from datacoolie_core.errors import StorageError, WriteError
from datacoolie_core.storage import is_remote
from datacoolie_core.storage.locations import local_path
from datacoolie_core.writers.objects import delete_file
from datacoolie_core.writers.partitions import NULL_FOLDER, encoded_value, folder
from datacoolie_core.writers.statistics import FileStatistics, file_statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polars.io.partition import FileProviderArgs, SinkedPathsCallbackArgs

    from datacoolie_core.writers.tables import Place

ROWS_PER_FILE = 1_000_000
"""Large enough to scan fast, small enough that a merge into a few keys rewrites little."""

_LATE = (0.05, 0.2)
"""Seconds after a failure at which a thread of the sink may still open its file."""


@dataclass(frozen=True)
class StagedFile:
    """A parquet file that waits for its commit.

    Attributes:
        path: Relative to the table, as it is on the disk.
        size: Bytes.
        rows: Row count, never 0.
        partition: Column → value, typed.
        statistics: Of the columns that the table indexes.
        created: Milliseconds since 1970.
    """

    path: str
    size: int
    rows: int
    partition: dict[str, Any]
    statistics: FileStatistics
    created: int

    @property
    def partition_values(self) -> dict[str, str | None]:
        """The partition values as the log holds them."""
        return {name: encoded_value(value) for name, value in self.partition.items()}


@dataclass(frozen=True)
class Layout:
    """How a table's files are laid out.

    Attributes:
        schema: All columns, in the table's order.
        partition_columns: Kept in the log, not in the files.
        indexed: Columns with statistics.
        run_id: Names the files.
    """

    schema: pl.Schema
    partition_columns: tuple[str, ...]
    indexed: tuple[str, ...]
    run_id: str


class Staging:
    """The files that a load has written and not committed.

    Args:
        place: The table.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._written: list[str] = []
        self._failed = False
        self._made_root = not is_remote(place.uri) and not local_path(place.root).exists()

    def write(self, frame: pl.LazyFrame, layout: Layout) -> list[StagedFile]:
        """Consume a frame with the streaming engine and return the files that hold its rows.

        Args:
            frame: Has exactly the layout's columns.
            layout: How the files look.

        Raises:
            WriteError: A partition value is an empty text, which Delta can't tell from null.
        """
        keys = list(layout.partition_columns)
        partitions: dict[str, dict[str, Any]] = {}
        sunk: list[tuple[str, int, int]] = []
        name = f"part-{_safe(layout.run_id)}-{uuid4().hex[:8]}"

        def provide(args: FileProviderArgs) -> str:
            if self._failed:
                raise RuntimeError("the load has failed")
            values = args.partition_keys.row(0) if keys else ()
            inside = f"{folder(keys, [encoded_value(v) for v in values])}/" if keys else ""
            path = f"{inside}{name}-{args.index_in_partition:05d}.parquet"
            partitions[path] = dict(zip(keys, values, strict=True))
            self._written.append(path)
            return path

        def collect(args: SinkedPathsCallbackArgs) -> None:
            by_name = {self._place.path(path): path for path in partitions}
            sunk.extend((by_name[_plain(p.path)], p.num_rows, p.num_bytes) for p in args.paths)

        try:
            self._sink(frame, keys, provide, collect)
        except BaseException:
            self._abandon()
            raise
        _refuse_empty(partitions.values())
        self._drop([path for path, rows, _ in sunk if rows == 0])
        filled = [one for one in sunk if one[1]]
        return [
            self._staged(path, rows, size, partitions[path], layout) for path, rows, size in filled
        ]

    def _staged(
        self, path: str, rows: int, size: int, partition: dict[str, Any], layout: Layout
    ) -> StagedFile:
        statistics = file_statistics(self._place, path, layout.schema, layout.indexed)
        created = int(clock.utc_now().timestamp() * 1000)
        return StagedFile(path, size, rows, partition, statistics, created)

    def discard(self, files: Sequence[StagedFile] | None = None) -> None:
        """Delete files that no commit names; all of them by default."""
        self._drop(list(self._written) if files is None else [file.path for file in files])

    def _abandon(self) -> None:
        """Delete what a failed sink has written, and what its threads are about to open."""
        self._failed = True
        written = list(self._written)
        for wait in _LATE:
            clock.sleep(wait)
            self._delete(written)
        self._drop(written)

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            # no table names it, and vacuum finds it: no reason to hide what went wrong before
            with suppress(StorageError):
                delete_file(self._place, path)

    def forget(self) -> None:
        """Leave the files where they are: a commit names them, or may do so."""
        self._written.clear()

    def _sink(self, frame: pl.LazyFrame, keys: list[str], provide: Any, collect: Any) -> None:
        target = pl.PartitionBy(
            self._place.root,
            file_path_provider=provide,
            key=keys or None,
            include_key=False if keys else None,
            max_rows_per_file=ROWS_PER_FILE,
        )
        frame.sink_parquet(
            target,
            compression="snappy",
            mkdir=True,
            storage_options=self._place.options,
            engine="streaming",
            sinked_paths_callback=collect,
        )

    def _drop(self, paths: Sequence[str]) -> None:
        self._delete(paths)
        for path in paths:
            self._written.remove(path)
        if not is_remote(self._place.uri):
            self._drop_empty_folders(paths)

    def _drop_empty_folders(self, paths: Sequence[str]) -> None:
        root = local_path(self._place.root)
        for path in paths:
            levels = (root / parent for parent in PurePath(path).parents)
            for level in levels:
                if level == root and not self._made_root:
                    continue
                # not empty: somebody else's files are there
                with suppress(OSError):
                    level.rmdir()


def _refuse_empty(partitions: Iterable[dict[str, Any]]) -> None:
    for partition in partitions:
        for name, value in partition.items():
            if value in ("", NULL_FOLDER):
                told = f"the text '{value}'" if value else "an empty text"
                raise WriteError(
                    f"partition column '{name}' holds {told}, which would be read as null",
                    remedy=f"Fill it, or make it null: partition_columns: [{{column: {name},"
                    f" expression: \"NULLIF({name}, '')\"}}].",
                    code="empty_partition_value",
                )


def _plain(path: str) -> str:
    return path.removeprefix("file://")


def _safe(run_id: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in run_id)
