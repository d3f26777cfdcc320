"""Which versions of its inputs a load saw.

Dagster writes these tags itself on what a step returns. Events that we log on top of it (chunks of
a replay, partitions that an incremental load marks, assets of an incremental job) need them too:
without, every input counts as new, and the asset is shown as out of date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_dagster.project import Loaded

NEVER_SEEN = "INITIAL"
NO_EVENT = "NULL"


def input_tags(instance: dg.DagsterInstance, loaded: Loaded) -> Mapping[str, str]:
    """Return the tags that say which event of each input was the newest; reads them in one call.

    Args:
        instance: Where the events are.
        loaded: Whose inputs.
    """
    keys = [dep.asset_key for dep in loaded.spec.deps]
    if not keys:
        return {}
    newest = {one.asset_entry.asset_key: _newest(one) for one in instance.get_asset_records(keys)}
    tags: dict[str, str] = {}
    for key in keys:
        name = "/".join(key.path)
        version, event = newest.get(key, (NEVER_SEEN, NO_EVENT))
        tags[f"dagster/input_data_version/{name}"] = version
        tags[f"dagster/input_event_pointer/{name}"] = event
    return tags


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
