"""``datacoolie schema``: the format as JSON Schema, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def schema(
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Of the files of an environment.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A file; else it is printed.")
    ] = None,
) -> None:
    """Print the JSON Schema of metadata files, with which editors complete and check them.

    Example: datacoolie schema --output metadata.schema.json
    """
    from datacoolie_core.metadata.json_schema import schema_text

    text = schema_text(overlay=overlay)
    if output is None:
        print(text, end="")
    else:
        Path(output).write_text(text, "utf-8")
