"""Replays: the rows of a window go, the batch takes their place, in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import features, library, stored
from datacoolie_core.writers.commit import Change, LostRaceError, check_fence, with_redo
from datacoolie_core.writers.load import (
    Counts,
    Load,
    Outcome,
    check_same,
    commit_info,
    grow,
    nothing,
    result_of,
    rows_of,
)
from datacoolie_core.writers.ranges import Range, range_of
from datacoolie_core.writers.tables import LiveFile, live_files, open_table, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.columns import Aligned
    from datacoolie_core.writers.request import Commit, WriteResult
    from datacoolie_core.writers.staging import Layout, StagedFile


@dataclass(frozen=True)
class _Parts:
    removed: Sequence[LiveFile] = ()
    kept: Sequence[StagedFile] = ()
    deleted: int = 0
    before: int | None = 0


@dataclass(frozen=True)
class _Replay:
    job: Load
    aligned: Aligned
    layout: Layout
    window: Range
    files: Sequence[StagedFile]
    decided: Commit

    def counts(self, parts: _Parts) -> Counts:
        inserted = sum(file.rows for file in self.files)
        return Counts(rows_inserted=inserted, rows_deleted=parts.deleted)

    def change(self, parts: _Parts, counts: Counts) -> Change:
        return Change(
            schema=self.layout.schema,
            partition_columns=self.layout.partition_columns,
            added=[*self.files, *parts.kept],
            removed=parts.removed,
            info=commit_info(self.job.request, self.decided, counts),
        )


def load(job: Load) -> WriteResult:
    """Replace the rows of the request's window by the batch; an empty batch just removes them.

    Files that lie wholly inside are dropped, files outside are not touched, the others are
    written anew without the rows of the window. Rows without a value belong to no window.

    Raises:
        WriteError: A row of the batch is outside the window: run again, it would be doubled.
    """
    table = open_table(job.place)
    if table is not None:
        features.refuse(table, removing=True)
    aligned = job.align(table)
    aligned.check_complete()
    layout = job.layout(aligned.schema, table)
    window = _window(job, aligned.schema)
    files = job.stage(aligned, layout)
    _check_inside(files, window)
    decided = job.finish(sum(file.rows for file in files))
    if decided is None:
        return nothing()
    replay = _Replay(job, aligned, layout, window, files, decided)
    return with_redo(job.place, table, lambda table: _attempt(replay, table), job.sleep)


def _window(job: Load, schema: pl.Schema) -> Range:
    asked = job.request.window
    if asked is None:
        raise WriteError("a replay needs a window", code="no_window")
    zone = job.request.dataflow.transform.configure.timestamp_timezone
    return range_of(asked.column, schema, (asked.lower, asked.upper), zone=zone)


def _check_inside(files: Sequence[StagedFile], window: Range) -> None:
    for file in files:
        bad = _outside(file, window)
        if bad is not None:
            raise WriteError(
                f"{bad} in column '{window.column}' is outside the window"
                f" from {window.lower} to {window.upper}",
                remedy="A transform moved rows out of the window that was read; bound the replay"
                " by a column that keeps its values (replay_filter).",
                code="outside_window",
            )


def _outside(file: StagedFile, window: Range) -> str | None:
    if window.column in file.partition:
        value = file.partition[window.column]
        return None if window.holds(value) else str(value)
    known = file.statistics
    if known.nulls.get(window.column):
        return "None"
    for bounds in (known.lowest, known.highest):
        value = bounds.get(window.column)
        # long text is cut in the footer, so that its bound says nothing here
        cut = isinstance(value, str) and len(value) > 60
        if value is not None and not cut and not window.holds(value):
            return str(value)
    return None


def _attempt(replay: _Replay, table: DeltaTable | None) -> WriteResult:
    job = replay.job
    check_fence(table, job.request)
    if table is not None:
        check_same(table, replay.aligned, replay.layout)
        if grow(table, replay.aligned.schema):
            table = open_table(job.place)
    if table is None:
        return _commit(replay, None, _Parts())
    files = live_files(table, [replay.window.column])
    near = [file for file in files if replay.window.overlaps(file)]
    features.refuse_paths(near)
    if features.needs_library(table, removing=True):
        return _through_library(replay, table)
    return _commit(replay, table, _parts(replay, table, files, near))


def _through_library(replay: _Replay, table: DeltaTable) -> WriteResult:
    rows = stored.scan_live(replay.job.place, table, live_files(table), table_schema(table))
    old = rows.filter(replay.window.rows).select(pl.len())
    parts = _Parts(deleted=old.collect(engine="streaming").item())
    counts = replay.counts(parts)
    if not (counts.changes or replay.decided.required):
        return nothing(counts)
    change = replay.change(parts, counts)
    return library.replace_range(replay.job, table, change, counts, replay.window)


def _parts(
    replay: _Replay, table: DeltaTable, files: list[LiveFile], near: list[LiveFile]
) -> _Parts:
    """Write the rows that stay; a file none of whose rows is inside is left alone."""
    job, window = replay.job, replay.window
    whole = [file for file in near if window.covers(file)]
    partly = [file for file in near if not window.covers(file)]
    schema = replay.layout.schema
    path = "\0file"
    inside = (
        stored.scan(job.place, near, schema, path_column=path)
        .filter(window.rows)
        .group_by(path)
        .len()
        .collect(engine="streaming")
    )
    hit = dict(inside.iter_rows())
    cut = [file for file in partly if job.place.path(file.path) in hit]
    staying = stored.scan(job.place, cut, schema).filter(~window.rows)
    kept = job.staging.write(staying, replay.layout) if cut else []
    return _Parts([*whole, *cut], kept, sum(hit.values()), rows_of(table, files))


def _commit(replay: _Replay, table: DeltaTable | None, parts: _Parts) -> WriteResult:
    job = replay.job
    counts = replay.counts(parts)
    if not (counts.changes or replay.decided.required):
        return nothing(counts)
    change = replay.change(parts, counts)
    try:
        version = job.commit(table, change)
    except LostRaceError:
        job.staging.discard(parts.kept)
        raise
    return result_of(job.place, Outcome(table, change, version, parts.before), counts)
