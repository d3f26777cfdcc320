"""What went wrong, as results, events and logs carry it: whole, and without a secret."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

from datacoolie_core.errors import DataCoolieError, LoadError
from datacoolie_core.run.results import Failure

if TYPE_CHECKING:
    from datacoolie_core.errors import Phase
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.context import RunContext

_LOGGER = logging.getLogger(__name__)


def failure_of(error: DataCoolieError, dataflow: Dataflow, context: RunContext) -> Failure:
    """Return an error as a result carries it, the dataflow named by its label."""
    phase: Phase = getattr(error, "phase", "prepare")
    if hasattr(error, "dataflow"):
        error.dataflow = dataflow.label  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    clean = context.redaction.clean
    return Failure(
        phase,
        error.code,
        clean(str(error)),
        None if error.place is None else clean(error.place),
        None if error.remedy is None else clean(error.remedy),
        retryable=can_retry(error),
        trace=_trace(error, context),
    )


def internal_failure(
    error: Exception, dataflow: Dataflow, context: RunContext, phase: Phase = "prepare"
) -> Failure:
    """Return a fault of ours as a result carries it, and log its traceback."""
    clean = context.redaction.clean
    trace = _trace(error, context)
    _LOGGER.error("dataflow %s: %s", dataflow.label, trace)
    text = (
        f"dataflow '{dataflow.label}': unexpected {type(error).__name__}: {error}. "
        "This is a fault of the product: please report it with the traceback of the log."
    )
    return Failure(phase, "internal_error", clean(text), trace=trace)


def can_retry(error: DataCoolieError) -> bool:
    """Say whether the same load can succeed later without a change."""
    return isinstance(error, LoadError) and error.retryable


def _trace(error: Exception, context: RunContext) -> str:
    return context.redaction.clean("".join(traceback.format_exception(error)))
