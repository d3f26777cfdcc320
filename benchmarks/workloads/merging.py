"""What the three merge workloads share: 500,000 changed rows into ten million."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks import ours, rows

if TYPE_CHECKING:
    from pathlib import Path

TOTAL = int(os.environ.get("BENCH_ROWS", "10000000"))
CHANGES = TOTAL // 20


def copy_table(source: Path, folder: Path) -> None:
    """Copy a table by hard links: Delta's files never change."""
    shutil.copytree(source, folder / "table", copy_function=os.link)


def hand_written(folder: Path, changes: Path) -> None:
    """The plain script: one MERGE on the key."""
    from deltalake import DeltaTable

    batch = pl.read_parquet(changes / "changes.parquet")
    (
        DeltaTable(str(folder / "table"))
        .merge(batch.to_arrow(), "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def product(folder: Path, changes: Path, **fields: Any) -> None:
    """Ours."""
    document = ours.dataflow(
        "merge", changes, folder / "table", load_type="merge_upsert", merge_keys=["id"], **fields
    )
    ours.runner(document, folder)()


def check(folder: Path) -> list[Any]:
    """Return what both tables must agree on."""
    found = pl.scan_delta(str(folder / "table")).select(
        pl.len(),
        pl.col("id").n_unique().alias("keys"),
        (pl.col("status") == "changed").sum().alias("changed"),
        pl.col("qty").sum().alias("quantity"),
    )
    return list(found.collect(engine="streaming").row(0))


def make(*, recent: bool, partition_by: str | None = None) -> tuple[Path, Path]:
    """Return the table and the changes, made when they are first needed."""
    changes = rows.changed_orders(TOTAL, CHANGES, recent=recent)
    return rows.order_table(TOTAL, partition_by), changes
