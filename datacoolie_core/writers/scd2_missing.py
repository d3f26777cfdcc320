"""Close the versions of keys that a full read of the source does not hold any more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.plan.scd2 import IS_CURRENT, VALID_FROM, VALID_TO
from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.scd2_chain import AUDIT, BASE, BASE_FROM, Chained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from datacoolie_core.writers.spill import Batch
    from datacoolie_core.writers.tables import LiveFile

_INSTANT = pl.Datetime("us", "UTC")


def open_files(files: Sequence[LiveFile]) -> list[LiveFile]:
    """Return the files that may hold an open version."""
    return [file for file in files if file.nulls.get(VALID_TO) != 0]


def close_missing(
    old: pl.LazyFrame,
    batch: Batch,
    keys: Sequence[str],
    instant: datetime,
    audit: Mapping[str, Any],
) -> Chained:
    """Return the open versions of keys that are not in the batch, closed.

    Args:
        old: Stored rows and ``FILE``.
        batch: All that the source holds.
        keys: Null equals null.
        instant: When the source was read. A version that begins later ends as it begins: a
            microsecond after.
        audit: The system columns that an updated row gets.
    """
    here = batch.frame.select(keys)
    missing = (
        old.filter(pl.col(VALID_TO).is_null())
        .join(here, on=list(keys), how="anti", nulls_equal=True)
        .collect(engine="streaming")
    )
    after = pl.col(VALID_FROM) + timedelta(microseconds=1)
    closed = missing.with_columns(
        pl.max_horizontal(pl.lit(instant, dtype=_INSTANT), after).alias(VALID_TO),
        pl.lit(value=False).alias(IS_CURRENT),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias(BASE),
        pl.col(VALID_FROM).alias(BASE_FROM),
        *(pl.lit(audit[n]).alias(n) for n in AUDIT if n in audit and n in missing.columns),
    )
    going = missing.select(*keys, VALID_FROM, FILE)
    return Chained(going, closed, updated=closed.height)
