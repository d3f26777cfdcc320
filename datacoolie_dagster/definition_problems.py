"""What is fine for the core and impossible in Dagster, found before Dagster complains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core.errors import Problem
from datacoolie_dagster.automation import cron_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacoolie_core.errors import SettingsError
    from datacoolie_core.metadata.models import Dataflow

_OPTIONS = "configure.datacoolie"


def problems_of(dataflows: Iterable[Dataflow]) -> list[Problem]:
    """Return what is wrong with dataflows, each by itself."""
    return [problem for dataflow in dataflows for problem in _problems(dataflow)]


def _problems(dataflow: Dataflow) -> Iterator[Problem]:
    yield from _owner_problems(dataflow)
    yield from _cron_problems(dataflow)


def _problem(dataflow: Dataflow, option: str, message: str) -> Problem:
    return Problem(message.strip(), dataflow=dataflow.label, field=f"{_OPTIONS}.{option}")


def replay_problem(dataflow: Dataflow, error: SettingsError) -> Problem:
    """Return the problem of a replay range that can't be cut."""
    return _problem(dataflow, "replay", f"{error.message}. {error.remedy or ''}")


def _owner_problems(dataflow: Dataflow) -> Iterator[Problem]:
    for owner in dataflow.options.owners:
        try:
            dg.AssetSpec("owned", owners=[owner])
        except dg.DagsterInvalidDefinitionError:
            yield _problem(
                dataflow, "owners", f"{owner!r} is no owner. Write an email address, or team:name"
            )


def _cron_problems(dataflow: Dataflow) -> Iterator[Problem]:
    cron = cron_of(dataflow)
    if cron is None:
        return
    try:
        dg.ScheduleDefinition(
            name="checked",
            job_name="checked",
            cron_schedule=cron.cron,
            execution_timezone=cron.timezone,
        )
    except dg.DagsterInvalidDefinitionError as error:
        yield _problem(dataflow, "cron", f"{cron.cron!r} in {cron.timezone!r}: {error}")


def clash_problem(key: dg.AssetKey, one: Dataflow, other: Dataflow) -> Problem:
    """Return the problem of two dataflows that would be one asset."""
    return Problem(
        f"its asset key {key.to_user_string()} is that of dataflow '{one.label}' "
        f"[{one.dataflow_id}] too. Give one of them another name or stage",
        dataflow=f"{other.label} [{other.dataflow_id}]",
    )


def source_clash_problem(key: dg.AssetKey, dataflow: Dataflow) -> Problem:
    """Return the problem of an external source that would be a dataflow's asset."""
    return Problem(
        f"its asset key {key.to_user_string()} is that of an external source too. Let the "
        "translator's get_asset_spec or get_source_asset_spec give another one",
        dataflow=dataflow.label,
    )
