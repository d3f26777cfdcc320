"""What one attempt reads, and what of it may be in the destination already."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import polars as pl

from datacoolie_core.errors import WatermarkError, WriteError
from datacoolie_core.plan.columns import DATE_FOLDER, destination_column
from datacoolie_core.plan.lookback import appends_files_again, effective_lower
from datacoolie_core.plan.replay import replaces_windows
from datacoolie_core.plan.scd2 import closes_missing, keeps_history
from datacoolie_core.plan.tracking import keeps_registry, tracks_files
from datacoolie_core.readers.batch import ReadRequest
from datacoolie_core.readers.hints import hint_of, hinted_type
from datacoolie_core.run.file_memory import covers, recall
from datacoolie_core.run.reread import refuse_shared, reread, tells_own_rows
from datacoolie_core.state.record import Boundary, StateRecord
from datacoolie_core.writers.request import Overlap

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar, Watermark, Window
    from datacoolie_core.readers.batch import Observation
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.run.results import RunKind
    from datacoolie_core.state.reconcile import Baseline
    from datacoolie_core.writers.request import Reread


@dataclass(frozen=True)
class Bounds:
    """One attempt's read and write, before anything is opened.

    Attributes:
        request: What to read.
        run_kind: What bounds it.
        mode: How the destination is written.
        overlap: Appends: what may be there already, whatever the reader finds.
        reread: What a normal run replaces, in place of the keys of its batch.
        complete: Whether everything that the source holds is read.
    """

    request: ReadRequest
    run_kind: RunKind
    mode: Literal["load", "replace_window", "replace_all"]
    overlap: Overlap | None = None
    reread: Reread | None = None
    complete: bool = False


def appends(dataflow: Dataflow) -> bool:
    """Say whether the load type adds rows without looking at the ones that are there."""
    return dataflow.destination.load_type == "append"


def replaces(dataflow: Dataflow) -> bool:
    """Say whether the load type replaces the table."""
    return dataflow.destination.load_type in ("overwrite", "full_load")


def bound_load(prepared: Prepared, baseline: Baseline, context: RunContext) -> Bounds:
    """Return the bounds of a normal run: above the stored watermark, ties read again."""
    dataflow = prepared.dataflow
    _refuse_closing(dataflow, context)
    refuse_shared(dataflow, shared=dataflow.dataflow_id in context.shared)
    options = dataflow.source.configure.datacoolie
    fresh = context.full_refresh or baseline.reload or baseline.state.replace_next
    state = StateRecord(dataflow.dataflow_id) if fresh else baseline.state
    registry, tracks = keeps_registry(dataflow), tracks_files(dataflow)
    known = recall(prepared, state, context) if tracks else None
    lower: Watermark = {} if registry else effective_lower(dataflow, state.watermark, context.now())
    looks_back = not registry and dict(lower) != dict(state.watermark)
    inclusive = options.watermark_boundary == "inclusive"
    null_rows = options.null_watermark
    if null_rows == "first_load":
        null_rows = "exclude" if state.watermark and not registry else "include"
    repeats = looks_back and appends_files_again(dataflow)
    # what was loaded before these files were remembered
    told = known is not None and covers(dataflow, state)
    unknown = tracks and bool(state.watermark or state.sequence) and not told
    left = state.boundary.compare and not (tracks and state.boundary.ties_only)
    compares = appends(dataflow) and (looks_back or left or unknown) and not repeats
    request = ReadRequest(
        dataflow=dataflow,
        project_dir=context.project_dir,
        query=prepared.query,
        lower=lower,
        inclusive=inclusive or looks_back,
        stored=state.watermark,
        boundary=Boundary() if compares or repeats or tracks else state.boundary,
        track_boundary=inclusive
        and not (repeats or tracks)
        and (appends(dataflow) or replaces(dataflow)),
        known_files=known,
        null_watermark=null_rows,
        max_watermark=prepared.max_watermark,
        allowed_functions=context.config.allowed_function_prefixes,
        now=context.now(),
    )
    again = reread(dataflow, request)
    mode = "load" if again is None else "replace_window"
    return Bounds(
        request=request,
        run_kind=_kind(dataflow, state, context),
        mode=_fresh_mode(dataflow, context) if fresh else mode,
        overlap=_overlap(dataflow, state, lower, files=tracks) if compares else None,
        reread=again,
        complete=not (dataflow.source.watermark_columns or tracks),
    )


def _fresh_mode(dataflow: Dataflow, context: RunContext) -> Literal["load", "replace_all"]:
    """Return how a load from the beginning meets what is there.

    Raises:
        WriteError: Replacing the table would take the rows of other dataflows.
    """
    if keeps_history(dataflow):
        # what the source holds now is no substitute for the versions that it once held
        return "load"
    shared = dataflow.dataflow_id in context.shared and not tells_own_rows(dataflow)
    if replaces(dataflow) or not shared:
        return "replace_all"
    if not appends(dataflow):
        return "load"
    raise WriteError(
        "other active dataflows write the same table, so loading it anew would take their rows",
        dataflow=dataflow.dataflow_id,
        remedy="Say which rows are this dataflow's"
        " (destination.configure.datacoolie.replay_filter), or give it a table of its own.",
        code="shared_destination",
    )


def _refuse_closing(dataflow: Dataflow, context: RunContext) -> None:
    """Refuse to close the keys that a dataflow lacks because they are another one's.

    Raises:
        WriteError: Others write the table too.
    """
    if closes_missing(dataflow) and dataflow.dataflow_id in context.shared:
        raise WriteError(
            "other active dataflows write the same table, so closing missing keys would close"
            " theirs",
            dataflow=dataflow.dataflow_id,
            remedy="Give this dataflow a table of its own, or take scd2_close_missing away.",
            code="shared_destination",
        )


def _kind(dataflow: Dataflow, state: StateRecord, context: RunContext) -> RunKind:
    if context.full_refresh:
        return "full_refresh"
    bounded = bool(dataflow.source.watermark_columns) or tracks_files(dataflow)
    return "incremental" if bounded and (state.watermark or state.files) else "full"


def bound_chunk(prepared: Prepared, window: Window, context: RunContext) -> Bounds:
    """Return the bounds of one chunk of a replay: its window alone."""
    dataflow = prepared.dataflow
    request = ReadRequest(
        dataflow=dataflow,
        project_dir=context.project_dir,
        query=prepared.query,
        window=window,
        null_watermark="include",
        max_watermark=prepared.max_watermark,
        allowed_functions=context.config.allowed_function_prefixes,
        now=context.now(),
    )
    return Bounds(request, "replay", "replace_window" if replaces_windows(dataflow) else "load")


def destination_window(dataflow: Dataflow, window: Window) -> Window:
    """Return a chunk's window in terms of the destination's column.

    Args:
        dataflow: Its transforms name the column.
        window: In values of the source's column, as far as they are known.
    """
    column = followed_column(dataflow, window.column)
    hint = hint_of(window.column, dataflow)
    converted = hint is not None and (
        hinted_type(window.column, hint, dataflow).kind == "timestamp_ntz"
    )
    # such values may be instants, shown by other clocks than those that the bounds were read from
    return replace(window, column=column, zone=None if converted else window.zone)


def followed_column(dataflow: Dataflow, column: str) -> str:
    """Return the destination's name of a source column.

    Raises:
        WatermarkError: When projection, masking or a computed column hides it.
    """
    target = destination_column(dataflow, column)
    if target is None:
        raise WatermarkError(
            f"column '{column}' can't be followed to the destination, so rows that are there "
            "can't be told from new ones",
            dataflow=dataflow.dataflow_id,
            remedy="Keep the column in the destination, or accept that rows which tie with the "
            "watermark are lost: source.configure.datacoolie.watermark_boundary: exclusive.",
            code="column_not_followed",
        )
    return target


def overlap_with(
    dataflow: Dataflow, bounds: Bounds, schema: pl.Schema, seen: Observation
) -> Overlap | None:
    """Return what of an append may be in the table already; None if nothing can be.

    Args:
        dataflow: As prepared.
        bounds: Of this attempt.
        schema: The batch's columns, after all transforms.
        seen: Says whether the reader could tell known rows by their hashes, or known files.
    """
    found, request = bounds.overlap, bounds.request
    if seen.tracked is not None and seen.tracked.changed and appends(dataflow):
        return Overlap(by_file=True)
    unusable = not seen.boundary_usable
    if found is None and appends(dataflow) and request.track_boundary and unusable:
        found = _ties(dataflow, request.stored) if request.stored else None
        if not request.stored and request.boundary.rows:
            found = Overlap()
    if found is None or found.column is None:
        return found
    edge = found.lower if found.upper is None else found.upper
    text = isinstance(schema.get(found.column), pl.String)
    # an untyped column arrives as text: a typed bound can't be compared with it
    return Overlap() if text and not isinstance(edge, str) else found


def _ties(dataflow: Dataflow, stored: Watermark) -> Overlap:
    """Return the region of rows that tie with the stored watermark."""
    columns = [name for name in stored if name != DATE_FOLDER]
    if len(columns) != 1 or _rereads_elsewhere(dataflow):
        return Overlap()
    value = stored[columns[0]]
    return Overlap(followed_column(dataflow, columns[0]), value, value, upper_inclusive=True)


def _rereads_elsewhere(dataflow: Dataflow) -> bool:
    """Say whether a run reads known rows again that no range around the watermark holds."""
    options = dataflow.source.configure.datacoolie
    return options.null_watermark == "include" or options.max_watermark is not None


def _overlap(
    dataflow: Dataflow, state: StateRecord, lower: Watermark, *, files: bool
) -> Overlap | None:
    """Return the region that the read shares with what is loaded."""
    columns = dataflow.source.watermark_columns
    if files:
        return Overlap(by_file=True)
    if len(columns) != 1 or _rereads_elsewhere(dataflow):
        return Overlap()
    column = next((name for name in state.watermark if name != DATE_FOLDER), columns[0])
    stored = state.watermark.get(column)
    bottom = lower.get(column)
    if not state.boundary.compare or state.boundary.ties_only:
        return Overlap(followed_column(dataflow, column), bottom, stored, upper_inclusive=True)
    top = state.boundary.upto
    if top is None:
        return _from(dataflow, column, bottom)
    return Overlap(followed_column(dataflow, column), bottom, top)


def _from(dataflow: Dataflow, column: str, bottom: Scalar | None) -> Overlap:
    """Return the region from a value on; all rows if the destination may order it otherwise."""
    target = destination_column(dataflow, column)
    hint = hint_of(column, dataflow)
    kept = hint is None or (
        isinstance(bottom, datetime)
        and hinted_type(column, hint, dataflow).kind.startswith("timestamp")
    )
    if bottom is None or target is None or not kept:
        return Overlap()
    return Overlap(target, bottom)


def boundary_after_chunk(dataflow: Dataflow, state: StateRecord, window: Window) -> Boundary:
    """Return the boundary after a chunk that leaves the watermark where it was.

    A chunk that reaches the watermark, or goes above it, loads rows that the next normal run
    reads again: it then compares them with the destination.
    """
    columns = dataflow.source.watermark_columns
    if appends(dataflow) and tracks_files(dataflow):
        # files that are not known yet may hold rows of the chunk
        return Boundary(compare=True)
    if not appends(dataflow) or not columns:
        return state.boundary
    if len(columns) != 1 or columns[0].casefold() != window.column.casefold():
        return Boundary(compare=True)
    stored = next(iter(state.watermark.values()), None)
    known, top = state.boundary, window.upper
    if stored is not None and top is not None and _above(top, stored) is False:
        return known
    tops = [top]
    if stored is not None:
        tops.append(stored)
    if known.compare and not known.ties_only:
        tops.append(known.upto)
    return Boundary(compare=True, upto=_highest(tops))


def _highest(values: list[Scalar | None]) -> Scalar | None:
    """Return the highest of some bounds; None, which has no limit, if that can't be told."""
    highest = values[0]
    for value in values:
        if highest is None or value is None:
            return None
        higher = _above(value, highest)
        if higher is None:
            return None
        highest = value if higher else highest
    return highest


def _above(left: Scalar, right: Scalar) -> bool | None:
    """Compare two values of one column; None if they can't be compared."""
    try:
        return bool(left > right)  # type: ignore[operator] # pyright: ignore[reportOperatorIssue,reportUnknownArgumentType]
    except TypeError:
        return None
