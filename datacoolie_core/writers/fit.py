"""Whether a load would be refused for its columns or its table, found out before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core import clock
from datacoolie_core.writers import keys
from datacoolie_core.writers.load import Load
from datacoolie_core.writers.ranges import range_of
from datacoolie_core.writers.region import asked_region
from datacoolie_core.writers.rounds import open_load
from datacoolie_core.writers.staging import Staging
from datacoolie_core.writers.tables import Place, table_schema
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.writers.request import WriteRequest

_WHOLE = ("overwrite", "full_load")


@dataclass(frozen=True)
class Fit:
    """How a batch and its destination go together.

    Attributes:
        columns: Column → type as Delta names it, as the destination will have them.
        added: Columns that the destination lacks and will get.
        absent: Columns of the destination that the batch lacks: null in new rows.
    """

    columns: Mapping[str, str]
    added: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def check_fit(request: WriteRequest, frame: pl.LazyFrame) -> Fit:
    """Return how a batch fits into its destination; nothing is read of either but columns.

    Args:
        request: The load.
        frame: The batch, after all transforms.

    Raises:
        WriteError: The load would be refused: types, keys, partitions, features, a window that
            can't be compared.
    """
    destination = request.dataflow.destination
    replaced = request.mode != "load"
    whole = destination.load_type in _WHOLE
    delta = destination.connection.format == "delta"
    own = delta and destination.configure.datacoolie.replay_filter is not None
    anew = not own and (request.mode == "replace_all" or (whole and not replaced))
    schema, table = (_delta if delta else _flat)(request, frame, anew=anew)
    source = frame.collect_schema()
    if not (whole or destination.load_type == "append"):
        keys.check_columns(destination.merge_keys, source, table)
    if own or request.reread is not None:
        asked_region(request, schema)
    elif request.window is not None:
        zone = request.dataflow.transform.configure.timestamp_timezone
        asked = request.window
        bounds = (asked.lower, asked.upper)
        range_of(asked.column, schema, bounds, zone=zone, written_in=asked.zone)
    known = table or pl.Schema()
    return Fit(
        columns={name: delta_name(kind) for name, kind in schema.items()},
        added=tuple(name for name in source if name not in known) if known else (),
        absent=() if anew else tuple(name for name in known if name not in source),
    )


def _delta(
    request: WriteRequest, frame: pl.LazyFrame, *, anew: bool
) -> tuple[pl.Schema, pl.Schema | None]:
    """Return the table's columns after the load, and before it."""
    place = Place(request.uri, request.storage_options)
    job = Load(request, place, frame, _nothing, _unheard, clock.sleep, Staging(place))
    removing = request.mode != "load" or request.dataflow.destination.load_type != "append"
    opened = open_load(job, removing=removing, anew=anew)
    if not anew:
        opened.aligned.check_complete()
    return opened.aligned.schema, None if opened.seen is None else table_schema(opened.seen)


def _flat(
    request: WriteRequest, frame: pl.LazyFrame, *, anew: bool
) -> tuple[pl.Schema, pl.Schema | None]:
    from datacoolie_core.writers.flat import place as flat_place, staging as flat_staging
    from datacoolie_core.writers.flat.load import FlatLoad
    from datacoolie_core.writers.flat.writer import FlatFiles

    dataflow = request.dataflow
    writer = FlatFiles.of(dataflow.destination)
    place = flat_place.Place(
        request.uri, writer.form, dataflow.dataflow_id, request.storage_options, writer.dated
    )
    staging = flat_staging.Staging(place.uri)
    job = FlatLoad(request, place, frame, _nothing, _unheard, clock.sleep, staging)
    look = place.look()
    schema = job.shaped(None if anew else look).schema
    job.layout(schema, None if anew else look)
    return schema, look.schema or None


def _nothing(_rows: int) -> None:
    """Commit nothing."""


def _unheard(_phase: str) -> None:
    """Tell nobody."""
