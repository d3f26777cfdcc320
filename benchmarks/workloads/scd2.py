"""Two hundred thousand changes into five million rows of history: four million keys."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks import ours, rows
from benchmarks.measure import OURS, Promise
from benchmarks.workloads.merging import copy_table

if TYPE_CHECKING:
    from pathlib import Path

HISTORY = int(os.environ.get("BENCH_ROWS", "10000000")) // 2
KEYS = HISTORY * 4 // 5
CHANGES = HISTORY // 25
FILES = 10
FIRST, SECOND, NOW = (datetime(2025, m, 1, tzinfo=UTC) for m in (1, 9, 12))
INSTANT = pl.Datetime("us", "UTC")
PROMISE = Promise("one MERGE", wall=0.6)


def _versions(ids: np.ndarray) -> pl.DataFrame:
    """Return the history of some keys: every fourth has a closed version too."""
    frame = rows.orders(ids, int(ids[0]), KEYS).drop("order_date", "comment")
    again = pl.col("id") % 4 == 0
    closed = frame.filter(again).with_columns(
        __valid_from=pl.lit(FIRST).cast(INSTANT),
        __valid_to=pl.lit(SECOND).cast(INSTANT),
        __is_current=pl.lit(value=False),
    )
    current = frame.with_columns(
        __valid_from=pl.when(again).then(SECOND).otherwise(FIRST).cast(INSTANT),
        __valid_to=pl.lit(None, dtype=INSTANT),
        __is_current=pl.lit(value=True),
        status=pl.lit("current"),
    )
    return pl.concat([closed, current])


def _table() -> Path:
    def make(folder: Path) -> None:
        from deltalake import write_deltalake

        for part in np.array_split(np.arange(KEYS), FILES):
            write_deltalake(str(folder / "table"), _versions(part).to_arrow(), mode="append")

    return rows.kept(f"history_{HISTORY}", make) / "table"


def _changes() -> Path:
    def make(folder: Path) -> None:
        random = np.random.default_rng(5)
        changed = random.choice(KEYS, CHANGES * 3 // 4, replace=False)
        ids = np.concatenate([changed, np.arange(KEYS, KEYS + CHANGES // 4)])
        (folder / "rows").mkdir(exist_ok=True)
        rows.orders(ids, 77, KEYS).drop("order_date", "comment").with_columns(
            status=pl.lit("changed"), updated_at=pl.lit(NOW).cast(INSTANT)
        ).write_parquet(folder / "rows" / "changes.parquet")

    return rows.kept(f"history_changes_{HISTORY}", make) / "rows"


def generate() -> None:
    """Make the history and the changes."""
    _table()
    _changes()


def prepare(folder: Path) -> None:
    """Put a copy of the history in place."""
    copy_table(_table(), folder)


def one_merge(folder: Path) -> None:
    """The plain script, atomic: each change once to close and once, with a null key, to insert."""
    from deltalake import DeltaTable

    changes = pl.read_parquet(_changes() / "changes.parquet").with_columns(
        __valid_from=pl.col("updated_at"),
        __valid_to=pl.lit(None, dtype=INSTANT),
        __is_current=pl.lit(value=True),
    )
    key = pl.col("id")
    batch = pl.concat(
        [
            changes.with_columns(match=key),
            changes.with_columns(match=pl.lit(None, dtype=pl.Int64)),
        ]
    )
    (
        DeltaTable(str(folder / "table"))
        .merge(
            batch.to_arrow(),
            "t.id = s.match AND t.__is_current = true",
            source_alias="s",
            target_alias="t",
        )
        .when_matched_update(
            {"__valid_to": "s.__valid_from", "__is_current": "false"},
            predicate="s.__valid_from > t.__valid_from",
        )
        .when_not_matched_insert(
            {column: f"s.{column}" for column in changes.columns}, predicate="s.match IS NULL"
        )
        .execute()
    )


def product(folder: Path) -> None:
    """Ours."""
    document = ours.dataflow(
        "history",
        _changes(),
        folder / "table",
        load_type="scd2",
        merge_keys=["id"],
        configure={"scd2_effective_column": "updated_at"},
    )
    ours.runner(document, folder)()


def check(folder: Path) -> list[Any]:
    """Return what both tables must agree on."""
    found = pl.scan_delta(str(folder / "table")).select(
        pl.len(),
        pl.col("__is_current").sum().alias("current"),
        (pl.col("status") == "changed").sum().alias("changed"),
        pl.col("qty").sum().alias("quantity"),
        (pl.col("__valid_to") == NOW).sum().alias("closed"),
    )
    return list(found.collect(engine="streaming").row(0))


VARIANTS = {"one MERGE": one_merge, OURS: product}
