"""A batch that is looked at more than once: in memory if it is small, else in a temporary file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import polars as pl

if TYPE_CHECKING:
    from contextlib import ExitStack

    from datacoolie_core.writers.columns import Aligned

ROW = "\0row"
"""Numbers the rows of a batch from 0, in their order; no column of a table is called so."""

_IN_MEMORY = 64 * 1024 * 1024


@dataclass(frozen=True)
class Batch:
    """A consumed batch.

    Attributes:
        frame: Its columns and :data:`ROW`; can be collected again and again.
        rows: Row count.
        schema: The table's columns after the load.
        present: The columns that the source has; the others are null here.
    """

    frame: pl.LazyFrame
    rows: int
    schema: pl.Schema
    present: tuple[str, ...]

    def without(self, rows: pl.Series) -> Batch:
        """Return the batch without some rows, given by number."""
        if rows.is_empty():
            return self
        gone = pl.LazyFrame({ROW: rows.cast(pl.UInt32)})
        return replace(
            self, frame=self.frame.join(gone, on=ROW, how="anti"), rows=self.rows - len(rows)
        )

    def widened(self, schema: pl.Schema) -> Batch:
        """Return the batch with the columns of a table that has gained some meanwhile."""
        new = {name: dtype for name, dtype in schema.items() if name not in self.schema}
        if not new:
            return self
        nulls = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in new.items()]
        return replace(self, frame=self.frame.with_columns(nulls), schema=schema)

    @property
    def content(self) -> pl.LazyFrame:
        """The rows without their numbers."""
        return self.frame.select(list(self.schema))


def consume(aligned: Aligned, present: tuple[str, ...], stack: ExitStack) -> Batch:
    """Run the frame once and keep its rows until the stack is closed.

    Args:
        aligned: The batch.
        present: Columns that the source has.
        stack: Deletes the temporary file.
    """
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="datacoolie-")))
    path = folder / "batch.parquet"
    aligned.frame.sink_parquet(path, compression="lz4", engine="streaming")
    scan = pl.scan_parquet(path, row_index_name=ROW, glob=False)
    if path.stat().st_size <= _IN_MEMORY:
        held = scan.collect()
        return Batch(held.lazy(), held.height, aligned.schema, present)
    rows = cast("int", pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    return Batch(scan, rows, aligned.schema, present)
