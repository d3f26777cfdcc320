"""The core: loads DataCoolie metadata and runs its dataflows. Never imports Dagster.

The public names come from here; each is imported when it is first used, so that a process that
only reads metadata loads no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver, create_driver
    from datacoolie_core.errors import DataCoolieError
    from datacoolie_core.metadata.loader import load_metadata
    from datacoolie_core.metadata.models import Dataflow, Metadata
    from datacoolie_core.metadata.providers import FileProvider
    from datacoolie_core.plan.chunks import generate_chunks
    from datacoolie_core.plan.distributor import JobDistributor
    from datacoolie_core.plan.replay_config import ReplayConfig
    from datacoolie_core.platforms import LocalPlatform, PolarsEngine
    from datacoolie_core.run.config import DataCoolieRunConfig
    from datacoolie_core.run.executor import ParallelExecutor
    from datacoolie_core.run.logs.config import LogConfig
    from datacoolie_core.run.logs.execution import ExecutionLogger
    from datacoolie_core.run.logs.system import SystemLogger
    from datacoolie_core.run.results import DataflowResult, ExecutionResult
    from datacoolie_core.run.retry import RetryHandler
    from datacoolie_core.state.open_store import open_store
    from datacoolie_core.state.sql_store import SqlStateStore
    from datacoolie_core.state.stores import FileStateStore, StateStore
    from datacoolie_core.watermark_manager import WatermarkManager

__all__ = [
    "DataCoolieDriver",
    "DataCoolieError",
    "DataCoolieRunConfig",
    "Dataflow",
    "DataflowResult",
    "ExecutionLogger",
    "ExecutionResult",
    "FileProvider",
    "FileStateStore",
    "JobDistributor",
    "LocalPlatform",
    "LogConfig",
    "Metadata",
    "ParallelExecutor",
    "PolarsEngine",
    "ReplayConfig",
    "RetryHandler",
    "SqlStateStore",
    "StateStore",
    "SystemLogger",
    "WatermarkManager",
    "create_driver",
    "generate_chunks",
    "load_metadata",
    "open_store",
]

_HOMES = {
    "open_store": "state.open_store",
    "SqlStateStore": "state.sql_store",
    "WatermarkManager": "watermark_manager",
    "LocalPlatform": "platforms",
    "PolarsEngine": "platforms",
    "create_driver": "driver",
    "LogConfig": "run.logs.config",
    "SystemLogger": "run.logs.system",
    "ExecutionLogger": "run.logs.execution",
    "JobDistributor": "plan.distributor",
    "DataCoolieDriver": "driver",
    "DataCoolieError": "errors",
    "DataCoolieRunConfig": "run.config",
    "Dataflow": "metadata.models",
    "DataflowResult": "run.results",
    "ExecutionResult": "run.results",
    "FileProvider": "metadata.providers",
    "FileStateStore": "state.stores",
    "Metadata": "metadata.models",
    "ParallelExecutor": "run.executor",
    "ReplayConfig": "plan.replay_config",
    "RetryHandler": "run.retry",
    "StateStore": "state.stores",
    "generate_chunks": "plan.chunks",
    "load_metadata": "metadata.loader",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
