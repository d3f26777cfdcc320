"""``dg scaffold defs datacoolie_dagster.DataCoolieComponent``: a component that works at once."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
from dagster.components import scaffold_component
from pydantic import BaseModel, Field

from datacoolie_core.project_files import SCHEMA_FILE, project_files, write_project_files

_BESIDE = ("metadata/", "data/", "sql/", ".gitignore", SCHEMA_FILE)
"""What of a new project belongs beside a ``defs.yaml``; the rest makes a project of its own."""

_PYTHON = """\
import dagster as dg
from {module} import {name}


@dg.component_instance
def load(context: dg.ComponentLoadContext) -> {name}:
    return {name}({arguments})
"""


class ScaffoldParams(BaseModel):
    """Options of the scaffold command."""

    metadata: str | None = Field(
        default=None,
        description="Metadata that is there: a file or a folder. Without it, a small working "
        "example is written beside the component.",
    )
    project_dir: str | None = Field(
        default=None, description="Root of the relative paths in the metadata."
    )
    example: bool = Field(
        default=False, description="With a query, a replay and an environment, as an example."
    )


class DataCoolieScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Writes ``defs.yaml`` and, where no metadata is named, metadata that works."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        """Return the command's options."""
        return ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Write the files; those that are there stay as they are.

        Args:
            request: What the command was given.
        """
        # without options the command gives no params, whatever their type says
        given: ScaffoldParams | None = request.params
        params = given or ScaffoldParams()
        attributes = {
            name: _seen_from(request, value)
            for name, value in (("metadata", params.metadata), ("project_dir", params.project_dir))
            if value is not None
        }
        if params.metadata is None:
            attributes = {"metadata": "metadata", **attributes}
            wanted = [
                (path, text)
                for path, text in project_files(example=params.example)
                if path.startswith(_BESIDE)
            ]
            write_project_files(request.target_path, request.target_path.name, wanted)
        if request.scaffold_format == "python":
            _write_python(request, attributes)
        else:
            scaffold_component(request, attributes)


def _seen_from(request: dg.ScaffoldRequest[ScaffoldParams], path: str) -> str:
    """Return a path that was given where the command runs, as the component's folder sees it."""
    if "://" in path or Path(path).is_absolute():
        return path
    for base in (Path.cwd(), request.project_root):
        if base is not None and (base / path).exists():
            return Path(os.path.relpath(base / path, request.target_path)).as_posix()
    return path


def _write_python(request: dg.ScaffoldRequest[ScaffoldParams], attributes: dict[str, str]) -> None:
    module, _, name = request.type_name.rpartition(".")
    arguments = ", ".join(f"{key}={value!r}" for key, value in attributes.items())
    text = _PYTHON.format(module=module, name=name, arguments=arguments)
    (request.target_path / "component.py").write_text(text, "utf-8", newline="\n")
