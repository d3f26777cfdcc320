"""What the packages export, and what an import costs."""

from __future__ import annotations

import subprocess
import sys

import datacoolie_core


def test_every_public_name_is_there():
    for name in datacoolie_core.__all__:
        assert getattr(datacoolie_core, name).__name__ == name


def imported(statement):
    code = f"{statement}; import sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_metadata_and_plan_load_no_engine():
    modules = imported(
        "from datacoolie_core import load_metadata; import datacoolie_core.plan.planner"
    )
    assert not modules & {"polars", "deltalake", "pyarrow", "dagster", "sqlite3"}


def test_the_core_never_loads_dagster():
    assert "dagster" not in imported("import datacoolie_core.cli")


def test_the_front_door_loads_no_heavy_module_before_it_is_used():
    modules = imported("from datacoolie_core import DataCoolieDriver")
    assert not modules & {"deltalake", "pyarrow", "pandas", "sqlglot"}
