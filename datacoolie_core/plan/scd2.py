"""When a version of a row begins to be valid (load type scd2): what the metadata says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.scd2_checks import LOAD_TIME
from datacoolie_core.plan.columns import FILE_COLUMNS, SCD2_COLUMNS

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow

VALID_FROM, VALID_TO, IS_CURRENT = SCD2_COLUMNS
EFFECTIVE = "destination.configure.scd2_effective_column"
"""The metadata field that says it."""


def keeps_history(dataflow: Dataflow) -> bool:
    """Return whether the load type is scd2."""
    return dataflow.destination.load_type == "scd2"


def effective_expression(dataflow: Dataflow) -> str | None:
    """Return the SQL for the instant from which a version is valid; None without any.

    SQL for the time of the load is none: see :func:`valid_from_load`.
    """
    written = dataflow.destination.configure.scd2_effective_column
    return None if written is None or LOAD_TIME.fullmatch(written) else written


def effective_default(dataflow: Dataflow) -> str | None:
    """Return the source column that stands in where no SQL says it: the first watermark column."""
    if dataflow.destination.configure.scd2_effective_column is not None:
        return None
    return next(iter(dataflow.source.watermark_columns), None)


def valid_from_load(dataflow: Dataflow) -> bool:
    """Return whether versions are valid from the instant of the load that brings them."""
    return effective_expression(dataflow) is None and effective_default(dataflow) is None


def one_version_a_file(dataflow: Dataflow) -> bool:
    """Return whether each file gives one version of a key.

    That is so where all order columns tell files apart, not rows, and nothing says otherwise.
    """
    transform = dataflow.transform
    order = transform.latest_data_columns or dataflow.source.watermark_columns
    files = bool(order) and all(name.casefold() in FILE_COLUMNS for name in order)
    return files and keeps_history(dataflow) and not transform.deduplicate_columns


def closes_missing(dataflow: Dataflow) -> bool:
    """Return whether a key that a full read does not hold any more is closed."""
    return keeps_history(dataflow) and dataflow.destination.configure.datacoolie.scd2_close_missing
