"""Which versions of its inputs a load saw.

Dagster writes these tags itself on what a step returns. Events that we log on top of it (chunks of
a replay, partitions that an incremental load marks, assets of an incremental job) need them too:
without, every input counts as new, and the asset is shown as out of date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_dagster.project import Loaded

NEVER_SEEN = "INITIAL"
NO_EVENT = "NULL"


def input_tags(instance: dg.DagsterInstance, loaded: Loaded) -> Mapping[str, str]:
    """Return the tags that say which event of each input was the newest.

    Args:
        instance: Where the events are.
        loaded: Whose inputs.
    """
    tags: dict[str, str] = {}
    for dep in loaded.spec.deps:
        name = "/".join(dep.asset_key.path)
        version, event = _newest(instance, dep.asset_key)
        tags[f"dagster/input_data_version/{name}"] = version
        tags[f"dagster/input_event_pointer/{name}"] = event
    return tags


def _newest(instance: dg.DagsterInstance, key: dg.AssetKey) -> tuple[str, str]:
    """Return data version and id of an asset's newest event."""
    for page in (
        instance.fetch_materializations(key, limit=1),
        instance.fetch_observations(key, limit=1),
    ):
        for record in page.records:
            fact = record.asset_materialization or record.asset_observation
            tags = (fact.tags if fact is not None else None) or {}
            return tags.get("dagster/data_version", NEVER_SEEN), str(record.storage_id)
    return NEVER_SEEN, NO_EVENT
