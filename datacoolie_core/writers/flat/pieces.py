"""Write batches as text or Avro files, one open file a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacoolie_core.writers.flat.bounds import Bounds, bounded, observe
from datacoolie_core.writers.flat.layout import Staged
from datacoolie_core.writers.flat.partitions import folder_of, refuse_ambiguous

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from datacoolie_core.writers.flat.layout import Layout


def waiting(root: Path, path: str) -> Path:
    """Return where a file is staged; patterns such as ``**/*.csv`` do not meet it there."""
    return root / f"{path}.part"


def made(path: Path) -> Path:
    """Return a path whose folder is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


class Pieces:
    """Adds batches to the open file of each partition, which is closed again after each.

    Args:
        root: Where the files are staged.
        layout: How they look.
    """

    def __init__(self, root: Path, layout: Layout) -> None:
        self._root = root
        self._layout = layout
        self._encoder = layout.encoder()
        self._tracked = bounded(layout.data, layout.tracked)
        self._open: dict[str, Staged] = {}
        self._full: list[Staged] = []
        self._count: dict[str, int] = {}

    def add(self, batch: pl.DataFrame) -> None:
        """Write a batch."""
        keys = list(self._layout.partition_columns)
        if not batch.height:
            return
        if not keys:
            self._append({}, batch)
            return
        parts = batch.partition_by(keys, as_dict=True, include_key=False, maintain_order=True)
        for values, rows in parts.items():
            self._append(dict(zip(keys, values, strict=True)), rows)

    def _append(self, partition: dict[str, Any], rows: pl.DataFrame) -> None:
        refuse_ambiguous(partition)
        folder = folder_of(partition)
        known = self._open.pop(folder, None)
        if known is None:
            number = self._count[folder] = self._count.get(folder, -1) + 1
            path = self._layout.path(partition, f"{self._layout.stem}_{number}")
            known = Staged(path, made(waiting(self._root, path)), 0, 0, partition, {})
        self._encoder.append(known.place, rows, first=not known.rows)
        file = Staged(
            known.path,
            known.place,
            known.rows + rows.height,
            known.place.stat().st_size,
            partition,
            _joined(known.bounds, observe(rows, self._tracked)),
        )
        if file.rows >= self._layout.rows_per_file:
            self._full.append(file)
        else:
            self._open[folder] = file

    def done(self) -> list[Staged]:
        """Return the files, ended."""
        files = [*self._full, *self._open.values()]
        for file in files:
            self._encoder.finish(file.place)
        return [
            Staged(f.path, f.place, f.rows, f.place.stat().st_size, f.partition, f.bounds)
            for f in files
        ]


def _joined(known: Mapping[str, Bounds], new: Mapping[str, Bounds]) -> dict[str, Bounds]:
    return {name: known[name].joined(one) if name in known else one for name, one in new.items()}
