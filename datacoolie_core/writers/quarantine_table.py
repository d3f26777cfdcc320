"""The table of quarantined rows: its columns, rows taken out of it, commits of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

from datacoolie_core import clock
from datacoolie_core.errors import WriteError
from datacoolie_core.writers import features, stored
from datacoolie_core.writers.commit import (
    LostRaceError,
    Sleep,
    add_action,
    remove_action,
    settle,
)
from datacoolie_core.writers.creation import create_table
from datacoolie_core.writers.staging import Layout, StagedFile, Staging
from datacoolie_core.writers.tables import (
    LiveFile,
    Place,
    delta_schema,
    live_files,
    table_schema,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalake import DeltaTable

SCHEMA = pl.Schema(
    {
        "dataflow_id": pl.String,
        "sequence": pl.Int64,
        "run_id": pl.String,
        "quarantined_at": pl.Datetime("us", "UTC"),
        "column": pl.String,
        "value": pl.String,
        "reason": pl.String,
        "errors": pl.List(
            pl.Struct({"column": pl.String, "value": pl.String, "reason": pl.String})
        ),
        "row": pl.String,
        "row_hash": pl.String,
        "source_file": pl.String,
        "window": pl.String,
    }
)
_LIBRARY_RETRIES = 15
_AT = "\0at"
_PATH = "\0file"
Sequences = tuple[int | None, int | None]
"""The lowest and the highest of a range; None is unbounded."""
Inside = Callable[[pl.LazyFrame], pl.LazyFrame]
"""Keeps those of a table's rows that lie in the window of a replay."""


@dataclass(frozen=True)
class Quarantine:
    """The side table, as one load of one dataflow sees it.

    Attributes:
        uri: Its place.
        dataflow_id: Whose rows count.
        sequence: Of the load.
        run_id: Of the load.
        storage_options: Those of the destination; never logged.
        window: The chunk of a replay, as text.
        sleep: Waits a number of seconds between tries.
        on_phase: Told of ``quarantining``, ``quarantined``, ``settling`` and ``settled``.
    """

    uri: str
    dataflow_id: str
    sequence: int
    run_id: str
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    window: str | None = None
    sleep: Sleep = clock.sleep
    on_phase: Callable[[str], None] = lambda _: None

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.uri, self.storage_options)


@dataclass(frozen=True)
class Within:
    """Rows that only a look into them tells.

    Attributes:
        candidates: Those that are looked at.
        inside: Keeps what goes.
    """

    candidates: pl.Expr
    inside: Inside


@dataclass(frozen=True)
class Cut:
    """Files without some of their rows.

    Attributes:
        removed: Files that go.
        kept: New files with the rows that stay.
        rows: Rows that went.
    """

    removed: Sequence[LiveFile] = ()
    kept: Sequence[StagedFile] = ()
    rows: int = 0


@dataclass(frozen=True)
class Change:
    """What one commit does.

    Attributes:
        removed: Files that go.
        added: Files that come.
    """

    removed: Sequence[LiveFile]
    added: Sequence[StagedFile]


def layout(to: Quarantine, schema: pl.Schema) -> Layout:
    """Return how new files look."""
    return Layout(schema, (), ("dataflow_id", "sequence", "run_id"), to.run_id)


def own_rows(
    to: Quarantine, table: DeltaTable | None, sequences: Sequences = (None, None)
) -> pl.LazyFrame:
    """Return the rows of a dataflow, at least those with a sequence in a range.

    Raises:
        WriteError: It is another kind of table.
    """
    if table is None:
        return pl.LazyFrame(schema=SCHEMA)
    schema = _checked(to, table)
    rows = stored.scan_live(to.place, table, _near(to, table, sequences), schema)
    return rows.filter(pl.col("dataflow_id") == to.dataflow_id)


def _near(to: Quarantine, table: DeltaTable, sequences: Sequences) -> list[LiveFile]:
    return [
        one
        for one in live_files(table, ("dataflow_id", "sequence"))
        if _may_hold(one, to.dataflow_id) and _reaches(one, *sequences)
    ]


def _checked(to: Quarantine, table: DeltaTable) -> pl.Schema:
    """Return the table's columns.

    Raises:
        WriteError: It is another kind of table.
    """
    schema = table_schema(table)
    wrong = [name for name, dtype in SCHEMA.items() if schema.get(name) != dtype]
    if wrong:
        raise WriteError(
            f"this is no quarantine: column '{wrong[0]}' is missing or of another type",
            place=to.uri,
            remedy="Move the table: quarantined rows of the destination beside it go here.",
            code="not_a_quarantine",
        )
    return schema


def _may_hold(file: LiveFile, dataflow_id: str) -> bool:
    low, high = file.lowest.get("dataflow_id"), file.highest.get("dataflow_id")
    # long text is cut in the statistics
    return low is None or high is None or low[:32] <= dataflow_id[:32] <= high[:32]


def _reaches(file: LiveFile, lowest: int | None, highest: int | None) -> bool:
    """Say whether a file may hold a sequence in a range, both ends included."""
    low, high = file.lowest.get("sequence"), file.highest.get("sequence")
    if low is None or high is None:
        return True
    return (lowest is None or high >= lowest) and (highest is None or low <= highest)


def cut_rows(
    to: Quarantine,
    table: DeltaTable | None,
    staging: Staging,
    gone: pl.Expr,
    sequences: Sequences,
    within: Within | None = None,
) -> Cut:
    """Write the files anew that hold rows that go, without them.

    Args:
        to: Whose rows may go.
        table: As it is now.
        staging: Gets the new files.
        gone: Whether a row goes.
        sequences: Those of the rows that may go.
        within: More rows that go.

    Raises:
        WriteError: It is another kind of table, or has features that forbid it.
    """
    if table is None:
        return Cut()
    schema = _checked(to, table)
    files = _near(to, table, sequences)
    if not files:
        return Cut()
    _refuse_features(to, table)
    rows = stored.scan(to.place, files, schema, path_column=_PATH).with_row_index(_AT)
    mine = pl.col("dataflow_id") == to.dataflow_id
    hit = rows.filter(mine & gone).select(_AT, _PATH)
    if within is not None:
        hit = pl.concat(
            [hit, within.inside(rows.filter(mine & within.candidates)).select(_AT, _PATH)]
        )
    found = hit.unique(_AT).collect(engine="streaming")
    paths = set(found[_PATH])
    removed = [one for one in files if to.place.path(one.path) in paths]
    features.refuse_paths(removed)
    stays = rows.filter(pl.col(_PATH).is_in(list(paths)) & ~pl.col(_AT).is_in(found[_AT].implode()))
    kept = staging.write(stays.select(list(schema)), layout(to, schema)) if removed else []
    return Cut(removed, kept, found.height)


def _refuse_features(to: Quarantine, table: DeltaTable) -> None:
    features.refuse(table, removing=True)
    if features.needs_library(table, removing=True):
        raise WriteError(
            "the quarantine has table features with which rows can't be taken out from here",
            place=to.uri,
            remedy="Switch them off there, or move the table.",
            code="unsupported_table_feature",
        )


def commit(to: Quarantine, table: DeltaTable | None, change: Change, staging: Staging) -> None:
    """Make one commit.

    Raises:
        LostRaceError: The table has moved on; nothing was committed.
        WriteError: It failed, and is not in the log.
    """
    token = uuid4().hex
    base = -1 if table is None else table.version()
    try:
        settle(
            to.place,
            base,
            lambda: _submit(to, table, change, token),
            lambda entry: entry.ours.get("token") == token,
        )
    except LostRaceError:
        staging.discard(change.added)
        raise
    staging.forget()


def _submit(to: Quarantine, table: DeltaTable | None, change: Change, token: str) -> None:
    from deltalake import CommitProperties, Transaction

    blind = not change.removed
    properties = CommitProperties(
        custom_metadata={
            "datacoolie": {
                "quarantine_of": to.dataflow_id,
                "sequence": to.sequence,
                "run_id": to.run_id,
                "token": token,
            }
        },
        app_transactions=[Transaction(f"quarantine:{to.dataflow_id}", to.sequence)],
        max_commit_retries=_LIBRARY_RETRIES if blind else 0,
    )
    added: list[Any] = [add_action(file) for file in change.added]
    if table is None:
        if not create_table(to.place, delta_schema(SCHEMA), added, [], properties):
            raise LostRaceError("the quarantine has just been made; its rows follow")
        return
    table.create_write_transaction(
        [*added, *(remove_action(file) for file in change.removed)],
        mode="append",
        schema=table.schema(),
        partition_by=[],
        commit_properties=properties,
    )
