"""``datacoolie convert``: metadata from one form into another."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from datacoolie_core import storage
from datacoolie_core.cli.options import AsJson, ProjectDir, metadata_paths, settings_for
from datacoolie_core.metadata.files import shown

if TYPE_CHECKING:
    from datacoolie_core.metadata.convert import Conversion


class Form(StrEnum):
    """What metadata can be written as."""

    JSON = "json"
    YAML = "yaml"
    EXCEL = "excel"


class Layout(StrEnum):
    """How many files metadata is written into."""

    SINGLE = "single"
    SPLIT = "split"


_ENDINGS = {".json": Form.JSON, ".yaml": Form.YAML, ".yml": Form.YAML, ".xlsx": Form.EXCEL}


def convert(
    output: Annotated[
        str, typer.Option("--output", "-o", help="A file, or a folder.", show_default=False)
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="A metadata file or folder; may be repeated."),
    ] = None,
    to: Annotated[
        Form | None, typer.Option("--to", help="json, yaml or excel; else as --output ends.")
    ] = None,
    layout: Annotated[
        Layout | None,
        typer.Option(
            "--layout",
            help="single, or split: a file for each section and stage  [default: split for a folder]",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there.")
    ] = False,
    project_dir: ProjectDir = None,
    as_json: AsJson = False,
) -> None:
    """Write metadata as JSON, YAML or Excel. Nothing is lost, or nothing is written.

    Every file is read back and compared before it is written. Secrets stay references.

    Example: datacoolie convert --input metadata --output flows.xlsx
    """
    from datacoolie_core.metadata.convert import convert as converted, write

    root, settings = settings_for(project_dir, inputs)
    form, in_one = _shape(output, to, layout)
    done = converted(
        metadata_paths(inputs, root, settings),
        output if storage.is_remote(output) else str(Path(output).absolute()),
        to=form.value,
        layout="single" if in_one else "split",
        project_dir=root,
    )
    write(done, overwrite=overwrite)
    _tell(done, root, as_json=as_json)


def _shape(output: str, to: Form | None, layout: Layout | None) -> tuple[Form, bool]:
    """Return the form, and whether all goes into one file."""
    ending = next((end for end in _ENDINGS if output.lower().endswith(end)), None)
    if ending is not None and layout is Layout.SPLIT:
        raise typer.BadParameter(
            f"{output} is a file; several files need a folder.", param_hint="--output"
        )
    if to is None and ending is None:
        raise typer.BadParameter("give json, yaml or excel.", param_hint="--to")
    form = to or _ENDINGS[ending or ""]
    if ending is not None and _ENDINGS[ending] is not form:
        raise typer.BadParameter(f"{output} is no file of {form.value}.", param_hint="--output")
    return form, ending is not None or layout is Layout.SINGLE


def _tell(done: Conversion, root: str, *, as_json: bool) -> None:
    files = [shown(uri, root) for uri in done.files]
    if as_json:
        document = {
            "version": 1,
            "status": "succeeded",
            "counts": done.counts,
            "files": files,
            "notes": done.notes,
        }
        print(json.dumps(document, ensure_ascii=False))
        return
    console = Console(soft_wrap=True, highlight=False)
    for file in files:
        console.print(f"wrote {file}", markup=False)
    for note in done.notes:
        console.print(f"note: {note}", markup=False)
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in done.counts.items())
    console.print(told)
