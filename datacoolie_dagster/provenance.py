"""Which versions of its inputs a load saw.

Dagster writes these tags itself on what a step returns. Events that we log on top of it (chunks of
a replay, partitions that an incremental load marks, assets of an incremental job) need them too:
without, every input counts as new, and the asset is shown as out of date.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacoolie_dagster.project import Loaded

NEVER_SEEN = "INITIAL"
NO_EVENT = "NULL"


def input_tags(instance: dg.DagsterInstance, loaded: Loaded) -> Mapping[str, str]:
    """Return the tags that say which event of each input was the newest; reads them in one call.

    Args:
        instance: Where the events are.
        loaded: Whose inputs.
    """
    return NewestInputs(instance, [loaded]).tags(loaded)


class NewestInputs:
    """The newest event of each input of several assets, read together and not before it is asked.

    Args:
        instance: Where the events are.
        members: Whose inputs.
    """

    def __init__(self, instance: dg.DagsterInstance, members: Iterable[Loaded]) -> None:
        self._instance = instance
        self._stale = {dep.asset_key for one in members for dep in one.spec.deps}
        self._inputs = frozenset(self._stale)
        self._newest: dict[dg.AssetKey, tuple[str, str]] = {}
        self._lock = threading.Lock()

    def has_changed(self, key: dg.AssetKey) -> None:
        """Note that an asset has a new event."""
        with self._lock:
            if key in self._inputs:
                self._stale.add(key)

    def tags(self, loaded: Loaded) -> Mapping[str, str]:
        """Return the tags for one of the members, as of now."""
        keys = [dep.asset_key for dep in loaded.spec.deps]
        with self._lock:
            if not self._stale.isdisjoint(keys):
                self._read()
            newest = [self._newest.get(key, (NEVER_SEEN, NO_EVENT)) for key in keys]
        tags: dict[str, str] = {}
        for key, (version, event) in zip(keys, newest, strict=True):
            name = "/".join(key.path)
            tags[f"dagster/input_data_version/{name}"] = version
            tags[f"dagster/input_event_pointer/{name}"] = event
        return tags

    def _read(self) -> None:
        for record in self._instance.get_asset_records(list(self._stale)):
            self._newest[record.asset_entry.asset_key] = _newest(record)
        self._stale.clear()


def _newest(record: Any) -> tuple[str, str]:
    """Return data version and id of the newest event of an asset's record."""
    entry = record.asset_entry
    found: dg.EventLogRecord | None = (
        entry.last_materialization_record or entry.last_observation_record
    )
    if found is None:
        return NEVER_SEEN, NO_EVENT
    fact = found.asset_materialization or found.asset_observation
    tags = (fact.tags if fact is not None else None) or {}
    return tags.get("dagster/data_version", NEVER_SEEN), str(found.storage_id)
