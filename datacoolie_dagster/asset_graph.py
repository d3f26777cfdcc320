"""From the core's graph to asset specs: keys, dependencies and their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core.errors import MetadataError, SettingsError
from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.plan.edges import Edge
from datacoolie_core.plan.selection import shard_of, skip_reason
from datacoolie_dagster.automation import Moving, condition_of
from datacoolie_dagster.collector import collector_paused
from datacoolie_dagster.definition_problems import (
    clash_problem,
    problems_of,
    replay_problem,
    source_clash_problem,
)
from datacoolie_dagster.groups import share_out
from datacoolie_dagster.names import key_parts
from datacoolie_dagster.partitions import mapping_between, partitions_of
from datacoolie_dagster.project import Loaded
from datacoolie_dagster.translator import (
    DataflowTranslatorData,
    SourceTranslatorData,
    UpstreamAsset,
)

if TYPE_CHECKING:
    from datacoolie_core.errors import Problem
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.lineage import ExternalSource
    from datacoolie_dagster.groups import Granularity, Grouping
    from datacoolie_dagster.translator import DagsterDataCoolieTranslator


@dataclass(frozen=True)
class AssetGraph:
    """All assets of a metadata scope.

    Attributes:
        loaded: Dataflow id → an active dataflow and its asset, each after what it waits for.
        grouping: Which of them share a step.
        inactive: Assets that stay in the graph and can't be materialized.
        sources: What no dataflow writes.
    """

    loaded: Mapping[str, Loaded]
    grouping: Grouping
    inactive: Sequence[dg.AssetSpec] = ()
    sources: Sequence[dg.AssetSpec] = ()

    @property
    def keys(self) -> set[dg.AssetKey]:
        """The keys of them all."""
        specs = (*(one.spec for one in self.loaded.values()), *self.inactive, *self.sources)
        return {spec.key for spec in specs}


@collector_paused()
def build_asset_graph(
    graph: Graph,
    translator: DagsterDataCoolieTranslator,
    *,
    granularity: Granularity = "auto",
    job_num: int = 1,
) -> AssetGraph:
    """Return the assets of a graph.

    An inactive dataflow keeps its asset, so that lineage does not break, but without a step.

    Args:
        graph: The core's.
        translator: Makes the specs.
        granularity: Which dataflows share a step.
        job_num: How many jobs share the metadata, for the shard tag.

    Raises:
        MetadataError: For what can't be in Dagster; it holds every problem.
    """
    problems = problems_of(graph.dataflows)
    partitions = _partitions(graph.dataflows, problems)
    if problems:
        raise MetadataError(problems)
    grouping = share_out(graph, partitions, granularity)
    builder = _Builder(graph, translator, job_num, partitions, grouping)
    for dataflow in graph.dataflows:
        builder.add(dataflow)
    builder.raise_clashes()
    return AssetGraph(
        loaded={one: loaded for one, loaded in builder.made.items() if _is_active(loaded.dataflow)},
        grouping=grouping,
        inactive=[one.spec for one in builder.made.values() if not _is_active(one.dataflow)],
        sources=list({spec.key: spec for spec in builder.sources.values()}.values()),
    )


@dataclass
class _Builder:
    """Goes through the dataflows in an order in which upstream keys are known."""

    graph: Graph
    translator: DagsterDataCoolieTranslator
    job_num: int
    partitions: Mapping[str, dg.PartitionsDefinition | None]
    grouping: Grouping
    made: dict[str, Loaded] = field(default_factory=dict[str, Loaded])
    sources: dict[tuple[str, ...], dg.AssetSpec] = field(
        default_factory=dict[tuple[str, ...], dg.AssetSpec]
    )

    def __post_init__(self) -> None:
        readers: dict[tuple[str, ...], tuple[ExternalSource, list[Dataflow]]] = {}
        by_id = self.graph.by_id
        for dataflow_id, externals in self.graph.externals.items():
            for one in externals:
                readers.setdefault(one.key, (one, []))[1].append(by_id[dataflow_id])
        made: dict[dg.AssetKey, dg.AssetSpec] = {}
        taken = {dg.AssetKey(key_parts(dataflow)) for dataflow in self.graph.dataflows}
        for one, flows in readers.values():
            spec = self.translator.get_source_asset_spec(SourceTranslatorData(one, flows))
            if spec.key in taken:
                # a connection and a stage of one name: the table that is loaded keeps the key
                spec = spec.replace_attributes(key=spec.key.with_prefix("source"))  # pyright: ignore[reportUnknownMemberType]
            self.sources[one.key] = made.setdefault(spec.key, spec)

    def add(self, dataflow: Dataflow) -> None:
        partitions = self.partitions[dataflow.dataflow_id]
        upstream = list(self.grouping.edges_to(dataflow.dataflow_id))
        moving = self._moving(upstream)
        reads = self._reads(dataflow)
        data = DataflowTranslatorData(
            dataflow=dataflow,
            upstream=[
                *(UpstreamAsset(self._key(one), one.origin, one.detail) for one in upstream),
                *(
                    UpstreamAsset(self.sources[one.key].key, "source", one.kind)
                    for one in self.graph.externals.get(dataflow.dataflow_id, ())
                ),
            ],
            deps=self._deps(dataflow, upstream, partitions),
            partitions_def=partitions,
            automation_condition=condition_of(dataflow, moving, partitions),
            shard=shard_of(dataflow.dataflow_id, dataflow.group_number, self.job_num),
            reads=reads,
        )
        spec = self.translator.get_asset_spec(data)
        self.made[dataflow.dataflow_id] = Loaded(dataflow, spec, reads)

    def _reads(self, dataflow: Dataflow) -> dg.AssetKey | None:
        """Return the one asset whose columns a dataflow reads; None if there are several."""
        externals = self.graph.externals.get(dataflow.dataflow_id, ())
        identity = destination_identity(dataflow.source)
        writers = () if identity is None else self.graph.writers_of(identity)
        keys = [self.sources[one.key].key for one in externals]
        keys += [self.made[one].key for one in writers if one in self.made]
        return keys[0] if len(keys) == 1 else None

    def _key(self, edge: Edge) -> dg.AssetKey:
        return self.made[edge.upstream_id].key

    def _moving(self, upstream: Sequence[Edge]) -> list[Moving]:
        found = ((edge, self.made[edge.upstream_id]) for edge in upstream)
        return [
            Moving(
                one.key, one.dataflow, edge.origin == "order", one.spec.partitions_def is not None
            )
            for edge, one in found
            if _is_active(one.dataflow)
        ]

    def _deps(
        self,
        dataflow: Dataflow,
        upstream: Sequence[Edge],
        partitions: dg.PartitionsDefinition | None,
    ) -> list[dg.AssetDep]:
        deps = {
            one.key: dg.AssetDep(
                one.key, partition_mapping=mapping_between(one.spec.partitions_def, partitions)
            )
            for one in (self.made[edge.upstream_id] for edge in upstream)
        }
        for external in self.graph.externals.get(dataflow.dataflow_id, ()):
            key = self.sources[external.key].key
            deps.setdefault(key, dg.AssetDep(key))
        return list(deps.values())

    def raise_clashes(self) -> None:
        seen: dict[dg.AssetKey, Dataflow] = {}
        problems = [
            clash_problem(one.key, seen[one.key], one.dataflow)
            for one in self.made.values()
            if seen.setdefault(one.key, one.dataflow) is not one.dataflow
        ]
        problems += [
            source_clash_problem(spec.key, seen[spec.key])
            for spec in self.sources.values()
            if spec.key in seen
        ]
        if problems:
            raise MetadataError(problems)


def _partitions(
    dataflows: Sequence[Dataflow], problems: list[Problem]
) -> dict[str, dg.PartitionsDefinition | None]:
    """Return dataflow id → partitions; ranges that are written alike are cut once."""
    known: dict[str, dg.PartitionsDefinition | None] = {}
    found: dict[str, dg.PartitionsDefinition | None] = {}
    for dataflow in dataflows:
        replay = dataflow.options.replay
        written = "" if replay is None else replay.model_dump_json()
        try:
            if written not in known:
                known[written] = partitions_of(dataflow)
            found[dataflow.dataflow_id] = known[written]
        except SettingsError as error:
            problems.append(replay_problem(dataflow, error))
    return found


def _is_active(dataflow: Dataflow) -> bool:
    return skip_reason(dataflow) is None
