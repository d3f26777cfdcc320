"""The jobs of each stage: all its assets, and its incremental load."""

# no `from __future__ import annotations`: Dagster reads the annotations of ops
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from datacoolie_dagster.incremental import StageLoad, load_stage
from datacoolie_dagster.names import safe_name, short_hash
from datacoolie_dagster.partitions import interval_name
from datacoolie_dagster.project import Loaded, Project
from datacoolie_dagster.resources import DataCoolieResource

# some of Dagster's signatures have generics without arguments, which a strict checker refuses
_untyped: Any = dg

NO_STAGE = "default"
"""How jobs of dataflows without a stage are named."""


class IncrementalConfig(dg.Config):
    """What an incremental load may be asked for."""

    select: list[str] = Field(
        default=[],
        description="Only these dataflows of the stage: a name, stage/name or id; * and ? are "
        "wild; + in front adds what it waits for, + behind what waits for it.",
    )
    full_refresh: bool = Field(
        default=False,
        description="Read the sources from their beginning and replace what is there.",
    )


def build_jobs(project: Project, taken: Iterable[str] = ()) -> list[Any]:
    """Return the jobs of every stage.

    ``<stage>`` holds the assets without partitions and those with the stage's commonest ones; a
    job can't hold two kinds of partitions, so others go to ``<stage>_<interval>``.
    ``<stage>_incremental`` loads what is new in all of them.

    Args:
        project: The metadata and its assets.
        taken: Names that no job may have.
    """
    names = _Names(taken)
    jobs: list[Any] = []
    for stage, members in _stages(project).items():
        name = _stem(stage)
        broken = [one.spec.key for one in project.broken if one.dataflow.stage == stage]
        for suffix, assets in _by_partitions(members):
            keys = [*(one.key for one in assets), *(() if suffix else broken)]
            selection = dg.AssetSelection.assets(*keys)
            jobs.append(
                _untyped.define_asset_job(names.take(f"{name}{suffix}"), selection=selection)
            )
        jobs.append(_incremental(project, stage, members, names))
    return jobs


def _stem(stage: str | None) -> str:
    return safe_name(stage, stage) if stage else NO_STAGE


class _Names:
    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def take(self, name: str) -> str:
        free = name
        while free in self._taken:
            free = f"{name}_{short_hash(free)}"
        self._taken.add(free)
        return free


def _stages(project: Project) -> dict[str | None, list[Loaded]]:
    found: dict[str | None, list[Loaded]] = {}
    for one in project.loaded.values():
        found.setdefault(one.dataflow.stage, []).append(one)
    for one in project.broken:
        found.setdefault(one.dataflow.stage, [])
    return found


def _by_partitions(members: Sequence[Loaded]) -> list[tuple[str, list[Loaded]]]:
    """Return suffixes of job names and the assets of each job; the first has no suffix."""
    kinds: dict[Any, list[Loaded]] = {}
    for one in members:
        kinds.setdefault(one.spec.partitions_def, []).append(one)
    whole = kinds.pop(None, [])
    ordered = sorted(kinds.values(), key=len, reverse=True)
    if not ordered:
        return [("", whole)]
    found = [("", [*whole, *ordered[0]])]
    intervals = Counter(interval_name(group[0].dataflow) for group in ordered[1:])
    for group in ordered[1:]:
        interval = interval_name(group[0].dataflow)
        alone = intervals[interval] == 1
        suffix = "" if alone else f"_{short_hash(repr(group[0].spec.partitions_def))}"
        found.append((f"_{interval}{suffix}", group))
    return found


def _incremental(
    project: Project, stage: str | None, members: Sequence[Loaded], names: _Names
) -> dg.JobDefinition:
    name = names.take(f"{_stem(stage)}_incremental")
    ids = [one.dataflow.dataflow_id for one in members]

    @dg.op(
        name=names.take(f"{name}_load"),
        description=f"Loads what is new in the dataflows of stage {stage or NO_STAGE}.",
        out=dg.Out(dg.Nothing),
    )
    def load(
        context: dg.OpExecutionContext, config: IncrementalConfig, datacoolie: DataCoolieResource
    ) -> None:
        load_stage(
            context,
            project,
            StageLoad(stage, ids, config.select, config.full_refresh),
            datacoolie,
        )

    @_untyped.job(
        name=name,
        description=f"Loads what is new in stage {stage or NO_STAGE}; the partitions that it covers become "
        "materialized. Nothing to choose: launch it as it is.",
    )
    def incremental() -> None:
        loading: Any = load
        loading.alias("load")()

    return incremental
