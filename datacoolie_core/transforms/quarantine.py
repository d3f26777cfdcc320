"""Where bad values go: counted by column and reason, and the rows that may not go on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core.engines.names import match
from datacoolie_core.transforms.source_rows import (
    HIDDEN,
    ROW,
    ROW_HASH,
    SOURCE_FILE,
    source_rows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow

BAD_SCHEMA: dict[str, pl.DataType] = {
    "column": pl.String(),
    "value": pl.String(),
    "reason": pl.String(),
    "errors": pl.List(
        pl.Struct({"column": pl.String(), "value": pl.String(), "reason": pl.String()})
    ),
    ROW: pl.String(),
    ROW_HASH: pl.String(),
    SOURCE_FILE: pl.String(),
}
"""The columns of quarantined rows that the transforms know."""

_HELD = 16 * 1024 * 1024
"""Bytes of bad rows that are held in memory."""
SAMPLED = 10
"""Rows in a sample."""
_SHOWN = ("column", "value", "reason", SOURCE_FILE, ROW)
_AT = "\0at"


@dataclass(frozen=True)
class Lost:
    """Values of one column that did not get their type.

    Attributes:
        column: The column.
        rows: Places in the frame.
        values: As text.
        reasons: Why, one for each.
    """

    column: str
    rows: pl.Series
    values: pl.Series
    reasons: pl.Series


@dataclass
class BadRows:
    """What one attempt has found; called from several threads. Close it afterwards.

    Attributes:
        policy: What is done with bad values.
        masked: Columns whose values may not show.
        rows: Rows that were taken out.
        values: Bad values, by column and reason.
        examples: A value for each column, as it may be shown.
        sample: Some of the rows that were taken out.
    """

    policy: Literal["null", "quarantine"]
    masked: tuple[str, ...] = ()
    rows: int = 0
    values: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    examples: dict[str, str] = field(default_factory=dict[str, str])
    sample: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    _frames: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    _files: list[Path] = field(default_factory=list[Path])
    _folder: TemporaryDirectory[str] | None = None
    _lock: Lock = field(default_factory=Lock)

    def see(self, frame: pl.DataFrame, lost: Sequence[Lost]) -> None:
        """Take in the bad values of a frame, and for a quarantine their rows.

        Args:
            frame: The rows as they were read.
            lost: Its bad values.
        """
        with self._lock:
            for one in lost:
                self._count(one)
            if self.policy == "quarantine":
                self._put(self._rows_of(frame, lost))

    @property
    def bad_values(self) -> dict[str, dict[str, int]]:
        """Column → reason → how many values."""
        found: dict[str, dict[str, int]] = {}
        for (column, reason), count in self.values.items():
            found.setdefault(column, {})[reason] = count
        return found

    @property
    def frame(self) -> pl.LazyFrame:
        """The rows that were taken out; ask once all have been seen."""
        parts = [pl.scan_parquet(path, glob=False) for path in self._files]
        parts += [one.lazy() for one in self._frames]
        return pl.concat(parts) if parts else pl.LazyFrame(schema=BAD_SCHEMA)

    def close(self) -> None:
        """Delete temporary files."""
        if self._folder is not None:
            self._folder.cleanup()

    def _count(self, lost: Lost) -> None:
        counted = lost.reasons.value_counts()
        for reason, count in counted.iter_rows():
            self.values[lost.column, reason] += count
        self.examples.setdefault(lost.column, self._shown(lost)[0] or "")

    def _shown(self, lost: Lost) -> pl.Series:
        if match(lost.column, self.masked) is None:
            return lost.values
        return pl.Series([HIDDEN], dtype=pl.String).new_from_index(0, len(lost.values))

    def _rows_of(self, frame: pl.DataFrame, lost: Sequence[Lost]) -> pl.DataFrame:
        errors = pl.concat(
            pl.DataFrame(
                {
                    _AT: one.rows,
                    "column": pl.Series([one.column]).new_from_index(0, len(one.rows)),
                    "value": self._shown(one),
                    "reason": one.reasons,
                }
            )
            for one in lost
        )
        told = (
            errors.group_by(_AT, maintain_order=True)
            .agg(
                pl.col("column", "value", "reason").first(),
                pl.struct("column", "value", "reason").alias("errors"),
            )
            .sort(_AT)
        )
        rows = source_rows(frame[told[_AT]], self.masked)
        return pl.concat([told.drop(_AT), rows], how="horizontal").select(list(BAD_SCHEMA))

    def _put(self, rows: pl.DataFrame) -> None:
        self.rows += rows.height
        shown = rows.head(SAMPLED - len(self.sample)).select(_SHOWN)
        self.sample += shown.rows(named=True)
        self._frames.append(rows)
        if sum(one.estimated_size() for one in self._frames) <= _HELD:
            return
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="datacoolie-")
        path = Path(self._folder.name) / f"{len(self._files)}.parquet"
        pl.concat(self._frames).write_parquet(path, compression="lz4")
        self._files.append(path)
        self._frames.clear()


def bad_rows_of(dataflow: Dataflow) -> BadRows | None:
    """Return where a dataflow's bad values go, None where the first one ends the load."""
    policy = dataflow.options.on_cast_error
    if policy == "fail":
        return None
    rules = dataflow.transform.masking_rules
    return BadRows(policy, tuple(column for rule in rules for column in rule.columns))


def told(values: Mapping[str, Mapping[str, int]], *, most: int = 5) -> str:
    """Return bad values for a message: columns with counts and reasons.

    >>> told({"amount": {"no date": 2}, "day": {"no int32": 1}})
    "'amount': 2 (no date), 'day': 1 (no int32)"
    """
    lines = [
        f"'{column}': {sum(reasons.values())} ({'; '.join(list(reasons)[:most])})"
        for column, reasons in values.items()
    ]
    more = f" and {len(lines) - most} more columns" if len(lines) > most else ""
    return ", ".join(lines[:most]) + more
