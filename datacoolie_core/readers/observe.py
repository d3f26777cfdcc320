"""Bounds a source and watches what passes: counts, watermarks and boundary rows, in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import match
from datacoolie_core.engines.polars_sql import Session, condition
from datacoolie_core.errors import ReadError, TransformError
from datacoolie_core.readers.batch import Batch, Observation
from datacoolie_core.readers.boundary import BoundaryRows, Watched
from datacoolie_core.readers.bounds import above, fitted_state, fitted_window, within
from datacoolie_core.readers.observer import Observer
from datacoolie_core.readers.row_hash import fingerprint, type_name
from datacoolie_core.readers.typed_rows import TypedRow, typed_row
from datacoolie_core.readers.union import refuse_patterns
from datacoolie_core.readers.watermark_columns import WatermarkColumn, watermark_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from datacoolie_core.plan.windows import Scalar, Watermark, Window
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source

_TYPED = "__dc_wm_"


def observed(source: Source, request: ReadRequest) -> Batch:
    """Return the batch of a source: filtered, and watched by an observer.

    Raises:
        ReadError: A watermark column, a bound or the filter can't be used.
        WatermarkError: The stored watermark does not fit its column.
    """
    if source.empty:
        return _empty(source)
    schema = dict(source.frame.collect_schema())
    refuse_patterns(schema)
    columns = [
        watermark_column(name, source.frame, schema, request.dataflow)
        for name in request.dataflow.source.watermark_columns
    ]
    chunk = _chunk(source.frame, schema, columns, request)
    frame = _filtered(source.frame, schema, columns, request, chunk, filtered=source.filtered)
    stored = {column.name: _bound(request.stored, column) for column in columns}
    row = typed_row(schema, columns, request.dataflow)
    observation = Observation(
        candidate={name: value for name, value in stored.items() if value is not None},
        columns={name: type_name(dtype) for name, dtype in schema.items()},
        boundary_usable=_boundary_usable(request, row),
        tracked=source.tracked,
    )
    watched = _watched(columns, stored)
    rows = BoundaryRows(watched, request, observation, fingerprint(row.schema), row.values)
    observation.settle = rows.boundary
    observer = Observer(observation, watched, request, rows)
    passed = _watched_frame(frame, schema, watched, observer)
    return Batch(
        passed,
        observation,
        source_action=source.action,
        warnings=source.warnings,
        source=frame,
        diagnose=source.diagnose,
        window=None if chunk is None else chunk[1],
        close=source.close,
    )


def _watched(columns: list[WatermarkColumn], stored: Mapping[str, Scalar | None]) -> list[Watched]:
    named = [(f"{_TYPED}{index}", column) for index, column in enumerate(columns)]
    return [
        Watched(column, column.column if column.plain else name, stored[column.name])
        for name, column in named
    ]


def _watched_frame(
    frame: pl.LazyFrame,
    schema: dict[str, pl.DataType],
    watched: list[Watched],
    observer: Observer,
) -> pl.LazyFrame:
    """Return a frame that fills the observation while it is consumed."""
    typed = [one.column.typed.alias(one.name) for one in watched if not one.column.plain]
    return frame.with_columns(typed).map_batches(
        observer, schema=schema, streamable=True, validate_output_schema=False
    )


def _empty(source: Source) -> Batch:
    return Batch(
        source.frame,
        Observation(tracked=source.tracked),
        source_action=source.action,
        warnings=source.warnings,
        empty=True,
        close=source.close,
    )


def _chunk(
    frame: pl.LazyFrame,
    schema: Mapping[str, pl.DataType],
    columns: list[WatermarkColumn],
    request: ReadRequest,
) -> tuple[WatermarkColumn, Window] | None:
    """Return the column that a replay bounds, and its window in values of that column."""
    if request.window is None:
        return None
    name = request.window.column
    known = next((one for one in columns if match(name, [one.name, one.column])), None)
    column = known or watermark_column(
        name, frame, schema, request.dataflow, place="the chunk column of the replay"
    )
    return column, fitted_window(request.window, column)


def _filtered(
    frame: pl.LazyFrame,
    schema: Mapping[str, pl.DataType],
    columns: list[WatermarkColumn],
    request: ReadRequest,
    chunk: tuple[WatermarkColumn, Window] | None,
    *,
    filtered: bool,
) -> pl.LazyFrame:
    if chunk is not None:
        frame = frame.filter(within(*chunk))
    elif request.lower and columns:
        bounds = [(column, _bound(request.lower, column)) for column in columns]
        wanted = above(bounds, inclusive=request.inclusive)
        for column in columns if len(columns) > 1 else ():
            # a row that no other column brings along would be lost without a word
            wanted = wanted if column.bad is None else wanted | column.bad
        frame = frame.filter(wanted)
    written = request.dataflow.source.filter_expression
    if not written or filtered:
        return frame
    try:
        place = "source.filter_expression"
        zone = request.dataflow.transform.configure.timestamp_timezone
        session = Session(request.now, zone)
        return frame.filter(condition(written, schema, place=place, session=session))
    except TransformError as error:
        raise ReadError(
            error.message, place=error.place, remedy=error.remedy, code=error.code
        ) from error


def _value(values: Watermark, column: WatermarkColumn) -> Scalar | None:
    key = match(column.name, values)
    return None if key is None else values[key]


def _bound(values: Watermark, column: WatermarkColumn) -> Scalar | None:
    value = _value(values, column)
    return None if value is None else fitted_state(value, column)


def _boundary_usable(request: ReadRequest, row: TypedRow) -> bool:
    boundary = request.boundary
    if boundary.compare or not boundary.hashes:
        return not boundary.compare
    return boundary.schema == fingerprint(row.schema)
