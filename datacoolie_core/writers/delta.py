"""The Delta writer: one mechanism, one commit a load.

Rows of the files that a load touches and the batch go in, new rows come out; new files are added
and old ones removed in one commit, which carries the dataflow's transaction and its state. A load
type is the frame in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.errors import WriteError
from datacoolie_core.writers import append, merge_overwrite, merge_upsert, overwrite, scd2, window
from datacoolie_core.writers.commit import Sleep, staging_for
from datacoolie_core.writers.counting import (
    column_maximum,
    count_windows,
    no_rows,
    read_schema,
    table_row_count,
)
from datacoolie_core.writers.history import inspect
from datacoolie_core.writers.load import Load
from datacoolie_core.writers.tables import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from datacoolie_core.writers.request import Finish, OnPhase, WriteRequest, WriteResult

__all__ = [
    "column_maximum",
    "count_windows",
    "inspect",
    "no_rows",
    "read_schema",
    "table_row_count",
    "write",
]

_LOADS: dict[str, Callable[[Load], WriteResult]] = {
    "append": append.load,
    "overwrite": overwrite.load,
    "full_load": overwrite.load,
    "merge_upsert": merge_upsert.load,
    "merge_overwrite": merge_overwrite.load,
    "scd2": scd2.load,
}


def write(
    request: WriteRequest,
    frame: pl.LazyFrame,
    finish: Finish,
    on_phase: OnPhase,
    *,
    sleep: Sleep = clock.sleep,
) -> WriteResult:
    """Load a batch into a Delta table by one commit.

    The frame is consumed once, whatever happens afterwards; on a conflict only the table is read
    again. Files that no commit names are deleted before this returns or raises.

    Args:
        request: What to write, where, and as which transaction.
        frame: The batch, after all transforms.
        finish: Called once with the number of rows, after the frame has been consumed; gives what
            is to be committed, or None to leave the table as it is.
        on_phase: Told of ``staging``, ``staged``, ``committing`` and ``committed``.
        sleep: Waits for a number of seconds between tries.

    Returns:
        What was done; ``committed`` is False if nothing was.

    Raises:
        SupersededError: The dataflow has committed since the run looked at the table.
        WriteError: Nothing was changed, unless the code is ``commit_unknown``.
    """
    load = _load_for(request)
    place = Place(request.uri, request.storage_options)
    with staging_for(place) as staging:
        return load(Load(request, place, frame, finish, on_phase, sleep, staging))


def _load_for(request: WriteRequest) -> Callable[[Load], WriteResult]:
    load_type = request.dataflow.destination.load_type
    if load_type in ("append", "overwrite", "full_load"):
        return _plain_load_for(request)
    if request.mode == "replace_window" and load_type != "merge_overwrite":
        raise WriteError(
            "a merge replays its windows as merges, it does not replace them",
            code="unsupported_mode",
        )
    return _LOADS[load_type]


def _plain_load_for(request: WriteRequest) -> Callable[[Load], WriteResult]:
    destination = request.dataflow.destination
    whole = request.mode == "replace_all" or destination.load_type != "append"
    if request.mode == "replace_window":
        return window.load
    if whole and destination.configure.datacoolie.replay_filter is not None:
        # the other rows of the table are not this dataflow's
        return window.load
    return overwrite.load if whole else append.load
