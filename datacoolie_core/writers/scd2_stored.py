"""Which stored versions a batch concerns, and which of its rows say nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.plan.scd2 import IS_CURRENT, VALID_FROM, VALID_TO
from datacoolie_core.writers.candidates import KeyValues, candidates
from datacoolie_core.writers.spill import ROW, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from datacoolie_core.writers.scd2_events import Rules
    from datacoolie_core.writers.tables import LiveFile

LARGE = 500_000
"""Rows of a batch from which it pays to leave out what is stored already by a pass of its own."""

_EARLIEST = "\0earliest"
_OLD = "\0old "


def near_files(
    files: Sequence[LiveFile], values: Sequence[KeyValues], earliest: datetime | None
) -> list[LiveFile]:
    """Return the files that may hold a version that the batch concerns.

    Args:
        files: With the statistics of the keys and of ``__valid_to``.
        values: The keys of the batch.
        earliest: Versions that ended before it are out of it; None if all of a key count.
    """
    return [file for file in candidates(files, values) if not _over(file, earliest)]


def _over(file: LiveFile, earliest: datetime | None) -> bool:
    ended: Any = file.highest.get(VALID_TO)
    if earliest is None or ended is None or file.nulls.get(VALID_TO) != 0:
        return False
    return ended.tzinfo is not None and ended < earliest


def concerned(old: pl.LazyFrame, batch: Batch, rules: Rules) -> pl.DataFrame:
    """Return the stored versions that a batch concerns: those of its keys that are not long over.

    What ended before the first row of its key touches none of them. A batch that lacks columns
    needs all of them, for the values to go on with.

    Args:
        old: Stored rows and ``FILE``.
        batch: One row for each key and instant.
        rules: How history is kept.
    """
    keys = list(rules.keys)
    first = batch.frame.group_by(keys).agg(pl.col(VALID_FROM).min().alias(_EARLIEST))
    met = old.join(first, on=keys, how="inner", nulls_equal=True)
    if not rules.carried:
        ended = pl.col(VALID_TO)
        met = met.filter(ended.is_null() | (ended >= pl.col(_EARLIEST)))
    return met.drop(_EARLIEST).collect(engine="streaming")


def known_rows(old: pl.LazyFrame, batch: Batch, repeated: pl.DataFrame, rules: Rules) -> pl.Series:
    """Return the numbers of the batch's rows that say what is valid at their instant already.

    Only keys with one row in the batch are looked at: of several, one may explain another. In a
    snapshot the version must be open, since the row says that its key is there.
    """
    keys = list(rules.keys)
    compared = [name for name in rules.compared if name not in rules.carried]
    asked = list(dict.fromkeys([*keys, VALID_FROM, *compared]))
    single = batch.frame.select(ROW, *asked).join(
        repeated.lazy(), on=keys, how="anti", nulls_equal=True
    )
    stored = old.select(*asked, VALID_TO, IS_CURRENT).rename(lambda name: f"{_OLD}{name}")
    met = stored.join(
        single,
        left_on=[f"{_OLD}{key}" for key in keys],
        right_on=keys,
        how="inner",
        nulls_equal=True,
        coalesce=False,
    )
    until = pl.col(f"{_OLD}{VALID_TO}")
    at = pl.col(VALID_FROM)
    then = (pl.col(f"{_OLD}{VALID_FROM}") <= at) & (until.is_null() | (at < until))
    same = [pl.col(f"{_OLD}{name}").eq_missing(pl.col(name)) for name in compared]
    is_open = [until.is_null()] if rules.snapshot is not None else []
    found = met.filter(pl.all_horizontal(then, *same, *is_open)).select(ROW)
    return found.collect(engine="streaming")[ROW].unique()
