"""``datacoolie``: its commands, and what its exit codes mean.

Exit codes: 0 all good · 1 a dataflow failed or is pending · 2 usage, unknown stage or selection ·
3 metadata or settings wrong, nothing ran · 130 interrupted after draining.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from datacoolie_core.cli.check import check
from datacoolie_core.cli.convert import convert
from datacoolie_core.cli.graph import graph
from datacoolie_core.cli.init import init
from datacoolie_core.cli.maintain import maintain
from datacoolie_core.cli.plan import plan
from datacoolie_core.cli.replay import replay
from datacoolie_core.cli.run import run
from datacoolie_core.cli.schema import schema
from datacoolie_core.cli.watermark import app as watermark_app
from datacoolie_core.errors import (
    BusyError,
    DataCoolieError,
    LoadError,
    MetadataError,
    SelectionError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, FAILED, USAGE, INVALID, INTERRUPTED = 0, 1, 2, 3, 130

app = typer.Typer(
    name="datacoolie",
    help="Load DataCoolie metadata and run its dataflows with polars and Delta Lake.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(check)
app.command()(graph)
app.command()(plan)
app.command()(run)
app.add_typer(watermark_app, name="watermark")
app.command()(maintain)
app.command()(replay)
app.command()(convert)
app.command()(init)
app.command()(schema)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    Args:
        arguments: Without the program's name; None takes them from the process.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given, standalone_mode=True)
    except DataCoolieError as error:
        _report(error, as_json="--json" in given)
        sys.exit(_code(error))
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted: what ran was drained", style="yellow")
        sys.exit(INTERRUPTED)


def _code(error: DataCoolieError) -> int:
    if isinstance(error, LoadError | BusyError):
        return FAILED
    return USAGE if isinstance(error, SelectionError) else INVALID


def _report(error: DataCoolieError, *, as_json: bool) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(str(error), markup=False)
    if as_json:
        print(json.dumps({"version": 1, "status": "failed", "error": _document(error)}))


def _document(error: DataCoolieError) -> dict[str, Any]:
    document: dict[str, Any] = {
        "phase": "metadata" if isinstance(error, MetadataError) else "prepare",
        "code": error.code,
        "message": str(error),
        "place": error.place,
        "remedy": error.remedy,
    }
    if isinstance(error, MetadataError):
        document["problems"] = [
            {
                "source": one.source,
                "line": one.line,
                "sheet": one.sheet,
                "dataflow": one.dataflow,
                "field": one.field,
                "message": one.message,
                "suggestion": one.suggestion,
                "severity": one.severity,
            }
            for one in error.problems
        ]
    return document
