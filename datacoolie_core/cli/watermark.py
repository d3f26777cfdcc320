"""``datacoolie watermark``: show, set, reset and import the state of dataflows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from datacoolie_core import storage
from datacoolie_core.cli.options import (
    AsJson,
    Env,
    Exclude,
    MetadataPaths,
    ProjectDir,
    Select,
    Stages,
    State,
    open_driver,
    open_metadata,
    settings_for,
)
from datacoolie_core.errors import SelectionError, nearest
from datacoolie_core.plan.tracking import state_columns
from datacoolie_core.run.import_watermarks import watermark_files, watermark_rows
from datacoolie_core.run.watermark_values import KINDS
from datacoolie_core.state.database import database_url, is_database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Watermark

app = typer.Typer(
    help="Show, set, reset and import watermarks.", no_args_is_help=True, rich_markup_mode=None
)
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Which = Annotated[str, typer.Argument(help="silver/flights, a name or an id.", show_default=False)]


def _driver(
    metadata: list[str] | None, project_dir: str | None, env: str | None, state: str | None
) -> Any:
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=False, on_invalid="fail")
    return open_driver(scope, root, settings, state=state)


@app.command()
def show(
    metadata: MetadataPaths = None,
    stage: Stages = None,
    select: Select = None,
    exclude: Exclude = None,
    state: State = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    as_json: AsJson = False,
) -> None:
    """Show where dataflows stand, in the store and in their destinations.

    Exit code 1 if of one it can't be told.

    Example: datacoolie watermark show --metadata examples/flights/metadata --stage bronze
    """
    with _driver(metadata, project_dir, env, state) as driver:
        plan = driver.plan(
            stages=stage, include=select or (), exclude=exclude or (), read_state=False
        )
        shown = [driver.watermarks.show(step.dataflow) for step in plan.steps]
    if as_json:
        _print({"version": 1, "dataflows": [one.to_json() for one in shown]})
    else:
        table = Table(box=None)
        for column in ("dataflow", "watermark", "load", "ties known", "version", "updated", ""):
            table.add_column(column, overflow="fold")
        for one in shown:
            now = one.effective
            mark = _marks(now.watermark) if now else "-"
            told = one.trouble or ("; ".join(one.warnings) if one.warnings else "")
            told = told or ("" if one.agrees else "the store is behind the destination")
            table.add_row(
                one.dataflow.label,
                mark or "-",
                str(now.sequence) if now else "-",
                str(now.boundary.rows) if now else "-",
                str(now.table_version) if now and now.table_version is not None else "-",
                (now.updated_at or "-")[:19] if now else "-",
                told,
            )
        Console().print(table)
    raise typer.Exit(1 if any(one.trouble for one in shown) else 0)


@app.command("set")
def set_(
    dataflow: Which,
    values: Annotated[list[str], typer.Argument(help="column=value, one or more.")],
    metadata: MetadataPaths = None,
    state: State = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    kind: Annotated[
        str | None, typer.Option("--type", help=f"Of the values: {', '.join(KINDS)}.")
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make a dataflow go on from a value of your choice.

    Rows above it that an append has loaded already are not loaded twice.

    Example: datacoolie watermark set bronze/flights time_hour=2013-02-01T00:00:00Z --yes
    """
    if kind is not None and kind not in KINDS:
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(KINDS)}.", param_hint="--type")
    pairs = [pair.partition("=") for pair in values]
    if bad := [f"{name}{equals}{value}" for name, equals, value in pairs if not equals or not name]:
        raise typer.BadParameter(f"{bad[0]!r} is no column=value.", param_hint="VALUES")
    with _driver(metadata, project_dir, env, state) as driver:
        flow = _one(driver, dataflow)
        _check_columns(flow, [name for name, _, _ in pairs])
        typed = {
            name: driver.watermarks.parse(value, name, flow, kind)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
            for name, _, value in pairs
        }
        told = ", ".join(f"{name} = {value}" for name, value in typed.items())
        present = driver.watermarks.show(flow).effective
        now = _marks(present.watermark) if present and present.watermark else "none"
        _ask(f"Set the watermark of {flow.label}, now {now}, to {told}?", yes=yes)
        record = driver.watermarks.set(flow, typed)
    _tell(flow, record, as_json=as_json)


@app.command()
def reset(
    dataflow: Which,
    metadata: MetadataPaths = None,
    state: State = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    keep_rows: Annotated[
        bool, typer.Option("--keep-rows", help="The next load of an append adds to what is there.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make a dataflow's next load read its source from the beginning.

    The next load of an append replaces what is there, unless --keep-rows is given.

    Example: datacoolie watermark reset bronze/flights --yes
    """
    with _driver(metadata, project_dir, env, state) as driver:
        flow = _one(driver, dataflow)
        _ask(f"Reset the watermark of {flow.label}?", yes=yes)
        record = driver.watermarks.reset(flow, keep_rows=keep_rows)
    _tell(flow, record, as_json=as_json)


@app.command("import")
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="The framework's watermark folder, or the URL of its database.",
            show_default=False,
        ),
    ],
    metadata: MetadataPaths = None,
    state: State = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Even where a higher one is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take over the watermarks of the DataCoolie framework.

    Exit code 1 if one could not be read or taken over.

    Example: datacoolie watermark import state/watermarks --dry-run
    """
    with _driver(metadata, project_dir, env, state) as driver:
        if is_database(source):
            found = list(watermark_rows(database_url(source, driver.project_dir)))
        else:
            found = list(watermark_files(storage.resolve(source, driver.project_dir)))
        done = driver.watermarks.take_over(
            found, driver.metadata.dataflows, dry_run=dry_run, force=force
        )
    if as_json:
        _print({"version": 1, "watermarks": [one.to_json() for one in done]})
    else:
        console = Console(soft_wrap=True, highlight=False)
        for one in done:
            name = one.dataflow.label if one.dataflow else one.place
            note = f" ({one.message})" if one.message else ""
            console.print(f"{name}: {one.outcome}{note}", markup=False)
        if not done:
            console.print("no watermark found", markup=False)
    raise typer.Exit(1 if any(one.outcome in ("unreadable", "failed") for one in done) else 0)


def _one(driver: DataCoolieDriver, named: str) -> Dataflow:
    by_id = driver.graph.by_id
    if named in by_id:
        return by_id[named]
    chosen: Sequence[Dataflow] = [
        step.dataflow for step in driver.plan(include=[named], read_state=False).steps
    ]
    if len(chosen) != 1:
        raise SelectionError(
            f"'{named}' means {len(chosen)} dataflows",
            remedy="Name one: " + ", ".join(one.label for one in chosen[:5]) + ".",
        )
    return chosen[0]


def _check_columns(flow: Dataflow, named: Sequence[str]) -> None:
    known = {name.casefold(): name for name in state_columns(flow)}
    for name in named:
        if name.casefold() not in known:
            meant = nearest(name, known.values())
            hint = f"Did you mean '{meant}'? " if meant else ""
            raise SelectionError(
                f"dataflow '{flow.label}' has no watermark column '{name}'",
                remedy=f"{hint}It has: {', '.join(known.values()) or 'none'}.",
            )


def _ask(question: str, *, yes: bool) -> None:
    """End with exit code 2, and nothing done, unless somebody agrees."""
    if yes:
        return
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        Console(stderr=True).print("nobody answered: nothing was done. --yes does not ask.")
        raise typer.Exit(2) from None
    if not agreed:
        raise typer.Exit(2)


def _marks(watermark: Watermark) -> str:
    return ", ".join(f"{name} {value}" for name, value in watermark.items())


def _tell(flow: Dataflow, record: Any, *, as_json: bool) -> None:
    document = {"version": 1, "name": flow.name, **record.to_json()}
    if as_json:
        _print(document)
        return
    mark = _marks(record.watermark) or "none"
    after = ", the next load replaces what is there" if record.replace_next else ""
    Console(soft_wrap=True, highlight=False).print(
        f"{flow.label}: watermark {mark}, load {record.sequence}{after}", markup=False
    )


def _print(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False, default=str))
