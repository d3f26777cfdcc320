"""Show, set, reset and import watermarks: explicit values win, in the store and the destination.

A value that is set becomes an empty commit with the dataflow's next sequence. So the destination
and every store agree on it, and a run that comes later finds it the newest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import DataCoolieError, WatermarkError, nearest
from datacoolie_core.plan.columns import DATE_FOLDER
from datacoolie_core.plan.tracking import state_columns
from datacoolie_core.readers.batch import Observation
from datacoolie_core.readers.tracked import folder_position
from datacoolie_core.run.bounds import appends
from datacoolie_core.run.job import Job
from datacoolie_core.run.load import MAX_RESTARTS, baseline_of
from datacoolie_core.run.next_state import commit_info
from datacoolie_core.run.prepare import Prepared, prepare_destination
from datacoolie_core.run.recover import with_destination_maximum
from datacoolie_core.run.reread import tells_own_rows
from datacoolie_core.run.saved_state import load_state, save_state
from datacoolie_core.state.reconcile import reconcile
from datacoolie_core.state.record import Boundary
from datacoolie_core.state.values import encode_watermark
from datacoolie_core.writers.destination import writer_for
from datacoolie_core.writers.request import Commit, SupersededError, WriteRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar, Watermark
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.state.reconcile import Baseline
    from datacoolie_core.state.record import StateRecord


@dataclass(frozen=True)
class Shown:
    """What store and destination say of a dataflow.

    Attributes:
        dataflow: The dataflow.
        stored: The store's record; None if it has none.
        effective: What the next run starts from; None if that can't be told.
        agrees: Whether both say the same.
        trouble: Why it can't be told.
        warnings: What a run that starts now would warn of.
    """

    dataflow: Dataflow
    stored: StateRecord | None = None
    effective: StateRecord | None = None
    agrees: bool = True
    trouble: str | None = None
    warnings: Sequence[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """Return the entry in ``watermark show --json`` (docs/watermarks.md)."""
        state = self.effective
        return {
            "name": self.dataflow.name,
            "dataflow_id": self.dataflow.dataflow_id,
            "stage": self.dataflow.stage,
            "watermark": encode_watermark(state.watermark) if state and state.watermark else None,
            "stored_watermark": encode_watermark(self.stored.watermark)
            if self.stored and self.stored.watermark
            else None,
            "sequence": state.sequence if state else None,
            "boundary_rows": state.boundary.rows if state else None,
            "table_version": state.table_version if state else None,
            "updated_at": state.updated_at if state else None,
            "replace_next": bool(state and state.replace_next),
            "agrees": self.agrees,
            "warnings": list(self.warnings),
            "trouble": self.trouble,
        }


def show(dataflow: Dataflow, context: RunContext) -> Shown:
    """Return what store and destination say of a dataflow; changes nothing."""
    try:
        stored = load_state(context.store, dataflow.dataflow_id)
        baseline = baseline_of(_prepared(dataflow, context), context)
    except DataCoolieError as error:
        return Shown(dataflow, agrees=False, trouble=str(error))
    effective = baseline.state if baseline.state.sequence else None
    same = _account(stored) == _account(effective)
    told = [text for _, text in baseline.warnings]
    return Shown(dataflow, stored, effective, same, warnings=told)


def _account(state: StateRecord | None) -> tuple[int, Watermark]:
    return (0, {}) if state is None else (state.sequence, state.watermark)


def set_watermark(
    dataflow: Dataflow, values: Mapping[str, Scalar], context: RunContext
) -> StateRecord:
    """Make a dataflow go on from values of the caller's choice.

    Rows from there on that an append has loaded already are met and not added again.

    Args:
        dataflow: Any dataflow with watermark columns.
        values: Column → value; columns that are left out keep theirs.
        context: The run that this is.

    Raises:
        BusyError: The dataflow is running.
        WatermarkError: It has no such watermark column.
    """
    known = {name.casefold(): name for name in state_columns(dataflow)}
    wrong = [name for name in values if name.casefold() not in known]
    if wrong:
        meant = nearest(wrong[0], known.values())
        hint = f"Did you mean '{meant}'? " if meant else ""
        raise WatermarkError(
            f"'{wrong[0]}' is no watermark column of it",
            dataflow=dataflow.label,
            remedy=f"{hint}Its watermark columns are: {', '.join(known.values()) or 'none'}.",
            code="unknown_column",
        )
    named = {known[name.casefold()]: value for name, value in values.items()}
    if DATE_FOLDER in named:
        named[DATE_FOLDER] = folder_position(named[DATE_FOLDER])
    return _written(dataflow, context, named)


def reset_watermark(
    dataflow: Dataflow, context: RunContext, *, keep_rows: bool = False
) -> StateRecord:
    """Make a dataflow's next load read its source from the beginning.

    Args:
        dataflow: Any dataflow.
        context: The run that this is.
        keep_rows: What an append has loaded stays, and the next load adds to it; otherwise the
            next load replaces it. Merges and overwrites replace what they find in any case.

    Raises:
        BusyError: The dataflow is running.
        WatermarkError: Replacing the table would take the rows of other dataflows.
    """
    replaces = appends(dataflow) and not keep_rows
    shared = dataflow.dataflow_id in context.shared and not tells_own_rows(dataflow)
    if replaces and shared:
        raise WatermarkError(
            "other active dataflows write the same destination, so that its next load can't "
            "replace what is there",
            dataflow=dataflow.label,
            remedy="Keep the rows (--keep-rows), or delete its own rows and reset with --keep-rows.",
            code="shared_destination",
        )
    return _written(dataflow, context, None, replace_next=replaces)


def _prepared(dataflow: Dataflow, context: RunContext) -> Prepared:
    destination, uri = prepare_destination(dataflow, context)
    return Prepared(
        original=dataflow,
        dataflow=dataflow.model_copy(update={"destination": destination}),
        query=None,
        uri=uri,
        storage_options=dict(destination.connection.configure.storage_options),
    )


def _written(
    dataflow: Dataflow,
    context: RunContext,
    values: Watermark | None,
    *,
    replace_next: bool = False,
) -> StateRecord:
    """Write the new state under the dataflow's lock: the destination first, then the store."""
    with context.locks.dataflow(dataflow.dataflow_id):
        prepared = _prepared(dataflow, context)
        for restart in range(MAX_RESTARTS):
            baseline = _told(prepared, values, context, anew=replace_next)
            state = _next(baseline, values, dataflow).evolve(
                sequence=baseline.sequence,
                run_id=context.run_id,
                updated_at=context.now().isoformat(),
                replace_next=replace_next,
                recovered=False,
            )
            try:
                state = _committed(prepared, baseline, state, context)
            except SupersededError:
                # a run on another machine committed in between
                if restart + 1 == MAX_RESTARTS:
                    raise
                continue
            save_state(context.store, state)
            return state
    raise AssertionError("unreachable")


def _told(
    prepared: Prepared, values: Watermark | None, context: RunContext, *, anew: bool
) -> Baseline:
    """Return where the dataflow stands, also where a run refuses to go on.

    Saying the watermark is the way out of a foreign change and of a log that no longer says it.
    """
    dataflow = prepared.dataflow
    stored = load_state(context.store, dataflow.dataflow_id)
    seen = writer_for(dataflow.destination).inspect(
        prepared.uri, dataflow.dataflow_id, prepared.storage_options
    )
    seen = replace(seen, foreign=())
    named = dataflow.source.watermark_columns if values is None else tuple(values)
    try:
        baseline = reconcile(dataflow, stored, seen, anew=anew)
    except WatermarkError as error:
        # values for every column leave nothing that the broken state would have to say
        if error.code != "state_broken" or set(dataflow.source.watermark_columns) - set(named):
            raise
        baseline = reconcile(dataflow, stored, seen, anew=True)
    if baseline.destination_maximum and set(dataflow.source.watermark_columns) - set(named):
        baseline = with_destination_maximum(baseline, prepared)
    return baseline


def _next(baseline: Baseline, values: Watermark | None, dataflow: Dataflow) -> StateRecord:
    if values is None:
        return baseline.state.evolve(
            watermark={}, boundary=Boundary(), covered_from=None, files=None
        )
    # which rows from the new value on are loaded is not known: the next load compares
    compares = Boundary(compare=True) if appends(dataflow) else Boundary()
    watermark = {**baseline.state.watermark, **values}
    files = None if DATE_FOLDER in values else baseline.state.files
    return baseline.state.evolve(watermark=watermark, boundary=compares, files=files)


def _committed(
    prepared: Prepared, baseline: Baseline, state: StateRecord, context: RunContext
) -> StateRecord:
    """Commit a state without rows; without a destination yet the store alone holds it."""
    dataflow = prepared.dataflow
    writer = writer_for(dataflow.destination)
    nothing = writer.no_rows(prepared.uri, prepared.storage_options)
    if nothing is None:
        return state.evolve(table_id=None, table_version=None)
    destination = dataflow.destination.model_copy(update={"load_type": "append"})
    request = WriteRequest(
        dataflow=dataflow.model_copy(update={"destination": destination}),
        uri=prepared.uri,
        sequence=state.sequence,
        run_id=context.run_id,
        storage_options=prepared.storage_options,
        expected_sequence=baseline.expected_sequence,
    )
    info = commit_info(Job(prepared), state, Observation(), run_kind="incremental", rows_staged=0)

    def finish(_rows: int) -> Commit:
        return Commit({**info, "run_kind": "watermark"}, required=True)

    with context.locks.destination(prepared.uri):
        written = writer.write(request, nothing, finish, lambda _phase: None)
    return state.evolve(table_id=written.table_id, table_version=written.table_version)
