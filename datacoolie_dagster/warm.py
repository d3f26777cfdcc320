"""An executor whose steps start warm: the definitions are built once a run, not once a step.

Dagster starts a process for each step, which imports the code location and builds all its assets to
run one. Ours are forked from a server that has done so, which takes the same time for ten dataflows
and for thousands.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import tempfile
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Mapping

_LENIENT = {"step_dependency_config": {"require_upstream_step_success": False}}
_PRELOAD = "datacoolie_dagster.warm_server"
_NO_FORK = ("polars", "deltalake")
"""Modules that start threads when they are imported: a process that has them must not be forked."""
_LONGEST_FOLDER = 68
"""The server listens at a socket in the folder for temporary files, whose path may have 104 bytes."""
PLAN = "DATACOOLIE_WARM_STEPS"
"""The environment variable that names the file from which the server learns what to build."""


@cache
def warm_executor() -> dg.ExecutorDefinition:
    """Return an executor for definitions with many dataflows, or with group steps.

    It is Dagster's own, which starts a process for each step or runs all of them in one, with two
    differences. Processes are forked from a server that has built the definitions, where the
    system can fork and no ``start_method`` is configured. And a step starts when all that it needs
    was put out, also by a step that failed; a step of one dataflow that failed puts nothing out,
    so that Dagster's own rule holds for it.

    Definitions that import polars themselves, outside functions, are not built ahead: polars can't
    be forked.

    Returns:
        It takes the same config as Dagster's own: ``in_process`` or ``multiprocess``. It is one
        object, since Dagster merges no definitions with several.
    """
    default: Any = dg.multi_or_in_process_executor
    return dg.ExecutorDefinition(
        name="datacoolie",
        config_schema=default.config_schema,
        requirements=default.get_requirements,
        executor_creation_fn=_create,
        description="Runs steps in processes that need not build the definitions again.",
    )


def _create(context: dg.InitExecutorContext) -> Any:
    given: Mapping[str, Any] = context.executor_config
    ((kind, config),) = given.items()
    config = {**config, **_LENIENT}
    if kind == "multiprocess" and _may_fork(config):
        config["start_method"] = {"forkserver": {"preload_modules": _preload(context)}}
    default: Any = dg.multi_or_in_process_executor
    return default.executor_creation_fn(context._replace(executor_config={kind: config}))


def _may_fork(config: Mapping[str, Any]) -> bool:
    """Say whether the way in which processes start is left to us, and the system knows ours."""
    chosen = config.get("start_method")
    known = "forkserver" in multiprocessing.get_all_start_methods()
    return chosen is None and known and len(tempfile.gettempdir()) <= _LONGEST_FOLDER


def _preload(context: dg.InitExecutorContext) -> list[str]:
    # this process has loaded the definitions too: what they import is here
    if any(name in sys.modules for name in _NO_FORK):
        return ["dagster"]
    os.environ[PLAN] = _write_plan(context)
    return [_PRELOAD]


def _write_plan(context: dg.InitExecutorContext) -> str:
    """Write the job of this run, and the modules of the instance's storages, into a file."""
    parts: Any = context.instance.get_ref()
    modules = {getattr(part, "module_name", None) for part in parts}
    handle, name = tempfile.mkstemp(prefix="datacoolie_warm_")
    # multiprocessing's own way: a run's process ends without Python's exit handlers
    Finalize(None, Path(name).unlink, kwargs={"missing_ok": True}, exitpriority=0)
    with os.fdopen(handle, "wb") as file:
        pickle.dump({"modules": sorted(filter(None, modules)), "job": context.job}, file)
    return name
