"""Jobs that any process can make again: the executor runs them as it does in a deployment."""

import json
from pathlib import Path

import dagster as dg

from datacoolie_dagster import build_datacoolie_definitions

LOGGED = {"resources": {"datacoolie": {"config": {"log_path": "logs"}}}}
IN_PROCESS = {"execution": {"config": {"in_process": {}}}}
MULTIPROCESS = {"execution": {"config": {"multiprocess": {"max_concurrent": 2}}}}


def write(lake) -> None:
    """Write the lake's metadata where :func:`job_of` finds it."""
    document = {"metadata": lake.document, "arguments": lake.arguments}
    (lake.root / "location.json").write_text(json.dumps(document))


def definitions_of(root: str, *, dask: bool = False) -> dg.Definitions:
    """Return the definitions of a lake's folder."""
    from datacoolie_core.metadata.loader import metadata_from_documents

    executor = None
    if dask:
        from dagster_dask import dask_executor

        executor = dask_executor

    document = json.loads((Path(root) / "location.json").read_text())
    metadata = metadata_from_documents([("flows.json", document["metadata"])])
    return build_datacoolie_definitions(
        metadata, project_dir=root, executor=executor, **document["arguments"]
    )


def job_of(root: str, retries: int, dask: bool) -> dg.JobDefinition:
    """Return a job of all assets."""
    policy = dg.RetryPolicy(max_retries=retries) if retries else None
    selection = dg.AssetSelection.all()
    job = dg.define_asset_job("everything", selection=selection, op_retry_policy=policy)
    merged = dg.Definitions.merge(definitions_of(root, dask=dask), dg.Definitions(jobs=[job]))
    return merged.resolve_job_def("everything")


def execute(lake, *keys: str, retries: int = 0, executor=IN_PROCESS, dask: bool = False, **options):
    """Run all assets of a lake, or some, by the executor of its definitions."""
    write(lake)
    job = dg.build_reconstructable_job(
        "tests.dagster.located",
        "job_of",
        reconstructor_working_directory=str(Path(__file__).parents[2]),
        reconstructable_args=(str(lake.root), retries, dask),
    )
    return dg.execute_job(
        job,
        instance=lake.instance,
        run_config={**LOGGED, **executor, **options.pop("run_config", {})},
        asset_selection=[dg.AssetKey(key.split("/")) for key in keys] or None,
        **options,
    )
