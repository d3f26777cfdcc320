"""Bad rows of a load, from the transforms that find them to the table that keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from datacoolie_core.engines.names import match
from datacoolie_core.errors import ReadError, WriteError
from datacoolie_core.plan.scd2 import closes_missing
from datacoolie_core.plan.windows import Window
from datacoolie_core.readers.bounds import fitted_window, within
from datacoolie_core.readers.watermark_columns import watermark_column
from datacoolie_core.run.bounds import appends, replaces
from datacoolie_core.state.values import decode
from datacoolie_core.transforms.quarantine import told
from datacoolie_core.writers import quarantine
from datacoolie_core.writers.quarantine import Quarantine, quarantine_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.bounds import Bounds
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.job import Job
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.state.reconcile import Baseline
    from datacoolie_core.state.record import StateRecord
    from datacoolie_core.transforms.quarantine import BadRows

Replaced = Literal["nothing", "surplus", "window", "all"]
"""What a load's bad rows are to those of earlier loads: more of them; more, but for those that are
there already; in the place of those of a window, or of all."""

INFO = "quarantine"
"""The key in the commit info that says what the load replaced."""
_SAMPLE = 1000


@dataclass(frozen=True)
class Kept:
    """What was done with the bad rows of a batch before its commit.

    Attributes:
        new: Rows that no earlier load had put into quarantine.
        replaced: What they take the place of.
        info: More of the commit info.
        nothing_else: The batch holds known bad rows and no others, so that there is nothing to do.
    """

    new: int = 0
    replaced: Replaced = "nothing"
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    nothing_else: bool = False


NOTHING = Kept()


def keep(
    job: Job,
    baseline: Baseline,
    bounds: Bounds,
    bad: BadRows | None,
    context: RunContext,
    staged: int,
) -> Kept:
    """Put the bad rows of a consumed batch where they are safe.

    Raises:
        WriteError: The quarantine can't be written, or the batch holds nothing else and would
            replace the table.
    """
    if bad is None:
        return NOTHING
    counted = {"rows_rejected": bad.rows, "rows_nulled": nulled(bad)}
    if bad.policy == "null":
        return Kept(info=counted)
    kind = _replaced(job, bounds)
    side = _side(job.prepared, baseline.sequence, context.run_id, context, job.window)
    rows = bad.frame if bad.rows else None
    if kind != "surplus":
        refuse_emptying(job.prepared.dataflow, bounds, bad, staged)
    new = quarantine.add(side, rows, all_of_them=kind != "surplus")
    if kind == "surplus" and rows is not None and not staged and replaces(job.prepared.dataflow):
        if new:
            refuse_emptying(job.prepared.dataflow, bounds, bad, staged)
        return Kept(info=counted, nothing_else=True)
    zone = None if job.window is None else job.window.zone
    return Kept(new, kind, {**counted, INFO: {"replaced": kind, "zone": zone}})


def nulled(bad: BadRows) -> int:
    """Return how many values became null."""
    return sum(bad.values.values()) if bad.policy == "null" else 0


def refuse_incomplete(dataflow: Dataflow, bad: BadRows | None) -> None:
    """Refuse bad rows in a snapshot whose missing keys count as deleted.

    Raises:
        WriteError: Nothing was written.
    """
    if bad is not None and bad.rows and closes_missing(dataflow):
        raise _refused(
            f"{bad.rows} rows are bad ({told(bad.bad_values)}), and scd2_close_missing would take"
            " their keys for deleted ones",
            "Correct the source or the hints, or set on_cast_error: null.",
            "incomplete_snapshot",
        )


def refuse_emptying(dataflow: Dataflow, bounds: Bounds, bad: BadRows | None, staged: int) -> None:
    """Refuse to replace a table by nothing because every row is bad.

    Raises:
        WriteError: The destination is as it was.
    """
    whole = bounds.mode == "replace_all" or (bounds.mode == "load" and replaces(dataflow))
    empties = dataflow.destination.configure.datacoolie.empty_source == "overwrite"
    if bad is not None and bad.rows and whole and not staged and not empties:
        raise _refused(
            f"every row is bad ({told(bad.bad_values)}), and the load would empty the destination",
            "Correct the source or the hints; empty_source: overwrite empties it.",
            "all_rows_bad",
        )


def _refused(what: str, remedy: str, code: str) -> WriteError:
    return WriteError(what, place="configure.datacoolie.on_cast_error", remedy=remedy, code=code)


def settle_commit(job: Job, state: StateRecord, kept: Kept, context: RunContext) -> None:
    """Take out of the quarantine what a commit of ours has made void.

    Args:
        job: The load.
        state: Its state.
        kept: What was done with its bad rows.
        context: The run.

    Raises:
        WriteError: The quarantine can't be written.
    """
    if quarantines(job.prepared.dataflow):
        side = _side(job.prepared, state.sequence, context.run_id, context)
        _settle(side, job.prepared.dataflow, kept.replaced, job.window)


def settle_newest(prepared: Prepared, baseline: Baseline, context: RunContext) -> bool:
    """Do the same for the newest commit in effect, which may have died before it came to that.

    Returns:
        Whether there are rows of another run that did not commit, or has not done so yet.

    Raises:
        WriteError: The quarantine can't be written.
    """
    if not quarantines(prepared.dataflow):
        return False
    info = baseline.own_commit
    if info is not None:
        side = _side(prepared, int(info["sequence"]), str(info["run_id"]), context)
        done: Mapping[str, Any] = info.get(INFO) or {}
        window = _window_of(info["window"], done.get("zone")) if info.get("window") else None
        _settle(side, prepared.dataflow, done.get("replaced", "nothing"), window)
    return quarantine.pending(_side(prepared, baseline.sequence, context.run_id, context))


def quarantines(dataflow: Dataflow) -> bool:
    """Say whether a dataflow's bad rows go into a side table."""
    return dataflow.options.on_cast_error == "quarantine"


def _settle(
    side: Quarantine, dataflow: Dataflow, replaced: Replaced, window: Window | None
) -> None:
    if replaced == "all":
        quarantine.settle(side, "all")
    elif replaced == "window" and window is not None:
        quarantine.settle(side, partial(_inside, dataflow, window))
    else:
        quarantine.settle(side, "none")


def _side(
    prepared: Prepared,
    sequence: int,
    run_id: str,
    context: RunContext,
    window: Window | None = None,
) -> Quarantine:
    return Quarantine(
        quarantine_uri(prepared.uri),
        prepared.dataflow.dataflow_id,
        sequence,
        run_id,
        prepared.storage_options,
        window=None if window is None else _text_of(window),
        sleep=context.sleep,
        on_phase=lambda phase: context.phase(prepared.original, phase),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    )


def bad_notices(bad: BadRows | None, kept: Kept, job: Job) -> list[tuple[str, str]]:
    """Return what a load tells of its bad values: code and message."""
    if bad is None or not bad.values:
        return []
    what = told(bad.bad_values)
    column, value = next(iter(bad.examples.items()))
    example = f"such as {value!r} in '{column}'"
    if bad.policy == "null":
        values = sum(bad.values.values())
        became = "1 bad value" if values == 1 else f"{values} bad values"
        return [("cast_nulled", f"{became} became null: {what}, {example}")]
    uri = quarantine_uri(job.prepared.uri)
    rows = "1 row is" if bad.rows == 1 else f"{bad.rows} rows are"
    known = bad.rows - kept.new
    since = f" ({known} since an earlier load)" if known else ""
    return [("rows_quarantined", f"{rows} in quarantine in {uri}{since}: {what}, {example}")]


def _replaced(job: Job, bounds: Bounds) -> Replaced:
    dataflow = job.prepared.dataflow
    if job.window is not None:
        # the values of a masked column are not kept, so that nothing tells where the rows lie
        rules = dataflow.transform.masking_rules
        masked = match(job.window.column, [name for rule in rules for name in rule.columns])
        return "window" if masked is None else "surplus"
    if bounds.mode == "replace_all" or (replaces(dataflow) and bounds.complete):
        return "all"
    # without a watermark an append takes every row for a new one
    return "nothing" if appends(dataflow) and bounds.complete else "surplus"


def _text_of(window: Window) -> str:
    bounds = {"column": window.column, "lower": window.lower, "upper": window.upper}
    return json.dumps(bounds, default=str)


def _window_of(info: Mapping[str, Any], zone: str | None) -> Window:
    return Window(info["column"], decode(info["lower"]), decode(info["upper"]), zone=zone)


def _inside(dataflow: Dataflow, window: Window, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Keep the quarantined rows whose source value lies in a window.

    The value is read again from the row's text as a source of texts would be.
    """
    head = rows.select("row").head(_SAMPLE).collect(engine="streaming").to_series()
    keys = dict.fromkeys(key for text in head for key in json.loads(text))
    column = match(window.column, keys)
    if column is None:
        return rows.clear()
    own = pl.col("row").str.json_decode(pl.Struct({column: pl.String})).struct.field(column)
    frame = rows.with_columns(own.alias(column))
    try:
        typed = watermark_column(column, frame, {column: pl.String()}, dataflow)
        return frame.filter(within(typed, fitted_window(window, typed)))
    except ReadError:
        # values that the source no longer has in a form that can be compared: they stay
        return rows.clear()
