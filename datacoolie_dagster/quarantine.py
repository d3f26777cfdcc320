"""Dataflows whose metadata is wrong: assets that say so, and fail when they are materialized."""

# no `from __future__ import annotations`: Dagster reads the annotations of steps
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from datacoolie_core.metadata.models import InvalidDataflow
from datacoolie_dagster.names import safe_name, short_hash, source_key_parts
from datacoolie_dagster.translator import group_name


@dataclass(frozen=True)
class Broken:
    """A dataflow that can't be loaded, and its asset.

    Attributes:
        dataflow: What is known of it.
        spec: Its asset.
    """

    dataflow: InvalidDataflow
    spec: dg.AssetSpec

    @property
    def problems(self) -> str:
        """Everything that is wrong with it."""
        return "\n".join(str(problem) for problem in self.dataflow.problems)


def broken_assets(
    invalid: Sequence[InvalidDataflow], taken: Collection[dg.AssetKey]
) -> tuple[Broken, ...]:
    """Return the assets of dataflows that can't be loaded.

    Args:
        invalid: The dataflows.
        taken: Keys of other assets; one that is taken is prefixed with ``invalid``.
    """
    found: dict[dg.AssetKey, Broken] = {}
    for dataflow in invalid:
        key = _key(dataflow)
        if key in taken:
            key = key.with_prefix("invalid")
        if key in found:
            key = dg.AssetKey([*key.path, short_hash(dataflow.dataflow_id)])
        lines = "\n".join(f"- {problem}" for problem in dataflow.problems)
        spec = dg.AssetSpec(
            key=key,
            description=f"**Its metadata is wrong, so it is not loaded.**\n\n{lines}",
            group_name=group_name(dataflow.stage),
            metadata={"datacoolie/dataflow_id": dataflow.dataflow_id},
            tags={"datacoolie/invalid": "true"},
        )
        found[key] = Broken(dataflow, spec)
    return tuple(found.values())


def _key(dataflow: InvalidDataflow) -> dg.AssetKey:
    stage, label = dataflow.stage, dataflow.label
    if stage and label.startswith(f"{stage}/"):
        return dg.AssetKey([stage, *source_key_parts([label.removeprefix(f"{stage}/")])])
    return dg.AssetKey(source_key_parts([label]) or (dataflow.dataflow_id,))


def failing_asset(broken: Broken) -> dg.AssetsDefinition:
    """Return an asset whose step fails with what is wrong with its metadata."""
    name = safe_name("__".join(broken.spec.key.path), broken.dataflow.dataflow_id)
    alone: dg.AssetOut = dg.AssetOut.from_spec(broken.spec, dg.Nothing)

    @dg.multi_asset(name=f"{name}_invalid", outs={"result": alone})
    def fail() -> dg.MaterializeResult[Any]:
        raise dg.Failure(
            description=broken.problems,
            metadata={"dataflow": broken.dataflow.label, "phase": "metadata"},
            allow_retries=False,
        )

    return fail
