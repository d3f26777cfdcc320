"""``datacoolie init``: a project that works, without the internet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from datacoolie_core.errors import SettingsError
from datacoolie_core.project_files import project_files, write_project_files


def init(
    path: Annotated[str, typer.Argument(help="The folder  [default: here]")] = ".",
    name: Annotated[
        str | None, typer.Option("--name", help="What it is called; else as the folder.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="With a query, a replay and an environment.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Into a folder with files; they stay as they are.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Make a project: metadata, data, a Dagster code location. Needs no network.

    Example: datacoolie init shop --example
    """
    folder = Path(path)
    _check(folder, force=force)
    title = name or folder.resolve().name or "lakehouse"
    written, kept = write_project_files(folder, title, project_files(example=example))
    if as_json:
        document = {
            "version": 1,
            "status": "succeeded",
            "name": title,
            "path": str(folder.resolve()),
            "files": written,
            "kept": kept,
        }
        print(json.dumps(document, ensure_ascii=False))
        return
    _tell(folder, title, written, kept)


def _check(folder: Path, *, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise SettingsError(
            "this is a file", place=str(folder), remedy="Name a folder.", code="not_a_folder"
        )
    there = sorted(one.name for one in folder.iterdir()) if folder.exists() else []
    there = [one for one in there if one != ".git"]
    if there and not force:
        more = f" and {len(there) - 5} more" if len(there) > 5 else ""
        raise SettingsError(
            f"the folder is not empty, it holds {', '.join(there[:5])}{more}",
            place=str(folder),
            remedy="Name another one, or give --force: what is there stays as it is.",
            code="folder_not_empty",
        )


def _tell(folder: Path, title: str, written: list[str], kept: list[str]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{title}: {len(written)} files in {folder}", markup=False)
    if kept:
        console.print(f"already there, left as they are: {', '.join(kept)}", markup=False)
    console.print("Next:")
    if folder.resolve() != Path.cwd():
        console.print(f"  cd {folder}", markup=False)
    for command in ("datacoolie check", "datacoolie run", "dagster dev"):
        console.print(f"  {command}")
