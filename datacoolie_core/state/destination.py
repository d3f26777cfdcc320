"""What a destination itself says of a dataflow's loads: the other half of the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ForeignChange:
    """A commit of somebody else that removed or rewrote rows after our newest one.

    Attributes:
        version: The table's version.
        operation: As the history names it: ``DELETE``, ``UPDATE``, ``RESTORE``, ``WRITE (Overwrite)``.
        dataflow_id: The dataflow that made it, if it was one of ours but not this one.
    """

    version: int
    operation: str
    dataflow_id: str | None = None


@dataclass(frozen=True)
class DestinationState:
    """What the table's log says.

    Attributes:
        exists: Whether there is a table.
        table_id: Delta's table id.
        version: The newest version.
        sequence: The highest ``txn`` version of this dataflow that was ever committed.
        commit: The ``datacoolie`` commit info of this dataflow's newest commit still in effect.
        commit_version: The table version of that commit.
        foreign: What others changed since (appends and OPTIMIZE are no change).
        rewound: A RESTORE took back at least one of our commits.
        unmarked: Files are there of which nothing says who wrote them.
        history_lost: There is a ``sequence``, but the log no longer holds our commit info.
    """

    exists: bool = False
    table_id: str | None = None
    version: int | None = None
    sequence: int | None = None
    commit: Mapping[str, Any] | None = None
    commit_version: int | None = None
    foreign: tuple[ForeignChange, ...] = ()
    rewound: bool = False
    history_lost: bool = False
    unmarked: bool = False
