"""The options that commands share, and the driver that they make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datacoolie_core import storage
from datacoolie_core.driver import DataCoolieDriver
from datacoolie_core.errors import SettingsError
from datacoolie_core.metadata.loader import load_metadata
from datacoolie_core.settings import (
    Settings,
    default_state,
    find_project_dir,
    load_settings,
    project_near,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Metadata
    from datacoolie_core.run.config import DataCoolieRunConfig
    from datacoolie_core.run.events import Listener

MetadataPaths = Annotated[
    list[str] | None,
    typer.Option("--metadata", "-m", help="A metadata file or folder; may be repeated."),
]
ProjectDir = Annotated[
    str | None, typer.Option("--project-dir", help="Root of relative paths.", show_default=False)
]
State = Annotated[
    str | None,
    typer.Option("--state", help="Folder or URI of the state  [default: .datacoolie/state]"),
]
Stages = Annotated[
    list[str] | None, typer.Option("--stage", help="Stages, comma-separated; a union.")
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select", help="silver/flights, 'bronze/*', +gold/x (with upstream), x+ (downstream)."
    ),
]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="As --select, taken away.")]
SqlPaths = Annotated[list[str] | None, typer.Option("--sql-path", help="A root of SQL files.")]
Functions = Annotated[
    list[str] | None,
    typer.Option("--allow-functions", help="A package that metadata may call; may be repeated."),
]
Env = Annotated[
    str | None,
    typer.Option("--env", help="Lay the overlays in environments/ENV over the metadata."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Lenient = Annotated[
    bool, typer.Option("--lenient", help="Unknown keys in the metadata are warnings.")
]
OnInvalid = Annotated[
    str, typer.Option("--on-invalid", help="fail, or quarantine: run the valid rest.")
]


def settings_for(
    project_dir: str | None, metadata: Sequence[str] | None = None
) -> tuple[str, Settings]:
    """Return the project root and the settings that hold there.

    Args:
        project_dir: As the flag names it.
        metadata: The metadata paths of the command line.
    """
    found = project_dir or project_near(metadata or ())
    settings = load_settings(found)
    return find_project_dir(found or settings.project_dir), settings


def _as_typed(path: str, root: str) -> str:
    """Return a path of the command line: below the root, or where the user's shell sees it."""
    there = not storage.is_remote(path) and Path(path).exists()
    if not there or storage.exists(storage.resolve(path, root)):
        return path
    return str(Path(path).absolute())


def metadata_paths(paths: Sequence[str] | None, root: str, settings: Settings) -> list[str]:
    """Return the paths that the options or the settings name, else the folder ``metadata``.

    Raises:
        SettingsError: When nothing names any.
    """
    named = [_as_typed(path, root) for path in paths or ()] or list(settings.metadata)
    if not named:
        fallback = storage.resolve("metadata", root)
        if not storage.exists(fallback):
            raise SettingsError(
                "no metadata named",
                remedy="Give --metadata FILE_OR_FOLDER, or set metadata in datacoolie.toml.",
            )
        named = [fallback]
    return named


def open_metadata(
    paths: Sequence[str] | None,
    root: str,
    settings: Settings,
    *,
    env: str | None = None,
    lenient: bool,
    on_invalid: str,
) -> Metadata:
    """Return the metadata that the options or the settings name.

    Raises:
        SettingsError: When nothing names any, or ``on_invalid`` or the environment is unknown.
        MetadataError: When it is wrong.
    """
    if on_invalid not in ("fail", "quarantine"):
        raise SettingsError(
            f"--on-invalid is {on_invalid!r}", remedy="Give 'fail' or 'quarantine'."
        )
    return load_metadata(
        metadata_paths(paths, root, settings),
        project_dir=root,
        strict=not lenient,
        on_invalid="quarantine" if on_invalid == "quarantine" else "fail",
        environment=env or settings.env,
    )


def open_driver(
    metadata: Metadata,
    root: str,
    settings: Settings,
    *,
    state: str | None = None,
    sql_paths: Sequence[str] | None = None,
    log_path: str | None = None,
    config: DataCoolieRunConfig | None = None,
    listeners: Sequence[Listener] = (),
    on_invalid: str = "fail",
) -> DataCoolieDriver:
    """Return a driver as the options and the settings say."""
    return DataCoolieDriver(
        metadata,
        project_dir=root,
        state=state or settings.state or default_state(metadata.environment),
        config=config,
        sql_paths=sql_paths or settings.sql_path,
        log_path=log_path or settings.log_path,
        listeners=listeners,
        on_invalid="quarantine" if on_invalid == "quarantine" else "fail",
    )
