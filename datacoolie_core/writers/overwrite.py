"""``overwrite`` and ``full_load``: one commit puts the batch in the place of everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import features, library
from datacoolie_core.writers.commit import Change, LostRaceError, with_redo
from datacoolie_core.writers.load import (
    Counts,
    Load,
    Outcome,
    commit_info,
    nothing,
    result_of,
    rows_of,
)
from datacoolie_core.writers.tables import live_files, open_table, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.staging import Layout, StagedFile
    from datacoolie_core.writers.tables import LiveFile


def load(job: Load) -> WriteResult:
    """Replace all rows, and the columns and their types with them."""
    table = open_table(job.place)
    aligned = job.align(None)
    layout = job.new_layout(aligned.schema, table)
    files = job.stage(aligned, layout)
    decided = job.finish(sum(file.rows for file in files))
    return nothing() if decided is None else replace_all(job, table, layout, files, decided)


def replace_all(
    job: Load,
    seen: DeltaTable | None,
    layout: Layout,
    files: Sequence[StagedFile],
    decided: Commit,
) -> WriteResult:
    """Put staged files in the place of the whole table.

    The table keeps its id, its properties and its history. Other partition columns go through
    the library's own writer, since the write transaction would leave them as they are.

    Args:
        job: The load.
        seen: A handle from before the batch was consumed.
        layout: The new columns and partition columns.
        files: Already staged.
        decided: What the pipeline wants to commit.
    """
    replacement = _Replacement(job, layout, files, decided)
    return with_redo(job.place, seen, lambda table: _attempt(replacement, table), job.sleep)


@dataclass(frozen=True)
class _Replacement:
    job: Load
    layout: Layout
    files: Sequence[StagedFile]
    decided: Commit

    def change(self, removed: Sequence[LiveFile], counts: Counts) -> Change:
        return Change(
            schema=self.layout.schema,
            partition_columns=self.layout.partition_columns,
            added=self.files,
            removed=removed,
            replace=True,
            info=commit_info(self.job.request, self.decided, counts),
        )


def _attempt(new: _Replacement, table: DeltaTable | None) -> WriteResult:
    job = new.job
    removed = [] if table is None else live_files(table)
    before = 0 if table is None else rows_of(table, removed)
    rows = sum(file.rows for file in new.files)
    counts = Counts(rows_inserted=rows, rows_deleted=before or 0)
    same = table is not None and table_schema(table) == new.layout.schema
    if same and not (counts.changes or removed or new.decided.required):
        return nothing()
    change = new.change(removed, counts)
    if table is not None:
        features.refuse(table, removing=True)
        features.refuse_paths(removed)
        kept = tuple(table.metadata().partition_columns)
        other_partitions = kept != new.layout.partition_columns
        if other_partitions or features.needs_library(table, removing=True):
            return library.overwrite(job, table, change, counts)
        if _made_ready(table, new.layout.schema):
            return _attempt(new, open_table(job.place))
    version = job.commit(table, change)
    return result_of(job.place, Outcome(table, change, version, before), counts)


def _made_ready(table: DeltaTable, schema: pl.Schema) -> bool:
    """A first column without a zone needs a feature that the transaction does not switch on."""
    from deltalake import TableFeatures
    from deltalake.exceptions import CommitFailedError

    features_ = table.protocol().reader_features or []
    if "timestampNtz" in features_ or not any(map(_without_zone, schema.dtypes())):
        return False
    try:
        table.alter.add_feature(
            TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True
        )
    except CommitFailedError as error:
        raise LostRaceError("a change of the table's protocol") from error
    return True


def _without_zone(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Datetime):
        return dtype.time_zone is None
    if isinstance(dtype, pl.List):
        return _without_zone(dtype.inner)  # pyright: ignore[reportArgumentType]
    if isinstance(dtype, pl.Struct):
        return any(_without_zone(f.dtype) for f in dtype.fields)  # pyright: ignore[reportArgumentType]
    return False
