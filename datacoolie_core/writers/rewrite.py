"""Write the files of a merge anew: the rows that stay, and in their place those that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import stored
from datacoolie_core.writers.matching import ACTION, FILE, MET, Verdicts
from datacoolie_core.writers.spill import ROW, Batch
from datacoolie_core.writers.staging import ROWS_PER_FILE, Layout, StagedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacoolie_core.writers.load import Load
    from datacoolie_core.writers.tables import LiveFile

_GROUP_BYTES = 256 * 1024 * 1024


def rewrite(
    job: Load,
    layout: Layout,
    batch: Batch,
    verdicts: Verdicts,
    touched: Sequence[LiveFile],
    keys: Sequence[str],
) -> list[StagedFile]:
    """Return new files with everything that the touched files and the batch leave.

    A few files at a time, which bounds memory and keeps updated rows near their neighbours, so
    that statistics go on to prune. New rows go along with the last of them.
    """
    groups: list[list[LiveFile]] = list(file_groups(touched)) or [[]]
    written: list[StagedFile] = []
    for number, group in enumerate(groups):
        paths = [job.place.path(file.path) for file in group]
        parts = [
            _staying(job, layout, batch, verdicts, group, keys),
            changed_rows(batch, verdicts, paths),
        ]
        if number == len(groups) - 1:
            parts.append(new_rows(batch, verdicts))
        order = list(layout.schema)
        frame = pl.concat([part.select(order) for part in parts], how="vertical")
        written.extend(job.staging.write(frame, layout))
    return written


def _staying(
    job: Load,
    layout: Layout,
    batch: Batch,
    verdicts: Verdicts,
    group: Sequence[LiveFile],
    keys: Sequence[str],
) -> pl.LazyFrame:
    paths = [job.place.path(file.path) for file in group]
    here = verdicts.pairs.lazy().filter(pl.col(FILE).is_in(paths)).select(pl.col(ROW).unique())
    going = batch.frame.join(here, on=ROW, how="semi").select(keys)
    old = stored.scan(job.place, group, layout.schema)
    return old.join(going, on=list(keys), how="anti", nulls_equal=True)


def changed_rows(
    batch: Batch, verdicts: Verdicts, paths: Sequence[str] | None = None
) -> pl.LazyFrame:
    """Return the updated rows as they will be stored, with the stored values that they keep.

    Args:
        batch: One row for each key.
        verdicts: What happens to them.
        paths: Only rows that were stored in these files.
    """
    here = pl.col(ACTION) == "update"
    if paths is not None:
        here &= pl.col(FILE).is_in(list(paths))
    updates = verdicts.matched.lazy().filter(here).drop(ACTION, FILE, MET)
    kept = [name for name in updates.collect_schema() if name != ROW]
    renamed = updates.rename({name: f"\0kept {name}" for name in kept})
    # a stored row from before `__created_at` was there takes the batch's
    values = [pl.coalesce(f"\0kept {name}", name).alias(name) for name in kept]
    return batch.frame.join(renamed, on=ROW, how="inner").with_columns(values)


def new_rows(batch: Batch, verdicts: Verdicts) -> pl.LazyFrame:
    """Return the rows of the batch whose key is not stored."""
    known = pl.concat([verdicts.matched[ROW], verdicts.dropped.cast(pl.UInt32)])
    return batch.frame.join(pl.LazyFrame({ROW: known}), on=ROW, how="anti")


def file_groups(files: Sequence[LiveFile]) -> Iterator[list[LiveFile]]:
    """Yield files a few at a time: as many as make one full new file."""
    group: list[LiveFile] = []
    rows = size = 0
    for file in files:
        if group and (rows + (file.rows or 0) > ROWS_PER_FILE or size + file.size > _GROUP_BYTES):
            yield group
            group, rows, size = [], 0, 0
        group.append(file)
        rows += file.rows or 0
        size += file.size
    if group:
        yield group
