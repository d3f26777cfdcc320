"""An output that tells steps downstream to start, and records no materialization.

Dagster has no public way to say that. The entry in an output's metadata by which it knows the
observations of source assets does just this: the only private name that group steps rely on. Where
it is gone, group steps yield nothing for what failed, so that Dagster's own rule holds: a failed
step stops all that depends on it.
"""

from __future__ import annotations

from functools import cache

import dagster as dg

_KEY = "__source_asset_observation__"


@cache
def is_known() -> bool:
    """Say whether this version of Dagster still knows the entry."""
    try:
        from dagster._core.definitions import source_asset  # noqa: TID251 - the guard itself
    except ImportError:
        return False
    return getattr(source_asset, "SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION", None) == _KEY


def silent_output(name: str) -> dg.Output[None]:
    """Return the output of a name; its asset is neither materialized nor failed by it."""
    return dg.Output(None, output_name=name, metadata={_KEY: True})
