"""Ask a table which load of a dataflow is the newest that is still in effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from datacoolie_core.state.destination import DestinationState, ForeignChange
from datacoolie_core.writers.handles import keep, newest
from datacoolie_core.writers.log import LogEntry, read_entry
from datacoolie_core.writers.tables import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def inspect(
    uri: str, dataflow_id: str, storage_options: Mapping[str, str] | None = None
) -> DestinationState:
    """Return what a table's log says of a dataflow.

    The log is walked from its newest commit down to the dataflow's newest one in effect. A
    RESTORE makes everything between it and the version that it restored void. In the common case
    that is one commit to read.

    Args:
        uri: The table's location.
        dataflow_id: Whose transaction counts.
        storage_options: For the object store.

    Raises:
        WriteError: The table can't be reached or read.
    """
    place = Place(uri, storage_options or {})
    table = newest(place)
    if table is None:
        return DestinationState()
    version = table.version()
    found = DestinationState(
        exists=True,
        table_id=str(table.metadata().id),
        version=version,
        sequence=table.transaction_version(dataflow_id),
    )
    keep(place, table)
    if found.sequence is None:
        return found
    return _walked(place, version, dataflow_id, found)


def _walked(
    place: Place, newest: int, dataflow_id: str, found: DestinationState
) -> DestinationState:
    foreign: list[ForeignChange] = []
    last = newest + 1
    for entry in _in_effect(place, newest):
        last = entry.version
        if entry.ours.get("dataflow_id") == dataflow_id and dataflow_id in entry.transactions:
            return replace(
                found,
                commit=entry.ours,
                commit_version=entry.version,
                foreign=tuple(foreign),
                rewound=entry.transactions[dataflow_id] != found.sequence,
            )
        if entry.takes_rows:
            whose = entry.ours.get("dataflow_id")
            name = _kind(entry)
            foreign.append(ForeignChange(entry.version, name, whose))
    # the log begins at version 0: below that nothing can be missing, all was taken back
    lost = last != 0
    return replace(found, foreign=tuple(foreign), rewound=not lost, history_lost=lost)


def _kind(entry: LogEntry) -> str:
    if entry.ours:
        return str(entry.ours.get("load_type", "load"))
    return entry.operation


def _in_effect(place: Place, newest: int) -> Iterator[LogEntry]:
    """Yield the commits that made the present content, newest first; stops where the log does."""
    version = newest
    while version >= 0:
        entry = read_entry(place, version)
        if entry is None:
            return
        restored = _restored(place, entry)
        if restored is None:
            yield entry
            version -= 1
        else:
            version = restored


def _restored(place: Place, entry: LogEntry) -> int | None:
    """Return the version that a RESTORE went back to, None for every other commit."""
    if entry.info.get("operation") != "RESTORE":
        return None
    version = entry.parameters.get("version")
    if version not in (None, "", "null"):
        return int(str(version).strip('"'))
    moment = entry.parameters.get("datetime") or entry.parameters.get("timestamp")
    if moment is None:
        return None
    return _version_at(place, entry.version, _milliseconds(str(moment)))


def _milliseconds(moment: str) -> int:
    text = moment.strip('"')
    if text.lstrip("-").isdigit():
        return int(text)
    parsed = datetime.fromisoformat(text)
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


def _version_at(place: Place, below: int, moment: int) -> int | None:
    for version in range(below - 1, -1, -1):
        entry = read_entry(place, version)
        if entry is None:
            return None
        if int(entry.info.get("timestamp", 0)) <= moment:
            return version
    return None
