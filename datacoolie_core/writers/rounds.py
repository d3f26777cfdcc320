"""The one mechanism of every load: open, consume the batch once, then rounds until one commits.

A load type is the frame in between: it says what of the batch and of the stored rows becomes new
files (:class:`Work`); this module does everything around it. A round that loses against another
writer is worked out again from the table as it is then; the batch is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacoolie_core.writers import features
from datacoolie_core.writers.commit import Change, LostRaceError, check_fence, with_redo
from datacoolie_core.writers.handles import keep, newest
from datacoolie_core.writers.load import (
    Counts,
    Load,
    Outcome,
    check_same,
    commit_info,
    grow,
    nothing,
    result_of,
)
from datacoolie_core.writers.spill import Batch, consume
from datacoolie_core.writers.tables import open_table, table_schema

if TYPE_CHECKING:
    from contextlib import ExitStack

    from deltalake import DeltaTable

    from datacoolie_core.writers.columns import Aligned
    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.staging import Layout, StagedFile
    from datacoolie_core.writers.tables import LiveFile

Through = Callable[["DeltaTable", Change, Counts], "WriteResult"]
"""Commits through the library's own writer, where the table's features ask for it."""


@dataclass(frozen=True)
class Opened:
    """A load that has looked at its table and has not consumed its batch yet.

    Attributes:
        job: The load.
        seen: The table's handle then; None if there was no table.
        aligned: The batch in the table's shape; ``aligned.schema`` is the table's after the load.
        layout: How new files look.
        removing: Whether the load takes rows out or changes them.
    """

    job: Load
    seen: DeltaTable | None
    aligned: Aligned
    layout: Layout
    removing: bool

    def stage(self) -> list[StagedFile]:
        """Consume the batch into new files of the table, for loads that take it as it is.

        Raises:
            WriteError: A value does not survive its cast, or is null where none may be.
        """
        return self.job.stage(self.aligned, self.layout)

    def consume(self, stack: ExitStack) -> Batch:
        """Consume the batch into a spill that can be looked at again and again.

        Args:
            stack: Deletes the spill when it is closed.

        Raises:
            WriteError: A value does not survive its cast, or is null where none may be.
        """
        self.job.on_phase("staging")
        batch = consume(self.aligned, tuple(self.job.frame.collect_schema()), stack)
        self.aligned.check()
        self.job.on_phase("staged")
        return batch


@dataclass(frozen=True)
class Round:
    """One try: the table as it is now.

    Attributes:
        table: A fresh handle with all columns that the load needs; None if there is no table.
        layout: How new files look; its schema is the whole table's, with columns that others
            have added since the batch was consumed.
    """

    table: DeltaTable | None
    layout: Layout


@dataclass(frozen=True)
class Work:
    """What one round wants to commit.

    Attributes:
        counts: What happens, in rows.
        added: All new files: those of the batch and those of this round.
        removed: Live files that go.
        rewritten: Those of ``added`` that this round wrote: deleted if it loses.
        before: Rows in the table before, None if unknown.
        replace: Every file goes, and schema and partition columns are taken as they are.
        blind: It depends on nothing that was read, so that the library may retry the commit.
        anyway: Commit even if no row and no file changes.
        through: Commits in the library's way instead; ``added`` is its input then, if any.
    """

    counts: Counts
    added: Sequence[StagedFile] = ()
    removed: Sequence[LiveFile] = ()
    rewritten: Sequence[StagedFile] = ()
    before: int | None = None
    replace: bool = False
    blind: bool = False
    anyway: bool = False
    through: Through | None = None


def open_load(job: Load, *, removing: bool, anew: bool = False) -> Opened:
    """Look at the table, and bring the batch into its shape.

    Args:
        job: The load.
        removing: Whether the load takes rows out or changes them.
        anew: Whether it replaces columns and partition columns too.

    Raises:
        WriteError: A table that can't be written from here, or columns that do not fit.
    """
    table = newest(job.place)
    if table is not None:
        features.refuse(table, removing=removing)
    aligned = job.align(None if anew else table)
    layout = (job.new_layout if anew else job.layout)(aligned.schema, table)
    return Opened(job, table, aligned, layout, removing)


def run_rounds(
    opened: Opened,
    decided: Commit,
    work: Callable[[Round], Work],
    *,
    ready: Callable[[Opened, DeltaTable], Round] | None = None,
) -> WriteResult:
    """Work out what to commit from the newest table, and commit it; again while others win.

    Args:
        opened: The load, its batch consumed.
        decided: What the pipeline wants to commit.
        work: The load type. It may raise :class:`LostRaceError` to be called again.
        ready: Makes a table fit for the commit; by default columns that it lacks are added.

    Raises:
        SupersededError: The same dataflow committed meanwhile.
        WriteError: Every round lost, or the commit failed.
    """

    def attempt(table: DeltaTable | None) -> WriteResult:
        check_fence(table, opened.job.request)
        if table is None:
            current = Round(None, opened.layout)
        else:
            features.refuse(table, removing=opened.removing)
            current = (ready or grown)(opened, table)
        return _committed(opened, decided, current, work(current))

    return with_redo(opened.job.place, opened.seen, attempt, opened.job.sleep)


def grown(opened: Opened, table: DeltaTable) -> Round:
    """Add the columns that a table lacks.

    Raises:
        WriteError: Another writer changed column types or partitions meanwhile.
        LostRaceError: The table changed just now.
    """
    check_same(table, opened.aligned, opened.layout)
    if grow(table, opened.aligned.schema):
        table = reopened(opened)
    return Round(table, replace(opened.layout, schema=table_schema(table)))


def reopened(opened: Opened) -> DeltaTable:
    """Return a fresh handle on a table that was there a moment ago.

    Raises:
        LostRaceError: Somebody deleted it.
    """
    table = open_table(opened.job.place)
    if table is None:
        raise LostRaceError("the table is gone")
    return table


def _committed(opened: Opened, decided: Commit, current: Round, done: Work) -> WriteResult:
    job, table, counts = opened.job, current.table, done.counts
    if not (counts.changes or done.anyway or decided.required):
        return nothing(counts)
    change = Change(
        schema=current.layout.schema,
        partition_columns=current.layout.partition_columns,
        added=done.added,
        removed=done.removed,
        replace=done.replace,
        blind=done.blind,
        info=commit_info(job.request, decided, counts),
    )
    try:
        if table is not None and done.through is not None:
            return done.through(table, change, counts)
        version = job.commit(table, change)
    except LostRaceError:
        job.staging.discard(done.rewritten)
        raise
    before = 0 if table is None else done.before
    result = result_of(job.place, Outcome(table, change, version, before), counts)
    if table is not None:
        keep(job.place, table)
    return result
