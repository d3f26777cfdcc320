"""The side table of a destination: rows that could not be loaded, with what was wrong with them.

A row belongs to the load (dataflow, sequence, run) that put it there. It is written *before* the
destination's commit, so that the watermark never moves past a row that is nowhere; what it takes
the place of goes *after* that commit. So at any instant a row may be there twice for a while, and
never not at all; :func:`settle` brings it in order, after the commit and at the start of each load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core import clock
from datacoolie_core.storage import join
from datacoolie_core.writers.commit import staging_for, with_redo
from datacoolie_core.writers.quarantine_table import (
    SCHEMA,
    Change,
    Inside,
    Quarantine,
    Within,
    commit,
    cut_rows,
    layout,
    own_rows,
)
from datacoolie_core.writers.tables import open_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalake import DeltaTable

    from datacoolie_core.writers.staging import Staging

__all__ = ["Inside", "Quarantine", "add", "pending", "quarantine_uri", "settle"]

FOLDER = "_quarantine"
_KEY = ("source_file", "row_hash")
_AT, _NTH, _KNOWN = "\0at", "\0nth", "\0known"


def quarantine_uri(uri: str) -> str:
    """Return the side table of a destination: beside it, in a folder that readers pass over.

    >>> quarantine_uri("s3://lake/silver/orders")
    's3://lake/silver/_quarantine/orders'
    >>> quarantine_uri("s3://lake")
    's3://lake/_quarantine'
    """
    parent, separator, name = uri.rstrip("/").rpartition("/")
    if not separator or parent.endswith(":/"):
        return join(uri, FOLDER)
    return join(parent or "/", FOLDER, name)


def add(to: Quarantine, rows: pl.LazyFrame | None, *, all_of_them: bool) -> int:
    """Add rows, before the destination's commit; return how many of them are new.

    What an attempt of the same load has left goes in the same commit.

    Args:
        to: The side table.
        rows: ``column``, ``value``, ``reason``, ``errors``, ``row``, ``row_hash``, ``source_file``;
            None for none.
        all_of_them: Whether rows count that an earlier load of the dataflow has put there:
            otherwise only what is there less often than in the batch is added.

    Raises:
        WriteError: The table can't be read or written.
    """
    own = (pl.col("run_id") == to.run_id) & (pl.col("sequence") >= to.sequence)

    def attempt(table: DeltaTable | None, staging: Staging) -> int:
        fresh = rows if rows is None or all_of_them else _surplus(to, table, rows)
        added = [] if fresh is None else staging.write(_complete(to, fresh), layout(to, SCHEMA))
        cut = cut_rows(to, table, staging, own, (to.sequence, None))
        if added or cut.removed:
            to.on_phase("quarantining")
            commit(to, table, Change(cut.removed, [*cut.kept, *added]), staging)
            to.on_phase("quarantined")
        return sum(file.rows for file in added)

    return _redone(to, attempt)


def settle(of: Quarantine, replaced: Literal["none", "all"] | Inside) -> int:
    """Take out what a committed load has made void; return how many rows that were.

    That are rows of another run with the same sequence, which did not commit, and rows that the
    load takes the place of. Done twice it does nothing.

    Args:
        of: The side table, and the load.
        replaced: Rows of earlier loads that go: none, all of the dataflow, those of a window.

    Raises:
        WriteError: The table can't be read or written.
    """
    lost = (pl.col("sequence") == of.sequence) & (pl.col("run_id") != of.run_id)
    older = pl.col("sequence") < of.sequence

    def attempt(table: DeltaTable | None, staging: Staging) -> int:
        if table is None:
            return 0
        gone = lost | older if replaced == "all" else lost
        within = None if isinstance(replaced, str) else Within(older, replaced)
        lowest = of.sequence if replaced == "none" else None
        cut = cut_rows(of, table, staging, gone, (lowest, of.sequence), within)
        if cut.removed:
            of.on_phase("settling")
            commit(of, table, Change(cut.removed, cut.kept), staging)
            of.on_phase("settled")
        return cut.rows

    return _redone(of, attempt)


def pending(at: Quarantine) -> bool:
    """Say whether there are rows of other runs that want the load's sequence, or a later one.

    Args:
        at: The side table, and the load.

    Raises:
        WriteError: The table can't be read.
    """
    later = (pl.col("sequence") >= at.sequence) & (pl.col("run_id") != at.run_id)
    rows = own_rows(at, open_table(at.place), (at.sequence, None)).filter(later)
    return not rows.head(1).collect(engine="streaming").is_empty()


def _redone(at: Quarantine, attempt: Callable[[DeltaTable | None, Staging], int]) -> int:
    """Try a step against the newest table until no one comes between; leave no files behind."""
    with staging_for(at.place) as staging:
        return with_redo(at.place, None, lambda table: attempt(table, staging), at.sleep)


def _complete(to: Quarantine, rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.with_columns(
        dataflow_id=pl.lit(to.dataflow_id),
        sequence=pl.lit(to.sequence, dtype=pl.Int64),
        run_id=pl.lit(to.run_id),
        quarantined_at=pl.lit(clock.utc_now(), dtype=pl.Datetime("us", "UTC")),
        window=pl.lit(to.window, dtype=pl.String),
    ).select(list(SCHEMA))


def _surplus(to: Quarantine, table: DeltaTable | None, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows that are there less often than in the batch, and of those what is more."""
    known = (
        own_rows(to, table)
        .filter(pl.col("sequence") < to.sequence)
        .group_by(_KEY)
        .agg(pl.len().cast(pl.Int64).alias(_KNOWN))
        .collect(engine="streaming")
    )
    if known.is_empty():
        return rows
    keys = rows.select(_KEY).with_row_index(_AT).collect(engine="streaming")
    nth = pl.int_range(pl.len(), dtype=pl.Int64).over(_KEY).alias(_NTH)
    there = (
        keys.with_columns(nth)
        .join(known, on=list(_KEY), nulls_equal=True)
        .filter(pl.col(_NTH) < pl.col(_KNOWN))[_AT]
    )
    return rows.with_row_index(_AT).filter(~pl.col(_AT).is_in(there.implode())).drop(_AT)
