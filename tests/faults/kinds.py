"""What the fault tests load: kinds of load, destinations, state stores and kinds of run.

To add a kind, add it to its table here: the matrix, the sample and the docs page follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

DAY0 = datetime(2025, 3, 1, tzinfo=UTC)
SCHEMA = {"id": pl.Int64, "ts": pl.Datetime("us", "UTC"), "g": pl.String, "v": pl.String}
FLAT = ("parquet", "csv", "jsonl", "json", "avro")


def day(number: int) -> datetime:
    return DAY0 + timedelta(days=number)


def rows(*values: tuple[int, int, str], **more: Any) -> pl.DataFrame:
    """Rows of ``(id, day, v)``; the group alternates with the id."""
    table = [(key, day(at), "ab"[key % 2], text) for key, at, text in values]
    return pl.DataFrame(table, schema=SCHEMA, orient="row").with_columns(**more)


def put(folder: Path, name: str, frame: pl.DataFrame) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / name)


Change = Callable[[Path], None]
"""Changes the folder of the source."""


def _first(folder: Path) -> None:
    put(folder, "a.parquet", rows(*((n, n, "v1") for n in range(1, 9)), (3, 3, "v1")))


def _more(folder: Path) -> None:
    """Changed keys, new keys, a null key, two equal rows, and a column that is new."""
    values = [(2, 9, "v2"), (5, 9, "v2"), *((n, n, "v2") for n in range(10, 14)), (12, 12, "v2")]
    frame = rows(*values, w=pl.lit("new"))
    nobody = rows((0, 13, "v2"), w=pl.lit("new")).with_columns(id=pl.lit(None, dtype=pl.Int64))
    put(folder, "b.parquet", pl.concat([frame, nobody]))


def _last(folder: Path) -> None:
    put(folder, "c.parquet", rows((1, 14, "v3"), (20, 14, "v3"), (21, 15, "v3"), w=pl.lit("last")))


def _ties(folder: Path) -> None:
    """Rows at the watermark itself: one that is known, a twin of it, and new ones."""
    put(folder, "b.parquet", rows((8, 8, "v1"), (30, 8, "tie"), (30, 8, "tie"), (31, 10, "v2")))


def _more_ties(folder: Path) -> None:
    put(folder, "c.parquet", rows((31, 10, "v2"), (32, 10, "tie"), (33, 11, "v3")))


def _late(folder: Path) -> None:
    """Rows below the watermark, within reach of the look-back."""
    put(folder, "b.parquet", rows((40, 7, "late"), (41, 8, "late"), (42, 10, "v2"), (43, 11, "v2")))


def _more_late(folder: Path) -> None:
    put(folder, "c.parquet", rows((44, 10, "late"), (45, 12, "v3")))


def _back_dated(folder: Path) -> None:
    """A file whose rows are all below the watermark, and one above."""
    put(folder, "a0.parquet", rows((46, 1, "late"), (47, 2, "late")))
    put(folder, "b.parquet", rows((48, 10, "v2"), (49, 11, "v2")))


def _more_back_dated(folder: Path) -> None:
    put(folder, "a1.parquet", rows((52, 1, "late"), (53, 12, "v3")))


def _only(*change: Change) -> Change:
    def emptied(folder: Path) -> None:
        for old in folder.glob("*"):
            old.unlink()
        for one in change:
            one(folder)

    return emptied


def _smaller(folder: Path) -> None:
    values = [(1, 1, "v1"), (2, 9, "v2"), (4, 4, "v1"), (50, 10, "v2"), (51, 10, "v2")]
    put(folder, "b.parquet", rows(*values, *((n, 7, "v2") for n in range(80, 84))))


def _third(folder: Path) -> None:
    put(folder, "d.parquet", rows((1, 1, "v1"), (50, 12, "v3"), (80, 10, "v2"), (60, 11, "v3")))


def _other(folder: Path) -> None:
    values = [(2, 11, "v3"), (4, 4, "v1"), (50, 10, "v2"), (60, 11, "v3")]
    put(folder, "c.parquet", rows(*values, *((n, 7, "v2") for n in range(80, 86))))


def _gone(folder: Path) -> None:
    """Among the changes, keys to delete: one that is stored and one that is not."""
    values = [(2, 9, "gone"), (5, 9, "v2"), (90, 9, "gone"), (10, 10, "v2"), (11, 11, "v2")]
    put(folder, "b.parquet", rows(*values, w=pl.lit("new")))


def _corrected(folder: Path) -> None:
    """Within the replayed window: rows corrected, taken away, and added."""
    frame = pl.concat([pl.read_parquet(one) for one in sorted(folder.glob("*"))], how="diagonal")
    inside = pl.col("ts").is_between(day(3), day(9), closed="left")
    kept = frame.filter(~inside | (pl.col("id") != 4))
    fixed = kept.with_columns(v=pl.when(inside).then(pl.lit("fixed")).otherwise("v"))
    late = rows((70, 5, "added"))
    _only()(folder)
    put(folder, "all.parquet", pl.concat([fixed, late], how="diagonal"))


@dataclass(frozen=True)
class Load:
    """A kind of load.

    Attributes:
        load_type: As in the metadata.
        changes: What is in the source at first, before the second and before the third load.
        destination: More of the destination.
        source: More of the source.
        watermark: Watermark columns.
        flat: Whether flat files can do it.
        from_load: Columns whose values are instants of loads: only their order is compared.
        replays: Whether a window can be replayed.
        grows: Whether the second batch has a column that the table lacks.
        replaces: Whether new rows are added or take the place of others, not merged by key.
    """

    load_type: str
    changes: tuple[Change, Change, Change] = (_first, _more, _last)
    destination: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    watermark: tuple[str, ...] = ("ts",)
    flat: bool = False
    from_load: tuple[str, ...] = ()
    replays: bool = True
    grows: bool = False
    replaces: bool = False


def _keyed(**configure: Any) -> dict[str, Any]:
    return {"merge_keys": ["id"], "configure": configure}


LOADS: dict[str, Load] = {
    "append": Load("append", flat=True, grows=True, replaces=True),
    "append, ties": Load("append", (_first, _ties, _more_ties), flat=True, replaces=True),
    "append, look-back": Load(
        "append",
        (_first, _late, _more_late),
        source={"configure": {"backward_days": 3}},
        flat=True,
        replaces=True,
    ),
    "append, file registry": Load(
        "append",
        (_first, _back_dated, _more_back_dated),
        source={"configure": {"datacoolie": {"file_registry": True}}},
        flat=True,
        replaces=True,
    ),
    "overwrite": Load(
        "overwrite",
        (_first, _only(_smaller), _only(_other)),
        watermark=(),
        flat=True,
        replaces=True,
    ),
    "merge_upsert": Load("merge_upsert", destination=_keyed(), grows=True),
    "merge_upsert, delete_when": Load(
        "merge_upsert",
        (_first, _gone, _last),
        destination=_keyed(datacoolie={"delete_when": "v = 'gone'"}),
        grows=True,
    ),
    "merge_overwrite": Load("merge_overwrite", destination=_keyed(), grows=True),
    "merge_overwrite, replace_by_watermark": Load(
        "merge_overwrite",
        (_first, _late, _more_late),
        destination=_keyed(replace_by_watermark=True),
        replaces=True,
        source={"configure": {"backward_days": 3}},
    ),
    "scd2": Load("scd2", destination=_keyed(scd2_effective_column="ts"), grows=True),
    "scd2, close_missing": Load(
        "scd2",
        (_only(_smaller), _only(_other), _only(_third)),
        destination=_keyed(datacoolie={"scd2_close_missing": True}),
        watermark=(),
        from_load=("__valid_from", "__valid_to"),
        replays=False,
    ),
}


@dataclass(frozen=True)
class Place:
    """A kind of destination.

    Attributes:
        form: The connection's format.
        partitioned: By column ``g``.
        features: Table properties, set after the first load.
    """

    form: str
    partitioned: bool = False
    features: Mapping[str, str] = field(default_factory=dict)

    @property
    def flat(self) -> bool:
        return self.form != "delta"


PLACES: dict[str, Place] = {
    "Delta": Place("delta"),
    "Delta, partitioned": Place("delta", partitioned=True),
    "Delta, change feed": Place("delta", features={"delta.enableChangeDataFeed": "true"}),
    "Parquet": Place("parquet"),
    "Parquet, partitioned": Place("parquet", partitioned=True),
    "CSV": Place("csv"),
    "JSON lines": Place("jsonl"),
    "JSON": Place("json"),
    "Avro": Place("avro"),
}

STORES = ("file", "sql")
"""Where the state is: a file beside the project, or a SQL database."""

RUNS = ("first load", "next load", "replay", "full refresh")
"""What is struck by the fault."""

REPAIRS = ("new run", "same run id")
"""How the struck run is repeated."""


def replay(start: int, end: int, days: int = 3, **more: Any) -> dict[str, Any]:
    """Return the step of a job that replays some days."""
    first, last = day(start).date().isoformat(), day(end).date().isoformat()
    return {"do": "replay", "start": first, "end": last, "days": days, "column": "ts", **more}


REPLAY = replay(3, 9)
FIRST_CHUNK = replay(3, 6)


def corrected(folder: Path) -> None:
    """Change the source within the replayed window."""
    _corrected(folder)


def pairs() -> list[tuple[str, str]]:
    """Return every kind of load with every destination that can do it."""
    return [
        (load, place)
        for load, kind in LOADS.items()
        for place, where in PLACES.items()
        if kind.flat or not where.flat
    ]


def document(load: Load, place: Place) -> dict[str, Any]:
    """Return the metadata of a project with one dataflow."""
    lake: dict[str, Any] = {"base_path": "lake"}
    if place.flat:
        lake["write_options"] = {"max_rows_per_file": 3}
    destination = {
        "connection_name": "lake",
        "table": "o",
        "load_type": load.load_type,
        **load.destination,
    }
    if place.partitioned:
        destination["partition_columns"] = ["g"]
    source = {"connection_name": "in", "table": "t", **load.source}
    if load.watermark:
        source["watermark_columns"] = list(load.watermark)
    return {
        "connections": [
            {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
            {"name": "lake", "format": place.form, "configure": lake},
        ],
        "dataflows": [
            {"name": "f", "dataflow_id": "f", "source": source, "destination": destination}
        ],
    }
