"""``datacoolie maintain``: compact tables and clean up behind them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from datacoolie_core.cli.options import (
    AsJson,
    Env,
    Exclude,
    Lenient,
    MetadataPaths,
    OnInvalid,
    ProjectDir,
    Select,
    open_driver,
    open_metadata,
    settings_for,
)
from datacoolie_core.cli.progress import STYLES
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_core.run.events import MaintenanceFinished, Message, TargetFinished

if TYPE_CHECKING:
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.maintain_results import MaintenanceResult, TargetResult


def maintain(
    metadata: MetadataPaths = None,
    connection: Annotated[
        list[str] | None, typer.Option(help="Only tables of this destination connection.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="Only this table: table, or schema.table.")
    ] = None,
    select: Select = None,
    exclude: Exclude = None,
    no_compact: Annotated[bool, typer.Option("--no-compact", help="Write no files anew.")] = False,
    no_cleanup: Annotated[bool, typer.Option("--no-cleanup", help="Delete nothing.")] = False,
    retention_hours: Annotated[
        float | None,
        typer.Option(help="Hours for which removed files are kept  [default: 168]"),
    ] = None,
    allow_short_retention: Annotated[
        bool,
        typer.Option(
            "--allow-short-retention", help="Let --retention-hours be below a table's own."
        ),
    ] = False,
    project_dir: ProjectDir = None,
    env: Env = None,
    log_path: Annotated[
        str | None, typer.Option(help="Folder of the run records (JSON lines).")
    ] = None,
    max_workers: Annotated[int | None, typer.Option(help="Tables at once  [default: 8]")] = None,
    stop_on_error: Annotated[
        bool, typer.Option("--stop-on-error", help="Start nothing after a failure.")
    ] = False,
    job_num: Annotated[int, typer.Option(help="How many jobs share the metadata.")] = 1,
    job_index: Annotated[int, typer.Option(help="Which of them this is.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
    as_json: AsJson = False,
) -> None:
    """Compact tables, delete files that nobody needs, checkpoint, clean the log.

    Example: datacoolie maintain --metadata examples/flights/metadata --dry-run
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=lenient, on_invalid=on_invalid)
    config = DataCoolieRunConfig(
        job_num=job_num,
        job_index=job_index,
        max_workers=settings.max_workers if max_workers is None else max_workers,
        stop_on_error=stop_on_error,
    )
    if retention_hours is not None:
        config = replace(config, retention_hours=retention_hours)
    progress = _Progress()
    with open_driver(
        scope,
        root,
        settings,
        log_path=log_path,
        config=config,
        listeners=[progress],
        on_invalid=on_invalid,
    ) as driver:
        try:
            result = driver.run_maintenance(
                connection=connection,
                tables=table or (),
                include=select or (),
                exclude=exclude or (),
                do_compact=not no_compact,
                do_cleanup=not no_cleanup,
                allow_short_retention=allow_short_retention,
                dry_run=dry_run,
            )
        except KeyboardInterrupt:
            if progress.result is not None and as_json:
                print(_document(progress.result))
            raise
    if as_json:
        print(_document(result))
    else:
        _show(result)
    raise typer.Exit(1 if result.failed or result.pending else 0)


def _document(result: MaintenanceResult) -> str:
    return json.dumps(result.to_json(), ensure_ascii=False, default=str)


class _Progress:
    """A line on stderr as each table ends; keeps the result."""

    def __init__(self) -> None:
        self.result: MaintenanceResult | None = None
        self._console = Console(stderr=True, soft_wrap=True, highlight=False)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TargetFinished):
            self._line(_summary(event.result))
        elif isinstance(event, MaintenanceFinished):
            self.result = event.result
        elif isinstance(event, Message) and event.level in ("warning", "error"):
            place = f"{event.dataflow.label}: " if event.dataflow else ""
            self._line(f"{place}{event.level}: {event.text}")

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False)


def _summary(target: TargetResult) -> str:
    label = target.destination or target.dataflow.label
    if target.status in ("skipped", "pending"):
        return f"{label}: {target.status}, {target.reason}"
    return f"{label}: {target.status} in {target.duration_seconds or 0:.1f} s"


def _show(result: MaintenanceResult) -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("dataflow", "operation", "status", "what"):
        table.add_column(title)
    for target in result.targets:
        if not target.operations:
            why = target.error.code if target.error else target.reason or ""
            table.add_row(target.dataflow.label, "", _styled(target.status), why)
        for one in target.operations:
            table.add_row(target.dataflow.label, one.name, _styled(one.status), one.message)
    if result.targets:
        console.print(table)
    for target in result.targets:
        if target.error is not None and not target.operations:
            console.print(target.error.message, markup=False, style="red")
        for notice in target.warnings:
            console.print(f"{target.dataflow.label}: warning: {notice.message}", markup=False)
    counts = ", ".join(
        f"{count} {name}"
        for name in ("succeeded", "skipped", "failed", "pending")
        if (count := getattr(result, name))
    )
    console.print(f"{counts or result.message} in {result.duration_seconds:.1f} s")


def _styled(status: str) -> str:
    return f"[{STYLES.get(status, '')}]{status}[/]"
