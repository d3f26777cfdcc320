"""What a writer is asked for, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core.errors import WriteError

if TYPE_CHECKING:
    from datetime import datetime

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar, Window


class SupersededError(WriteError):
    """Another run of the same dataflow committed since we looked: read again from its state."""

    code = "superseded"


@dataclass(frozen=True)
class Overlap:
    """Rows of an append that may be in the table already and must not be added twice.

    Rows of batch and table inside the region are compared as multisets over all columns that
    are not system columns; only the surplus of the batch is appended.

    Attributes:
        column: The destination column that bounds the region; None compares everything.
        lower: Inclusive; None is unbounded.
        upper: None is unbounded.
        upper_inclusive: Whether ``upper`` itself belongs to the region.
        by_file: Whole files are read again: a row is there already only if one of its own file is.
    """

    column: str | None = None
    lower: Scalar | None = None
    upper: Scalar | None = None
    upper_inclusive: bool = False
    by_file: bool = False


@dataclass(frozen=True)
class Reread:
    """What a normal run read of the source again, in columns of the destination.

    A row belongs to it if it is in the range of one of the columns.

    Attributes:
        lower: Column → where the read began, inclusive.
        upto: Column → the highest value that an earlier load has seen, inclusive; the batch's own
            highest value counts if it is higher.
        valueless: Rows without a value in all of these columns were read again too.
    """

    lower: Mapping[str, Scalar]
    upto: Mapping[str, Scalar]
    valueless: bool = False


@dataclass(frozen=True)
class WriteRequest:
    """One load into one destination.

    Attributes:
        dataflow: Prepared.
        uri: The table's location, absolute.
        storage_options: For the object store, with secrets as plain text; never logged.
        sequence: The ``txn`` version of this commit.
        expected_sequence: The ``txn`` version in the table when we looked; if the table has
            another one, :class:`SupersededError`.
        mode: ``load`` does what the load type says; ``replace_window`` replaces the rows of
            ``window``; ``replace_all`` replaces every row.
        window: In terms of a *destination* column.
        reread: ``replace_window`` in a normal run, in place of ``window``.
        overlap: For appends: what may be there already.
        order_columns: Destination columns that say which of two rows of a key is newer.
        run_id: Names the staged files.
        complete: Whether the batch is all that the source holds (scd2 may then close what is
            missing).
        now: The instant of the load, as the batch's system columns have it.
    """

    dataflow: Dataflow
    uri: str
    sequence: int
    run_id: str
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    expected_sequence: int | None = None
    mode: Literal["load", "replace_window", "replace_all"] = "load"
    window: Window | None = None
    reread: Reread | None = None
    overlap: Overlap | None = None
    order_columns: tuple[str, ...] = ()
    complete: bool = False
    now: datetime | None = None


@dataclass(frozen=True)
class Commit:
    """What the pipeline wants to commit, decided after the batch has been consumed.

    Attributes:
        info: The ``datacoolie`` object of the commit info; the writer adds ``rows_*``.
        required: Commit even if no row changes (the watermark moves).
    """

    info: Mapping[str, Any]
    required: bool = False


Finish = Callable[[int], Commit | None]
"""Called once per consumed batch with the staged row count; None leaves the table as it is."""

OnPhase = Callable[[str], None]
"""Told of ``staging``, ``staged``, ``committing`` and ``committed`` as they are reached."""


@dataclass(frozen=True)
class WriteResult:
    """What one load did to its destination.

    Attributes:
        committed: False when there was nothing to do.
        table_id: Delta's table id.
        table_version: The version that our commit made.
        info: The commit info as written, with ``rows_*``.
        rows_written: Rows that reached the destination: inserted plus updated.
        rows_inserted: New rows.
        rows_updated: Rows changed in place (merges).
        rows_deleted: Rows taken out (windows, overwrites, ``delete_when``).
        rows_unchanged: Rows of the batch that the table already held.
        rows_stale: Rows of the batch older than the stored ones, not applied.
        table_rows: Rows in the table after the commit, None if unknown.
        schema: Column name → Delta type, in order, after the commit.
        warnings: Code and message.
    """

    committed: bool
    table_id: str | None = None
    table_version: int | None = None
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_unchanged: int = 0
    rows_stale: int = 0
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    table_rows: int | None = None
    schema: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[tuple[str, str], ...] = ()

    @property
    def file_counts(self) -> dict[str, int]:
        """Files and bytes that came and went."""
        names = ("files_added", "files_removed", "bytes_added", "bytes_removed")
        return {name: getattr(self, name) for name in names}
