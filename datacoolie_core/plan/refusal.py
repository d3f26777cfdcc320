"""Why a normal load would be refused as soon as it starts, known from the metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.plan.replay import replaces_windows, shared_by
from datacoolie_core.plan.scd2 import closes_missing

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph


def load_refusal(dataflow: Dataflow, graph: Graph, *, full_refresh: bool) -> str | None:
    """Return why a normal load can't be, with the remedy; None if nothing is known against it.

    Args:
        dataflow: Any dataflow.
        graph: Tells who else writes its destination.
        full_refresh: Whether it is loaded anew.
    """
    others = shared_by(dataflow, graph)
    if not others:
        return None
    destination = dataflow.destination
    if closes_missing(dataflow):
        return (
            f"{others} writes the same table, so closing missing keys would close theirs. Give "
            "this dataflow a table of its own, or take scd2_close_missing away"
        )
    if destination.configure.datacoolie.replay_filter:
        return None
    remedy = (
        "Say which rows are this dataflow's (destination.configure.datacoolie.replay_filter), or "
        "give it a table of its own"
    )
    if full_refresh and destination.load_type == "append":
        return f"{others} writes the same table, so loading it anew would take those rows. {remedy}"
    if destination.load_type == "merge_overwrite" and replaces_windows(dataflow):
        return (
            f"{others} writes the same table, so replacing a window would take those rows. {remedy}"
        )
    return None
