"""The stored versions of some keys and the rows of a batch as one line of events for each key.

An event says from which instant its key has which values, or that the key ends there. Events
stand in the order of keys and instants, so that a neighbour is the event before or after.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.plan.scd2 import IS_CURRENT, VALID_FROM, VALID_TO
from datacoolie_core.writers.keys import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

AT = "\0at"
"""The instant of an event."""
KIND = "\0kind"
"""What an event is: the end of a stored version, a stored version, a row of the batch."""
END, STORED, NEW = 0, 1, 2
SID = "\0sid"
"""The stored version that an event is, or whose values a row of the batch corrects."""
GROUP = "\0group"
"""Numbers the keys."""
_TICK = timedelta(microseconds=1)
_POSITION = "\0position"
_LAST = "\0last"


@dataclass(frozen=True)
class Rules:
    """How history is kept.

    Attributes:
        keys: Null equals null.
        compared: The columns whose values make a version.
        carried: Those of them that the batch lacks: a new version keeps the value before it.
        order: Say which of two rows of one key and instant is newer.
        load_time: Versions are valid from the load, which is after all that is stored.
        snapshot: The instant at which the batch was everything that the source holds, if it was.
    """

    keys: tuple[str, ...]
    compared: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    load_time: bool = False
    snapshot: datetime | None = None


def line_up(stored: pl.DataFrame, batch: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return one line of events for each key.

    Args:
        stored: The table's columns and :data:`SID`; one row for each key and instant.
        batch: The same columns and the row's number; one row for each key and instant.
        rules: How history is kept.

    Returns:
        The columns of both, with :data:`AT`, :data:`KIND` and :data:`GROUP`.
    """
    if rules.load_time:
        batch = _after_all(stored, batch, rules.keys)
    if rules.snapshot is not None:
        batch = pl.concat([batch, _returning(stored, batch, rules.keys, rules.snapshot)])
    keys = list(rules.keys)
    ends = stored.filter(pl.col(VALID_TO).is_not_null()).select(
        *keys, pl.col(VALID_TO).alias(AT), pl.lit(END, dtype=pl.Int8).alias(KIND)
    )
    parts = [ends, _versions(stored, STORED), _versions(batch, NEW)]
    events = pl.concat(parts, how="diagonal").sort([*keys, AT, KIND])
    first = pl.int_range(pl.len()) == 0
    other = pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift()) for key in keys)
    return _carried(events.with_columns((first | other).cum_sum().alias(GROUP)), rules)


def _versions(rows: pl.DataFrame, kind: int) -> pl.DataFrame:
    at = pl.col(VALID_FROM).alias(AT)
    return rows.with_columns(at, pl.lit(kind, dtype=pl.Int8).alias(KIND))


def _boundaries(stored: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    return stored.group_by(keys).agg(
        pl.max_horizontal(pl.col(VALID_FROM).max(), pl.col(VALID_TO).max()).alias(_LAST),
        (pl.col(VALID_TO).is_null() | pl.col(IS_CURRENT)).any().alias("\0open"),
    )


def _after_all(stored: pl.DataFrame, batch: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Move rows that a clock set back would put among what is stored behind it."""
    known = _boundaries(stored, keys).drop("\0open")
    met = batch.join(known, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    late = pl.col(VALID_FROM) <= pl.col(_LAST)
    moved = pl.when(late).then(pl.col(_LAST) + _TICK).otherwise(pl.col(VALID_FROM))
    return met.with_columns(moved.alias(VALID_FROM)).drop(_LAST)


def _returning(
    stored: pl.DataFrame, batch: pl.DataFrame, keys: Sequence[str], snapshot: datetime
) -> pl.DataFrame:
    """Return rows for keys that were closed and are there again with an instant from before.

    What says when they came back is the snapshot itself.
    """
    closed = _boundaries(stored, keys).filter(~pl.col("\0open")).drop("\0open")
    newest = batch.sort(VALID_FROM).unique(keys, keep="last", maintain_order=True)
    back = newest.join(closed, on=list(keys), how="inner", nulls_equal=True)
    now = pl.max_horizontal(pl.lit(snapshot, dtype=pl.Datetime("us", "UTC")), pl.col(_LAST) + _TICK)
    back = back.filter(pl.col(VALID_FROM) < pl.col(_LAST)).with_columns(now.alias(VALID_FROM))
    return back.select(batch.columns)


def _carried(events: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    if not rules.carried:
        return events
    is_stored = pl.col(KIND) == STORED
    # a window over each key would cost more than all the rest
    of_key = pl.when(is_stored).then(GROUP).forward_fill() == pl.col(GROUP)
    known = pl.when(of_key).then(pl.when(is_stored).then(pl.int_range(pl.len())).forward_fill())
    values = [
        pl.when(pl.col(KIND) == NEW).then(pl.col(name).gather(pl.col(_POSITION))).otherwise(name)
        for name in rules.carried
    ]
    return events.with_columns(known.alias(_POSITION)).with_columns(values).drop(_POSITION)


def same_key() -> pl.Expr:
    """Return whether the event before is of the same key."""
    return (pl.col(GROUP) == pl.col(GROUP).shift()).fill_null(value=False)


def same_values(compared: Sequence[str]) -> pl.Expr:
    """Return whether the event before has the same values; null equals null."""
    if not compared:
        return pl.lit(value=True)
    return pl.all_horizontal(pl.col(n).eq_missing(pl.col(n).shift()) for n in compared)


def settle_instants(events: pl.DataFrame, rules: Rules) -> tuple[pl.DataFrame, int]:
    """Leave one event for each key and instant, and say how many rows of the batch were stale.

    A version counts, not the end of the one before it. Of a stored version and a row of the batch
    the batch corrects the stored one, unless it says the same or is older by the order columns.
    """
    together = same_key() & pl.col(AT).eq_missing(pl.col(AT).shift())
    met = together & (pl.col(KIND) == NEW) & (pl.col(KIND).shift() == STORED)
    marked = events.with_columns(
        together.shift(-1).fill_null(value=False).alias("\0followed"),
        (met & older_than_before(rules.order, events.schema)).alias("\0stale"),
        (met & same_values(rules.compared)).alias("\0same"),
        met.alias("\0met"),
    )
    corrects = pl.col("\0met") & ~pl.col("\0stale") & ~pl.col("\0same")
    marked = marked.with_columns(
        pl.when(corrects).then(pl.col(SID).shift()).otherwise(SID).alias(SID),
        corrects.shift(-1).fill_null(value=False).alias("\0corrected"),
    )
    ended = (pl.col(KIND) == END) & pl.col("\0followed")
    nothing = pl.col("\0stale") | pl.col("\0same")
    kept = marked.filter(~(ended | nothing | pl.col("\0corrected")))
    stale = int((marked["\0stale"] & ~marked["\0same"]).sum())
    return kept.drop("\0followed", "\0stale", "\0same", "\0met", "\0corrected"), stale


def older_than_before(order: Sequence[str], schema: pl.Schema) -> pl.Expr:
    """Return whether an event is older than the one before it by the order columns.

    The first column in which the two differ decides; null and NaN are older than every value.
    """
    steps: list[pl.Expr] = []
    equal: list[pl.Expr] = []
    for name in order:
        new = comparable(pl.col(name), schema[name])
        old = new.shift()
        older = (new < old).fill_null(value=False) | (new.is_null() & old.is_not_null())
        steps.append(pl.all_horizontal(*equal, older))
        equal.append(new.eq_missing(old))
    return pl.any_horizontal(steps) if steps else pl.lit(value=False)
