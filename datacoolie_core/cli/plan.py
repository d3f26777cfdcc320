"""``datacoolie plan``: what would run, in which order and why."""

from __future__ import annotations

import json
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from datacoolie_core.cli.options import (
    AsJson,
    Env,
    Exclude,
    Functions,
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
from datacoolie_core.plan.describe import (
    describe_bounds,
    describe_step,
    plan_document,
    sql_of,
    would_fail,
)
from datacoolie_core.run.config import DataCoolieRunConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacoolie_core.plan.planner import Plan
    from datacoolie_core.run.connect import Connected


def plan(
    metadata: MetadataPaths = None,
    stage: Stages = None,
    select: Select = None,
    exclude: Exclude = None,
    state: State = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    sql_path: SqlPaths = None,
    allow_functions: Functions = None,
    job_num: Annotated[int, typer.Option(help="How many jobs share the metadata.")] = 1,
    job_index: Annotated[int, typer.Option(help="Which of them this is.")] = 0,
    full_refresh: Annotated[bool, typer.Option("--full-refresh", help="Ignore state.")] = False,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Ask sources and destinations whether all fits."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what would run: order, reasons, windows, SQL. Reads state, writes nothing.

    Exit code 1 says that a dataflow would fail.

    Example: datacoolie plan --metadata examples/flights/metadata --stage silver
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=lenient, on_invalid=on_invalid)
    config = DataCoolieRunConfig(
        job_num=job_num,
        job_index=job_index,
        max_workers=settings.max_workers,
        allowed_function_prefixes=tuple(allow_functions or settings.allowed_function_prefixes),
    )
    with open_driver(
        scope, root, settings, state=state, sql_paths=sql_path, config=config, on_invalid=on_invalid
    ) as driver:
        found = driver.plan(
            stages=stage, include=select or (), exclude=exclude or (), full_refresh=full_refresh
        )
        connected = driver.connect(found) if connect else None
    if as_json:
        print(json.dumps(_document(found, connected), ensure_ascii=False, default=str))
    else:
        show_plan(found, stage, connected=connected)
    bad = found.invalid or any(would_fail(step) for step in found.steps)
    raise typer.Exit(1 if bad or any(one.error for one in (connected or {}).values()) else 0)


def _document(found: Plan, connected: Mapping[str, Connected] | None) -> dict[str, Any]:
    document = plan_document(found)
    for step in document["steps"]:
        one = None if connected is None else connected.get(step["dataflow_id"])
        step["connect"] = None if one is None else one.to_json()
    return document


def show_plan(
    found: Plan,
    stage: list[str] | None,
    *,
    connected: Mapping[str, Connected] | None = None,
    chunks: bool = False,
) -> None:
    """Print a plan for people.

    Args:
        found: The plan.
        stage: As selected, for the title.
        connected: What sources and destinations said.
        chunks: Whether each chunk of a replay gets a line.
    """
    console = Console(soft_wrap=True, highlight=False)
    total = len(found.steps)
    runs = sum(step.skip_reason is None and would_fail(step) is None for step in found.steps)
    number, index = found.shard or (1, 0)
    title = f"stage {','.join(stage)}" if stage else "all stages"
    console.print(f"Plan  {title} · shard {index + 1}/{number} · {runs} of {total} dataflows")
    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 2))
    for step in found.steps:
        load_type = "skipped" if step.skip_reason else step.dataflow.destination.load_type
        table.add_row(step.dataflow.label, load_type, escape(describe_step(step)))
    console.print(table)
    for line in _details(found, connected or {}, chunks=chunks):
        console.print(line, markup=False)
    command = "run" if found.mode == "load" else "replay"
    console.print(f"Nothing was run. To run it: datacoolie {command}, with the same options.")


def _details(found: Plan, connected: Mapping[str, Connected], *, chunks: bool) -> Iterator[str]:
    for broken in found.invalid:
        yield from (str(problem) for problem in broken.problems)
    for step in found.steps:
        label = step.dataflow.label
        if chunks and len(step.windows) > 1 and would_fail(step) is None:
            yield f"chunks of {label}, by {step.windows[0].column}:"
            yield from (f"  {one.key}  {describe_bounds(one)}" for one in step.windows)
        sql = None if step.skip_reason else sql_of(step, next(iter(step.windows), None))
        if sql is not None:
            first = " (first chunk)" if len(step.windows) > 1 else ""
            yield f"SQL of {label}{first}:"
            yield indent(sql, "  ")
        one = connected.get(step.dataflow.dataflow_id)
        if one is not None:
            yield from (f"{label}: {note}" for note in one.notes)
            if one.error is not None:
                yield f"does not fit: {one.error.message}"
    yield from (f"warning: {warning}" for warning in found.warnings)
