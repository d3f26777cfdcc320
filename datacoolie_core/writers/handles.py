"""Table handles that outlive a step: opening a table costs more than all else in a small load.

A handle is kept between the steps of a load, and between the loads of a process. It is handed out
to one user at a time, and only while it still is what the table is: the commit that it knows is
the very same file, and there is either no newer one or the newer ones are read on top of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core.storage import is_remote
from datacoolie_core.storage.locations import local_path
from datacoolie_core.writers.objects import has_file
from datacoolie_core.writers.tables import Place, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

MOST = 64
"""Handles kept at most; the one that was not used for longest goes first."""

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _Kept:
    table: DeltaTable
    version: int
    stamp: Stamp


_kept: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], _Kept] = OrderedDict()
_lock = threading.Lock()


def newest(place: Place) -> DeltaTable | None:
    """Return a handle on the newest version, None if there is no table.

    Raises:
        WriteError: The place can't be reached or read.
    """
    with _lock:
        kept = _kept.pop(_key(place), None)
    if kept is None or _stamp(place, kept.version) != kept.stamp:
        return open_table(place)
    return refreshed(place, kept.table)


def keep(place: Place, table: DeltaTable) -> None:
    """Keep a handle for whoever asks next; the caller must not use it any more.

    Tables in object stores are not kept: what tells one commit file from another made in its place
    would cost a request each time.
    """
    version = table.version()
    stamp = _stamp(place, version)
    if stamp is None:
        return
    with _lock:
        _kept[_key(place)] = _Kept(table, version, stamp)
        _kept.move_to_end(_key(place))
        while len(_kept) > MOST:
            _kept.popitem(last=False)


def refreshed(place: Place, table: DeltaTable | None) -> DeltaTable | None:
    """Return a handle on the newest version, from an older one where that is enough.

    Args:
        place: The table.
        table: A handle from before.
    """
    from deltalake.exceptions import DeltaError

    if table is None:
        return open_table(place)
    known, version = has_file(place, _commit(table.version())), table.version()
    if not known:
        # the table was deleted and made anew, or its log was cleaned
        return open_table(place)
    if not has_file(place, _commit(version + 1)):
        return table
    try:
        table.update_incremental()
    except (OSError, DeltaError):
        return open_table(place)
    return table if has_file(place, _commit(table.version())) else open_table(place)


def _key(place: Place) -> tuple[str, tuple[tuple[str, str], ...]]:
    return place.uri, tuple(sorted((place.options or {}).items()))


def _commit(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def _stamp(place: Place, version: int) -> Stamp | None:
    """Return what tells a commit's file from every other one; None if there is none."""
    if is_remote(place.uri):
        return None
    try:
        found = local_path(place.path(_commit(version))).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
