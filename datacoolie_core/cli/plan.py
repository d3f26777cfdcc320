"""``datacoolie plan``: what would run, in which order and why."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from datacoolie_core.cli.options import (
    AsJson,
    Exclude,
    Lenient,
    MetadataPaths,
    OnInvalid,
    ProjectDir,
    Select,
    SqlPaths,
    Stages,
    State,
    open_driver,
    open_metadata,
    settings_for,
)
from datacoolie_core.plan.planner import Plan, describe_step, plan_document
from datacoolie_core.run.config import DataCoolieRunConfig


def plan(
    metadata: MetadataPaths = None,
    stage: Stages = None,
    select: Select = None,
    exclude: Exclude = None,
    state: State = None,
    project_dir: ProjectDir = None,
    sql_path: SqlPaths = None,
    job_num: Annotated[int, typer.Option(help="How many jobs share the metadata.")] = 1,
    job_index: Annotated[int, typer.Option(help="Which of them this is.")] = 0,
    full_refresh: Annotated[bool, typer.Option("--full-refresh", help="Ignore state.")] = False,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
    as_json: AsJson = False,
) -> None:
    """Show what would run: order, reasons, windows. Reads state, writes nothing.

    Example: datacoolie plan --metadata examples/flights/metadata --stage silver
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, lenient=lenient, on_invalid=on_invalid)
    config = DataCoolieRunConfig(job_num=job_num, job_index=job_index)
    with open_driver(
        scope, root, settings, state=state, sql_paths=sql_path, config=config, on_invalid=on_invalid
    ) as driver:
        found = driver.plan(
            stages=stage, include=select or (), exclude=exclude or (), full_refresh=full_refresh
        )
    if as_json:
        print(json.dumps(plan_document(found), ensure_ascii=False, default=str))
        return
    _show(found, stage)


def _show(found: Plan, stage: list[str] | None) -> None:
    console = Console(soft_wrap=True, highlight=False)
    total = len(found.steps)
    runs = sum(step.skip_reason is None for step in found.steps)
    number, index = found.shard or (1, 0)
    title = f"stage {','.join(stage)}" if stage else "all stages"
    console.print(f"Plan  {title} · shard {index + 1}/{number} · {runs} of {total} dataflows")
    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 2))
    for step in found.steps:
        load_type = "skipped" if step.skip_reason else step.dataflow.destination.load_type
        table.add_row(step.dataflow.label, load_type, describe_step(step))
    console.print(table)
    for warning in found.warnings:
        console.print(f"warning: {warning}", markup=False)
    console.print("Nothing was run. To run it: datacoolie run, with the same options.")
