"""Replays: the rows of a window go, the batch takes their place, in one commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.flat.errors import reading
from datacoolie_core.writers.flat.layout import staged_rows
from datacoolie_core.writers.flat.load import FlatLoad, result_of
from datacoolie_core.writers.flat.next_manifest import Change
from datacoolie_core.writers.flat.stored import Stored, unreadable
from datacoolie_core.writers.load import Counts, nothing
from datacoolie_core.writers.ranges import Range, range_of
from datacoolie_core.writers.request import SupersededError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.flat.layout import Layout, Staged
    from datacoolie_core.writers.flat.place import Look
    from datacoolie_core.writers.request import WriteResult


@dataclass(frozen=True)
class _Parts:
    """What becomes of the dataflow's own files.

    Attributes:
        removed: Files that go.
        kept: New files with the rows of them that stay.
        deleted: Rows that go.
    """

    removed: tuple[str, ...]
    kept: tuple[Staged, ...]
    deleted: int


def load(job: FlatLoad) -> WriteResult:
    """Replace the rows of the request's window by the batch; an empty batch just removes them.

    Files of the dataflow that lie wholly inside are dropped, files outside are not touched, the
    others are written anew without the rows of the window. Files of other dataflows are theirs.
    Rows without a value belong to no window.

    Raises:
        WriteError: A row of the batch is outside the window; or a file of nobody holds rows of
            it, which would be doubled.
    """
    look = job.place.look()
    shaped = job.shaped(look)
    layout = job.layout(shaped.schema, look)
    window = _window(job, shaped.schema)
    files = job.stage(shaped, layout)
    _check_inside(files, window)
    decided = job.finish(staged_rows(files))
    if decided is None:
        return nothing()
    look = job.place.look()
    parts = _parts(job, look, layout, window)
    counts = Counts(rows_inserted=staged_rows(files), rows_deleted=parts.deleted)
    if not (counts.changes or decided.required):
        return nothing(counts)
    change = Change(
        layout,
        [*files, *parts.kept],
        job.info(decided, counts),
        lambda now: _still_there(parts.removed, now),
    )
    return result_of(job.commit(change), change, counts)


def _still_there(removed: Sequence[str], now: Look) -> Sequence[str]:
    lost = [path for path in removed if path not in now.data]
    if lost:
        raise SupersededError(
            f"the file {lost[0]} was taken away while its other rows were written anew",
            place=now.place.uri,
            remedy="Another load replaced it meanwhile; run it again.",
            retryable=True,
        )
    return removed


def _window(job: FlatLoad, schema: pl.Schema) -> Range:
    asked = job.request.window
    if asked is None:
        raise WriteError("a replay needs a window", code="no_window")
    zone = job.request.dataflow.transform.configure.timestamp_timezone
    bounds = (asked.lower, asked.upper)
    return range_of(asked.column, schema, bounds, zone=zone, written_in=asked.zone)


def _check_inside(files: Sequence[Staged], window: Range) -> None:
    for file in files:
        bad = _outside(file, window)
        if bad is not None:
            raise WriteError(
                f"{bad} in column '{window.column}' is outside the window"
                f" from {window.lower} to {window.upper}",
                remedy="A transform moved rows out of the window that was read; bound the replay"
                " by a column that keeps its values (chunk_column).",
                code="outside_window",
            )


def _outside(file: Staged, window: Range) -> str | None:
    if window.column in file.partition:
        value = file.partition[window.column]
        return None if window.holds(value) else str(value)
    known = file.bounds.get(window.column)
    if known is None or window.typed is not None:
        return None
    if known.nulls:
        return "None"
    for value in (known.low, known.high):
        if value is not None and not window.holds(value):
            return str(value)
    return None


def _parts(job: FlatLoad, look: Look, layout: Layout, window: Range) -> _Parts:
    schema = layout.schema
    paths = [*look.entries, *look.foreign]
    near = [path for path in paths if window.overlaps(look.live(path, schema))]
    with reading(look), Stored(job.place.form, job.place.storage_options) as stored:
        scans = {path: stored.one(look.stored(path), schema) for path in near}
        try:
            hit = _inside(scans, window)
            _refuse_foreign(look, hit)
            return _split(job, look, layout, (scans, hit, window))
        except pl.exceptions.PolarsError as error:
            raise unreadable(error, job.place.uri) from error


def _inside(scans: dict[str, pl.LazyFrame], window: Range) -> dict[str, int]:
    """Return path → rows in the window, of the files that hold any."""
    if not scans:
        return {}
    counted = [scan.select(window.rows.sum().cast(pl.Int64)) for scan in scans.values()]
    found = [one.item() for one in pl.collect_all(counted, engine="streaming")]
    return {path: rows for path, rows in zip(scans, found, strict=True) if rows}


def _refuse_foreign(look: Look, hit: dict[str, int]) -> None:
    foreign = [path for path in look.foreign if path in hit]
    if foreign:
        raise WriteError(
            f"the file {foreign[0]}, which no dataflow wrote, holds {hit[foreign[0]]} rows of the"
            " window: they would be there twice",
            place=look.place.uri,
            remedy="Move the file away, or load the folder anew with --full-refresh.",
            code="foreign_rows",
        )


def _split(
    job: FlatLoad,
    look: Look,
    layout: Layout,
    known: tuple[dict[str, pl.LazyFrame], dict[str, int], Range],
) -> _Parts:
    """Write the rows that stay, beside the file that held them."""
    scans, hit, window = known
    cut: dict[str, list[pl.LazyFrame]] = {}
    for path, rows in hit.items():
        if rows < look.entries[path].rows:
            prefix = job.place.split(path)[0].rstrip("/")
            cut.setdefault(prefix, []).append(scans[path].filter(~window.rows))
    kept: list[Staged] = []
    for number, (prefix, parts) in enumerate(cut.items()):
        beside = replace(layout, prefix=prefix, stem=f"{layout.stem}-{number}kept")
        kept += job.staging.write(pl.concat(parts, how="vertical"), beside)
    return _Parts(tuple(hit), tuple(kept), sum(hit.values()))
