"""One load into one table: what every load type needs, whatever its frame in between."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.columns import align
from datacoolie_core.writers.commit import Change, LostRaceError, Sleep, commit
from datacoolie_core.writers.log import read_entry
from datacoolie_core.writers.not_null import demands_of
from datacoolie_core.writers.partitions import check_partition_columns
from datacoolie_core.writers.request import Commit, Finish, OnPhase, WriteRequest, WriteResult
from datacoolie_core.writers.staging import Layout, StagedFile, Staging
from datacoolie_core.writers.statistics import indexed_columns
from datacoolie_core.writers.tables import LiveFile, Place, delta_schema, table_schema
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.columns import Aligned


@dataclass(frozen=True)
class Load:
    """What a load type works with.

    Attributes:
        request: What is asked for.
        place: The table.
        frame: The batch, consumed once.
        finish: Asked once, after the batch has been consumed.
        on_phase: Told of each phase.
        sleep: Waits between tries.
        staging: Where new files go.
    """

    request: WriteRequest
    place: Place
    frame: pl.LazyFrame
    finish: Finish
    on_phase: OnPhase
    sleep: Sleep
    staging: Staging

    def align(self, table: DeltaTable | None) -> Aligned:
        """Return the batch in the shape of a table, or of a new one.

        Raises:
            WriteError: Types that conflict or that Delta does not have.
        """
        schema = None if table is None else table_schema(table)
        return align(self.frame, schema, demands_of(table))

    def stage(self, aligned: Aligned, layout: Layout) -> list[StagedFile]:
        """Consume the batch into new files of the table.

        Raises:
            WriteError: A value does not survive its cast.
        """
        self.on_phase("staging")
        files = self.staging.write(aligned.frame, layout)
        aligned.check()
        self.on_phase("staged")
        return files

    def layout(self, schema: pl.Schema, table: DeltaTable | None) -> Layout:
        """Return how new files of a table look that keeps its partition columns.

        Raises:
            WriteError: The metadata's partition columns are missing, or not those of the table.
        """
        named = self._named_partitions()
        if table is None:
            return self._layout(schema, named, None)
        kept = tuple(table.metadata().partition_columns)
        if named and named != kept:
            raise WriteError(
                f"the table is partitioned by {list(kept)}, the metadata says {list(named)}",
                place=self.place.uri,
                remedy="Set partition_columns as the table has them, or load it anew by a"
                " full refresh.",
                code="partition_mismatch",
            )
        return self._layout(schema, kept, table)

    def new_layout(self, schema: pl.Schema, table: DeltaTable | None) -> Layout:
        """Return how the files of a replaced table look.

        Partition columns are the metadata's; without any there, those of the table that are left.
        """
        named = self._named_partitions()
        if named or table is None:
            return self._layout(schema, named, table)
        kept = (name for name in table.metadata().partition_columns if name in schema)
        return self._layout(schema, tuple(kept), table)

    def _named_partitions(self) -> tuple[str, ...]:
        return tuple(p.column for p in self.request.dataflow.destination.partition_columns)

    def _layout(
        self, schema: pl.Schema, partition_columns: tuple[str, ...], table: DeltaTable | None
    ) -> Layout:
        check_partition_columns(partition_columns, schema)
        data = pl.Schema({n: t for n, t in schema.items() if n not in partition_columns})
        configuration = {} if table is None else table.metadata().configuration
        indexed = indexed_columns(data, configuration, self._searched())
        return Layout(schema, partition_columns, tuple(indexed), self.request.run_id)

    def _searched(self) -> set[str]:
        request = self.request
        keys = request.dataflow.destination.merge_keys
        names = {*keys, *request.order_columns, "__updated_at", "__valid_to"}
        if request.window is not None:
            names.add(request.window.column)
        if request.reread is not None:
            names.update(request.reread.lower)
        return names

    def commit(self, table: DeltaTable | None, change: Change) -> int:
        """Commit a change, telling of the phases."""
        self.on_phase("committing")
        version = commit(table, self.place, self.request, change)
        self.staging.forget()
        self.on_phase("committed")
        return version


def grow(table: DeltaTable, schema: pl.Schema) -> bool:
    """Add the columns that a table lacks by a commit of their own; return whether any was.

    The write transaction itself ignores a wider schema without a word.

    Args:
        table: A fresh handle; stale afterwards if columns were added.
        schema: The columns that the load needs.

    Raises:
        LostRaceError: The table changed meanwhile.
    """
    from deltalake.exceptions import CommitFailedError

    present = table_schema(table)
    missing = [name for name, dtype in schema.items() if present.get(name) != dtype]
    if not missing:
        return False
    fields = {f.name: f for f in delta_schema(schema).fields}
    try:
        table.alter.add_columns([fields[name] for name in missing])
    except CommitFailedError as error:
        raise LostRaceError("a change of the table's columns") from error
    return True


def check_same(table: DeltaTable, aligned: Aligned, layout: Layout) -> None:
    """Raise if the files that were staged do not fit into the table any more.

    Raises:
        WriteError: Another writer changed column types or partitions meanwhile.
    """
    present = table_schema(table)
    for name, dtype in aligned.schema.items():
        if name in present and present[name] != dtype and name not in aligned.added:
            raise _changed(f"column '{name}' became {delta_name(present[name])}")
    if tuple(table.metadata().partition_columns) != layout.partition_columns:
        raise _changed("the partition columns")


def _changed(what: str) -> WriteError:
    return WriteError(
        f"the table was replaced while the batch was staged: {what}",
        remedy="Run it again.",
        code="table_changed",
        retryable=True,
    )


@dataclass(frozen=True)
class Counts:
    """Rows of a load, as :class:`WriteResult` names them."""

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_unchanged: int = 0
    rows_stale: int = 0

    @property
    def changes(self) -> bool:
        """Whether any row of the table changes."""
        return bool(self.rows_inserted or self.rows_updated or self.rows_deleted)

    def to_info(self) -> dict[str, int]:
        """Return the ``rows_*`` entries of the commit info."""
        written = self.rows_inserted + self.rows_updated
        return {"rows_written": written, **{k: int(v) for k, v in vars(self).items()}}


def commit_info(request: WriteRequest, decided: Commit, counts: Counts) -> dict[str, Any]:
    """Return the ``datacoolie`` object of the commit info."""
    named = {
        "run_id": request.run_id,
        "dataflow_id": request.dataflow.dataflow_id,
        "sequence": request.sequence,
        "load_type": request.dataflow.destination.load_type,
    }
    return {**named, **decided.info, **counts.to_info()}


@dataclass(frozen=True)
class Outcome:
    """What a commit did, for the result.

    Attributes:
        table: The handle that it was worked out from, None for a new table.
        change: The commit's files.
        version: What it made.
        rows_before: Rows in the table before, None if unknown.
    """

    table: DeltaTable | None
    change: Change
    version: int
    rows_before: int | None
    warnings: tuple[tuple[str, str], ...] = field(default=())


def result_of(place: Place, outcome: Outcome, counts: Counts) -> WriteResult:
    """Return the result of a commit."""
    change = outcome.change
    base = -1 if outcome.table is None else outcome.table.version()
    alone = outcome.version == base + 1 and outcome.rows_before is not None
    written = counts.rows_inserted + counts.rows_updated
    after = (outcome.rows_before or 0) + counts.rows_inserted - counts.rows_deleted
    return WriteResult(
        committed=True,
        table_id=_table_id(place, outcome),
        table_version=outcome.version,
        info=change.info,
        rows_written=written,
        files_added=len(change.added),
        files_removed=len(change.removed),
        bytes_added=sum(file.size for file in change.added),
        bytes_removed=sum(file.size for file in change.removed),
        table_rows=after if alone else None,
        schema={name: delta_name(dtype) for name, dtype in change.schema.items()},
        warnings=outcome.warnings,
        **vars(counts),
    )


def _table_id(place: Place, outcome: Outcome) -> str | None:
    if outcome.table is not None:
        return str(outcome.table.metadata().id)
    # our own commit made the table: its id is there, without opening the table
    entry = read_entry(place, outcome.version)
    return None if entry is None else entry.table_id


def nothing(counts: Counts | None = None) -> WriteResult:
    """Return the result of a load that committed nothing."""
    return replace(WriteResult(committed=False), **vars(counts or Counts()))


def rows_of(table: DeltaTable, files: Sequence[LiveFile]) -> int | None:
    """Return the rows of some live files, None if the log does not know them all.

    Args:
        table: Theirs; with deletion vectors the counts of its files say too much.
        files: Some of its files.
    """
    if "deletionVectors" in (table.protocol().reader_features or []):
        return None
    counts = [file.rows for file in files]
    return None if None in counts else sum(cast("list[int]", counts))
