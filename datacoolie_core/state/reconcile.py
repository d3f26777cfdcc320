"""The state that a run starts from: the store's record and the destination's log made one.

The rules are those of docs/reference/state.md, "Reconciliation". Pure: it reads and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import WatermarkError
from datacoolie_core.state.record import FORMAT, Boundary, StateRecord
from datacoolie_core.state.values import decode_watermark, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.state.destination import DestinationState, ForeignChange

Warnings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Baseline:
    """What a run starts from.

    Attributes:
        state: The state to read from; ``sequence`` 0 and no watermark for a first load.
        sequence: The sequence that the next commit takes.
        expected_sequence: The ``txn`` version that the table holds now.
        recovered: The destination knew more than the store: its state was adopted.
        reload: Start from the beginning and replace what is there.
        destination_maximum: The log no longer says the watermark: take the maximum of the
            destination's column.
        own_commit: The newest commit in effect, as the log has it.
        pending: A run that did not commit has left rows in quarantine: the next commit, even an
            empty one, makes them void for good.
        warnings: Code and message.
    """

    state: StateRecord
    sequence: int
    expected_sequence: int | None
    recovered: bool = False
    reload: bool = False
    destination_maximum: bool = False
    own_commit: Mapping[str, Any] | None = None
    pending: bool = False
    warnings: Warnings = ()

    def is_done_by(self, run_id: str, window: Window | None) -> bool:
        """Say whether the newest commit is this very run's (and chunk's): a retry after a kill.

        Args:
            run_id: The run.
            window: The chunk; chunks need not have keys, so that their bounds count too.
        """
        if self.own_commit is None or self.own_commit.get("run_id") != run_id:
            return False
        made: Mapping[str, Any] | None = self.own_commit.get("window")
        if window is None or not made:
            return window is None and not made
        bounds = (window.key, encode(window.lower), encode(window.upper))
        return bounds == (made.get("key"), made.get("lower"), made.get("upper"))


def state_of_commit(info: Mapping[str, Any], destination: DestinationState) -> StateRecord:
    """Return the state that a commit's ``datacoolie`` object carries.

    Raises:
        WatermarkError: When the commit was written by a newer version, or was edited.
    """
    if info.get("format") != FORMAT:
        raise WatermarkError(
            f"the table's newest commit has format {info.get('format')}, "
            f"this version reads format {FORMAT}",
            remedy="Upgrade datacoolie-dagster.",
            code="state_format",
        )
    try:
        return _decoded(info, destination)
    except (WatermarkError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.message if isinstance(error, WatermarkError) else error
        raise WatermarkError(
            f"the state in the destination's newest commit of this dataflow is broken ({why})",
            remedy="Say where to go on (datacoolie watermark set, every column), or load it anew"
            " with --full-refresh.",
            code="state_broken",
        ) from error


def _decoded(info: Mapping[str, Any], destination: DestinationState) -> StateRecord:
    covered = info.get("covered_from")
    return StateRecord(
        dataflow_id=info["dataflow_id"],
        sequence=int(info["sequence"]),
        watermark=decode_watermark(info["state_watermark"]),
        boundary=Boundary.from_json(info.get("boundary")),
        covered_from=None if covered is None else decode_watermark(covered),
        files=info.get("files"),
        table_id=destination.table_id,
        table_version=destination.commit_version,
        run_id=info.get("run_id"),
        updated_at=info.get("updated_at"),
        replace_next=bool(info.get("replace_next")),
    )


def reconcile(
    dataflow: Dataflow,
    stored: StateRecord | None,
    destination: DestinationState,
    *,
    anew: bool = False,
) -> Baseline:
    """Return where a run starts, from what the store and the destination say.

    Args:
        dataflow: The dataflow.
        stored: The store's record, None if it has none.
        destination: The table's own account.
        anew: The load replaces what is there, whatever it is.

    Raises:
        WatermarkError: For a foreign change under ``on_foreign_change: fail``; for files of which
            nothing says any more which of them are loaded.
    """
    highest = max(destination.sequence or 0, stored.sequence if stored else 0)
    empty = StateRecord(dataflow.dataflow_id)
    known = stored or empty
    if not destination.exists or destination.sequence is None:
        if not anew:
            _refuse_unmarked(dataflow, known, destination)
        return _without_commits(dataflow, known, destination, highest)
    if destination.commit is None:
        return _without_log(known, destination, highest)
    state = _committed(destination.commit, destination, known, anew=anew)
    warnings = list(_adoption_warnings(stored, state, destination))
    reload = False
    changes = [] if _reads_everything(dataflow, state) else _rewrites(destination)
    if changes:
        reload = _foreign(dataflow, changes, warnings)
    return Baseline(
        state=state,
        sequence=highest + 1,
        expected_sequence=destination.sequence,
        recovered=stored is None or stored.sequence < state.sequence,
        reload=reload,
        own_commit=destination.commit,
        warnings=tuple(warnings),
    )


def _committed(
    info: Mapping[str, Any], destination: DestinationState, known: StateRecord, *, anew: bool
) -> StateRecord:
    """Return the state of the newest commit; a load that replaces all needs no more than its number."""
    try:
        return state_of_commit(info, destination)
    except WatermarkError as error:
        if not anew or error.code != "state_broken":
            raise
        return StateRecord(known.dataflow_id, sequence=destination.sequence or 0)


def _without_commits(
    dataflow: Dataflow, known: StateRecord, destination: DestinationState, highest: int
) -> Baseline:
    """The table is absent, or has never seen this dataflow."""
    # a watermark that was set or imported before there was a table of ours
    seeded = known.table_id is None
    if known.sequence == 0 or seeded:
        return Baseline(known, highest + 1, destination.sequence)
    what = "another table" if destination.exists else "no table"
    return Baseline(
        StateRecord(dataflow.dataflow_id),
        highest + 1,
        destination.sequence,
        warnings=(
            (
                "table_gone",
                f"there is {what} where load {known.sequence} was written: "
                "the load starts from the beginning",
            ),
        ),
    )


def _refuse_unmarked(dataflow: Dataflow, known: StateRecord, destination: DestinationState) -> None:
    """Refuse to load into files again that this very dataflow may have written."""
    appends = dataflow.destination.load_type == "append"
    if destination.unmarked and appends and known.table_id is not None:
        raise WatermarkError(
            f"load {known.sequence} was written here, the files are there, but the manifest"
            " (_datacoolie) that says which of them are loaded is gone",
            dataflow=dataflow.dataflow_id,
            remedy="Restore it, or run with --full-refresh to load the folder anew, or move the "
            "files away.",
            code="manifest_gone",
        )


def _without_log(known: StateRecord, destination: DestinationState, highest: int) -> Baseline:
    """The log was cleaned: only the ``txn`` says that we were here."""
    current = known.sequence >= (destination.sequence or 0)
    same_table = known.table_id == destination.table_id
    if current and same_table:
        return Baseline(known, highest + 1, destination.sequence)
    return Baseline(
        known,
        highest + 1,
        destination.sequence,
        recovered=True,
        destination_maximum=True,
        warnings=(
            (
                "log_cleaned",
                f"the table's log no longer holds load {destination.sequence}, and the stored "
                f"state is of load {known.sequence}: the destination's own maximum counts",
            ),
        ),
    )


def _adoption_warnings(
    stored: StateRecord | None, state: StateRecord, destination: DestinationState
) -> Warnings:
    if destination.rewound:
        return (
            (
                "table_restored",
                f"the table was restored to before load {destination.sequence}: "
                f"the state of load {state.sequence} counts again",
            ),
        )
    if stored is not None and stored.sequence > state.sequence:
        return (
            (
                "state_ahead",
                f"the stored state is of load {stored.sequence}, "
                f"the table holds load {state.sequence}: the table counts",
            ),
        )
    return ()


def _reads_everything(dataflow: Dataflow, state: StateRecord) -> bool:
    replaces = dataflow.destination.load_type in ("overwrite", "full_load")
    return replaces or (not state.watermark and dataflow.destination.load_type != "append")


def _rewrites(destination: DestinationState) -> list[ForeignChange]:
    return [change for change in destination.foreign if change.operation != "RESTORE"]


def _foreign(
    dataflow: Dataflow, changes: list[ForeignChange], warnings: list[tuple[str, str]]
) -> bool:
    """Apply ``on_foreign_change``; return whether to reload."""
    policy = dataflow.destination.configure.datacoolie.on_foreign_change
    told = ", ".join(f"{change.operation} (version {change.version})" for change in changes[:3])
    text = f"the table was changed by others since our last load: {told}"
    if policy == "fail":
        raise WatermarkError(
            text,
            dataflow=dataflow.dataflow_id,
            remedy="Run with --full-refresh to rebuild it, "
            "or set on_foreign_change: warn on the destination to go on.",
            code="foreign_change",
        )
    warnings.append(("foreign_change", text))
    return policy == "reload"
