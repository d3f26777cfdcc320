"""Which files of a table may hold one of a batch's keys, by statistics and partition values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.tables import LiveFile


@dataclass(frozen=True)
class KeyValues:
    """The values of one key column in a batch.

    Attributes:
        column: Its name.
        values: Sorted, distinct, without null.
        has_null: Whether a key is null.
    """

    column: str
    values: pl.Series
    has_null: bool

    def may_be_in(self, file: LiveFile) -> bool:
        """Return whether a file may hold one of the values."""
        if self.column in file.partition:
            value = file.partition[self.column]
            return self.has_null if value is None else self._between(value, value)
        if self.has_null and file.nulls.get(self.column, 1) > 0:
            return True
        low, high = file.lowest.get(self.column), file.highest.get(self.column)
        if low is None or high is None:
            # no bounds: unknown, unless every value is null
            return file.rows is None or file.nulls.get(self.column) != file.rows
        return self._between(low, high)

    def _between(self, low: object, high: object) -> bool:
        if self.values.is_empty():
            return False
        at = self.values.search_sorted(pl.Series([low], dtype=self.values.dtype), side="left")[0]
        return at < len(self.values) and bool(
            self.values[at : at + 1].le(pl.Series([high], dtype=self.values.dtype))[0]
        )


def key_values(batch: pl.LazyFrame, keys: Sequence[str]) -> list[KeyValues]:
    """Return the distinct values of each key column of a batch."""
    columns = pl.collect_all([batch.select(pl.col(key).unique().sort()) for key in keys])
    return [
        KeyValues(key, frame[key].drop_nulls(), frame[key].null_count() > 0)
        for key, frame in zip(keys, columns, strict=True)
    ]


def candidates(files: Sequence[LiveFile], values: Sequence[KeyValues]) -> list[LiveFile]:
    """Return the files that may hold one of the keys."""
    return [file for file in files if all(known.may_be_in(file) for known in values)]
