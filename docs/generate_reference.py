"""Writes what the reference pages say from the code that says it first.

docs/reference/metadata.md and metadata.schema.json come from the pydantic model, the tables of options in
docs/reference/cli.md from the command line. Run without arguments to write the pages, with
``--check`` to see whether they are up to date.
"""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import AliasChoices, BaseModel
from pydantic_core import PydanticUndefined

from datacoolie_core.cli.main import app
from datacoolie_core.metadata import models, options, transform
from datacoolie_core.metadata.json_schema import schema_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

REFERENCE = Path(__file__).parent / "reference"

# The order in which a reader meets them, with the place where each stands.
SECTIONS: list[tuple[str, type[BaseModel]]] = [
    ("connections[]", models.Connection),
    ("connections[].configure", models.ConnectionConfigure),
    ("backward", models.Backward),
    ("dataflows[]", models.Dataflow),
    ("dataflows[].configure.datacoolie", options.DataflowOptions),
    ("replay", options.ReplayOptions),
    ("cron", options.CronOptions),
    ("freshness", options.FreshnessOptions),
    ("source", models.Source),
    ("source.configure", models.SourceConfigure),
    ("source.configure.datacoolie", options.SourceOptions),
    ("destination", models.Destination),
    ("destination.partition_columns[]", models.PartitionColumn),
    ("destination.configure", models.DestinationConfigure),
    ("destination.configure.datacoolie", options.DestinationOptions),
    ("transform", transform.Transform),
    ("transform.schema_hints[]", transform.SchemaHint),
    ("transform.additional_columns[]", transform.AdditionalColumn),
    ("transform.value_rules[]", transform.ValueRule),
    ("transform.hash_columns[]", transform.HashColumn),
    ("transform.masking_rules[]", transform.MaskingRule),
    ("transform.configure", transform.TransformConfigure),
    ("schema_hints[]", models.SchemaHintGroup),
]
PLACES = {model: place for place, model in SECTIONS}

HEAD = """\
<!-- Made by docs/generate_reference.py from the pydantic model. Don't edit it by hand. -->
# Metadata reference

A metadata document is a YAML or JSON mapping with any of three lists: `connections`,
`dataflows` and `schema_hints`. Several files, or a folder of them, are read as one document.
The format is the open DataCoolie metadata format, version 0.2.

- Unknown keys are errors. `extensions` is free for you, in every place that has it.
- `configure` keeps keys that it does not know and passes them on.
- Keys of ours stand under `configure.datacoolie` of a dataflow, a source or a destination.
- A list may also be written as text with commas: `merge_keys: carrier, flight`.

All problems are reported together, each with its file and the path of the field:
`datacoolie check --metadata PATH` shows them.
"""


def anchor(place: str) -> str:
    """Return the anchor that Markdown renderers make of a heading."""
    return "".join(c for c in place.lower() if c.isalnum() or c in "-_ ").replace(" ", "-")


def type_name(annotation: Any) -> str:
    """Return a type as a reader of YAML thinks of it."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(args[0])
    if origin in (Union, types.UnionType):
        parts = [type_name(part) for part in args if part is not type(None)]
        return " or ".join(dict.fromkeys(parts))
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in args)
    if origin is tuple:
        return f"list of {type_name(args[0])}"
    if origin is dict:
        return f"mapping of {type_name(args[1])}" if args[1] is not Any else "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        place = PLACES.get(annotation)
        return f"[{place}](#{anchor(place)})" if place else "mapping"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(annotation, "anything")


def default_text(field: FieldInfo) -> str:
    """Return how a field's default is written in YAML, or that it is required."""
    if field.is_required():
        return "required"
    value = field.default
    if value is PydanticUndefined or value is None or value in ((), ""):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def yaml_names(name: str, field: FieldInfo) -> str:
    """Return the keys by which a field may be given."""
    alias = field.validation_alias
    names = [str(a) for a in alias.choices] if isinstance(alias, AliasChoices) else [name]
    return " or ".join(f"`{n}`" for n in names)


def section(place: str, model: type[BaseModel]) -> str:
    """Return one table of fields."""
    intro = (model.__doc__ or "").strip().split("\n")[0].replace("``", "`")
    described = any(field.description for field in model.model_fields.values())
    heads = ["field", "type", "default", *(["meaning"] if described else [])]
    rows = [heads, ["---"] * len(heads)]
    # What every place has comes last.
    fields = sorted(model.model_fields.items(), key=lambda item: item[0] == "extensions")
    for name, field in fields:
        row = [yaml_names(name, field), type_name(field.annotation), default_text(field)]
        if described:
            row.append(" ".join((field.description or "").replace("``", "`").split()))
        rows.append([cell.replace("|", "\\|") for cell in row])
    table = "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)
    return f"## {place}\n\n{intro}\n\n{table}\n"


def metadata_page() -> str:
    """Return the whole page of the metadata."""
    return "\n".join([HEAD, *(section(place, model) for place, model in SECTIONS)])


def option_rows(command: Any) -> Iterator[list[str]]:
    """Yield a row for each option of a command."""
    for option in command.params:
        if option.name == "help":
            continue
        # Defaults that a setting may replace are written in the help text.
        text, _, default = " ".join((option.help or "").split()).partition("[default:")
        if not default and not (option.default is None or option.default is False):
            default = str(option.default)
        names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))
        default = default.strip(" ]")
        yield [names, text.strip().replace("|", "\\|"), f"`{default}`" if default else ""]


def cli_page(page: str) -> str:
    """Return the page of the command line with its tables of options made anew."""
    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]

    def table(match: re.Match[str]) -> str:
        rows = [["option", "meaning", "default"], ["---"] * 3, *option_rows(commands[match[1]])]
        lines = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows]
        return "\n".join([f"<!-- options of {match[1]} -->", *lines, "<!-- end -->"])

    return re.sub(r"<!-- options of (\w+) -->.*?<!-- end -->", table, page, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """Return what each page should be."""
    cli = REFERENCE / "cli.md"
    return {
        REFERENCE / "metadata.md": metadata_page(),
        REFERENCE / "metadata.schema.json": schema_text(),
        cli: cli_page(cli.read_text(encoding="utf-8")),
    }


def main() -> int:
    """Write or check the pages."""
    stale = [
        path
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path} is not up to date. Run: python docs/generate_reference.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
