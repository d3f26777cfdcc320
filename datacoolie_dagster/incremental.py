"""What the op of a ``<stage>_incremental`` job does: one run of the core, told as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core.errors import SelectionError
from datacoolie_core.plan.selection import select
from datacoolie_dagster.load_recorder import LoadRecorder
from datacoolie_dagster.pools import slots_for
from datacoolie_dagster.project import recorded_keys, resumed_runs
from datacoolie_dagster.steps import failure_of_many, told_whole

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_dagster.project import Project
    from datacoolie_dagster.quarantine import Broken
    from datacoolie_dagster.resources import DataCoolieResource


@dataclass(frozen=True)
class StageLoad:
    """What an incremental job is asked to load.

    Attributes:
        stage: The stage; None is the dataflows without one.
        dataflow_ids: Its active dataflows.
        patterns: Narrow them down: names, ``stage/name``, ids, with ``*``, ``?`` and ``+``.
        full_refresh: Read from the beginning and replace what is there.
    """

    stage: str | None
    dataflow_ids: Sequence[str]
    patterns: Sequence[str] = ()
    full_refresh: bool = False


def load_stage(
    context: dg.OpExecutionContext,
    project: Project,
    request: StageLoad,
    resource: DataCoolieResource,
) -> None:
    """Load what is new in some dataflows; record each as it ends.

    Args:
        context: The op's.
        project: The metadata and where it is run.
        request: What to load.
        resource: How loads go.

    Raises:
        Failure: Some failed; it names them.
    """
    members = {one: project.loaded[one] for one in request.dataflow_ids}
    recorder = LoadRecorder(context, members)
    everything = [one.dataflow for one in members.values()]
    step = str(context.op_handle)
    with (
        told_whole(),
        slots_for(context.instance, context.run.run_id, step, everything) as slots,
        project.open(context, resource, everything, listeners=[slots, recorder]) as driver,
    ):
        chosen, broken = _chosen(driver, project, request)
        recorder.driver = driver
        result = driver.run(
            dataflows=_without_done(context, project, chosen),
            full_refresh=request.full_refresh,
            run_id=context.run.run_id,
        )
    for one in result.dataflows:
        recorder.record(one)
    bad = [one for one in result.dataflows if one.error is not None or one.status == "pending"]
    if bad or broken:
        raise failure_of_many(bad, total=result.total + len(broken), broken=broken)
    if recorder.problems:
        raise recorder.problems[0]


def _chosen(
    driver: DataCoolieDriver, project: Project, request: StageLoad
) -> tuple[list[Dataflow], list[Broken]]:
    """Return the dataflows to load, and those that can't be."""
    everything = [project.loaded[one].dataflow for one in request.dataflow_ids]
    broken = [one for one in project.broken if one.dataflow.stage == request.stage]
    if not request.patterns:
        return everything, broken
    meant = select(driver.graph, include=request.patterns)
    ids = {one.dataflow_id for one in (*meant.dataflows, *meant.invalid)}
    chosen = [one for one in everything if one.dataflow_id in ids]
    broken = [one for one in broken if one.dataflow.dataflow_id in ids]
    if not chosen and not broken:
        raise SelectionError(
            f"{', '.join(request.patterns)} selects nothing of this stage",
            place="select",
            remedy=f"It has {', '.join(one.label for one in everything[:10])}.",
        )
    return chosen, broken


def _without_done(
    context: dg.OpExecutionContext, project: Project, chosen: Sequence[Dataflow]
) -> list[Dataflow]:
    """Return what this run, or one that it resumes, has not yet loaded."""
    done = recorded_keys(context, resumed_runs(context))
    return [one for one in chosen if project.loaded[one.dataflow_id].key not in done]
