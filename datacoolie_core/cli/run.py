"""``datacoolie run``: load what the selection gives."""

from __future__ import annotations

import json
from typing import Annotated, Any

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
from datacoolie_core.cli.progress import Progress, show_result
from datacoolie_core.errors import SettingsError
from datacoolie_core.run.config import DataCoolieRunConfig


def run(
    metadata: MetadataPaths = None,
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
    on_upstream_failure: Annotated[str, typer.Option(help="continue or block.")] = "continue",
    job_num: Annotated[int, typer.Option(help="How many jobs share the metadata.")] = 1,
    job_index: Annotated[int, typer.Option(help="Which of them this is.")] = 0,
    run_attribute: Annotated[
        list[str] | None, typer.Option(help="key=value for the run's record.")
    ] = None,
    full_refresh: Annotated[
        bool, typer.Option("--full-refresh", help="Read from the beginning, replace the table.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check preparation alone.")] = False,
    lenient: Lenient = False,
    on_invalid: OnInvalid = "fail",
    as_json: AsJson = False,
) -> None:
    """Run dataflows from where their watermarks stand.

    Example: datacoolie run --metadata examples/flights/metadata --stage bronze --json
    """
    root, settings = settings_for(project_dir, metadata)
    scope = open_metadata(metadata, root, settings, env=env, lenient=lenient, on_invalid=on_invalid)
    if on_upstream_failure not in ("continue", "block"):
        raise SettingsError(
            f"--on-upstream-failure is {on_upstream_failure!r}",
            remedy="Give 'continue' or 'block'.",
        )
    config = DataCoolieRunConfig(
        job_num=job_num,
        job_index=job_index,
        max_workers=settings.max_workers if max_workers is None else max_workers,
        retry_count=settings.retry_count if retry_count is None else retry_count,
        retry_delay=settings.retry_delay if retry_delay is None else retry_delay,
        stop_on_error=stop_on_error,
        on_upstream_failure="block" if on_upstream_failure == "block" else "continue",
        run_attributes=_attributes(run_attribute or []),
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
        try:
            result = driver.run(
                stages=stage,
                include=select or (),
                exclude=exclude or (),
                full_refresh=full_refresh,
                dry_run=dry_run,
            )
        except KeyboardInterrupt:
            if progress.result is not None and as_json:
                print(json.dumps(progress.result.to_json(), ensure_ascii=False, default=str))
            raise
    if as_json:
        print(json.dumps(result.to_json(), ensure_ascii=False, default=str))
    else:
        show_result(result)
    raise typer.Exit(1 if result.failed or result.pending else 0)


def _attributes(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SettingsError(f"--run-attribute {pair!r} is no key=value")
        found[key] = value
    return found
