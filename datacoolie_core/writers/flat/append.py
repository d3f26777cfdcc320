"""``append``: every row of the batch becomes a row of new files."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.columns import Aligned
from datacoolie_core.writers.flat.errors import reading
from datacoolie_core.writers.flat.layout import staged_rows
from datacoolie_core.writers.flat.load import FlatLoad, result_of
from datacoolie_core.writers.flat.next_manifest import Change
from datacoolie_core.writers.flat.stored import Stored, unreadable
from datacoolie_core.writers.load import Counts, nothing
from datacoolie_core.writers.overlap import compared
from datacoolie_core.writers.ranges import range_of
from datacoolie_core.writers.spill import ROW, consume

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.flat.layout import Layout, Staged
    from datacoolie_core.writers.flat.place import Look
    from datacoolie_core.writers.flat.shape import Shaped
    from datacoolie_core.writers.request import Commit, Overlap, WriteResult
    from datacoolie_core.writers.spill import Batch

_NTH = "\0nth"
_INEXACT = ("float_precision", "date_format", "datetime_format", "time_format", "null_value")


def load(job: FlatLoad) -> WriteResult:
    """Add the batch as files of its own; what is there is not touched."""
    look = job.place.look()
    shaped = job.shaped(look)
    layout = job.layout(shaped.schema, look)
    if job.request.overlap is not None and look.data:
        return _load_surplus(job, look, shaped, layout, job.request.overlap)
    files = job.stage(shaped, layout)
    decided = job.finish(staged_rows(files))
    counts = Counts(rows_inserted=staged_rows(files))
    return _commit(job, layout, files, decided, counts)


def _commit(
    job: FlatLoad,
    layout: Layout,
    files: Sequence[Staged],
    decided: Commit | None,
    counts: Counts,
) -> WriteResult:
    if decided is None or not (counts.changes or decided.required):
        return nothing(counts if decided is not None else None)
    change = Change(layout, files, job.info(decided, counts), _nothing)
    return result_of(job.commit(change), change, counts)


def _nothing(_look: Look) -> Sequence[str]:
    return ()


def _load_surplus(
    job: FlatLoad, look: Look, shaped: Shaped, layout: Layout, overlap: Overlap
) -> WriteResult:
    """Append the rows of the batch that the folder does not hold as often.

    Rows are compared over all columns of the batch that are not system columns (``__``), null and
    NaN equal to themselves, each as often as it is there.
    """
    present = tuple(job.frame.collect_schema())
    with ExitStack() as stack:
        job.on_phase("staging")
        aligned = Aligned(shaped.frame, shaped.schema, pl.Schema())
        batch = consume(aligned, present, stack)
        shaped.check()
        job.on_phase("staged")
        decided = job.finish(batch.rows)
        if decided is None:
            return nothing()
        fresh = batch.without(_known(job, look, batch, overlap))
        files = job.staging.write(fresh.content, layout)
        counts = Counts(rows_inserted=fresh.rows, rows_unchanged=batch.rows - fresh.rows)
        return _commit(job, layout, files, decided, counts)


def _refuse_inexact(look: Look, paths: Sequence[str]) -> None:
    """Raise if a file was written by options that leave digits out."""
    for path in paths:
        inexact = [name for name in look.stored(path).options if name in _INEXACT]
        if inexact:
            raise WriteError(
                f"rows were read again that may be loaded, and {inexact[0]} keeps {path} from"
                " telling its rows exactly",
                place=look.place.uri,
                remedy=f"Remove write_options.{inexact[0]} and load the folder anew with"
                " --full-refresh, or accept that rows which tie with the watermark are lost:"
                " watermark_boundary: exclusive.",
                code="not_comparable",
            )


def _known(job: FlatLoad, look: Look, batch: Batch, overlap: Overlap) -> pl.Series:
    """Return the numbers of the batch's rows that the folder holds already."""
    schema = batch.schema
    rows, paths = pl.lit(value=True), list(look.data)
    if overlap.column is not None:
        zone = job.request.dataflow.transform.configure.timestamp_timezone
        region = range_of(
            overlap.column,
            schema,
            (overlap.lower, overlap.upper),
            upper_inclusive=overlap.upper_inclusive,
            zone=zone,
        )
        rows = region.rows
        paths = [path for path in paths if region.overlaps(look.live(path, schema))]
    _refuse_inexact(look, paths)
    with reading(look), Stored(job.place.form, job.place.storage_options) as stored:
        old = stored.scan([look.stored(path) for path in paths], schema)
        columns = compared(overlap, batch, old)
        numbered = pl.int_range(pl.len()).over(columns).alias(_NTH)
        there = old.filter(rows).select(columns)
        mine = batch.frame.filter(rows).select(*columns, ROW)
        there = there.join(mine, on=columns, how="semi", nulls_equal=True)
        met = mine.with_columns(numbered).join(
            there.with_columns(numbered), on=[*columns, _NTH], how="semi", nulls_equal=True
        )
        try:
            return met.select(ROW).collect(engine="streaming")[ROW]
        except pl.exceptions.PolarsError as error:
            raise unreadable(error, job.place.uri) from error
