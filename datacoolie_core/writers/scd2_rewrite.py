"""Write the files of a history anew: the rows that stay, and in their place those that come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.plan.scd2 import VALID_FROM
from datacoolie_core.writers import stored
from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.rewrite import file_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.load import Load
    from datacoolie_core.writers.staging import Layout, StagedFile
    from datacoolie_core.writers.tables import LiveFile


@dataclass(frozen=True)
class History:
    """What one load does to a history.

    Attributes:
        keys: The key columns.
        going: Stored rows that go: the keys, ``__valid_from`` and ``FILE``.
        coming: Rows that come, with the ``FILE`` near which they belong.
        fresh: Rows of keys that are not stored, as they are in the batch.
    """

    keys: tuple[str, ...]
    going: pl.DataFrame
    coming: pl.DataFrame
    fresh: pl.LazyFrame

    def touched(self, job: Load, files: Sequence[LiveFile]) -> list[LiveFile]:
        """Return the files that hold a row that goes."""
        paths = set(self.going[FILE])
        return [file for file in files if job.place.path(file.path) in paths]


def rewrite(
    job: Load, layout: Layout, history: History, touched: Sequence[LiveFile]
) -> list[StagedFile]:
    """Return new files with what the touched files keep and what comes.

    A few files at a time: that bounds memory, and a key's versions stay near each other, so that
    statistics go on to prune. What belongs to no touched file goes along with the last.
    """
    groups: list[list[LiveFile]] = list(file_groups(touched)) or [[]]
    placed = [[job.place.path(file.path) for file in group] for group in groups]
    elsewhere = ~pl.col(FILE).is_in([path for paths in placed for path in paths])
    order = list(layout.schema)
    written: list[StagedFile] = []
    for number, (group, paths) in enumerate(zip(groups, placed, strict=True)):
        here = pl.col(FILE).is_in(paths)
        parts = [_staying(job, layout, history, group), history.coming.lazy().filter(here)]
        if number == len(groups) - 1:
            rest = history.coming.lazy().filter(elsewhere.fill_null(value=True))
            parts.extend([rest, history.fresh])
        frame = pl.concat([part.select(order) for part in parts], how="vertical")
        written.extend(job.staging.write(frame, layout))
    return written


def _staying(
    job: Load, layout: Layout, history: History, group: Sequence[LiveFile]
) -> pl.LazyFrame:
    names = [*history.keys, VALID_FROM]
    old = stored.scan(job.place, group, layout.schema)
    return old.join(history.going.lazy().select(names), on=names, how="anti", nulls_equal=True)
