"""The executor that lets what depends on a good dataflow run, although its group's step failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

_LENIENT = {"step_dependency_config": {"require_upstream_step_success": False}}


def group_executor() -> dg.ExecutorDefinition:
    """Return Dagster's default executor, for definitions with group steps.

    A step starts when all that it needs was put out, also by a step that failed. A step of one
    dataflow that failed puts nothing out, so that Dagster's own rule holds for it.

    Returns:
        It takes the same config as Dagster's own: ``in_process`` or ``multiprocess``.
    """
    default: Any = dg.multi_or_in_process_executor
    return default.configured(_lenient, name="datacoolie", config_schema=default.config_schema)


def _lenient(config: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, given),) = config.items()
    return {kind: {**given, **_LENIENT}}
