"""Whether a load would be refused for its columns or its table, found out before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.writers import keys
from datacoolie_core.writers.load import Load
from datacoolie_core.writers.ranges import range_of
from datacoolie_core.writers.rounds import open_load
from datacoolie_core.writers.staging import Staging
from datacoolie_core.writers.tables import Place, table_schema
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from datacoolie_core.writers.request import WriteRequest

_WHOLE = ("overwrite", "full_load")


@dataclass(frozen=True)
class Fit:
    """How a batch and its Delta table go together.

    Attributes:
        columns: Column → Delta type, as the table will have them.
        added: Columns that the table lacks and will get.
        absent: Columns of the table that the batch lacks: null in new rows.
    """

    columns: Mapping[str, str]
    added: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def check_fit(request: WriteRequest, frame: pl.LazyFrame) -> Fit:
    """Return how a batch fits into its Delta table; nothing is read of either but columns.

    Args:
        request: The load.
        frame: The batch, after all transforms.

    Raises:
        WriteError: The load would be refused: types, keys, partitions, features, a window that
            can't be compared.
    """
    load_type = request.dataflow.destination.load_type
    replaced = request.mode != "load"
    anew = request.mode == "replace_all" or (load_type in _WHOLE and not replaced)
    place = Place(request.uri, request.storage_options)
    job = Load(request, place, frame, _nothing, _unheard, clock.sleep, Staging(place))
    removing = replaced or load_type != "append"
    opened = open_load(job, removing=removing, anew=anew)
    source = frame.collect_schema()
    table = None if opened.seen is None else table_schema(opened.seen)
    if not anew:
        opened.aligned.check_complete()
    if load_type not in ("append", *_WHOLE):
        keys.check_columns(request.dataflow.destination.merge_keys, source, table)
    if request.window is not None:
        zone = request.dataflow.transform.configure.timestamp_timezone
        asked = request.window
        bounds = (asked.lower, asked.upper)
        range_of(asked.column, opened.aligned.schema, bounds, zone=zone, written_in=asked.zone)
    return Fit(
        columns={name: delta_name(kind) for name, kind in opened.aligned.schema.items()},
        added=() if table is None else tuple(name for name in source if name not in table),
        absent=() if table is None or anew else tuple(n for n in table if n not in source),
    )


def _nothing(_rows: int) -> None:
    """Commit nothing."""


def _unheard(_phase: str) -> None:
    """Tell nobody."""
