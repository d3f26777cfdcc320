"""A dg project in a folder, and the real commands in it."""

import importlib
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import yaml

BIN = Path(sys.executable).parent
PYPROJECT = """\
[project]
name = "{name}"
version = "0"

[tool.dg]
directory_type = "project"

[tool.dg.cli.telemetry]
enabled = false

[tool.dg.project]
root_module = "{name}"

[tool.dagster]
module_name = "{name}.definitions"
"""
DEFINITIONS = """\
from pathlib import Path

import dagster as dg


@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


class DgProject:
    """A project as ``create-dagster`` makes it, under a name that no other one has."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = f"shop_{uuid4().hex[:8]}"
        self.package = root / "src" / self.name
        self.defs = self.package / "defs"
        self.defs.mkdir(parents=True)
        (root / "pyproject.toml").write_text(PYPROJECT.format(name=self.name))
        (self.package / "definitions.py").write_text(DEFINITIONS)
        for folder in (self.package, self.defs):
            (folder / "__init__.py").touch()

    @property
    def environment(self) -> dict[str, str]:
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(Path(__file__).parents[2])]),
            "DAGSTER_HOME": str(home),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "COLUMNS": "200",
            # a request that leaves this machine meets a closed port
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def run(self, *command: str, fails: bool = False) -> str:
        """Return what a command prints; it must succeed, or fail."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout if not fails else done.stdout + done.stderr

    def component(self, name: str, kind: str | None = None, **attributes: Any) -> Path:
        """Write a defs.yaml and return its folder."""
        folder = self.defs / name
        folder.mkdir(exist_ok=True)
        kind = kind or "datacoolie_dagster.DataCoolieComponent"
        document = {"type": kind, "attributes": attributes}
        (folder / "defs.yaml").write_text(yaml.safe_dump(document))
        return folder

    @contextmanager
    def _importable(self):
        sys.path.insert(0, str(self.root / "src"))
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(str(self.root / "src"))

    def load(self) -> dg.Definitions:
        """Return the definitions as a process finds them that loads the project now."""
        with self._importable(), warnings.catch_warnings():
            # Dagster's own use: for the __init__.py of a folder, the place of a defs.yaml, the copy of checks
            warnings.filterwarnings("ignore", ".*load_definitions_from_module", dg.PreviewWarning)
            warnings.filterwarnings("ignore", ".*(CodeReference|execution_type)", dg.BetaWarning)
            definitions = dg.ComponentTree.for_project(self.root).build_defs()
            definitions.resolve_asset_graph()
            return definitions
