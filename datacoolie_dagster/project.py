"""What every step of a code location knows, and how it opens the core's driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_dagster.run_log import GroupLog, RunLog
from datacoolie_dagster.watermarks import AssetMetadataStateStore

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.metadata.models import Dataflow, Metadata
    from datacoolie_core.metadata.scope import OnInvalid
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.run.events import Listener
    from datacoolie_core.state.stores import StateStore
    from datacoolie_dagster.quarantine import Broken
    from datacoolie_dagster.resources import DataCoolieResource

_RETRY_TAG = "dagster/retry_number"
_RESUME_TAG = "dagster/is_resume_retry"


@dataclass(frozen=True)
class Loaded:
    """A dataflow and its asset.

    Attributes:
        dataflow: The dataflow.
        spec: Its asset, as the translator made it.
        reads: The one asset that it reads; None if there are several.
    """

    dataflow: Dataflow
    spec: dg.AssetSpec
    reads: dg.AssetKey | None = None

    @property
    def key(self) -> dg.AssetKey:
        """The asset's key."""
        return self.spec.key


@dataclass(frozen=True)
class Project:
    """The metadata and where it is run; steps and jobs hold it, definitions do not show it.

    Attributes:
        metadata: The scope.
        project_dir: Root of relative paths; None is found in the process that runs.
        env: Values that stand in for environment variables when secrets are resolved.
        sql_paths: Roots of SQL files.
        state: A store of the user's own, in place of the assets' metadata.
        graph: Of the metadata; built once in a process.
        loaded: Dataflow id → the dataflow and its asset, active ones alone.
        steps: Dataflow id → the name of the step that loads it.
        broken: Dataflows whose metadata is wrong, under ``on_invalid: quarantine``.
        on_invalid: What wrong metadata means.
    """

    metadata: Metadata
    graph: Graph
    project_dir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    sql_paths: Sequence[str] = ()
    state: StateStore | None = None
    loaded: Mapping[str, Loaded] = field(default_factory=dict[str, Loaded])
    steps: Mapping[str, str] = field(default_factory=dict[str, str])
    broken: Sequence[Broken] = ()
    on_invalid: OnInvalid = "fail"

    def waits(self, dataflow_id: str) -> bool:
        """Say whether a dataflow may have to wait for another one."""
        place = self.graph.places.get(dataflow_id)
        ordered = place is not None and place.bucket > 0
        return ordered or bool(self.graph.upstream_edges(dataflow_id))

    def open(
        self,
        context: dg.AssetExecutionContext | dg.OpExecutionContext,
        resource: DataCoolieResource,
        dataflows: Sequence[Dataflow],
        *,
        listeners: Sequence[Listener] = (),
    ) -> DataCoolieDriver:
        """Return a driver for a step.

        Args:
            context: The step's.
            resource: How loads go.
            dataflows: What the step loads; their watermarks are read together.
            listeners: Told of events, beside the run's log.
        """
        from datacoolie_core.driver import DataCoolieDriver

        return DataCoolieDriver(
            self.metadata,
            project_dir=self.project_dir,
            state=self._store(context.instance, resource, dataflows),
            config=resource.run_config(retries=not is_retry(context)),
            listeners=(
                GroupLog(context.log, len(dataflows))
                if len(dataflows) > 1
                else RunLog(context.log),
                *listeners,
            ),
            log_path=resource.log_path,
            sql_paths=self.sql_paths,
            on_invalid=self.on_invalid,
            resolvers={"env": self._environment()} if self.env else None,
            graph=self.graph,
        )

    def _store(
        self,
        instance: dg.DagsterInstance,
        resource: DataCoolieResource,
        dataflows: Sequence[Dataflow],
    ) -> StateStore | str:
        if self.state is not None:
            return self.state
        if resource.state is not None:
            return resource.state
        keys = {identifier: one.key for identifier, one in self.loaded.items()}
        return AssetMetadataStateStore(instance, keys, [one.dataflow_id for one in dataflows])

    def _environment(self) -> Callable[[str, str], str | None]:
        def read(argument: str, key: str) -> str | None:
            name = f"{argument}{key}"
            return self.env.get(name, os.environ.get(name))

        return read


def is_retry(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> bool:
    """Say whether Dagster repeats a step or a run of its own accord."""
    return context.retry_number > 0 or _RETRY_TAG in context.run.tags


def asked_partitions(context: dg.AssetExecutionContext, loaded: Loaded) -> list[str]:
    """Return the partitions of an asset that a run asks for, none if it asks for no partition.

    A run's partition is that of every step in it, also of an asset without partitions.
    """
    keyed = context.has_partition_key or context.has_partition_key_range
    return list(context.partition_keys) if keyed and loaded.spec.partitions_def is not None else []


def resumed_runs(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> list[str]:
    """Return the runs whose finished work a step need not do again.

    That is its own run when the step is repeated, and each run that was resumed from its failure,
    by a person or by run retries.
    """
    found = [context.run.run_id] if context.retry_number > 0 else []
    run: dg.DagsterRun | None = context.run
    while run is not None and run.parent_run_id and _resumes(run):
        found.append(run.parent_run_id)
        run = context.instance.get_run_by_id(run.parent_run_id)
    return found


def recorded_keys(
    context: dg.AssetExecutionContext | dg.OpExecutionContext, run_ids: Iterable[str]
) -> set[dg.AssetKey]:
    """Return the assets of which runs have recorded a materialization."""
    found: set[dg.AssetKey] = set()
    for run_id in run_ids:
        found |= context.instance.get_asset_keys_for_run(
            run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        )
    return found


def _resumes(run: dg.DagsterRun) -> bool:
    return _RETRY_TAG in run.tags or run.tags.get(_RESUME_TAG) == "true"
