"""Put the rows of keys in the place of those that are stored: compare, then write files anew.

Rows of a key have no identity of their own, so that a key is taken as a whole: either its stored
rows are those of the batch, each as often, or all of them go and the batch's come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers import stored
from datacoolie_core.writers.load import Counts
from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.rewrite import file_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.load import Load
    from datacoolie_core.writers.region import Region
    from datacoolie_core.writers.spill import Batch
    from datacoolie_core.writers.staging import Layout, StagedFile
    from datacoolie_core.writers.tables import LiveFile

CREATED = "__created_at"
_SIGN = "\0sign"
_OLD = "\0old"
_NEW = "\0new"
_FIRST = "\0created"
_GOES = "\0goes"


@dataclass(frozen=True)
class Difference:
    """The keys whose stored rows are not those of the batch.

    Attributes:
        keys: Null equals null.
        changed: One row for each such key, with how many rows are stored and how many come, the
            first ``FILE`` of the stored ones, and the earliest ``__created_at`` of them.
        files: The absolute paths of the files with rows that go.
        counts: What replacing them does, in rows.
    """

    keys: tuple[str, ...]
    changed: pl.DataFrame
    files: frozenset[str]
    counts: Counts

    @property
    def changed_keys(self) -> pl.LazyFrame:
        """The keys alone."""
        return self.changed.lazy().select(self.keys)

    def coming(self, batch: Batch) -> pl.LazyFrame:
        """Return the rows of the batch that come, with ``FILE``, null for new keys.

        ``__created_at`` is the earliest that was stored for the key.
        """
        found = batch.frame.join(
            self.changed.lazy().select(*self.keys, FILE, _FIRST),
            on=list(self.keys),
            how="inner",
            nulls_equal=True,
        )
        if CREATED not in batch.schema:
            return found
        return found.with_columns(pl.coalesce(_FIRST, CREATED).alias(CREATED))

    def content(self, batch: Batch, old: pl.LazyFrame) -> pl.LazyFrame:
        """Return everything that is there afterwards in the place of the stored rows.

        Args:
            batch: What comes.
            old: The stored rows that were compared.
        """
        columns = list(batch.schema)
        staying = old.join(self.changed_keys, on=list(self.keys), how="anti", nulls_equal=True)
        return pl.concat([staying.select(columns), self.coming(batch).select(columns)])


def compare(
    old: pl.LazyFrame, batch: Batch, keys: Sequence[str], ignored: Sequence[str] = ()
) -> Difference:
    """Return what replacing stored rows by a batch changes.

    System columns (``__``) do not count.

    Args:
        old: The stored rows that are to be replaced: the table's columns and ``FILE``.
        batch: In the table's shape.
        keys: Null equals null.
        ignored: Columns that say nothing of whether a row is the same.
    """
    columns = [n for n in batch.schema if not n.startswith("__") and n not in ignored]
    columns = list(dict.fromkeys([*keys, *columns]))
    signed = pl.concat(
        [
            old.select(*columns, pl.lit(1, pl.Int64).alias(_SIGN)),
            batch.frame.select(*columns, pl.lit(-1, pl.Int64).alias(_SIGN)),
        ]
    )
    differing = (
        signed.group_by(columns)
        .agg(pl.col(_SIGN).sum())
        .filter(pl.col(_SIGN) != 0)
        .select(keys)
        .unique()
        .collect(engine="streaming")
    )
    return _difference(old, batch, tuple(keys), differing)


def _difference(
    old: pl.LazyFrame, batch: Batch, keys: tuple[str, ...], differing: pl.DataFrame
) -> Difference:
    created = pl.col(CREATED) if CREATED in batch.schema else pl.lit(None)
    going = old.select(*keys, FILE, created.alias(_FIRST)).join(
        differing.lazy(), on=list(keys), how="semi", nulls_equal=True
    )
    before = going.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias(_OLD), pl.col(FILE).first(), pl.col(_FIRST).min()
    )
    coming = batch.frame.select(keys).join(
        differing.lazy(), on=list(keys), how="semi", nulls_equal=True
    )
    after = coming.group_by(keys).agg(pl.len().cast(pl.Int64).alias(_NEW))
    met = before.join(after, on=list(keys), how="full", nulls_equal=True, coalesce=True)
    changed, files = pl.collect_all(
        [met.with_columns(pl.col(_OLD, _NEW).fill_null(0)), going.select(pl.col(FILE).unique())],
        engine="streaming",
    )
    return Difference(keys, changed, frozenset(files[FILE]), _counts(changed, batch.rows))


def _counts(changed: pl.DataFrame, rows: int) -> Counts:
    both = changed.select(
        updated=pl.min_horizontal(_OLD, _NEW).sum(),
        old=pl.col(_OLD).sum(),
        new=pl.col(_NEW).sum(),
    ).row(0, named=True)
    return Counts(
        rows_inserted=both["new"] - both["updated"],
        rows_updated=both["updated"],
        rows_deleted=both["old"] - both["updated"],
        rows_unchanged=rows - both["new"],
    )


def replace_keys(
    job: Load,
    layout: Layout,
    batch: Batch,
    difference: Difference,
    touched: Sequence[LiveFile],
    region: Region | None,
) -> list[StagedFile]:
    """Return new files with everything that the touched files and the batch leave.

    A few files at a time, which bounds memory and keeps rows near their neighbours. Rows of new
    keys go along with the last of them.

    Args:
        job: The load.
        layout: Of the new files.
        batch: What comes.
        difference: Which keys change.
        touched: Files with rows that go.
        region: Only rows inside go, whatever their key; None takes all of a key.
    """
    coming = difference.coming(batch)
    groups: list[list[LiveFile]] = list(file_groups(touched)) or [[]]
    written: list[StagedFile] = []
    for number, group in enumerate(groups):
        here = pl.col(FILE).is_in([job.place.path(file.path) for file in group])
        if number == len(groups) - 1:
            here |= pl.col(FILE).is_null()
        old = stored.scan(job.place, group, layout.schema)
        parts = [_staying(old, difference, region), coming.filter(here)]
        frame = pl.concat([part.select(list(layout.schema)) for part in parts])
        written.extend(job.staging.write(frame, layout))
    return written


def _staying(old: pl.LazyFrame, difference: Difference, region: Region | None) -> pl.LazyFrame:
    keys = list(difference.keys)
    if region is None:
        return old.join(difference.changed_keys, on=keys, how="anti", nulls_equal=True)
    marked = old.join(
        difference.changed_keys.with_columns(pl.lit(value=True).alias(_GOES)),
        on=keys,
        how="left",
        nulls_equal=True,
    )
    goes = pl.col(_GOES).fill_null(value=False) & region.rows
    return marked.filter(~goes)
