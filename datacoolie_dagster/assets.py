"""One asset and one step for each dataflow."""

# no `from __future__ import annotations`: Dagster reads the annotations of steps
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from datacoolie_dagster.names import safe_name, short_hash
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


def build_assets(project: Project) -> list[dg.AssetsDefinition]:
    """Return the assets of a project's active dataflows."""
    names = op_names(project)
    return [_asset(project, one, names[key]) for key, one in project.loaded.items()]


def op_names(project: Project) -> dict[str, str]:
    """Return dataflow id → the name of its step, each once."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for dataflow_id, one in project.loaded.items():
        name = safe_name("__".join(one.key.path), dataflow_id)
        if name in taken:
            name = f"{name}_{short_hash(dataflow_id)}"
        taken.add(name)
        found[dataflow_id] = name
    return found


def _asset(project: Project, loaded: Loaded, name: str) -> dg.AssetsDefinition:
    if loaded.spec.partitions_def is None:
        return _whole(project, loaded, name)
    return _partitioned(project, loaded, name)


def _whole(project: Project, loaded: Loaded, name: str) -> dg.AssetsDefinition:
    @dg.multi_asset(name=name, outs=_out(loaded.spec), ins=_ins(loaded.spec))
    def load(
        context: dg.AssetExecutionContext, config: LoadConfig, datacoolie: DataCoolieResource
    ) -> dg.MaterializeResult[Any]:
        request = Request(full_refresh=config.full_refresh)
        return load_asset(context, project, loaded, datacoolie, request)

    return load


def _partitioned(project: Project, loaded: Loaded, name: str) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=name,
        outs=_out(loaded.spec),
        ins=_ins(loaded.spec),
        partitions_def=loaded.spec.partitions_def,
        # chunks come strictly in turn, which several runs could not promise
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def load(
        context: dg.AssetExecutionContext,
        config: PartitionedLoadConfig,
        datacoolie: DataCoolieResource,
    ) -> dg.MaterializeResult[Any]:
        request = Request(
            full_refresh=config.full_refresh,
            reload=config.mode == "replay",
            save_watermark=config.save_watermark,
        )
        return load_asset(context, project, loaded, datacoolie, request)

    return load


def _out(spec: dg.AssetSpec) -> dict[str, dg.AssetOut]:
    alone: Any = spec
    return {"result": dg.AssetOut.from_spec(alone.replace_attributes(deps=[]), dg.Nothing)}


def _ins(spec: dg.AssetSpec) -> dict[str, dg.AssetIn]:
    """Return the dependencies under names of our own.

    Dagster would make names of the keys: invalid ones from letters outside ASCII, and one and the
    same from ``a/b_c`` and ``a_b/c``, so that a dependency is lost without a word.
    """
    found: dict[str, dg.AssetIn] = {}
    for dep in spec.deps:
        path = dep.asset_key.path
        name = safe_name("__".join(path), dep.asset_key.to_string())
        if name in found:
            name = f"{name}_{short_hash(dep.asset_key.to_string())}"
        found[name] = dg.AssetIn(
            key=dep.asset_key, dagster_type=dg.Nothing, partition_mapping=dep.partition_mapping
        )
    return found
