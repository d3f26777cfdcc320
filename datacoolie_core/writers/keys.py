"""The keys of a merge: they must be there, comparable, and once in the batch."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.spill import ROW, Batch
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 5


def check_columns(names: Sequence[str], source: pl.Schema, table: pl.Schema | None) -> None:
    """Raise if a key can't serve, before anything is read.

    Args:
        names: ``merge_keys``.
        source: The batch's columns.
        table: The table's columns, None if there is no table.

    Raises:
        WriteError: Names the key.
    """
    if not names:
        raise WriteError(
            "a merge needs keys",
            remedy="Set destination.merge_keys to the columns that identify a row.",
            code="missing_merge_keys",
        )
    for name in names:
        if name not in source:
            raise _missing(name, list(source), "the batch")
        if table is not None and name not in table:
            raise _missing(name, list(table), "the table")
        if isinstance(source[name], pl.List | pl.Array | pl.Struct):
            raise WriteError(
                f"merge key '{name}' is {delta_name(source[name])}, which has no plain equality",
                remedy="Use plain columns as keys, or a hash column over it.",
                code="unsupported_key_type",
            )


def _missing(name: str, columns: Sequence[str], where: str) -> WriteError:
    folded = {column.lower(): column for column in columns}
    near = get_close_matches(name.lower().replace(" ", "_"), list(folded), 1, 0.6)
    hint = f" Did you mean '{folded[near[0]]}'?" if near else ""
    return WriteError(
        f"merge key '{name}' is not a column of {where}, which has {_listed(columns)}",
        remedy="Keys are named as the columns are after name cleaning"
        f" (transform.configure.column_name_mode).{hint}",
        code="missing_column",
    )


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(f"'{column}'" for column in columns[:20])
    return shown if len(columns) <= 20 else f"{shown} and {len(columns) - 20} more"


def one_row_per_key(batch: Batch, keys: Sequence[str], order: Sequence[str]) -> Batch:
    """Return the batch with the newest row of each key.

    Rows of a key that are equally new: the later one in the batch wins.

    Args:
        batch: Consumed.
        keys: Null equals null.
        order: Say which row is newer, the first column first; null is the oldest.

    Raises:
        WriteError: A key is there more than once and there are no order columns; some are shown.
    """
    repeated = (
        batch.frame.group_by(list(keys))
        .agg(pl.len().alias("\0n"), pl.col(ROW).min())
        .filter(pl.col("\0n") > 1)
        .collect(engine="streaming")
        .sort(ROW)
    )
    if repeated.is_empty():
        return batch
    if not order:
        raise _repeated(repeated, keys)
    losers = (
        batch.frame.select(ROW, *dict.fromkeys([*keys, *order]))
        .join(repeated.lazy().select(keys), on=list(keys), how="semi", nulls_equal=True)
        .sort(
            [*(comparable(pl.col(name), batch.schema[name]) for name in order), pl.col(ROW)],
            descending=True,
            nulls_last=True,
        )
        .filter(pl.int_range(pl.len()).over(list(keys)) > 0)
        .select(ROW)
        .collect()
    )
    return batch.without(losers[ROW])


def comparable(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return an order column in which NaN is as old as null."""
    return value.fill_nan(None) if isinstance(dtype, pl.Float32 | pl.Float64) else value


def _repeated(repeated: pl.DataFrame, keys: Sequence[str]) -> WriteError:
    shown = "; ".join(
        f"{', '.join(f'{key}={row[key]!r}' for key in keys)} ({row[chr(0) + 'n']} rows)"
        for row in repeated.head(_SHOWN).iter_rows(named=True)
    )
    more = f" and {repeated.height - _SHOWN} more" if repeated.height > _SHOWN else ""
    return WriteError(
        f"{repeated.height} key{'s are' if repeated.height != 1 else ' is'} in the batch more than"
        f" once: {shown}{more}",
        remedy="Say which row is the newest (transform.latest_data_columns), or make"
        " merge_keys identify a row.",
        code="duplicate_keys",
    )
