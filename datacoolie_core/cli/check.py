"""``datacoolie check``: is the metadata right? Reads nothing else."""

from __future__ import annotations

import json

from rich.console import Console

from datacoolie_core.cli.options import (
    AsJson,
    Env,
    Lenient,
    MetadataPaths,
    OnInvalid,
    ProjectDir,
    SqlPaths,
    open_driver,
    open_metadata,
    settings_for,
)


def check(
    metadata: MetadataPaths = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    sql_path: SqlPaths = None,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
    as_json: AsJson = False,
) -> None:
    """Check the metadata: every problem at once, with its place and what was probably meant.

    Example: datacoolie check --metadata examples/flights/metadata
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=lenient, on_invalid=on_invalid)
    with open_driver(scope, root, settings, sql_paths=sql_path, on_invalid=on_invalid) as driver:
        graph = driver.graph
    warnings = [*(str(one) for one in scope.warnings), *(str(one) for one in graph.warnings)]
    if as_json:
        document = {
            "version": 1,
            "status": "succeeded",
            "connections": len(scope.connections),
            "dataflows": len(scope.dataflows),
            "warnings": warnings,
        }
        print(json.dumps(document, ensure_ascii=False))
        return
    console = Console(soft_wrap=True, highlight=False)
    for warning in warnings:
        console.print(f"warning: {warning}", markup=False)
    console.print(
        f"{len(scope.dataflows)} dataflows, {len(scope.connections)} connections: all good"
    )
