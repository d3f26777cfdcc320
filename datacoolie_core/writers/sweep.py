"""A merge in one pass over the files that may hold its keys, a few at a time.

Each group of files is read once, met with the batch, and written anew without the rows that go and
with those that take their place. So memory is bounded by a group and the batch, however many files
a merge touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import stored
from datacoolie_core.writers.matching import FILE, Rules, Verdicts, decide
from datacoolie_core.writers.rewrite import changed_rows, file_groups, new_rows
from datacoolie_core.writers.spill import ROW, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.load import Load
    from datacoolie_core.writers.staging import Layout, StagedFile
    from datacoolie_core.writers.tables import LiveFile

_AT = "\0at"


@dataclass(frozen=True)
class Swept:
    """What a pass has found and written.

    Attributes:
        verdicts: What happens to each row of the batch.
        touched: Files that go.
        added: Files that take their place, without the last one.
        last: The rows of the last group, if it is touched: new rows go along with them, so that a
            merge of ever newer keys makes no small files.
    """

    verdicts: Verdicts
    touched: list[LiveFile]
    added: list[StagedFile]
    last: pl.LazyFrame | None


def sweep(
    job: Load, layout: Layout, batch: Batch, near: Sequence[LiveFile], rules: Rules
) -> Swept | None:
    """Meet a batch with the files that may hold its keys, and write the touched ones anew.

    Args:
        job: The load.
        layout: How new files look; its schema is the whole table's.
        batch: One row for each key.
        near: The files.
        rules: Keys, order, deletes.

    Returns:
        None when a key is stored in files of several groups: then no group alone can decide. What
        was written is deleted.
    """
    found: list[Verdicts] = []
    touched: list[LiveFile] = []
    added: list[StagedFile] = []
    last: pl.LazyFrame | None = None
    met = pl.Series(ROW, [], dtype=pl.UInt32)
    groups = list(file_groups(near))
    for number, group in enumerate(groups, 1):
        old = stored.scan(job.place, group, layout.schema, path_column=FILE).collect(
            engine="streaming"
        )
        verdicts = decide(batch, old.lazy().with_row_index(_AT), layout.schema, rules, position=_AT)
        here = verdicts.matched[ROW]
        if here.is_in(met.implode()).any():
            job.staging.discard(added)
            return None
        met = pl.concat([met, here])
        found.append(verdicts)
        going = set(verdicts.pairs[FILE])
        if not going:
            continue
        hit = [file for file in group if job.place.path(file.path) in going]
        touched.extend(hit)
        frame = _rewritten(layout, batch, old, verdicts, whole=len(hit) == len(group))
        del old
        if number == len(groups):
            last = frame
        else:
            added.extend(job.staging.write(frame, layout))
    return Swept(_joined(found, batch, rules), touched, added, last)


def _rewritten(
    layout: Layout, batch: Batch, old: pl.DataFrame, verdicts: Verdicts, *, whole: bool
) -> pl.LazyFrame:
    """Return what takes the place of a group's touched files."""
    stays = pl.repeat(value=True, n=old.height, eager=True).scatter(
        verdicts.pairs[_AT], values=False
    )
    if not whole:
        stays &= old[FILE].is_in(verdicts.pairs[FILE].unique().implode())
    order = list(layout.schema)
    staying = old.filter(stays).select(order)
    changed = changed_rows(batch, verdicts).select(order)
    return pl.concat([staying.lazy(), changed], how="vertical")


def _joined(found: Sequence[Verdicts], batch: Batch, rules: Rules) -> Verdicts:
    """Return the verdicts of all groups as one; rows that no group met are the same for all."""
    if not found:
        empty = pl.LazyFrame(schema={**batch.schema, FILE: pl.String})
        return decide(batch, empty, batch.schema, rules)
    matched = pl.concat([one.matched for one in found])
    pairs = pl.concat([one.pairs.select(ROW, FILE) for one in found])
    dropped = found[0].dropped
    for one in found[1:]:
        dropped = dropped.filter(dropped.is_in(one.dropped.implode()))
    return Verdicts(matched, pairs, dropped)


def finish(job: Load, layout: Layout, batch: Batch, swept: Swept) -> list[StagedFile]:
    """Write what is left of a pass: the last touched files, and the rows whose key is new."""
    order = list(layout.schema)
    new = new_rows(batch, swept.verdicts).select(order)
    frame = new if swept.last is None else pl.concat([swept.last, new], how="vertical")
    return [*swept.added, *job.staging.write(frame, layout)]
