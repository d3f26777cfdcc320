"""An asset for each dataflow; a step for each, or one for several of a group."""

# no `from __future__ import annotations`: Dagster reads the annotations of steps
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from datacoolie_dagster.group_steps import load_group
from datacoolie_dagster.groups import Grouping
from datacoolie_dagster.names import safe_name, short_hash
from datacoolie_dagster.pools import pool_of
from datacoolie_dagster.project import Loaded, Project
from datacoolie_dagster.resources import DataCoolieResource
from datacoolie_dagster.steps import Request, load_asset


class LoadConfig(dg.Config):
    """What one run of an asset may ask for."""

    full_refresh: bool = Field(
        default=False,
        description="Read the source from its beginning and replace what is in the destination.",
    )


class PartitionedLoadConfig(dg.Config):
    """What one run of a partitioned asset may ask for."""

    full_refresh: bool = Field(
        default=False,
        description="In a run without a partition: read the source from its beginning and "
        "replace what is in the destination.",
    )
    mode: Literal["auto", "replay"] = Field(
        default="auto",
        description="auto: the running partition of an open range is loaded up to now. "
        "replay: it is loaded again like every other partition.",
    )
    save_watermark: bool = Field(
        default=False, description="Whether replayed partitions move the saved watermark."
    )


def build_assets(project: Project, grouping: Grouping) -> list[dg.AssetsDefinition]:
    """Return the assets of a project's active dataflows.

    Args:
        project: The metadata and its assets.
        grouping: Which of them share a step.
    """
    names = project.steps
    alone = [
        _asset(project, one, names[key])
        for key, one in project.loaded.items()
        if grouping.step_of(key) is None
    ]
    together = [_group(project, step, names[step[0]]) for step in grouping.steps]
    return alone + together


def step_names(loaded: Mapping[str, Loaded], grouping: Grouping) -> dict[str, str]:
    """Return dataflow id → the name of the step that loads it; no two steps share one."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for step in grouping.steps:
        name = _free(f"group_{loaded[step[0]].dataflow.group_number}", step[0], taken)
        found.update(dict.fromkeys(step, name))
    for dataflow_id, one in loaded.items():
        if dataflow_id not in found:
            name = safe_name("__".join(one.key.path), dataflow_id)
            found[dataflow_id] = _free(name, dataflow_id, taken)
    return found


def _free(name: str, dataflow_id: str, taken: set[str]) -> str:
    free = f"{name}_{short_hash(dataflow_id)}" if name in taken else name
    taken.add(free)
    return free


def _asset(project: Project, loaded: Loaded, name: str) -> dg.AssetsDefinition:
    if loaded.spec.partitions_def is None:
        return _whole(project, loaded, name)
    return _partitioned(project, loaded, name)


def _whole(project: Project, loaded: Loaded, name: str) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=name,
        pool=pool_of(loaded.dataflow),
        outs={"result": _asset_out(loaded.spec)},
        ins=_ins(loaded.spec.deps),
    )
    def load(
        context: dg.AssetExecutionContext, config: LoadConfig, datacoolie: DataCoolieResource
    ) -> dg.MaterializeResult[Any]:
        request = Request(full_refresh=config.full_refresh)
        return load_asset(context, project, loaded, datacoolie, request)

    return load


def _partitioned(project: Project, loaded: Loaded, name: str) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=name,
        pool=pool_of(loaded.dataflow),
        outs={"result": _asset_out(loaded.spec)},
        ins=_ins(loaded.spec.deps),
        partitions_def=loaded.spec.partitions_def,
        # chunks come strictly in turn, which several runs could not promise
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def load(
        context: dg.AssetExecutionContext,
        config: PartitionedLoadConfig,
        datacoolie: DataCoolieResource,
    ) -> dg.MaterializeResult[Any]:
        return load_asset(context, project, loaded, datacoolie, _request(config))

    return load


def _group(project: Project, step: Sequence[str], name: str) -> dg.AssetsDefinition:
    members = [project.loaded[one] for one in step]
    partitions = members[0].spec.partitions_def
    if partitions is None:

        @dg.multi_asset(name=name, can_subset=True, **_ends(members))
        def load(
            context: dg.AssetExecutionContext, config: LoadConfig, datacoolie: DataCoolieResource
        ) -> Iterator[dg.Output[None]]:
            request = Request(full_refresh=config.full_refresh)
            yield from load_group(context, project, members, datacoolie, request)

        return load

    @dg.multi_asset(
        name=name,
        can_subset=True,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        **_ends(members),
    )
    def replay(
        context: dg.AssetExecutionContext,
        config: PartitionedLoadConfig,
        datacoolie: DataCoolieResource,
    ) -> Iterator[dg.Output[None]]:
        yield from load_group(context, project, members, datacoolie, _request(config))

    return replay


def _request(config: PartitionedLoadConfig) -> Request:
    return Request(
        full_refresh=config.full_refresh,
        reload=config.mode == "replay",
        save_watermark=config.save_watermark,
    )


def _ends(members: Sequence[Loaded]) -> dict[str, Any]:
    """Return outputs, inputs and inner dependencies of a step with several assets."""
    outs = {f"result_{index}": one.spec for index, one in enumerate(members)}
    inside = {one.key for one in members}
    outside = {
        dep.asset_key: dep
        for spec in outs.values()
        for dep in spec.deps
        if dep.asset_key not in inside
    }
    return {
        "outs": {name: _asset_out(spec, is_required=False) for name, spec in outs.items()},
        "ins": _ins(outside.values()),
        "internal_asset_deps": {
            name: {dep.asset_key for dep in spec.deps} for name, spec in outs.items()
        },
    }


def _asset_out(spec: dg.AssetSpec, *, is_required: bool = True) -> dg.AssetOut:
    alone: Any = spec
    bare: dg.AssetSpec = alone.replace_attributes(deps=[])
    return dg.AssetOut.from_spec(bare, dg.Nothing, is_required=is_required)


def _ins(deps: Iterable[dg.AssetDep]) -> dict[str, dg.AssetIn]:
    """Return the dependencies under names of our own.

    Dagster would make names of the keys: invalid ones from letters outside ASCII, and one and the
    same from ``a/b_c`` and ``a_b/c``, so that a dependency is lost without a word.
    """
    found: dict[str, dg.AssetIn] = {}
    for dep in deps:
        path = dep.asset_key.path
        name = safe_name("__".join(path), dep.asset_key.to_string())
        if name in found:
            name = f"{name}_{short_hash(dep.asset_key.to_string())}"
        found[name] = dg.AssetIn(
            key=dep.asset_key, dagster_type=dg.Nothing, partition_mapping=dep.partition_mapping
        )
    return found
