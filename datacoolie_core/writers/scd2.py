"""``scd2``: every version of a row is kept, with the span in which it was valid.

The rules are in docs/scd2.md; :mod:`scd2_chain` is where they are applied.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core import clock
from datacoolie_core.engines.polars_sql import columns_in
from datacoolie_core.errors import WriteError
from datacoolie_core.plan.columns import SCD2_COLUMNS, final_name
from datacoolie_core.plan.scd2 import (
    VALID_FROM,
    VALID_TO,
    closes_missing,
    effective_default,
    effective_expression,
    valid_from_load,
)
from datacoolie_core.writers import features, scd2_library, stored
from datacoolie_core.writers.candidates import KeyValues, key_values
from datacoolie_core.writers.keys import check_columns
from datacoolie_core.writers.load import Counts, Load, nothing, rows_of
from datacoolie_core.writers.matching import FILE
from datacoolie_core.writers.rounds import Opened, Round, Work, open_load, run_rounds
from datacoolie_core.writers.scd2_batch import one_per_instant, refuse_nulls, repeated_keys
from datacoolie_core.writers.scd2_chain import AUDIT, Chained, chain
from datacoolie_core.writers.scd2_events import Rules
from datacoolie_core.writers.scd2_missing import close_missing, open_files
from datacoolie_core.writers.scd2_rewrite import History, rewrite
from datacoolie_core.writers.scd2_stored import LARGE, concerned, known_rows, near_files
from datacoolie_core.writers.spill import ROW, Batch
from datacoolie_core.writers.tables import live_files, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from deltalake import DeltaTable

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.writers.request import WriteResult
    from datacoolie_core.writers.tables import LiveFile


@dataclass(frozen=True)
class _Versions:
    """A consumed batch and all that each round needs of it.

    Attributes:
        opened: The load.
        batch: One row for each key and instant.
        repeated: The keys with several rows in it.
        values: The key values, to find files by.
        earliest: The first instant in it.
        audit: The system columns that an updated row gets.
        same: Rows of the batch that said the same as another one.
        older: Rows of the batch that gave way to a newer one of their key and instant.
        snapshot: When the batch was all that the source holds, if keys that it lacks are closed.
    """

    opened: Opened
    batch: Batch
    repeated: pl.DataFrame
    values: list[KeyValues]
    earliest: datetime | None
    audit: dict[str, Any]
    same: int
    older: int
    snapshot: datetime | None

    @property
    def keys(self) -> tuple[str, ...]:
        return self.opened.job.request.dataflow.destination.merge_keys

    def rules(self, schema: pl.Schema) -> Rules:
        return _rules(self.opened.job, self.batch.present, schema, self.snapshot)


def load(job: Load) -> WriteResult:
    """Add the batch's versions to the history of their keys.

    Raises:
        WriteError: Columns that do not fit, or rows of one key and instant that differ.
        TransformError: A row does not say from when it is valid.
    """
    if job.request.mode != "load":
        raise WriteError(
            "a history is added to, it is not replaced",
            remedy="Delete the table to start it anew.",
            code="unsupported_mode",
        )
    opened = open_load(job, removing=True)
    _check(opened)
    with ExitStack() as stack:
        everything = opened.consume(stack)
        versions, rows = _versions(opened, everything), everything.rows
        decided = job.finish(rows)
        if decided is None:
            return nothing()
        return run_rounds(opened, decided, lambda current: _work(versions, current))


def _check(opened: Opened) -> None:
    job = opened.job
    source = job.frame.collect_schema()
    table = None if opened.seen is None else table_schema(opened.seen)
    check_columns(job.request.dataflow.destination.merge_keys, source, table)
    if table is not None and any(name not in table for name in SCD2_COLUMNS):
        raise WriteError(
            f"the table has no columns {', '.join(SCD2_COLUMNS)}: it holds no history",
            place=job.place.uri,
            remedy="Load into another table.",
            code="no_history",
        )


def _versions(opened: Opened, everything: Batch) -> _Versions:
    job = opened.job
    request = job.request
    keys = request.dataflow.destination.merge_keys
    refuse_nulls(everything, keys)
    closing = request.complete and closes_missing(request.dataflow)
    snapshot = (request.now or clock.utc_now()) if closing else None
    rules = _rules(job, everything.present, everything.schema, snapshot)
    batch, same, older = one_per_instant(everything, rules)
    first = batch.frame.select(pl.col(VALID_FROM).min()).collect(engine="streaming").item()
    named = [name for name in AUDIT if name in everything.present]
    known = batch.frame.select(named).head(1).collect(engine="streaming")
    by_load = {"__updated_at": snapshot, "__dataflow_run_id": request.run_id}
    return _Versions(
        opened=opened,
        batch=batch,
        repeated=repeated_keys(batch, keys),
        values=key_values(batch.frame, keys),
        earliest=first,
        audit=known.row(0, named=True) if known.height else by_load,
        same=same,
        older=older,
        snapshot=snapshot,
    )


def _rules(
    job: Load, present: Sequence[str], schema: pl.Schema, snapshot: datetime | None
) -> Rules:
    flow = job.request.dataflow
    keys = flow.destination.merge_keys
    values = [name for name in schema if not name.startswith("__") and name not in keys]
    apart = _no_values(flow)
    return Rules(
        keys=keys,
        compared=tuple(name for name in values if name.casefold() not in apart),
        carried=tuple(name for name in values if name not in present),
        order=tuple(name for name in job.request.order_columns if name in present),
        load_time=valid_from_load(flow),
        snapshot=snapshot,
    )


def _no_values(flow: Dataflow) -> set[str]:
    """Return the columns that make no new version when they change: they follow from others.

    What the instant is made of would make a version of every row that was merely seen again.
    """
    written = effective_expression(flow)
    default = effective_default(flow)
    followed = [] if default is None else [default]
    columns = followed if written is None else columns_in(written)
    made = [p.column for p in flow.destination.partition_columns if p.expression]
    return {name.casefold() for name in (*(final_name(flow, one) for one in columns), *made)}


def _work(versions: _Versions, current: Round) -> Work:
    schema = current.layout.schema
    versions = replace(versions, batch=versions.batch.widened(schema))
    table = current.table
    if table is None:
        history, counts = _history(versions, schema, None, None)
        files = rewrite(versions.opened.job, current.layout, history, [])
        return Work(counts, files, rewritten=files)
    files = live_files(table, [*versions.keys, VALID_TO])
    old = _Old(versions, table, files, schema)
    history, counts = _history(versions, schema, old.near(), old.open())
    if counts.rows_inserted:
        versions.opened.aligned.check_complete()
    job = versions.opened.job
    if old.by_library:
        return scd2_library.work(job, table, history, schema, counts)
    before = rows_of(table, files)
    if not counts.changes:
        return Work(counts, before=before)
    touched = history.touched(job, files)
    features.refuse_paths(touched)
    added = rewrite(job, current.layout, history, touched)
    return Work(counts, added, touched, rewritten=added, before=before)


@dataclass(frozen=True)
class _Old:
    versions: _Versions
    table: DeltaTable
    files: Sequence[LiveFile]
    schema: pl.Schema

    @property
    def by_library(self) -> bool:
        return features.needs_library(self.table, removing=True)

    def near(self) -> pl.LazyFrame:
        """Return the stored rows among which those are that the batch concerns."""
        versions = self.versions
        carried = versions.rules(self.schema).carried
        earliest = None if carried else versions.earliest
        return self._scan(near_files(self.files, versions.values, earliest))

    def open(self) -> pl.LazyFrame:
        """Return the stored rows among which the open ones are."""
        return self._scan(open_files(self.files))

    def _scan(self, files: Sequence[LiveFile]) -> pl.LazyFrame:
        place = self.versions.opened.job.place
        if self.by_library:
            rows = stored.scan_live(place, self.table, self.files, self.schema)
            return rows.with_columns(pl.lit("").alias(FILE))
        return stored.scan(place, files, self.schema, path_column=FILE)


def _history(
    versions: _Versions,
    schema: pl.Schema,
    near: pl.LazyFrame | None,
    open_rows: pl.LazyFrame | None,
) -> tuple[History, Counts]:
    rules, batch, keys = versions.rules(schema), versions.batch, list(versions.keys)
    known = 0
    if near is not None and batch.rows > LARGE:
        rows = known_rows(near, batch, versions.repeated, rules)
        batch, known = batch.without(rows), len(rows)
    if near is None or not batch.rows:
        met = pl.DataFrame(schema={**schema, FILE: pl.String})
    else:
        met = concerned(near, batch, rules)
    several = pl.concat([met.select(keys), versions.repeated.select(keys)]).unique()
    active = batch.frame.join(several.lazy(), on=keys, how="semi", nulls_equal=True).collect()
    fresh = batch.without(active[ROW])
    parts = [chain(met, active, rules)]
    if open_rows is not None and rules.snapshot is not None:
        full = versions.batch
        parts.append(close_missing(open_rows, full, keys, rules.snapshot, versions.audit))
    history = History(
        versions.keys,
        pl.concat([part.going for part in parts]),
        pl.concat([part.coming for part in parts]),
        fresh.content,
    )
    return history, _counts(versions, parts, known, fresh.rows)


def _counts(versions: _Versions, parts: Sequence[Chained], known: int, fresh: int) -> Counts:
    return Counts(
        rows_inserted=fresh + sum(part.inserted for part in parts),
        rows_updated=sum(part.updated for part in parts),
        rows_deleted=sum(part.deleted for part in parts),
        rows_unchanged=versions.same + known + sum(part.unchanged for part in parts),
        rows_stale=versions.older + sum(part.stale for part in parts),
    )
