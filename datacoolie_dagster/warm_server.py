"""What the server does from which steps are forked: it builds the definitions, once.

It is imported there and nowhere else. Dagster has no public way to hand definitions to a step, so
the private names are here, and only here: where they are gone, or anything else goes wrong, steps
build the definitions themselves, as without a server.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacoolie_dagster.warm import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LATE = (
    "alembic.command",
    "dagster._core.execution.api",
    "dagster._core.executor.multiprocess",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.storage.event_log.sqlite",
)
"""What steps import besides, as far as it is known and starts no threads."""


def warm_up(plan: Path) -> None:
    """Build the job that a plan names, and let the processes that are forked from now on use it.

    Args:
        plan: The file that ``warm_executor`` wrote; it is gone afterwards.
    """
    content = plan.read_bytes()
    plan.unlink(missing_ok=True)
    # a file of this user's own, written by the process that started this one
    found: dict[str, Any] = pickle.loads(content)  # noqa: S301
    job = found["job"]
    _hand_over(job)
    _import((*_LATE, *found["modules"]))
    # what is frozen is neither looked at nor copied by the collector of a forked process
    gc.collect()
    gc.freeze()


def _hand_over(job: Any) -> None:
    """Let Dagster find the definitions of a job without loading them, in this process's children.

    Dagster remembers them by a hash that does not survive the way from one process to another.
    """
    kind: Any = job.__class__
    repository, definition = job.get_repository_definition(), job.get_definition()
    kind.get_repository_definition = _known(job, repository, kind.get_repository_definition)
    kind.get_definition = _known(job, definition, kind.get_definition)


def _known(job: Any, found: Any, load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        return found if self == job else load(self)

    return get


def _import(names: Iterable[str]) -> None:
    for name in names:
        importlib.import_module(name)


def _warn_of_threads() -> None:
    tasks = Path("/proc/self/task")
    if tasks.is_dir() and len(list(tasks.iterdir())) > 1:
        _say(
            "a module that the definitions import starts threads, and steps are forked from this "
            "process. Import it within functions, or set start_method: {spawn: {}} in the "
            "executor's config."
        )


def _say(text: str) -> None:
    sys.stderr.write(f"DataCoolie: {text}\n")


def _start() -> None:
    name = os.environ.pop(PLAN, None)
    if name is None:
        return
    try:
        warm_up(Path(name))
    except Exception as error:  # noqa: BLE001 - whatever it is, steps can do without
        _say(f"steps start slowly, since the definitions were not built ahead: {error!r}")
    _warn_of_threads()


_start()
