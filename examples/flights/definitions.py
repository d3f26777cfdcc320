"""The Dagster code location of the example."""

from __future__ import annotations

from pathlib import Path

from datacoolie_dagster import build_datacoolie_definitions

HERE = Path(__file__).parent

defs = build_datacoolie_definitions(HERE / "metadata", project_dir=HERE)
