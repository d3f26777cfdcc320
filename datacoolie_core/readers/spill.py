"""Frames that come once, kept in temporary files so that they can be read again."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from datacoolie_core.readers.union import Schema, concatenated, united

_BYTES = 64 * 2**20
"""About so much is kept in memory before it is written."""


class Spill:
    """A temporary folder of frames; their schemas may differ."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="datacoolie-")
        self._waiting: list[pl.DataFrame] = []
        self._files: list[tuple[Path, Schema]] = []
        self._named: list[tuple[str, Schema]] = []

    def add(self, frame: pl.DataFrame, name: str) -> None:
        """Take in a frame.

        Args:
            frame: Its rows; without any, its columns count all the same.
            name: What messages call it.
        """
        if self._waiting and self._waiting[0].schema != frame.schema:
            self._write()
        self._named.append((name, dict(frame.schema)))
        self._waiting.append(frame)
        if sum(one.estimated_size() for one in self._waiting) >= _BYTES:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        together = pl.concat(self._waiting)
        path = Path(self._folder.name) / f"{len(self._files)}.parquet"
        together.write_parquet(path, compression="lz4")
        self._files.append((path, dict(together.schema)))
        self._waiting = []

    def frame(self) -> pl.LazyFrame | None:
        """Return all rows, columns united by name; None if no frame came.

        Raises:
            ReadError: Two frames have types of one column that no type holds without loss.
        """
        self._write()
        if not self._files:
            return None
        schema = united(self._named)
        groups: dict[tuple[tuple[str, pl.DataType], ...], list[Path]] = {}
        for path, own in self._files:
            groups.setdefault(tuple(own.items()), []).append(path)
        scans = [
            (pl.scan_parquet(paths, hive_partitioning=False, glob=False), dict(own))
            for own, paths in groups.items()
        ]
        return concatenated(scans, schema)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()
