"""Commit added and removed files at once, fenced against everybody who writes meanwhile.

Three fences: the ``txn`` version on the very handle that commits must be the one that the run
started from; a commit that removes files or depends on a read gets no retries of the library's
own, so that anything that came between makes it fail; and after *any* failure the log is asked
whether our commit is in it after all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from datacoolie_core.clock import utc_now
from datacoolie_core.errors import StorageError, WriteError
from datacoolie_core.writers.creation import create_table
from datacoolie_core.writers.handles import refreshed
from datacoolie_core.writers.log import LogEntry, entries_after
from datacoolie_core.writers.objects import refuse_absent
from datacoolie_core.writers.request import SupersededError
from datacoolie_core.writers.staging import Staging
from datacoolie_core.writers.tables import LiveFile, Place, delta_schema, open_table

if TYPE_CHECKING:
    import polars as pl
    from deltalake import CommitProperties, DeltaTable

    from datacoolie_core.writers.request import WriteRequest
    from datacoolie_core.writers.staging import StagedFile

T = TypeVar("T")
TRIES = 10
_LIBRARY_RETRIES = 15
UNKNOWN_OUTCOME = "commit_unknown"
"""Code of the error after which new files must stay: a commit may name them."""
Sleep = Callable[[float], None]


@contextmanager
def staging_for(place: Place) -> Generator[Staging]:
    """Give a place for new files; those that no commit names are deleted afterwards.

    Where nobody knows whether a commit names them, they stay.

    Args:
        place: The table.
    """
    staging = Staging(place)
    try:
        yield staging
    except WriteError as error:
        if error.code == UNKNOWN_OUTCOME:
            staging.forget()
        raise
    finally:
        staging.discard()


class LostRaceError(Exception):
    """Somebody else committed first: read the table again and redo the step."""


@dataclass(frozen=True)
class Change:
    """What one commit does to a table.

    Attributes:
        schema: The columns after it.
        partition_columns: In a new table.
        added: Staged files.
        removed: Live files that go.
        replace: Remove every file and take the schema as it is.
        blind: It depends on nothing that was read, so that the library may retry it.
        info: The ``datacoolie`` object of the commit info.
    """

    schema: pl.Schema
    partition_columns: tuple[str, ...] = ()
    added: Sequence[StagedFile] = ()
    removed: Sequence[LiveFile] = ()
    replace: bool = False
    blind: bool = False
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])


def check_fence(table: DeltaTable | None, request: WriteRequest) -> None:
    """Raise if the dataflow has committed since the run looked at the table.

    Raises:
        SupersededError: With both sequences.
    """
    dataflow_id = request.dataflow.dataflow_id
    found = None if table is None else table.transaction_version(dataflow_id)
    if found != request.expected_sequence:
        raise SupersededError(
            f"the table is at sequence {found} of this dataflow, the run started from"
            f" {request.expected_sequence}",
            place=request.uri,
            remedy="Another run of the dataflow committed meanwhile; run it again.",
            retryable=True,
        )


def commit(table: DeltaTable | None, place: Place, request: WriteRequest, change: Change) -> int:
    """Make one commit and return its version.

    Args:
        table: The handle from which the change was worked out; None creates the table.
        place: The table.
        request: Names the transaction.
        change: Files and metadata.

    Raises:
        LostRaceError: The table has moved on; nothing was committed.
        SupersededError: The same dataflow committed meanwhile.
        WriteError: The commit failed, and is not in the log.
    """
    check_fence(table, request)
    refuse_absent(place, [file.path for file in change.added])
    base = -1 if table is None else table.version()
    return run_commit(place, request, base, lambda: _submit(table, place, request, change))


def run_commit(place: Place, request: WriteRequest, base: int, submit: Callable[[], Any]) -> int:
    """Run something that commits, and find the version that it made.

    Args:
        place: The table.
        request: Names the transaction.
        base: The version that the change was worked out from; -1 for no table.
        submit: Commits.

    Raises:
        LostRaceError: The table has moved on; nothing was committed.
        WriteError: It failed, and is not in the log.
    """
    return settle(place, base, submit, lambda entry: is_own(entry, request))


def settle(
    place: Place, base: int, submit: Callable[[], Any], is_mine: Callable[[LogEntry], bool]
) -> int:
    """Run something that commits, and find its commit in the log, whatever it reported.

    Args:
        place: The table.
        base: The version that the change was worked out from; -1 for no table.
        submit: Commits.
        is_mine: Knows the commit.

    Raises:
        LostRaceError: The table has moved on; nothing was committed.
        WriteError: It failed, and is not in the log.
    """
    from deltalake.exceptions import DeltaError

    failure: Exception | None = None
    try:
        submit()
    except (DeltaError, OSError, ValueError) as error:
        failure = error
    try:
        since = list(entries_after(place, base))
    except StorageError as error:
        raise _unknown("the log can't be read to see whether the commit took place", place) from (
            failure or error
        )
    own = next((entry.version for entry in since if is_mine(entry)), None)
    if own is not None:
        return own
    if failure is None:
        raise _unknown("the commit was accepted but is not in the log", place)
    raise _explained(failure, since, place) from failure


def _unknown(what: str, place: Place) -> WriteError:
    return WriteError(
        what,
        place=place.uri,
        remedy="Run it again: the next run looks at the table first.",
        code=UNKNOWN_OUTCOME,
        retryable=True,
    )


def is_own(entry: LogEntry, request: WriteRequest) -> bool:
    """Return whether a log entry is the commit that a request asked for."""
    sequence = entry.transactions.get(request.dataflow.dataflow_id)
    return sequence == request.sequence and entry.ours.get("run_id") == request.run_id


def _explained(failure: Exception, others: Sequence[LogEntry], place: Place) -> Exception:
    if others:
        return LostRaceError(f"version {others[-1].version}: {others[-1].operation}")
    if "Invalid data found" in str(failure):
        return WriteError(
            f"rows break a constraint of the table: {' '.join(str(failure).split())[:300]}",
            place=place.uri,
            remedy="Correct the rows, or the table's constraint. Nothing was changed.",
            code="constraint_violated",
        )
    retryable = isinstance(failure, OSError)
    return WriteError(
        f"the commit failed: {str(failure).splitlines()[0] if str(failure) else failure!r}",
        place=place.uri,
        remedy="Nothing was changed. Check that the storage answers."
        if retryable
        else "Nothing was changed.",
        code="commit_failed",
        retryable=retryable,
    )


def _submit(table: DeltaTable | None, place: Place, request: WriteRequest, change: Change) -> None:
    adds = [add_action(file) for file in change.added]
    properties = commit_properties(request, change.info, blind=change.blind)
    schema = delta_schema(change.schema)
    partition_by = list(change.partition_columns)
    if table is None:
        if not create_table(place, schema, adds, partition_by, properties):
            raise LostRaceError("the table has just been made; its rows follow")
        return
    removes = [] if change.replace else [remove_action(file) for file in change.removed]
    table.create_write_transaction(
        [*adds, *removes],
        mode="overwrite" if change.replace else "append",
        schema=schema if change.replace else table.schema(),
        partition_by=partition_by,
        commit_properties=properties,
    )


def commit_properties(
    request: WriteRequest, info: Mapping[str, Any], *, blind: bool
) -> CommitProperties:
    """Return what names the commit: our transaction and our commit info."""
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"datacoolie": dict(info)},
        app_transactions=[Transaction(request.dataflow.dataflow_id, request.sequence)],
        max_commit_retries=_LIBRARY_RETRIES if blind else 0,
    )


def add_action(file: StagedFile) -> Any:
    """Return the action that adds a staged file to its table."""
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.path,
        size=file.size,
        partition_values=file.partition_values,
        modification_time=file.created,
        data_change=True,
        stats=file.statistics.to_json(),
    )


def remove_action(file: LiveFile) -> Any:
    """Return the action that takes a file out of its table."""
    from deltalake.transaction import RemoveAction

    return RemoveAction(
        file.path,
        data_change=True,
        deletion_timestamp=int(utc_now().timestamp() * 1000),
        size=file.size,
        partition_values=file.partition_values,
    )


def with_redo(
    place: Place,
    seen: DeltaTable | None,
    attempt: Callable[[DeltaTable | None], T],
    sleep: Sleep,
) -> T:
    """Try a step against the newest table until no one comes between, at most ten times.

    Args:
        place: The table.
        seen: A handle from before the batch was consumed; brought up to date for the first try.
        attempt: Reads the table and commits; raises :class:`LostRaceError` to be called again.
        sleep: Waits for a number of seconds.

    Raises:
        WriteError: All tries lost; names who won the last one.
    """
    lost: LostRaceError | None = None
    for tried in range(TRIES):
        if tried:
            # others who lost the same race must not come back at the same instant
            sleep(random.uniform(0.2, 1.0) * min(0.05 * 2**tried, 3.0))  # noqa: S311
        try:
            return attempt(open_table(place) if tried else refreshed(place, seen))
        except LostRaceError as error:
            lost = error
    raise WriteError(
        f"{TRIES} tries lost against other writers, the last one against {lost}",
        place=place.uri,
        remedy="Run it again, or keep other writers off the table for a while.",
        code="commit_conflict",
        retryable=True,
    ) from lost
