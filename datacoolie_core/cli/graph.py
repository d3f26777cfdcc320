"""``datacoolie graph``: what waits for what, and why."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from datacoolie_core.cli.options import (
    Env,
    Exclude,
    Lenient,
    MetadataPaths,
    OnInvalid,
    ProjectDir,
    Select,
    SqlPaths,
    Stages,
    open_driver,
    open_metadata,
    settings_for,
)
from datacoolie_core.plan.drawing import as_document, draw, render
from datacoolie_core.plan.selection import select as select_dataflows


class Form(StrEnum):
    """How the graph is written."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


def graph(
    metadata: MetadataPaths = None,
    form: Annotated[Form, typer.Option("--format", help="text, mermaid, dot or json.")] = Form.TEXT,
    stage: Stages = None,
    select: Select = None,
    exclude: Exclude = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    sql_path: SqlPaths = None,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
) -> None:
    """Draw the graph: dataflows, sources, and the reason of each edge. Nothing else is read.

    Example: datacoolie graph --format mermaid --select '+gold/daily_delays'
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=lenient, on_invalid=on_invalid)
    with open_driver(scope, root, settings, sql_paths=sql_path, on_invalid=on_invalid) as driver:
        found = driver.graph
    chosen = select_dataflows(found, stages=stage, include=select or (), exclude=exclude or ())
    drawing = draw(found, {one.dataflow_id for one in chosen.dataflows})
    if form is Form.JSON:
        print(json.dumps(as_document(drawing), ensure_ascii=False))
    else:
        print(render(drawing, form.value), end="")
