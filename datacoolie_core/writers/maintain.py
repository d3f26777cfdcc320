"""The maintenance of a Delta table: its operations, in the order in which they are of use.

Compaction comes first. Vacuum comes before the checkpoint, which forgets what was removed long
ago, and the log is cleaned last, up to the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.maintain_layout import compact, zorder
from datacoolie_core.writers.maintain_log import checkpoint, log_cleanup
from datacoolie_core.writers.maintain_vacuum import vacuum
from datacoolie_core.writers.tables import open_table

if TYPE_CHECKING:
    from datacoolie_core.writers.maintain_request import (
        MaintainOptions,
        Operation,
        OperationName,
        Upkeep,
    )
    from datacoolie_core.writers.tables import Place

Work = Callable[["Upkeep"], "Operation"]


def operations(
    options: MaintainOptions, *, do_compact: bool = True, do_cleanup: bool = True
) -> list[tuple[OperationName, Work]]:
    """Return the operations by name, in order.

    Args:
        options: A z-order takes the place of the compaction.
        do_compact: Whether files are written anew.
        do_cleanup: Whether files and commits are removed.
    """
    chosen: list[tuple[OperationName, Work]] = []
    if do_compact:
        chosen.append(("zorder", zorder) if options.zorder_columns else ("compact", compact))
    if do_cleanup:
        chosen.append(("vacuum", vacuum))
        chosen.append(("checkpoint", checkpoint))
        chosen.append(("log_cleanup", log_cleanup))
    return [(name, _explained(work)) for name, work in chosen]


def _explained(work: Work) -> Work:
    """Turn what the library raises into what people can read."""

    def run(upkeep: Upkeep) -> Operation:
        from deltalake.exceptions import DeltaError

        try:
            return work(upkeep)
        except (OSError, DeltaError) as error:
            told = next((line for line in str(error).splitlines() if line.strip()), repr(error))
            raise WriteError(
                f"maintenance failed: {told}",
                place=upkeep.place.uri,
                remedy="No row was changed. Check that the storage answers, and run it again.",
                code="maintenance_failed",
                retryable=True,
            ) from error

    return run


def is_there(place: Place) -> bool:
    """Return whether there is a table.

    Raises:
        WriteError: The place can't be reached or read.
    """
    return open_table(place) is not None
