"""Results of the core as what Dagster shows: event metadata and failures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import dagster as dg

from datacoolie_core import clock
from datacoolie_core.run.results import ROW_COUNTS
from datacoolie_core.state.record import Boundary
from datacoolie_dagster.column_lineage import column_lineage

if TYPE_CHECKING:
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.run.results import DataflowResult, Failure
    from datacoolie_core.state.record import StateRecord

WATERMARK = "datacoolie/watermark"
"""The metadata key whose value is the whole state record, but for the boundary's hashes."""

BAD_VALUES = "datacoolie/bad_values"
"""The metadata key of bad values: counts by column and reason, and some of the rows."""


def state_document(state: StateRecord) -> dict[str, Any]:
    """Return a state record as it is kept in event metadata: without row hashes.

    The hashes are in the destination's commit; without them, rows at the watermark are compared
    with the destination's own.
    """
    if state.boundary.hashes:
        state = state.evolve(boundary=Boundary(compare=True, ties_only=True))
    return state.to_json()


def state_metadata(state: StateRecord) -> dict[str, Any]:
    """Return the metadata entry that is a dataflow's state."""
    return {WATERMARK: dg.MetadataValue.json(state_document(state))}


def event_metadata(result: DataflowResult, reads: dg.AssetKey | None = None) -> dict[str, Any]:
    """Return the metadata of a materialization, or of the observation of a failure.

    Args:
        result: How the dataflow, or one chunk of it, ended.
        reads: The asset that its columns come from.
    """
    found: dict[str, Any] = {
        "datacoolie/status": result.status,
        "datacoolie/run_kind": result.run_kind,
        "datacoolie/attempts": len(result.attempts),
        **_state_metadata(result),
        **_row_metadata(result),
        **_text_metadata(result),
    }
    if result.duration_seconds is not None:
        found["datacoolie/duration_seconds"] = float(result.duration_seconds)
    if result.destination:
        found["dagster/uri"] = result.destination
    if result.schema:
        columns = [dg.TableColumn(name, kind) for name, kind in result.schema.items()]
        found["dagster/column_schema"] = dg.TableSchema(columns=columns)
        lineage = column_lineage(result.dataflow, reads, result.schema)
        if lineage is not None:
            found["dagster/column_lineage"] = lineage
    if WATERMARK in found:
        # long, and for machines: below the figures that people look for
        found[WATERMARK] = found.pop(WATERMARK)
    return found


def _state_metadata(result: DataflowResult) -> dict[str, Any]:
    state = result.state
    if state is None:
        return {}
    found: dict[str, Any] = {
        **state_metadata(state),
        "datacoolie/sequence": state.sequence,
        "datacoolie/boundary_rows": state.boundary.rows,
        "datacoolie/recovered": state.recovered,
    }
    if state.table_version is not None:
        found["datacoolie/table_version"] = state.table_version
    columns = [one for one in result.dataflow.source.watermark_columns if one in state.watermark]
    first = state.watermark[columns[0]] if columns else next(iter(state.watermark.values()), None)
    if first is not None:
        found |= _plotted(first)
    return found


def _plotted(value: Scalar) -> dict[str, Any]:
    """Return a watermark as one number or timestamp, and how far it lies behind the clock."""
    moment = instant(value)
    if moment is not None:
        return {
            "datacoolie/watermark_value": dg.MetadataValue.timestamp(moment),
            "datacoolie/lag_seconds": round((clock.utc_now() - moment).total_seconds(), 3),
        }
    if isinstance(value, Decimal):
        return {"datacoolie/watermark_value": float(value)}
    if isinstance(value, bool | bytes | time):
        return {"datacoolie/watermark_value": str(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {}
    return {"datacoolie/watermark_value": value}


def instant(value: object) -> datetime | None:
    """Return a date or timestamp as an instant; one without a zone is taken as UTC."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


def _row_metadata(result: DataflowResult) -> dict[str, Any]:
    rows = result.rows
    found: dict[str, Any] = {
        f"datacoolie/{name}": n for name in ROW_COUNTS if (n := rows.get(name)) is not None
    }
    if result.bad_values:
        found[BAD_VALUES] = dg.MetadataValue.json(
            {
                "columns": {name: dict(reasons) for name, reasons in result.bad_values.items()},
                "sample": [dict(row) for row in result.bad_sample],
            }
        )
    if result.table_rows is not None:
        found["dagster/row_count"] = result.table_rows
    return found


def _text_metadata(result: DataflowResult) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if result.reason:
        found["datacoolie/reason"] = result.reason
    if result.window is not None:
        lower, upper = result.window.lower, result.window.upper
        found["datacoolie/window"] = f"{lower} <= {result.window.column} < {upper}"
    if result.stale_upstream:
        found["datacoolie/stale_upstream"] = list(result.stale_upstream)
    if result.warnings:
        lines = "\n".join(f"- `{one.code}`: {one.message}" for one in result.warnings)
        found["datacoolie/warnings"] = dg.MetadataValue.md(lines)
    if result.error is not None:
        found["datacoolie/error"] = result.error.message
        found |= {f"datacoolie/error_{k}": v for k, v in _failure_parts(result.error).items()}
    return found


def _failure_parts(error: Failure) -> dict[str, str]:
    parts = {
        "phase": error.phase,
        "code": error.code,
        "place": error.place,
        "remedy": error.remedy,
    }
    return {name: text for name, text in parts.items() if text}


def data_version(result: DataflowResult) -> str | None:
    """Return what changes when, and only when, a load of ours changed the table."""
    state = result.state
    if state is None:
        return None
    return f"{state.table_id or result.dataflow.dataflow_id}:{state.sequence}"


def event_tags(result: DataflowResult, code_version: str | None) -> Mapping[str, str]:
    """Return the tags by which Dagster knows which code and which data an event stands for."""
    tags = {"dagster/code_version": code_version, "dagster/data_version": data_version(result)}
    return {name: text for name, text in tags.items() if text}


def failure_of(result: DataflowResult, error: Failure) -> dg.Failure:
    """Return a failed dataflow as the exception that ends its step.

    Args:
        result: How the dataflow ended.
        error: Why.
    """
    return dg.Failure(
        description=error.message,
        metadata={"dataflow": result.dataflow.label, **_failure_parts(error)},
        allow_retries=error.retryable,
    )
