"""Reading and saving state through any store, whatever it raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import DataCoolieError, WatermarkError

if TYPE_CHECKING:
    from datacoolie_core.state.record import StateRecord
    from datacoolie_core.state.stores import StateStore


def load_state(store: StateStore, dataflow_id: str) -> StateRecord | None:
    """Return a dataflow's record, None if it has none.

    Raises:
        WatermarkError: The store can't be read; a failure of its own may heal.
    """
    try:
        return store.load(dataflow_id)
    except DataCoolieError:
        raise
    except Exception as error:
        raise WatermarkError(
            f"the state can't be read ({type(error).__name__}: {error})",
            dataflow=dataflow_id,
            remedy="Nothing was read or written. Check that the state's store answers.",
            code="state_not_read",
            retryable=True,
        ) from error


def save_state(store: StateStore, record: StateRecord) -> None:
    """Save a record after its rows are durable.

    Raises:
        WatermarkError: The store did not take it; a later attempt finds the rows and saves it.
    """
    try:
        store.save(record)
    except DataCoolieError:
        raise
    except Exception as error:
        raise WatermarkError(
            f"the state can't be saved ({type(error).__name__}: {error})",
            dataflow=record.dataflow_id,
            remedy="The rows are safe: the next run takes its state from the table's own log. "
            "Check that the state's store answers.",
            code="state_not_saved",
            retryable=True,
        ) from error
