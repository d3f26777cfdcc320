"""From metadata to a code location's definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from datacoolie_core.metadata.loader import load_metadata
from datacoolie_core.metadata.models import Metadata
from datacoolie_core.plan.graph import build_graph
from datacoolie_core.plan.query import query_reader
from datacoolie_core.settings import find_project_dir, load_settings
from datacoolie_dagster.asset_graph import build_asset_graph
from datacoolie_dagster.assets import build_assets, step_names
from datacoolie_dagster.checks import build_quarantine_checks
from datacoolie_dagster.collector import collector_paused
from datacoolie_dagster.jobs import build_jobs
from datacoolie_dagster.project import Project
from datacoolie_dagster.quarantine import broken_assets, failing_asset
from datacoolie_dagster.resources import DataCoolieResource
from datacoolie_dagster.translator import DagsterDataCoolieTranslator
from datacoolie_dagster.warm import warm_executor

if TYPE_CHECKING:
    from datacoolie_core.metadata.scope import OnInvalid
    from datacoolie_core.run.config import DataCoolieRunConfig
    from datacoolie_core.state.stores import StateStore
    from datacoolie_dagster.groups import Granularity


@collector_paused()
def build_datacoolie_definitions(
    metadata: Metadata | str | Path | Sequence[str | Path],
    *,
    project_dir: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    translator: DagsterDataCoolieTranslator | None = None,
    granularity: Granularity = "auto",
    run_config: DataCoolieRunConfig | None = None,
    state: StateStore | str | Path | None = None,
    sql_paths: Sequence[str | Path] = (),
    on_invalid: OnInvalid = "fail",
    environment: str | None = None,
    block_on_bad_rows: bool = False,
    executor: dg.ExecutorDefinition | None = None,
) -> dg.Definitions:
    """Return assets, jobs and the resource for the dataflows of a metadata scope.

    Args:
        metadata: The scope, loaded, or the paths of its files and folders.
        project_dir: Root of relative paths; by default it is found in each process that runs, as
            the command line finds it. No definition holds it.
        env: Values that stand in for environment variables when secrets are resolved, such as
            those of a ``.env`` file; what is missing here is read from the environment.
        translator: Decides what an asset looks like.
        granularity: ``dataflow``: a step for each dataflow. ``group``: a step for each group, which
            loads hundreds in one process. ``auto``: the second where the order inside a group would
            take more than 100 edges (docs/dagster.md, "Granularity").
        run_config: How loads go: workers, retries, policies.
        state: A store, or the folder of one; by default watermarks are in the assets' metadata.
        sql_paths: Roots of SQL files; by default the project root.
        on_invalid: ``quarantine`` keeps a dataflow with wrong metadata as an asset that fails and
            says why; ``fail`` loads nothing at all.
        environment: Whose overlays are laid over metadata that is given as paths; by default
            ``DATACOOLIE_ENV``, else ``env`` in ``datacoolie.toml``. Steps must run with the same.
        block_on_bad_rows: Whether rows in quarantine fail the asset's check, and what depends on
            the asset is not loaded in that run; else the check warns.
        executor: Runs the steps; by default Dagster's own, or with group steps one that starts a
            step when all that it needs was put out (docs/dagster.md, "Granularity").

    Returns:
        Definitions to use as they are, or to merge with others.

    Raises:
        MetadataError: The metadata is wrong; it holds every problem.
    """
    root = find_project_dir(None if project_dir is None else str(project_dir))
    roots = tuple(str(path) for path in sql_paths)
    scope = _load(metadata, root, on_invalid, environment)
    graph = build_graph(scope, read_query=query_reader(root, roots), on_invalid=on_invalid)
    job_num = 1 if run_config is None else run_config.job_num
    assets = build_asset_graph(
        graph, translator or DagsterDataCoolieTranslator(), granularity=granularity, job_num=job_num
    )
    own_store = None if state is None or isinstance(state, str | Path) else state
    project = Project(
        metadata=scope,
        graph=graph,
        project_dir=None if project_dir is None else str(project_dir),
        env=dict(env or {}),
        sql_paths=roots,
        state=own_store,
        loaded=assets.loaded,
        steps=step_names(assets.loaded, assets.grouping),
        broken=broken_assets(graph.invalid, assets.keys),
        on_invalid=on_invalid,
    )
    return dg.Definitions(
        assets=[
            *build_assets(project, assets.grouping),
            *(failing_asset(one) for one in project.broken),
            *assets.inactive,
            *assets.sources,
        ],
        asset_checks=build_quarantine_checks(project, blocking=block_on_bad_rows),
        jobs=build_jobs(project, taken=project.steps.values()),
        resources={"datacoolie": _resource(run_config, state, root)},
        executor=executor or (warm_executor() if assets.grouping.steps else None),
    )


def _load(
    metadata: Metadata | str | Path | Sequence[str | Path],
    root: str,
    on_invalid: OnInvalid,
    environment: str | None,
) -> Metadata:
    if isinstance(metadata, Metadata):
        return metadata
    paths = [metadata] if isinstance(metadata, str | Path) else list(metadata)
    return load_metadata(
        [str(path) for path in paths],
        project_dir=root,
        on_invalid=on_invalid,
        environment=environment or load_settings(root).env,
    )


def _resource(
    run_config: DataCoolieRunConfig | None, state: StateStore | str | Path | None, root: str
) -> DataCoolieResource:
    folder = str(state) if isinstance(state, str | Path) else None
    allowed = list(load_settings(root).allowed_function_prefixes)
    if run_config is None:
        return DataCoolieResource(state=folder, allowed_function_prefixes=allowed)
    return DataCoolieResource(
        state=folder,
        max_workers=run_config.max_workers,
        retry_count=run_config.retry_count,
        retry_delay=run_config.retry_delay,
        stop_on_error=run_config.stop_on_error,
        on_upstream_failure=run_config.on_upstream_failure,
        allowed_function_prefixes=list(run_config.allowed_function_prefixes) or allowed,
    )
