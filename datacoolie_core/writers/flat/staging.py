"""Write a frame as files beside the target, where no reader looks, before any of it counts."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

from datacoolie_core import clock
from datacoolie_core.state.manifest import FOLDER
from datacoolie_core.storage import is_remote
from datacoolie_core.storage.filesystems import explained
from datacoolie_core.storage.locations import local_path
from datacoolie_core.writers.flat.bounds import bounded, observe
from datacoolie_core.writers.flat.errors import storing
from datacoolie_core.writers.flat.layout import Layout, Staged
from datacoolie_core.writers.flat.partitions import refuse_ambiguous
from datacoolie_core.writers.flat.pieces import Pieces, made, waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polars.io.partition import FileProviderArgs

STAGING = "staging"
_BATCH = 100_000
_LATE = (0.05, 0.2)
"""Seconds after a failure at which a thread of the sink may still open its file."""


class Staging:
    """The files of one load before they are published.

    On a disk they are inside the destination's folder, so that publishing them is a rename; a
    lock that ends with the process tells the next load which of them were left by a killed one.
    For an object store they are in a temporary folder of this machine.

    Args:
        uri: The destination's folder.
    """

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._stack = ExitStack()
        self._root: Path | None = None
        self._made: list[Path] = []
        self._failed = False

    @property
    def root(self) -> Path:
        """The folder of this load's files; made when it is first needed."""
        if self._root is None:
            with storing(), explained(self._uri, "write"):
                self._root = self._opened()
        return self._root

    def _opened(self) -> Path:
        if is_remote(self._uri):
            name = self._stack.enter_context(TemporaryDirectory(prefix="datacoolie-"))
            return Path(name)
        from filelock import FileLock  # costs 65 ms

        above = local_path(self._uri) / FOLDER / STAGING
        self._made = [one for one in (above, *list(above.parents)[:2]) if not one.exists()]
        root = above / uuid4().hex
        lock = FileLock(f"{root}.lock", thread_local=False)
        while not lock.is_locked:
            # another load may take the empty folder away between these two
            with suppress(FileNotFoundError):
                above.mkdir(parents=True, exist_ok=True)
                lock.acquire()
        self._stack.callback(Path(f"{root}.lock").unlink, missing_ok=True)
        self._stack.callback(lock.release)
        root.mkdir()
        return root

    def write(self, frame: pl.LazyFrame, layout: Layout) -> list[Staged]:
        """Consume a frame with the streaming engine and return the files that hold its rows.

        Args:
            frame: Has exactly the layout's columns.
            layout: How the files look.
        """
        if layout.form == "parquet":
            return self._sink(frame, layout)
        pieces = Pieces(self.root, layout)
        batches = frame.collect_batches(
            chunk_size=_BATCH, maintain_order=True, lazy=True, engine="streaming"
        )
        for batch in batches:
            pieces.add(batch)
        return pieces.done()

    def empty(self, layout: Layout) -> Staged:
        """Return a file without rows that still tells its columns."""
        path = layout.path({}, f"{layout.stem}_0")
        place = made(waiting(self.root, path))
        rows = pl.DataFrame(schema=layout.data)
        if layout.form == "parquet":
            rows.write_parquet(place)
        else:
            encoder = layout.encoder()
            encoder.append(place, rows, first=True)
            encoder.finish(place)
        return Staged(path, place, 0, place.stat().st_size, {}, {})

    def _sink(self, frame: pl.LazyFrame, layout: Layout) -> list[Staged]:
        keys = list(layout.partition_columns)
        partitions: dict[str, dict[str, Any]] = {}
        numbers: dict[str, int] = {}

        def provide(args: FileProviderArgs) -> str:
            if self._failed:
                raise RuntimeError("the load has failed")
            values = args.partition_keys.row(0) if keys else ()
            partition = dict(zip(keys, values, strict=True))
            folder = layout.path(partition, "")
            numbers[folder] = numbers.get(folder, -1) + 1
            path = layout.path(partition, f"{layout.stem}_{numbers[folder]}")
            partitions[path] = partition
            return f"{path}.part"

        target = pl.PartitionBy(
            self.root,
            file_path_provider=provide,
            key=keys or None,
            include_key=False if keys else None,
            max_rows_per_file=layout.rows_per_file,
        )
        try:
            frame.sink_parquet(target, mkdir=True, engine="streaming", **layout.encoder_options)
        except BaseException:
            self._failed = True
            raise
        for partition in partitions.values():
            refuse_ambiguous(partition)
        found = (self._staged_parquet(path, of, layout) for path, of in partitions.items())
        return [staged for staged in found if staged is not None]

    def _staged_parquet(
        self, path: str, partition: Mapping[str, Any], layout: Layout
    ) -> Staged | None:
        place = waiting(self.root, path)
        if not place.exists():
            return None
        scan = pl.scan_parquet(place, glob=False, hive_partitioning=False)
        rows = int(scan.select(pl.len()).collect().item())
        if not rows:
            return None
        bounds = observe(scan, bounded(layout.data, layout.tracked))
        return Staged(path, place, rows, place.stat().st_size, partition, bounds)

    def discard(self) -> None:
        """Delete what was not published."""
        if self._root is None:
            return
        if self._failed:
            for wait in _LATE:
                clock.sleep(wait)
                shutil.rmtree(self._root, ignore_errors=True)
        shutil.rmtree(self._root, ignore_errors=True)
        self._stack.close()
        self._root = None
        for folder in self._made:
            with suppress(OSError):  # not empty: somebody else's files are there
                folder.rmdir()


def drop_left_behind(uri: str) -> None:
    """Delete what killed loads left staged in a folder; loads that run are left alone."""
    if is_remote(uri):
        return
    above = local_path(uri) / FOLDER / STAGING
    with suppress(OSError):
        for root in [one for one in above.iterdir() if one.is_dir()]:
            _drop_dead(root)


def _drop_dead(root: Path) -> None:
    from filelock import FileLock, Timeout

    lock = FileLock(f"{root}.lock", thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return
    shutil.rmtree(root, ignore_errors=True)
    Path(f"{root}.lock").unlink(missing_ok=True)
    lock.release()
