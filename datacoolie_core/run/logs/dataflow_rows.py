"""The record of one dataflow's run: its metadata, what was read and written, its attempts.

Columns and names are those that the DataCoolie framework logs (docs/reference/logs.md).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from datacoolie_core.metadata.identity import table_path
from datacoolie_core.redaction import hidden
from datacoolie_core.run.results import ROW_COUNTS
from datacoolie_core.state.values import encode_watermark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from datacoolie_core.metadata.models import Connection, Dataflow
    from datacoolie_core.plan.windows import Watermark
    from datacoolie_core.run.maintain_results import TargetResult
    from datacoolie_core.run.results import Attempt, DataflowResult

_FILES = ("files_added", "files_removed", "bytes_added", "bytes_removed")
_ROWS = ROW_COUNTS[:5]


def dataflow_row(result: DataflowResult, run_id: str) -> dict[str, Any]:
    """Return the columns of a dataflow's run, after those of the job.

    Args:
        result: How it ended; for a replay all of its chunks.
        run_id: What its rows carry as ``__dataflow_run_id``.
    """
    flow = result.dataflow
    selected = result.selected
    return {
        **_metadata(flow),
        "dataflow_run_id": run_id,
        "operation_type": "replay" if result.run_kind == "replay" else "etl",
        **_times(result),
        "status": result.status,
        "retry_attempts": _retries(result),
        "read_request": None if selected is None else selected.read_request(),
        "metrics": _metrics(result),
        "message": result.error.message if result.error else result.reason,
        "attempts": _attempts(result),
    }


def maintenance_row(result: TargetResult, run_id: str) -> dict[str, Any]:
    """Return the columns of a table's maintenance, after those of the job."""
    metrics = dict.fromkeys(_ROWS) | {
        name: result.metric(name) for name in (*_FILES, "bytes_saved")
    }
    return {
        **_metadata(result.dataflow),
        "dataflow_run_id": run_id,
        "operation_type": "maintenance",
        **_times(result),
        "status": result.status,
        "retry_attempts": 0,
        "read_request": None,
        "metrics": metrics,
        "message": result.error.message if result.error else result.reason,
        "attempts": [one.to_json() for one in result.operations],
    }


def _times(result: DataflowResult | TargetResult) -> dict[str, Any]:
    start, seconds = result.started_at, result.duration_seconds
    end = None if start is None or seconds is None else start + timedelta(seconds=seconds)
    return {
        "start_time": start.isoformat() if start else None,
        "end_time": end.isoformat() if end else None,
        "duration_seconds": seconds,
    }


def _retries(result: DataflowResult) -> int:
    parts = result.chunks or (result,)
    return sum(max(0, len(part.attempts) - 1) for part in parts)


def _metrics(result: DataflowResult) -> dict[str, Any]:
    rows = {name: result.rows.get(name) for name in _ROWS}
    files = {name: result.files.get(name) for name in _FILES}
    return {**rows, **files, "bytes_saved": None}


def _metadata(flow: Dataflow) -> dict[str, Any]:
    return {
        "dataflow_id": flow.dataflow_id,
        "workspace_id": flow.workspace_id,
        "dataflow_name": flow.name,
        "dataflow_description": flow.description,
        "stage": flow.stage,
        "group_number": flow.group_number,
        "execution_order": flow.execution_order,
        "processing_mode": flow.processing_mode,
        "is_active": flow.is_active,
        "configure": _plain(flow.configure),
        **_source(flow),
        **_transform(flow),
        **_destination(flow),
    }


def _connection(prefix: str, connection: Connection) -> dict[str, Any]:
    return {
        f"{prefix}_id": connection.connection_id,
        f"{prefix}_name": connection.name,
        f"{prefix}_connection_type": connection.connection_type,
        f"{prefix}_format": connection.format,
        f"{prefix}_catalog": connection.catalog,
        f"{prefix}_database": connection.database,
    }


def _place(
    prefix: str, connection: Connection, schema: str | None, table: str | None
) -> dict[str, Any]:
    parts = (connection.catalog, connection.database, schema, table)
    base = connection.configure.base_path
    below = [part.strip("/") for part in (schema, table) if part]
    return {
        f"{prefix}_schema": schema,
        f"{prefix}_table": table,
        f"{prefix}_full_table": ".".join(part for part in parts if part) or None,
        f"{prefix}_path": "/".join([base.rstrip("/"), *below]) if base else None,
    }


def _source(flow: Dataflow) -> dict[str, Any]:
    source = flow.source
    return {
        **_connection("source", source.connection),
        **_place("source", source.connection, source.schema_name, source.table),
        "source_query": source.query,
        "source_python_function": source.python_function,
        "source_watermark_columns": list(source.watermark_columns),
        "source_filter_expression": source.filter_expression,
        "source_configure": _plain(source.configure),
    }


def _transform(flow: Dataflow) -> dict[str, Any]:
    names = (
        "deduplicate_columns",
        "latest_data_columns",
        "filter_expression",
        "additional_columns",
        "schema_hints",
        "select_columns",
        "drop_columns",
        "rename_columns",
        "value_rules",
        "hash_columns",
        "masking_rules",
        "configure",
    )
    known = _plain(flow.transform)
    return {f"transform_{name}": known.get(name) for name in names}


def _destination(flow: Dataflow) -> dict[str, Any]:
    destination = flow.destination
    place = _place(
        "destination", destination.connection, destination.schema_name, destination.table
    )
    return {
        **_connection("destination", destination.connection),
        **place,
        "destination_path": table_path(destination) or place["destination_path"],
        "destination_load_type": destination.load_type,
        "destination_merge_keys": list(destination.merge_keys),
        "destination_partition_columns": [
            {"column": one.column, "expression": one.expression}
            for one in destination.partition_columns
        ],
        "destination_configure": _plain(destination.configure),
    }


def _plain(model: BaseModel) -> dict[str, Any]:
    """Return what the metadata sets, without what looks like a secret."""
    return hidden(model.model_dump(mode="json", exclude_unset=True))


def _attempts(result: DataflowResult) -> list[dict[str, Any]]:
    parts = result.chunks or (result,)
    return [
        _attempt(part, attempt, last=attempt is part.attempts[-1])
        for part in parts
        for attempt in part.attempts
    ]


def _attempt(part: DataflowResult, attempt: Attempt, *, last: bool) -> dict[str, Any]:
    """Return one attempt; what it did is known of the last one, the others did nothing."""
    end = attempt.started_at + timedelta(seconds=attempt.duration_seconds)
    done = part if last and attempt.error is None else None
    return {
        "attempt_number": attempt.number,
        "start_time": attempt.started_at.isoformat(),
        "end_time": end.isoformat(),
        "duration_seconds": attempt.duration_seconds,
        "status": attempt.status,
        "message": attempt.error.message if attempt.error else None,
        "source": None if done is None else _source_of(done),
        "transform": None
        if done is None or done.selected is None
        else {"transformers_applied": list(done.selected.transforms)},
        "destination": None if done is None else _destination_of(done),
        "watermark": None if done is None else _watermark_of(done),
    }


def _source_of(done: DataflowResult) -> dict[str, Any]:
    action = {name: value for name, value in done.source_action.items() if name != "transforms"}
    return {
        "rows_read": done.rows.get("rows_read"),
        "selection": None if done.selected is None else done.selected.to_json(),
        "source_action": action,
    }


def _destination_of(done: DataflowResult) -> dict[str, Any]:
    state = done.state
    details = {
        "table_version": state.table_version if state else None,
        "sequence": state.sequence if state else None,
        "table_rows": done.table_rows,
    }
    counts = {name: done.rows.get(name) for name in ROW_COUNTS if name != "rows_read"}
    return {
        "operation_type": done.dataflow.destination.load_type,
        "metrics": {**counts, **done.files},
        "operation_details": details,
    }


def _watermark_of(done: DataflowResult) -> dict[str, Any]:
    selected = done.selected
    loaded: Watermark = selected.loaded_watermark if selected else {}
    candidate: Watermark = selected.candidate if selected else {}
    saved = _encoded(done.watermark)
    return {
        "load_status": "recovered" if done.state and done.state.recovered else "loaded",
        "loaded_watermark": _encoded(loaded),
        "merge_base": _encoded(loaded),
        "candidate": {"values": _encoded(candidate), "kind": "observed_max"},
        "watermark_to_save": saved,
        "save_status": "saved" if done.status == "succeeded" else "unchanged",
        "saved_watermark": saved,
    }


def _encoded(watermark: Mapping[str, Any]) -> Any:
    return encode_watermark(watermark) if watermark else None
