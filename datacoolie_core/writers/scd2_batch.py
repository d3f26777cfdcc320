"""A batch of versions: every one has an instant, and a key has one version at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import TransformError, WriteError
from datacoolie_core.plan.scd2 import EFFECTIVE, VALID_FROM
from datacoolie_core.writers.keys import comparable
from datacoolie_core.writers.scd2_events import Rules, same_values
from datacoolie_core.writers.spill import ROW, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 5
_COUNT = "\0n"
_LOSES = "\0loses"
_OTHER = "\0other"


def refuse_nulls(batch: Batch, keys: Sequence[str]) -> None:
    """Raise if a row does not say from when it is valid.

    Raises:
        TransformError: Shows some keys.
    """
    bad = batch.frame.filter(pl.col(VALID_FROM).is_null())
    count = bad.select(pl.len()).collect(engine="streaming").item()
    if count:
        shown = bad.select(keys).head(_SHOWN).collect(engine="streaming")
        raise TransformError(
            f"{count} row{'s have' if count != 1 else ' has'} no instant from which it is valid:"
            f" {_told(shown, keys, count)}",
            place=EFFECTIVE,
            remedy="Filter these rows, or give an instant for them, such as"
            " COALESCE(updated_at, created_at).",
            code="null_effective_value",
        )


def repeated_keys(batch: Batch, keys: Sequence[str]) -> pl.DataFrame:
    """Return the keys that are in the batch more than once."""
    return _repeated(batch, keys).select(keys)


def _repeated(batch: Batch, names: Sequence[str]) -> pl.DataFrame:
    counted = batch.frame.group_by(list(names)).agg(pl.len().alias(_COUNT), pl.col(ROW).min())
    return counted.filter(pl.col(_COUNT) > 1).collect(engine="streaming").sort(ROW)


def one_per_instant(batch: Batch, rules: Rules) -> tuple[Batch, int, int]:
    """Return the batch with one row for each key and instant.

    Rows that say the same are one. Of others the newest by the order columns counts.

    Args:
        batch: Consumed.
        rules: ``compared`` may name columns that the batch lacks: they are null in all rows.

    Returns:
        The batch; how many rows said the same as another; how many gave way to a newer one.

    Raises:
        WriteError: Nothing says which of them counts; some are shown.
    """
    names = [*rules.keys, VALID_FROM]
    repeated = _repeated(batch, names)
    if repeated.is_empty():
        return batch, 0, 0
    asked = dict.fromkeys([*names, *rules.order, *rules.compared])
    rows = (
        batch.frame.select(ROW, *asked)
        .join(repeated.lazy().select(names), on=names, how="semi", nulls_equal=True)
        .collect(engine="streaming")
    )
    order = [comparable(pl.col(name), rows.schema[name]) for name in rules.order]
    rows = rows.sort(
        [*names, *order, ROW],
        descending=[False] * len(names) + [True] * (len(order) + 1),
        nulls_last=True,
    )
    marked = rows.with_columns(_together(names).alias(_LOSES)).with_columns(
        (pl.col(_LOSES) & ~same_values(rules.compared)).alias(_OTHER),
        (pl.col(_LOSES) & ~_tied(order)).alias("\0older"),
    )
    behind = pl.col("\0older").cum_sum().over((~pl.col(_LOSES)).cum_sum()) > 0
    undecided = marked.filter(pl.col(_OTHER) & ~behind)
    if undecided.height:
        raise _undecided(undecided, rules)
    losers = marked.filter(_LOSES)
    older = int(losers[_OTHER].sum())
    return batch.without(losers[ROW]), losers.height - older, older


def _tied(order: Sequence[pl.Expr]) -> pl.Expr:
    if not order:
        return pl.lit(value=True)
    return pl.all_horizontal(value.eq_missing(value.shift()) for value in order)


def _together(names: Sequence[str]) -> pl.Expr:
    first = pl.int_range(pl.len()) == 0
    return ~first & pl.all_horizontal(pl.col(n).eq_missing(pl.col(n).shift()) for n in names)


def _undecided(rows: pl.DataFrame, rules: Rules) -> WriteError:
    names = [*rules.keys, VALID_FROM]
    some = rows.select(names).unique(maintain_order=True)
    return WriteError(
        f"{some.height} key{'s have' if some.height != 1 else ' has'} different rows of one"
        f" instant: {_told(some.head(_SHOWN), names, some.height)}",
        remedy="Say which row is the newest (transform.latest_data_columns), or from when each is"
        " valid (scd2_effective_column), or make merge_keys identify a row.",
        code="duplicate_keys",
    )


def _told(rows: pl.DataFrame, names: Sequence[str], count: int) -> str:
    shown = "; ".join(
        ", ".join(f"{name}={_value(row[name])}" for name in names)
        for row in rows.select(names).iter_rows(named=True)
    )
    return f"{shown} and {count - rows.height} more" if count > rows.height else shown


def _value(value: object) -> str:
    from datetime import datetime

    return value.isoformat() if isinstance(value, datetime) else repr(value)
