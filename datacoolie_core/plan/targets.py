"""What maintenance works on: each table once, whoever writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import SelectionError, nearest
from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.plan.selection import shard_of, skip_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacoolie_core.metadata.models import Dataflow


@dataclass(frozen=True)
class Target:
    """One table, and the dataflow that stands for it.

    Attributes:
        identity: Of the table, relative paths resolved.
        dataflow: The active writer with the lowest id; its options count.
        skip_reason: Why nothing is done; None if something is.
    """

    identity: str
    dataflow: Dataflow
    skip_reason: str | None = None


def maintenance_targets(
    dataflows: Iterable[Dataflow], *, project_dir: str, shard: tuple[int, int] | None = None
) -> tuple[Target, ...]:
    """Return each destination once, by dataflow id; blocked dataflows stand beside, skipped.

    Args:
        dataflows: Writers, in any order.
        project_dir: Root of relative paths.
        shard: Number of jobs and this job's index; None takes everything.
    """
    claimed: set[str] = set()
    found: list[Target] = []
    for flow in sorted(dataflows, key=lambda one: one.dataflow_id):
        identity = _identity(flow, project_dir)
        blocked = skip_reason(flow)
        if blocked is None:
            if identity in claimed:
                continue
            claimed.add(identity)
        found.append(Target(identity, flow, blocked or _unsupported(flow)))
    if shard is None or shard[0] == 1:
        return tuple(found)
    return tuple(one for one in found if _shard(one.dataflow, shard[0]) == shard[1])


def _identity(flow: Dataflow, project_dir: str) -> str:
    identity = destination_identity(flow.destination)
    if identity is None:
        return f"dataflow:{flow.dataflow_id}"
    named = flow.destination.connection.catalog
    return identity if named else storage.resolve(identity, project_dir)


def _unsupported(flow: Dataflow) -> str | None:
    kind = flow.destination.connection.format
    if kind == "delta":
        return None
    if flow.destination.connection.connection_type == "file":
        return f"format {kind}: every load clears up its own files, so there is nothing to do"
    return f"format {kind} can't be maintained, only delta can"


def _shard(flow: Dataflow, jobs: int) -> int:
    return shard_of(flow.dataflow_id, flow.group_number, jobs)


def writing_to(
    dataflows: Sequence[Dataflow],
    *,
    connections: Sequence[str] = (),
    tables: Sequence[str] = (),
    known: Iterable[str] = (),
) -> tuple[Dataflow, ...]:
    """Return the dataflows that write through these connections into these tables.

    Args:
        dataflows: All there are.
        connections: Names; empty is all.
        tables: ``table``, ``schema.table`` or ``schema/table``; empty is all.
        known: Names of all connections, also of those that nothing writes to.

    Raises:
        SelectionError: A connection or a table is unknown.
    """
    writers = [flow.destination.connection.name for flow in dataflows]
    _check("connection", connections, {*known, *writers})
    kept = [
        flow
        for flow in dataflows
        if not connections or flow.destination.connection.name in connections
    ]
    _check("table", tables, {name for flow in kept for name in _names(flow)})
    return tuple(flow for flow in kept if not tables or _names(flow) & set(tables))


def _names(flow: Dataflow) -> set[str]:
    schema, table = flow.destination.schema_name, flow.destination.table
    return {table} if schema is None else {table, f"{schema}.{table}", f"{schema}/{table}"}


def _check(what: str, wanted: Sequence[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            near = nearest(name, sorted(known))
            listed = ", ".join(sorted(known)[:10])
            remedy = f"Did you mean '{near}'?" if near else f"There are {listed or 'none at all'}."
            raise SelectionError(f"no {what} '{name}'", place="selection", remedy=remedy)
