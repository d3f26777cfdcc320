"""What the components share: attributes of ``defs.yaml``, and the way to definitions."""

# no `from __future__ import annotations`: Dagster reads the types of attributes
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import dagster as dg
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import Field

from datacoolie_core.metadata.models import Dataflow, Metadata
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_dagster.definitions import build_datacoolie_definitions
from datacoolie_dagster.resources import DataCoolieResource
from datacoolie_dagster.translator import (
    DagsterDataCoolieTranslator,
    DataflowTranslatorData,
    SourceTranslatorData,
)

if TYPE_CHECKING:
    from datacoolie_core.metadata.scope import OnInvalid

_SETTINGS_FILE = "datacoolie.toml"


class RunAttributes(dg.Model, dg.Resolvable):
    """How loads go: ``run`` of a component's attributes."""

    max_workers: int = Field(
        default=8, description="Dataflows that a group step or an incremental job loads at once."
    )
    retry_count: int = Field(default=0, description="Attempts after the first.")
    retry_delay: float = Field(
        default=5.0, description="Seconds before the second attempt; doubles, capped at 60."
    )
    stop_on_error: bool = Field(
        default=False,
        description="After the first failure, a group step or an incremental job starts no more.",
    )
    on_upstream_failure: Literal["continue", "block"] = Field(
        default="continue",
        description="Load against the last good version of what failed, or skip.",
    )
    job_num: int = Field(default=1, description="Jobs that share the dataflows of a stage.")
    allowed_function_prefixes: list[str] = Field(
        default=[],
        description="Packages that metadata may call functions of; empty allows every one.",
    )

    def config(self) -> DataCoolieRunConfig:
        """Return the settings for the core.

        Raises:
            SettingsError: For a value out of range.
        """
        prefixes = tuple(self.allowed_function_prefixes)
        rest = self.model_dump(exclude={"allowed_function_prefixes"})
        return DataCoolieRunConfig(**rest, allowed_function_prefixes=prefixes)


def template_variables(data: DataflowTranslatorData) -> dict[str, Any]:
    """Return what a ``translation`` may name: ``dataflow``, and ``data`` with its place.

    Args:
        data: The dataflow and its place in the graph.
    """
    dataflow = data.dataflow
    fields = {name: getattr(dataflow, name) for name in Dataflow.model_fields}
    more = {"load_type": dataflow.destination.load_type, "options": dataflow.options}
    return {"dataflow": SimpleNamespace(**{**fields, **more}), "data": data}


def component_folder(context: dg.ComponentLoadContext) -> Path:
    """Return the folder of a component.

    Args:
        context: Where it is: a folder with a ``defs.yaml``, or a file ``component.py``.
    """
    return context.path if context.path.is_dir() else context.path.parent


Translation = Annotated[
    TranslationFn[DataflowTranslatorData],
    TranslationFnResolver[DataflowTranslatorData](template_variables),
]


@dataclass(kw_only=True)
class DataCoolieComponentBase(dg.Component, dg.Resolvable):
    """The attributes that do not say where the metadata comes from.

    Attributes:
        project_dir: Root of the relative paths in the metadata, relative to the component's
            folder; by default the nearest folder upwards, within the dg project, that holds a
            ``datacoolie.toml``, else the component's own folder.
        environment: Whose overlays are laid over the metadata.
        env: Values that stand in for environment variables when secrets are resolved.
        state: Folder of the watermarks; by default they are in the assets' metadata.
        granularity: What a step loads: ``dataflow``, ``group`` or ``auto``.
        translation: Changes the assets.
        run: How loads go.
        on_invalid: What wrong metadata means: ``fail`` or ``quarantine``.
        sql_paths: Roots of SQL files, relative to the project's; by default that itself.
        block_on_bad_rows: Whether rows in quarantine fail the asset's check.
    """

    project_dir: str | None = None
    environment: str | None = None
    env: dict[str, str] | None = field(default=None, repr=False)
    state: str | None = None
    granularity: Literal["auto", "dataflow", "group"] = "auto"
    translation: Translation | None = None
    run: RunAttributes | None = None
    on_invalid: Literal["fail", "quarantine"] = "fail"
    sql_paths: list[str] | None = None
    block_on_bad_rows: bool = False

    def get_asset_spec(self, data: DataflowTranslatorData) -> dg.AssetSpec:
        """Return the asset of a dataflow; override it to decide in Python.

        Args:
            data: The dataflow and its place in the graph.
        """
        spec = DagsterDataCoolieTranslator().get_asset_spec(data)
        return spec if self.translation is None else self.translation(spec, data)

    def get_source_asset_spec(self, data: SourceTranslatorData) -> dg.AssetSpec:
        """Return the external asset of a source that no dataflow writes.

        Args:
            data: The source.
        """
        return DagsterDataCoolieTranslator().get_source_asset_spec(data)

    def root(self, context: dg.ComponentLoadContext) -> Path:
        """Return the root of relative paths: absolute, and found anew in each process.

        Args:
            context: Where the component is.
        """
        folder = component_folder(context)
        if self.project_dir is not None:
            return (folder / Path(self.project_dir).expanduser()).resolve()
        for one in (folder, *folder.parents):
            if (one / _SETTINGS_FILE).is_file():
                return one
            if one == context.project_root:
                break
        return folder

    def definitions(
        self, context: dg.ComponentLoadContext, metadata: Metadata | Sequence[str]
    ) -> dg.Definitions:
        """Return the definitions of a metadata scope, with the component's attributes.

        Args:
            context: Where the component is.
            metadata: The scope, or the paths of its files and folders.

        Raises:
            MetadataError: The metadata is wrong; it holds every problem.
        """
        on_invalid: OnInvalid = self.on_invalid
        made = build_datacoolie_definitions(
            metadata,
            project_dir=self.root(context),
            env=self.env,
            translator=_ComponentTranslator(self),
            granularity=self.granularity,
            run_config=None if self.run is None else self.run.config(),
            state=self.state,
            sql_paths=self.sql_paths or (),
            on_invalid=on_invalid,
            environment=self.environment,
            block_on_bad_rows=self.block_on_bad_rows,
        )
        return _mergeable(made)


def _mergeable(made: dg.Definitions) -> dg.Definitions:
    """Return definitions that go together with those of another component of the same settings.

    Dagster merges the components of a project, and takes one object alone as the executor, and
    one for a resource's key.
    """
    resources = {
        key: _same(one.model_dump_json()) if isinstance(one, DataCoolieResource) else one
        for key, one in (made.resources or {}).items()
    }
    return dg.Definitions(
        assets=made.assets,
        asset_checks=made.asset_checks,
        jobs=made.jobs,
        schedules=made.schedules,
        sensors=made.sensors,
        resources=resources,
        executor=made.executor,
        loggers=made.loggers,
        metadata=made.metadata,
    )


@cache
def _same(settings: str) -> DataCoolieResource:
    return DataCoolieResource(**json.loads(settings))


class _ComponentTranslator(DagsterDataCoolieTranslator):
    """Asks the component, so that its subclasses may override what an asset looks like."""

    def __init__(self, component: DataCoolieComponentBase) -> None:
        self._component = component

    def get_asset_spec(self, data: DataflowTranslatorData) -> dg.AssetSpec:
        return self._component.get_asset_spec(data)

    def get_source_asset_spec(self, data: SourceTranslatorData) -> dg.AssetSpec:
        return self._component.get_source_asset_spec(data)
