"""Rows of an order table: fifteen columns of every common type, about 130 bytes a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parent / "data"
STATUSES = ["new", "paid", "packed", "sent", "returned", "closed"]
FILE_ROWS = 1_000_000
DAYS = 30


def orders(ids: np.ndarray, seed: int, total: int) -> pl.DataFrame:
    """Return one order for each id.

    Args:
        ids: The keys, any order.
        seed: Of everything that is not the key or its instant.
        total: Ids from 0 to this spread evenly over thirty days.
    """
    random = np.random.default_rng(seed)
    count = len(ids)
    microseconds = DAYS * 86_400_000_000
    created = np.datetime64("2025-01-01T00:00:00", "us") + (
        ids.astype(np.float64) / total * microseconds
    ).astype("timedelta64[us]")
    frame = pl.DataFrame(
        {
            "id": ids.astype(np.int64),
            "customer_id": random.integers(0, 1_000_000, count).astype(np.int32),
            "product_id": random.integers(0, 50_000, count).astype(np.int32),
            "qty": random.integers(1, 100, count).astype(np.int32),
            "price": np.round(random.random(count) * 1000, 2),
            "discount": np.round(random.random(count), 3),
            "status": np.array(STATUSES)[random.integers(0, len(STATUSES), count)],
            "created_at": created,
            "updated_at": created
            + random.integers(0, 86_400_000_000, count).astype("timedelta64[us]"),
        }
    )
    return frame.with_columns(
        pl.col("created_at", "updated_at").dt.replace_time_zone("UTC"),
        amount=(pl.col("price") * pl.col("qty")).cast(pl.Decimal(18, 2)),
        email=pl.format("user{}@example{}.com", "customer_id", pl.col("product_id") % 97),
        comment=pl.format("order {} of customer {} is {}", "id", "customer_id", "status"),
        order_date=pl.col("created_at").dt.date(),
    )


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the data folder, made once and kept for later runs."""
    folder = DATA / name
    if not (folder / "_DONE").exists():
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)
        (folder / "_DONE").touch()
    return folder


def order_files(total: int) -> Path:
    """Return a folder of parquet files that hold so many orders, a million a file."""

    def make(folder: Path) -> None:
        (folder / "rows").mkdir(exist_ok=True)
        for start in range(0, total, FILE_ROWS):
            ids = np.arange(start, min(start + FILE_ROWS, total))
            orders(ids, 1000 + start, total).write_parquet(
                folder / "rows" / f"part-{start // FILE_ROWS:04d}.parquet", compression="snappy"
            )

    return kept(f"orders_{total}", make) / "rows"


def changed_orders(total: int, count: int, *, recent: bool) -> Path:
    """Return a folder with changed rows: four fifths updates, the rest new keys, shuffled.

    Args:
        total: Rows of the table.
        count: Rows of the batch.
        recent: The updates hit the newest tenth of the keys, else keys everywhere.
    """

    def make(folder: Path) -> None:
        random = np.random.default_rng(7)
        lowest = total * 9 // 10 if recent else 0
        updates = lowest + random.choice(total - lowest, count * 4 // 5, replace=False)
        ids = np.concatenate([updates, np.arange(total, total + count // 5)])
        (folder / "rows").mkdir(exist_ok=True)
        frame = orders(ids, 99, total).with_columns(status=pl.lit("changed"))
        frame.sample(fraction=1.0, shuffle=True, seed=3).write_parquet(
            folder / "rows" / "changes.parquet"
        )

    return kept(f"changes_{'recent' if recent else 'random'}_{total}_{count}", make) / "rows"


def order_table(total: int, partition_by: str | None = None) -> Path:
    """Return a Delta table of so many orders, half a million a file."""

    def make(folder: Path) -> None:
        from deltalake import write_deltalake

        for file in sorted(order_files(total).glob("*.parquet")):
            frame = pl.read_parquet(file)
            for half in (frame[: FILE_ROWS // 2], frame[FILE_ROWS // 2 :]):
                write_deltalake(
                    str(folder / "table"),
                    half.to_arrow(),
                    mode="append",
                    partition_by=[partition_by] if partition_by else None,
                )

    return kept(f"table_{partition_by or 'flat'}_{total}", make) / "table"


def order_csv(total: int) -> Path:
    """Return a folder with one CSV file of so many orders, some 230 bytes a row."""

    def make(folder: Path) -> None:
        (folder / "rows").mkdir(exist_ok=True)
        padded = pl.scan_parquet(order_files(total) / "*.parquet").with_columns(
            note=pl.format(
                "{}-{}-{}-left at the door, the neighbour knows about it-{}",
                pl.col("product_id") * 7919 % 1000003,
                "status",
                "customer_id",
                pl.col("id") * 31 % 999983,
            )
        )
        padded.sink_csv(folder / "rows" / "orders.csv")

    return kept(f"csv_{total}", make) / "rows"
