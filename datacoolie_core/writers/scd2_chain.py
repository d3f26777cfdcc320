"""Chain the versions of each key: what of the stored rows goes, what comes in its place.

Pure: frames in, frames out. The rules are those of docs/scd2.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from datacoolie_core.plan.scd2 import IS_CURRENT, VALID_FROM, VALID_TO
from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.scd2_events import (
    AT,
    END,
    GROUP,
    KIND,
    NEW,
    SID,
    STORED,
    Rules,
    line_up,
    same_key,
    same_values,
    settle_instants,
)
from datacoolie_core.writers.spill import ROW

BASE = "\0base"
"""The stored version that a row of the new history continues, null for a new version."""
BASE_FROM = "\0base from"
"""From when that one was valid."""
_RUN = "\0run"
_CREATED, _UPDATED = "__created_at", "__updated_at"
AUDIT = (_UPDATED, "__updated_by", "__dataflow_run_id")
"""The system columns that tell of the load that wrote a row last."""


@dataclass(frozen=True)
class Chained:
    """What becomes of some keys' history.

    Attributes:
        going: Stored rows that go: the keys, ``__valid_from`` and ``FILE``.
        coming: Rows that come: the table's columns, ``FILE`` (where its key is stored; null if
            nowhere), :data:`BASE` and :data:`BASE_FROM`.
        inserted: New versions.
        updated: Stored rows that come back with another validity or with corrected values.
        deleted: Stored rows that are one with their neighbour now.
        unchanged: Rows of the batch that say what is stored already.
        stale: Rows of the batch that are older than a stored one of their instant.
    """

    going: pl.DataFrame
    coming: pl.DataFrame
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    stale: int = 0


def chain(stored: pl.DataFrame, batch: pl.DataFrame, rules: Rules) -> Chained:
    """Return the new history of the keys of a batch.

    Args:
        stored: The table's columns and ``FILE``: the versions of these keys, at least those that
            end at or after the key's earliest row in the batch.
        batch: The table's columns and ``ROW``; one row for each key and instant.
        rules: How history is kept.
    """
    known = stored.with_row_index(SID)
    single = _one_per_instant(known, rules.keys)
    events = line_up(single, batch, rules)
    events, stale = settle_instants(events, rules)
    versions = _runs(events, rules)
    whole = _untouched(versions)
    kept = versions.filter(whole)[SID]
    changed = versions.filter(~whole)
    going = known.filter(~pl.col(SID).is_in(kept.implode()))
    coming = _as_stored(changed, known, batch, stored.columns)
    updated = coming.height - coming[BASE].null_count()
    used = changed.filter(pl.col(KIND) == NEW)[ROW].n_unique()
    return Chained(
        going=going.select(*rules.keys, VALID_FROM, FILE),
        coming=coming,
        inserted=coming.height - updated,
        updated=updated,
        deleted=going.height - updated,
        unchanged=batch.height - used - stale,
        stale=stale,
    )


def _one_per_instant(stored: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Two stored rows of one key and instant can only come from others: the current one counts."""
    names = [*keys, VALID_FROM]
    if not stored.select(names).is_duplicated().any():
        return stored
    newest = [IS_CURRENT, *([_UPDATED] if _UPDATED in stored.columns else []), SID]
    ranked = stored.sort(newest, descending=True, nulls_last=True)
    return ranked.unique(names, keep="first", maintain_order=True)


def _runs(events: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return one row for each version: the first event of a run of equal ones, and its end."""
    is_version = pl.col(KIND) != END
    after_version = same_key() & (pl.col(KIND).shift() != END).fill_null(value=False)
    starts = is_version & ~(after_version & same_values(rules.compared))
    numbered = events.with_columns(
        starts.alias("\0starts"), starts.cum_sum().alias(_RUN), _near("forward").alias(FILE)
    ).with_columns(_near("backward").alias(FILE))
    bases = (
        numbered.filter(is_version).group_by(_RUN).agg(pl.col(SID).drop_nulls().first().alias(BASE))
    )
    edges = numbered.filter(pl.col("\0starts") | ~is_version)
    follows = same_key().shift(-1).fill_null(value=False)
    ends = pl.when(follows).then(pl.col(AT).shift(-1)).alias("\0ends")
    return edges.with_columns(ends).filter(is_version).join(bases, on=_RUN, how="left")


def _near(strategy: Literal["forward", "backward"]) -> pl.Expr:
    """Return the file of a neighbour of the same key where an event has none."""
    # a window over each key would cost more than all the rest
    filled = pl.col(FILE).fill_null(strategy=strategy)
    of_key = pl.when(pl.col(FILE).is_not_null()).then(GROUP).fill_null(strategy=strategy)
    return pl.when(of_key == pl.col(GROUP)).then(filled)


def _untouched(_versions: pl.DataFrame) -> pl.Expr:
    """Whether a version is a stored row, as it is."""
    return (
        (pl.col(KIND) == STORED)
        & pl.col(VALID_TO).eq_missing(pl.col("\0ends"))
        & pl.col(IS_CURRENT).eq_missing(pl.col("\0ends").is_null())
    )


def _as_stored(
    changed: pl.DataFrame, known: pl.DataFrame, batch: pl.DataFrame, columns: list[str]
) -> pl.DataFrame:
    of_base = [pl.col(SID).alias(BASE), pl.col(VALID_FROM).alias(BASE_FROM)]
    created = [pl.col(_CREATED).alias("\0created")] if _CREATED in columns else []
    based = changed.join(known.select(*of_base, *created), on=BASE, how="left")
    values = [
        pl.col(AT).alias(VALID_FROM),
        pl.col("\0ends").alias(VALID_TO),
        pl.col("\0ends").is_null().alias(IS_CURRENT),
        *([pl.coalesce("\0created", _CREATED).alias(_CREATED)] if created else []),
        *(
            pl.when(pl.col(KIND) == STORED).then(pl.lit(batch[name][0])).otherwise(name).alias(name)
            for name in AUDIT
            if name in columns and batch.height
        ),
    ]
    return based.with_columns(values).select(*columns, BASE, BASE_FROM)
