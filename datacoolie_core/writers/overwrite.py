"""``overwrite`` and ``full_load``: one commit puts the batch in the place of everything."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import features, library
from datacoolie_core.writers.commit import LostRaceError
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.rounds import Opened, Round, Work, open_load, reopened, run_rounds
from datacoolie_core.writers.tables import live_files, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.staging import StagedFile


def load(job: Load) -> WriteResult:
    """Replace all rows, and the columns and their types with them."""
    opened = open_load(job, removing=True, anew=True)
    files = opened.stage()
    decided = job.finish(sum(file.rows for file in files))
    return nothing() if decided is None else replace_all(opened, files, decided)


def replace_all(opened: Opened, files: Sequence[StagedFile], decided: Commit) -> WriteResult:
    """Put staged files in the place of the whole table.

    The table keeps its id, its properties and its history. Other partition columns go through
    the library's own writer, since the write transaction would leave them as they are.

    Args:
        opened: With the new columns and partition columns.
        files: Already staged.
        decided: What the pipeline wants to commit.
    """
    return run_rounds(
        opened, decided, lambda current: _work(opened.job, files, current), ready=_ready
    )


def _work(job: Load, files: Sequence[StagedFile], current: Round) -> Work:
    table = current.table
    inserted = sum(file.rows for file in files)
    if table is None:
        return Work(Counts(rows_inserted=inserted), files, replace=True, anyway=True)
    removed = live_files(table)
    features.refuse_paths(removed)
    before = rows_of(table, removed)
    return Work(
        Counts(rows_inserted=inserted, rows_deleted=before or 0),
        files,
        removed,
        before=before,
        replace=True,
        anyway=bool(removed) or table_schema(table) != current.layout.schema,
        through=partial(library.overwrite, job) if _through_library(current, table) else None,
    )


def _through_library(current: Round, table: DeltaTable) -> bool:
    kept = tuple(table.metadata().partition_columns)
    other_partitions = kept != current.layout.partition_columns
    return other_partitions or features.needs_library(table, removing=True)


def _ready(opened: Opened, table: DeltaTable) -> Round:
    current = Round(table, opened.layout)
    if _through_library(current, table) or not _made_ready(table, opened.layout.schema):
        return current
    return Round(reopened(opened), opened.layout)


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
