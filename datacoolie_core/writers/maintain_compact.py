"""Many small files become few, and rows that are searched together come to lie together.

delta-rs's own OPTIMIZE is not used: two of them beside each other both succeed and double every
row, whatever number of commit retries is allowed (1.6.6). Here the new files are written first,
and then committed in an instant, from a table that nobody has changed since it was looked at;
who comes between costs another look, never the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

from datacoolie_core.clock import utc_now
from datacoolie_core.errors import WriteError
from datacoolie_core.writers import stored
from datacoolie_core.writers.commit import settle, staging_for, with_redo
from datacoolie_core.writers.maintain_properties import why_not_rewritten
from datacoolie_core.writers.maintain_request import INFO
from datacoolie_core.writers.staging import Layout, StagedFile, Staging
from datacoolie_core.writers.statistics import indexed_columns
from datacoolie_core.writers.tables import LiveFile, live_files, table_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.maintain_request import Upkeep

_COMMIT_BYTES = 4 * 1024**3


@dataclass(frozen=True)
class Piece:
    """Some files of a table, and those that shall stand in their place."""

    sources: tuple[LiveFile, ...]
    files: tuple[StagedFile, ...]


@dataclass(frozen=True)
class Rewritten:
    """What was committed, and what another writer took away before."""

    pieces: tuple[Piece, ...] = ()
    lost: int = 0


def rewrite(
    upkeep: Upkeep,
    table: DeltaTable,
    bins: Sequence[Sequence[LiveFile]],
    info: dict[str, Any],
    arrange: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
) -> Rewritten:
    """Write each bin of files anew and commit; a bin that others changed meanwhile is left.

    Args:
        upkeep: The table.
        table: The version that the bins were found in.
        bins: Files of one partition each.
        info: Goes into the commit info.
        arrange: Orders the rows of a bin.

    Raises:
        WriteError: Nothing of the last commit was changed.
    """
    job = _Rewrite(upkeep, table, info, arrange or (lambda frame: frame))
    pieces: list[Piece] = []
    lost = 0
    for group in _groups(bins):
        done = job.run(group)
        pieces += done.pieces
        lost += done.lost
    return Rewritten(tuple(pieces), lost)


def _groups(bins: Sequence[Sequence[LiveFile]]) -> Iterator[list[Sequence[LiveFile]]]:
    """Cut the work into commits, so that hours of it never hang on the last one."""
    group: list[Sequence[LiveFile]] = []
    size = 0
    for one in bins:
        if group and size >= _COMMIT_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += sum(file.size for file in one)
    if group:
        yield group


class _Rewrite:
    def __init__(
        self,
        upkeep: Upkeep,
        table: DeltaTable,
        info: dict[str, Any],
        arrange: Callable[[pl.LazyFrame], pl.LazyFrame],
    ) -> None:
        self._upkeep = upkeep
        self._id = table.metadata().id
        self._info = info
        self._arrange = arrange
        self._layout = _layout_of(table, upkeep)

    def run(self, bins: Sequence[Sequence[LiveFile]]) -> Rewritten:
        with staging_for(self._upkeep.place) as staging:
            self._upkeep.on_phase("staging")
            pieces = [self._staged(staging, one) for one in bins]
            self._upkeep.on_phase("staged")
            kept = with_redo(
                self._upkeep.place,
                None,
                lambda table: self._commit(table, pieces, staging),
                self._upkeep.sleep,
            )
        return Rewritten(tuple(kept), len(pieces) - len(kept))

    def _staged(self, staging: Staging, sources: Sequence[LiveFile]) -> Piece:
        frame = stored.scan(self._upkeep.place, sources, self._layout.schema)
        files = staging.write(self._arrange(frame), self._layout)
        before = [file.rows for file in sources]
        after = sum(file.rows for file in files)
        if None not in before and sum(rows or 0 for rows in before) != after:
            raise WriteError(
                f"{sum(rows or 0 for rows in before)} rows became {after} while files were written"
                " anew",
                place=self._upkeep.place.uri,
                remedy="Nothing was changed. Check the table's statistics and files.",
                code="rows_differ",
            )
        return Piece(tuple(sources), tuple(files))

    def _commit(
        self, table: DeltaTable | None, pieces: Sequence[Piece], staging: Staging
    ) -> list[Piece]:
        if table is None or not self._fits(table):
            return []
        live = {file.path for file in live_files(table)}
        kept = [piece for piece in pieces if all(one.path in live for one in piece.sources)]
        if not kept:
            return []
        token = uuid4().hex
        self._upkeep.on_phase("committing")
        settle(
            self._upkeep.place,
            table.version(),
            lambda: self._submit(table, kept, token),
            lambda entry: _token(entry.info) == token,
        )
        staging.discard([file for piece in pieces if piece not in kept for file in piece.files])
        staging.forget()
        self._upkeep.on_phase("committed")
        return kept

    def _fits(self, table: DeltaTable) -> bool:
        """Say whether the new files still fit: others may have replaced the table meanwhile."""
        if table.metadata().id != self._id or why_not_rewritten(table) is not None:
            return False
        if tuple(table.metadata().partition_columns) != self._layout.partition_columns:
            return False
        present = table_schema(table)
        # a column that was added is null in these files, as it is in the old ones
        return all(present.get(name) == dtype for name, dtype in self._layout.schema.items())

    def _submit(self, table: DeltaTable, pieces: Sequence[Piece], token: str) -> None:
        from deltalake import CommitProperties

        info = {"run_id": self._upkeep.run_id, "token": token, **self._info}
        table.create_write_transaction(
            [
                *(_add_action(file) for piece in pieces for file in piece.files),
                *(_remove_action(file) for piece in pieces for file in piece.sources),
            ],
            mode="append",
            schema=table.schema(),
            partition_by=list(self._layout.partition_columns),
            commit_properties=CommitProperties(custom_metadata={INFO: info}, max_commit_retries=0),
        )


def _token(info: Any) -> str | None:
    found = info.get(INFO)
    return found.get("token") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _layout_of(table: DeltaTable, upkeep: Upkeep) -> Layout:
    """Return how the new files look: as those of a load."""
    schema, metadata = table_schema(table), table.metadata()
    keys = tuple(metadata.partition_columns)
    data = pl.Schema({name: dtype for name, dtype in schema.items() if name not in keys})
    indexed = indexed_columns(data, metadata.configuration, upkeep.searched)
    return Layout(schema, keys, tuple(indexed), f"compact-{upkeep.run_id}")


# `data_change=False` says that the rows stay the same: streams and change feeds pass it by
def _add_action(file: StagedFile) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.path,
        size=file.size,
        partition_values=file.partition_values,
        modification_time=file.created,
        data_change=False,
        stats=file.statistics.to_json(),
    )


def _remove_action(file: LiveFile) -> Any:
    from deltalake.transaction import RemoveAction

    return RemoveAction(
        file.path,
        data_change=False,
        deletion_timestamp=int(utc_now().timestamp() * 1000),
        size=file.size,
        partition_values=file.partition_values,
    )
