"""``datacoolie replay``: load a bounded range again, in chunks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

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
from datacoolie_core.cli.plan import show_plan
from datacoolie_core.cli.progress import Progress, show_result
from datacoolie_core.errors import SettingsError
from datacoolie_core.plan.replay_config import ReplayConfig, parse_every
from datacoolie_core.plan.selection import select as select_dataflows
from datacoolie_core.run.config import DataCoolieRunConfig

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.bounds import Bound, Step
    from datacoolie_core.plan.planner import Plan

_WHOLE = re.compile(r"[+-]?\d+")
_POINTED = re.compile(r"[+-]?\d+\.\d+")


def replay(
    metadata: MetadataPaths = None,
    start: Annotated[
        str | None, typer.Option(help="First bound, inclusive: a date, timestamp or number.")
    ] = None,
    end: Annotated[str | None, typer.Option(help="Last bound, exclusive.")] = None,
    every: Annotated[
        str | None, typer.Option(help="How long a chunk is: 1y, 1mo, 1w, 1d, 6h, 15min.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="How wide a chunk of numbers is.")] = None,
    column: Annotated[str | None, typer.Option(help="The source column that is bounded.")] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Whose calendar and clocks  [default: UTC]")
    ] = None,
    save_watermark: Annotated[
        bool, typer.Option("--save-watermark", help="Each chunk moves the saved watermark.")
    ] = False,
    respect_order: Annotated[
        bool,
        typer.Option("--respect-order", help="A dataflow starts after all that it waits for."),
    ] = False,
    stage: Stages = None,
    select: Select = None,
    exclude: Exclude = None,
    state: State = None,
    project_dir: ProjectDir = None,
    env: Env = None,
    sql_path: SqlPaths = None,
    allow_functions: Functions = None,
    log_path: Annotated[
        str | None, typer.Option(help="Folder of the run records (JSON lines).")
    ] = None,
    max_workers: Annotated[int | None, typer.Option(help="Dataflows at once  [default: 8]")] = None,
    retry_count: Annotated[
        int | None, typer.Option(help="Attempts after the first  [default: 0]")
    ] = None,
    retry_delay: Annotated[
        float | None, typer.Option(help="Seconds before the second  [default: 5]")
    ] = None,
    stop_on_error: Annotated[
        bool, typer.Option("--stop-on-error", help="Start nothing after a failure.")
    ] = False,
    job_num: Annotated[int, typer.Option(help="How many jobs share the metadata.")] = 1,
    job_index: Annotated[int, typer.Option(help="Which of them this is.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the chunks alone.")] = False,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
    as_json: AsJson = False,
) -> None:
    """Load a bounded range again: its rows are replaced, saved progress stays.

    What is not given is taken from configure.datacoolie.replay of each dataflow.

    Example: datacoolie replay --select silver/orders --start 2025-01-01 --end 2025-04-01 --every 1mo
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=lenient, on_invalid=on_invalid)
    asked = _Asked(
        _bound(start),
        _bound(end),
        None if every is None else parse_every(every),
        _step(step),
        column,
        timezone,
        save_watermark,
        respect_order,
    )
    config = DataCoolieRunConfig(
        job_num=job_num,
        job_index=job_index,
        max_workers=settings.max_workers if max_workers is None else max_workers,
        retry_count=settings.retry_count if retry_count is None else retry_count,
        retry_delay=settings.retry_delay if retry_delay is None else retry_delay,
        stop_on_error=stop_on_error,
        allowed_function_prefixes=tuple(allow_functions or settings.allowed_function_prefixes),
    )
    with (
        Progress() as progress,
        open_driver(
            scope,
            root,
            settings,
            state=state,
            sql_paths=sql_path,
            log_path=log_path,
            config=config,
            listeners=[progress],
            on_invalid=on_invalid,
        ) as driver,
    ):
        plan = _planned(driver, asked, stage, select, exclude, read_state=not dry_run)
        try:
            result = driver.run(plan, dry_run=dry_run)
        except KeyboardInterrupt:
            if progress.result is not None and as_json:
                print(json.dumps(progress.result.to_json(), ensure_ascii=False, default=str))
            raise
    if as_json:
        print(json.dumps(result.to_json(), ensure_ascii=False, default=str))
    elif dry_run:
        show_plan(plan, stage, chunks=True)
    else:
        show_result(result)
    raise typer.Exit(1 if result.failed or result.pending else 0)


@dataclass(frozen=True)
class _Asked:
    """What the command line says of the range; the rest comes from each dataflow."""

    start: str | Bound | None
    end: str | Bound | None
    every: dict[str, int] | None
    step: Step | None
    column: str | None
    timezone: str | None
    save_watermark: bool
    respect_order: bool

    def of(self, dataflow: Dataflow) -> ReplayConfig | None:
        """Return the replay of a dataflow, None if nothing says its range."""
        own = dataflow.options.replay
        start = self.start if self.start is not None or own is None else own.start
        if start is None:
            return None
        cut = self.every is not None or self.step is not None or own is None
        try:
            return ReplayConfig(
                start,
                self.end if self.end is not None or own is None else own.end,
                self.every if cut or own is None else own.chunk_interval,
                self.save_watermark,
                self.column,
                step=self.step if cut or own is None else own.step,
                respect_order=self.respect_order,
                timezone=self.timezone or ("UTC" if own is None else own.timezone),
            )
        except SettingsError as error:
            place = f"dataflow '{dataflow.label}', replay"
            raise SettingsError(
                error.message, place=place, remedy=error.remedy, code=error.code
            ) from error


def _planned(
    driver: DataCoolieDriver,
    asked: _Asked,
    stage: list[str] | None,
    include: list[str] | None,
    exclude: list[str] | None,
    *,
    read_state: bool,
) -> Plan:
    """Return the plan of the selected dataflows that have a range."""
    shard = (driver.config.job_num, driver.config.job_index)
    selected = select_dataflows(
        driver.graph, stages=stage, include=include or (), exclude=exclude or (), shard=shard
    )
    ranges = {
        flow.dataflow_id: replay
        for flow in selected.dataflows
        if (replay := asked.of(flow)) is not None
    }
    if len(ranges) == len(selected.dataflows):
        return driver.plan(
            stages=stage,
            include=include or (),
            exclude=exclude or (),
            replay=ranges,
            read_state=read_state,
        )
    if not ranges:
        raise SettingsError(
            "nothing says which range to load again",
            place="replay",
            remedy="Give --start and --end, or set configure.datacoolie.replay of a dataflow.",
            code="no_range",
        )
    chosen = [flow for flow in selected.dataflows if flow.dataflow_id in ranges]
    return driver.plan(dataflows=chosen, replay=ranges, read_state=read_state)


def _bound(text: str | None) -> str | Bound | None:
    """Return a bound of the command line: what looks like a number is one."""
    if text is None:
        return None
    if _WHOLE.fullmatch(text.strip()):
        return int(text)
    return Decimal(text) if _POINTED.fullmatch(text.strip()) else text


def _step(text: str | None) -> Step | None:
    found = _bound(text)
    if found is None or isinstance(found, int | Decimal):
        return found
    raise SettingsError(
        f"--step is {text!r}, which is no number",
        place="replay",
        remedy="Give such as 1000; for dates, --every 1mo.",
        code="invalid_replay",
    )
