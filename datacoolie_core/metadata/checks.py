"""Rules that span the fields of a dataflow and its connections.

Each check yields what it finds and goes on, so that everything is reported at once. A check runs
on entries with broken parts too; what concerns a broken field is dropped by the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.connection_checks import check_connection
from datacoolie_core.metadata.expressions import sql_finding
from datacoolie_core.metadata.names import name_problem
from datacoolie_core.metadata.open_keys import check_open_keys
from datacoolie_core.metadata.option_checks import check_options
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.scd2_checks import check_scd2
from datacoolie_core.metadata.transform_checks import check_hints, check_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacoolie_core.metadata.models import Connection, Dataflow

__all__ = ["LOAD_TYPES", "check_connection", "check_dataflow", "check_hints"]

_WHOLE = ("append", "overwrite", "full_load")
_ALL = (*_WHOLE, "merge_upsert", "merge_overwrite", "scd2")
LOAD_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("delta", "iceberg"), _ALL),
    **dict.fromkeys(("parquet", "csv", "json", "jsonl", "avro"), _WHOLE),
    **dict.fromkeys(("excel", "sql", "api", "function"), ()),
}
"""What can be done with each format as a destination."""

_SOURCE_KEYS = {
    "api": (
        "endpoint",
        "method",
        "params",
        "body",
        "data_path",
        "pagination_type",
        "page_size",
        "max_pages",
        "next_link_path",
        "next_link_bound_mode",
        "cursor_path",
        "cursor_param",
        "offset_param",
        "limit_param",
        "total_path",
        "offset_max_workers",
        "rate_limit_delay",
        "max_retries",
        "range_param_mapping",
        "watermark_range_interval_unit",
        "watermark_range_interval_amount",
        "watermark_range_start",
        "watermark_range_max_workers",
        "watermark_to_param_timezone",
    )
}


def check_dataflow(flow: Dataflow) -> Iterator[Finding]:
    """Yield what is wrong within one dataflow and with how it uses its connections."""
    for check in _CHECKS:
        yield from check(flow)


def _names(flow: Dataflow) -> Iterator[Finding]:
    if not flow.name and not flow.dataflow_id.strip():
        yield Finding("name", "a dataflow needs a name or a dataflow_id")
        return
    names = (("name", flow.name, False), ("stage", flow.stage, False))
    # without a name the id is what assets are called
    for field, text, slash in (*names, ("dataflow_id", flow.dataflow_id, bool(flow.name))):
        problem = name_problem(text, slash=slash) if text else None
        if problem is not None:
            yield Finding(field, problem)


def _mode(flow: Dataflow) -> Iterator[Finding]:
    if flow.processing_mode != "batch":
        message = f"{flow.processing_mode} can't be run; every dataflow is loaded in batches"
        yield Finding("processing_mode", message, "batch")


def _source(flow: Dataflow) -> Iterator[Finding]:
    source, kind = flow.source, flow.source.connection.connection_type
    if kind == "function":
        if not source.python_function:
            yield Finding("source.python_function", "a function source needs it")
    elif source.python_function and kind:
        message = f"only a function connection takes it, '{source.connection.name}' is {kind}"
        yield Finding("source.python_function", message)
    if source.query and kind not in ("database", "lakehouse", ""):
        message = f"only database and lakehouse connections take it, this one is {kind}"
        yield Finding("source.query", message)
    if kind == "database" and not (source.table or source.query):
        yield Finding("source.table", "a database source needs a table or a query")
    if kind == "api" and not _extra(flow, "endpoint"):
        yield Finding("source.configure.endpoint", "an api source needs it")
    if kind in ("file", "lakehouse") and not _addressed(flow.source.connection, source.query):
        message = f"connection '{source.connection.name}' has no configure.base_path to read from"
        yield Finding("source.connection_name", message)


def _extra(flow: Dataflow, key: str) -> object:
    return (flow.source.configure.model_extra or {}).get(key)


def _addressed(connection: Connection, query: str | None = None) -> bool:
    by_catalog = connection.format == "iceberg" and connection.catalog
    return bool(connection.configure.base_path or by_catalog or query)


def _destination(flow: Dataflow) -> Iterator[Finding]:
    destination, form = flow.destination, flow.destination.connection.format
    allowed = LOAD_TYPES.get(form)
    if allowed is None:
        return
    if not allowed:
        message = f"connection '{destination.connection.name}' is {form}, which can't be written"
        yield Finding("destination.connection_name", message)
        return
    if destination.load_type not in allowed:
        message = f"{form} can't do {destination.load_type}, only {', '.join(allowed)}"
        yield Finding("destination.load_type", message)
    elif destination.load_type not in _WHOLE and not destination.merge_keys:
        yield Finding("destination.merge_keys", f"load_type {destination.load_type} needs them")
    if not _addressed(destination.connection):
        name = destination.connection.name
        message = f"connection '{name}' has no configure.base_path to write to"
        yield Finding("destination.connection_name", message)
    yield from _column_lists(flow)


def _column_lists(flow: Dataflow) -> Iterator[Finding]:
    lists = {
        "source.watermark_columns": flow.source.watermark_columns,
        "destination.merge_keys": flow.destination.merge_keys,
        "destination.partition_columns": tuple(
            column.column for column in flow.destination.partition_columns
        ),
    }
    for field, columns in lists.items():
        if len({column.casefold() for column in columns}) < len(columns):
            yield Finding(field, "a column is listed twice (case does not matter)")


def _window(flow: Dataflow) -> Iterator[Finding]:
    if not flow.destination.configure.replace_by_watermark:
        return
    field = "destination.configure.replace_by_watermark"
    if flow.destination.load_type != "merge_overwrite":
        yield Finding(
            field, f"it needs load_type merge_overwrite, not {flow.destination.load_type}"
        )
    if flow.source.look_back() is None:
        yield Finding(field, "it needs a look-back: set source.configure.backward")


def _expressions(flow: Dataflow) -> Iterator[Finding]:
    database = flow.source.connection.configure.database_type
    own = flow.destination.configure.datacoolie
    given = [
        ("source.filter_expression", flow.source.filter_expression, database),
        ("transform.filter_expression", flow.transform.filter_expression, None),
        (
            "destination.configure.scd2_effective_column",
            flow.destination.configure.scd2_effective_column,
            None,
        ),
        ("destination.configure.datacoolie.delete_when", own.delete_when, None),
        ("destination.configure.datacoolie.replay_filter", own.replay_filter, None),
    ]
    given += [
        (f"transform.additional_columns[{index}].expression", column.expression, None)
        for index, column in enumerate(flow.transform.additional_columns)
    ]
    given += [
        (f"destination.partition_columns[{index}].expression", column.expression, None)
        for index, column in enumerate(flow.destination.partition_columns)
    ]
    for field, text, kind in given:
        problem = sql_finding(text, kind) if text else None
        if problem is not None:
            yield Finding(field, *problem)


def _open_keys(flow: Dataflow) -> Iterator[Finding]:
    known = _SOURCE_KEYS.get(flow.source.connection.connection_type, ())
    yield from check_open_keys(flow.configure, "configure")
    yield from check_open_keys(flow.source.configure, "source.configure", known=known)
    yield from check_open_keys(flow.destination.configure, "destination.configure")
    yield from check_open_keys(flow.transform.configure, "transform.configure")


_CHECKS: tuple[Callable[[Dataflow], Iterator[Finding]], ...] = (
    _names,
    _mode,
    _source,
    _destination,
    _window,
    check_scd2,
    _expressions,
    check_transform,
    check_options,
    _open_keys,
)
