"""The watermark from the destination's own rows, when its log no longer says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import WatermarkError
from datacoolie_core.plan.columns import destination_column
from datacoolie_core.state.record import Boundary
from datacoolie_core.writers.destination import writer_for

if TYPE_CHECKING:
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.state.reconcile import Baseline


def with_destination_maximum(baseline: Baseline, prepared: Prepared) -> Baseline:
    """Return the baseline with the maxima of the destination's watermark columns.

    Raises:
        WatermarkError: When a watermark column does not survive unchanged in the destination.
    """
    dataflow = prepared.dataflow
    watermark: dict[str, Scalar] = {}
    for column in dataflow.source.watermark_columns:
        target = destination_column(dataflow, column)
        if target is None:
            raise WatermarkError(
                f"the table's log was cleaned, and column '{column}' is not in the destination: "
                "nothing says how far the last load came",
                dataflow=dataflow.dataflow_id,
                place=prepared.uri,
                remedy="Say it with `datacoolie watermark set`, or rebuild the table with"
                " --full-refresh.",
                code="log_cleaned",
            )
        value = writer_for(dataflow.destination).column_maximum(
            prepared.uri, target, prepared.storage_options
        )
        if value is not None:
            watermark[column] = value
    boundary = Boundary(compare=True, ties_only=True) if watermark else Boundary()
    state = baseline.state.evolve(watermark=watermark, boundary=boundary)
    return type(baseline)(
        state=state,
        sequence=baseline.sequence,
        expected_sequence=baseline.expected_sequence,
        recovered=True,
        warnings=baseline.warnings,
    )
