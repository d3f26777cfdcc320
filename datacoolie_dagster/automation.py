"""Automation conditions that fit loads: Dagster's own, without their traps.

Dagster's ``eager`` and ``on_cron`` never fire below a source that nothing materializes, and wait
for every month of a partitioned table. Ours look at the assets that can move, and take an order
edge for what it is: a reason to wait, not a reason to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from datacoolie_core.metadata.options import CronOptions
from datacoolie_dagster.partitions import is_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacoolie_core.metadata.models import Dataflow

# the generics of Dagster's conditions do not meet: one that fits assets and checks fits no list
_Conditions: Any = dg.AutomationCondition
Condition = Any


@dataclass(frozen=True)
class Moving:
    """An upstream asset that can be materialized.

    Attributes:
        key: The asset.
        dataflow: Its dataflow.
        only_order: It is waited for because of its order, not because its rows are read.
        partitioned: Whether it has partitions.
    """

    key: dg.AssetKey
    dataflow: Dataflow
    only_order: bool
    partitioned: bool


def cron_of(dataflow: Dataflow) -> CronOptions | None:
    """Return when a dataflow ticks; a bare text is a cron in UTC."""
    cron = dataflow.options.cron
    return CronOptions(cron=cron) if isinstance(cron, str) else cron


def can_be_automated(dataflow: Dataflow, partitions: dg.PartitionsDefinition | None) -> bool:
    """Say whether Dagster can ask for the dataflow's newest load.

    It asks for the last partition. That means *up to now* for an open range of time windows; for
    any other range it would be a replay, so the stage's incremental job has to be scheduled.
    """
    if partitions is None:
        return True
    return is_open(dataflow) and isinstance(partitions, dg.TimeWindowPartitionsDefinition)


def condition_of(
    dataflow: Dataflow, upstream: Sequence[Moving], partitions: dg.PartitionsDefinition | None
) -> Condition | None:
    """Return the condition that a dataflow's ``automation`` option asks for.

    Args:
        dataflow: The dataflow.
        upstream: What it waits for, without sources and inactive dataflows.
        partitions: Its own partitions.
    """
    kind = dataflow.options.automation
    if kind is None or not can_be_automated(dataflow, partitions):
        return None
    if kind == "eager":
        return _eager(upstream)
    cron = cron_of(dataflow)
    return None if cron is None else _on_cron(cron, upstream)


def _eager(upstream: Sequence[Moving]) -> Condition:
    read = [one.key for one in upstream if not one.only_order]
    whole = [one.key for one in upstream if not one.only_order and not one.partitioned]
    causes: Condition = _Conditions.newly_missing()
    if read:
        selection = dg.AssetSelection.assets(*read)
        causes = causes | _Conditions.any_deps_updated().allow(selection)
    waits: list[Condition] = [_Conditions.in_latest_time_window()]
    waits.append(causes.since_last_handled())
    if whole:
        selection = dg.AssetSelection.assets(*whole)
        waits.append(~_Conditions.any_deps_missing().allow(selection))
    return _all([*waits, *_idle()]).with_label("eager (DataCoolie)")


def _on_cron(cron: CronOptions, upstream: Sequence[Moving]) -> Condition:
    together = [one for one in upstream if _ticks_with(one.dataflow, cron)]
    tick = _Conditions.cron_tick_passed(cron.cron, cron.timezone)
    waits: list[Condition] = [
        _Conditions.in_latest_time_window(),
        tick.since_last_handled(),
    ]
    whole = [one.key for one in together if not one.partitioned]
    if whole:
        updated = _Conditions.all_deps_updated_since_cron(cron.cron, cron.timezone)
        waits.append(updated.allow(dg.AssetSelection.assets(*whole)))
    for one in together:
        if one.partitioned:
            updated = _Conditions.newly_updated().since(tick)
            coming = _Conditions.will_be_requested()
            waits.append(_Conditions.asset_matches(one.key, updated | coming))
    return _all([*waits, *_idle()]).with_label(f"on_cron {cron.cron} {cron.timezone} (DataCoolie)")


def _ticks_with(dataflow: Dataflow, cron: CronOptions) -> bool:
    return dataflow.options.automation == "on_cron" and cron_of(dataflow) == cron


def _idle() -> tuple[Condition, ...]:
    return (
        ~_Conditions.any_deps_in_progress(),
        ~_Conditions.in_progress(),
    )


def _all(conditions: Iterable[Condition]) -> Condition:
    first, *others = conditions
    for one in others:
        first = first & one
    return first
