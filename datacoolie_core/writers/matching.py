"""Meet a batch with the stored rows of its keys, and decide what happens to each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.writers.keys import comparable
from datacoolie_core.writers.load import Counts
from datacoolie_core.writers.spill import ROW, Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = "\0file"
"""The absolute path of a stored row's file."""

ACTION = "\0action"
MET = "\0met"
_OLD = "\0old "
_DELETE = "\0delete"
_SAME = "\0same"
_STALE = "\0stale"
_CREATED = "__created_at"


@dataclass(frozen=True)
class Rules:
    """How a merge decides.

    Attributes:
        keys: Null equals null.
        order: Say which row is newer; a batch row older than the stored one is stale.
        delete_when: A condition over batch rows: matched rows go, others are not added.
    """

    keys: tuple[str, ...]
    order: tuple[str, ...] = ()
    delete_when: pl.Expr | None = None


@dataclass(frozen=True)
class Verdicts:
    """What happens to the rows of a batch.

    Attributes:
        matched: One row for each batch row whose key is stored: ``ROW``, ``ACTION`` (``update``,
            ``delete``, ``same``, ``stale``), its first ``FILE``, ``MET`` (how many stored rows it
            met), and the stored values that an updated row keeps.
        pairs: ``ROW`` and ``FILE`` of every stored row that goes.
        dropped: Rows of the batch with a key that is not stored, but that are to be deleted.
    """

    matched: pl.DataFrame
    pairs: pl.DataFrame
    dropped: pl.Series

    def count(self, action: str) -> int:
        """Return how many rows of the batch get an action."""
        return int((self.matched[ACTION] == action).sum())

    @property
    def surplus(self) -> int:
        """How many stored rows go because their key was stored more than once."""
        return self.pairs.height - self.count("update") - self.count("delete")


def kept_columns(batch: Batch, table: pl.Schema) -> list[str]:
    """Return the columns whose stored value outlives an update."""
    absent = [name for name in table if name not in batch.present]
    created = [_CREATED] if _CREATED in table and _CREATED in batch.present else []
    return [*absent, *created]


def decide(
    batch: Batch,
    stored: pl.LazyFrame,
    table: pl.Schema,
    rules: Rules,
    *,
    position: str | None = None,
) -> Verdicts:
    """Return what happens to each row of the batch.

    Args:
        batch: One row for each key.
        stored: The table's columns and ``FILE``, of all files that may hold a key.
        table: The table's columns.
        rules: Keys, order, deletes.
        position: A column of ``stored`` that numbers its rows; ``pairs`` gets it too.
    """
    kept = kept_columns(batch, table)
    delete = pl.lit(value=False) if rules.delete_when is None else rules.delete_when
    marked = batch.frame.with_columns(delete.fill_null(value=False).alias(_DELETE))
    pairs = _met(marked, stored.rename({name: f"{_OLD}{name}" for name in table}), rules)
    place = [] if position is None else [position]
    found = pairs.select(
        ROW,
        FILE,
        *place,
        _DELETE,
        _same(batch, rules.keys).alias(_SAME),
        _stale(batch, rules.order).alias(_STALE),
        *(pl.col(f"{_OLD}{name}").alias(name) for name in kept),
    ).collect(engine="streaming")
    matched = _by_row(found.drop(place), kept)
    going = matched.filter(pl.col(ACTION).is_in(["update", "delete"])).select(ROW)
    return Verdicts(
        matched=matched,
        pairs=found.select(ROW, FILE, *place).join(going, on=ROW, how="semi"),
        dropped=_dropped(marked, matched, rules),
    )


def _met(marked: pl.LazyFrame, old: pl.LazyFrame, rules: Rules) -> pl.LazyFrame:
    return old.join(
        marked,
        left_on=[f"{_OLD}{key}" for key in rules.keys],
        right_on=list(rules.keys),
        how="inner",
        nulls_equal=True,
        coalesce=False,
    )


def _by_row(found: pl.DataFrame, kept: Sequence[str]) -> pl.DataFrame:
    grouped = found.group_by(ROW).agg(
        pl.col(_STALE).any(),
        pl.col(_SAME).all(),
        pl.col(_DELETE).first(),
        pl.len().alias(MET),
        pl.col(FILE).first(),
        *(pl.col(name).first() for name in kept),
    )
    return grouped.with_columns(_action().alias(ACTION)).drop(_STALE, _SAME, _DELETE)


def _action() -> pl.Expr:
    # one stored row per key is what a merge leaves, so several of them are never "the same"
    same = pl.col(_SAME) & (pl.col(MET) == 1)
    return (
        pl.when(_STALE)
        .then(pl.lit("stale"))
        .when(_DELETE)
        .then(pl.lit("delete"))
        .when(same)
        .then(pl.lit("same"))
        .otherwise(pl.lit("update"))
    )


def _dropped(marked: pl.LazyFrame, matched: pl.DataFrame, rules: Rules) -> pl.Series:
    if rules.delete_when is None:
        return pl.Series(ROW, [], dtype=pl.UInt32)
    absent = marked.filter(_DELETE).select(ROW)
    found = absent.join(matched.lazy().select(ROW), on=ROW, how="anti").collect()
    return found[ROW]


def _same(batch: Batch, keys: Sequence[str]) -> pl.Expr:
    compared = [n for n in batch.present if not n.startswith("__") and n not in keys]
    if not compared:
        return pl.lit(value=True)
    return pl.all_horizontal(pl.col(f"{_OLD}{n}").eq_missing(pl.col(n)) for n in compared)


def _stale(batch: Batch, order: Sequence[str]) -> pl.Expr:
    """Older in the first column in which the two differ; null is older than every value."""
    steps: list[pl.Expr] = []
    equal: list[pl.Expr] = []
    for name in order:
        dtype = batch.schema[name]
        new = comparable(pl.col(name), dtype)
        old = comparable(pl.col(f"{_OLD}{name}"), dtype)
        older = (new < old).fill_null(value=False) | (new.is_null() & old.is_not_null())
        steps.append(pl.all_horizontal(*equal, older))
        equal.append(new.eq_missing(old))
    return pl.any_horizontal(steps) if steps else pl.lit(value=False)


def counts_of(batch: Batch, verdicts: Verdicts, older: int) -> Counts:
    """Return what a merge does, in rows.

    Args:
        batch: One row for each key.
        verdicts: What happens to them.
        older: Rows that gave way to newer ones inside the batch.
    """
    dropped = len(verdicts.dropped)
    return Counts(
        rows_inserted=batch.rows - verdicts.matched.height - dropped,
        rows_updated=verdicts.count("update"),
        rows_deleted=verdicts.count("delete") + verdicts.surplus,
        rows_unchanged=verdicts.count("same") + dropped,
        rows_stale=verdicts.count("stale") + older,
    )
