"""A driver's session: one operation at a time, its logs, and an orderly end."""

from __future__ import annotations

import logging
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from datacoolie_core.clock import utc_now
from datacoolie_core.errors import LifecycleError
from datacoolie_core.metadata.models import Metadata
from datacoolie_core.run.logs.execution import ExecutionLogger
from datacoolie_core.run.logs.records import Job
from datacoolie_core.run.logs.system import SystemLogger
from datacoolie_core.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from datacoolie_core.assembly import Assembly, MetadataProvider
    from datacoolie_core.run.config import DataCoolieRunConfig
    from datacoolie_core.run.events import Listener
    from datacoolie_core.run.maintain_results import MaintenanceResult
    from datacoolie_core.run.results import ExecutionResult

R = TypeVar("R", "ExecutionResult", "MaintenanceResult")
# not a child of the package's logger: what it says must not come back to the log that failed
_LOGGER = logging.getLogger("datacoolie.logs")


class Session:
    """The loggers of one driver, open until it closes.

    Args:
        config: Names the job.
        log_root: Below it loggers are made where none is given; None makes none.
        execution: The caller's own logger.
        system: The caller's own logger.
        settings: Columns of the job's record.
    """

    def __init__(
        self,
        config: DataCoolieRunConfig,
        log_root: str | None,
        *,
        execution: ExecutionLogger | None = None,
        system: SystemLogger | None = None,
        settings: Mapping[str, Any],
    ) -> None:
        if log_root is not None:
            execution = execution or ExecutionLogger(join(log_root, "execution_logs"))
            system = system or SystemLogger(join(log_root, "system_logs"))
        self.execution, self.system = execution, system
        self._job = Job(
            session_id=str(uuid.uuid4()),
            job_id=config.job_id or str(uuid.uuid4()),
            job_num=config.job_num,
            job_index=config.job_index,
            started_at=utc_now(),
        )
        self._settings = settings
        self._failures: list[str] = []
        self._failed = False
        self._closed = False
        self._busy = threading.Lock()

    def start(self, provider: MetadataProvider | None, given: Metadata | None) -> Metadata:
        """Start to log, and have the provider read and validate everything.

        Args:
            provider: Of the metadata; None without any.
            given: The scope, if there is no provider.

        Raises:
            LifecycleError: A logger belongs to another driver.
            MetadataError: The metadata is wrong.
        """
        self._open()
        try:
            if provider is None:
                loaded = given or Metadata()
            else:
                provider.initialize()
                loaded = provider.load()
                self.tell("metadata.initialized", f"{len(loaded.dataflows)} dataflows")
        except BaseException as error:
            self._failed_by("session.startup_failed", error)
            self._end()
            raise
        self.tell("session.ready", "ready")
        return loaded

    def _open(self) -> None:
        if self.system is not None:
            self.system.open(self._job)
        if self.execution is not None:
            self.execution.open(self._job, self._settings)
        self.tell("session.starting", f"job {self._job.job_id} starts")

    @property
    def listeners(self) -> Sequence[Listener]:
        """What takes the events of runs, before any hook of the caller."""
        return [one for one in (self.execution, self.system) if one is not None]

    def tell(self, event_name: str, text: str, *, level: str = "INFO") -> None:
        """Write an event of the session to the system log."""
        if self.system is not None:
            self._quietly(lambda system=self.system: system.tell(event_name, text, level=level))

    def operate(self, operation: str, run_id: str | None, work: Callable[[str], R]) -> R:
        """Carry out an operation; what stops it is in the job's record.

        Args:
            operation: Its name.
            run_id: The caller's own id; None gives a new one.
            work: Does it, told the id.

        Raises:
            LifecycleError: The session is busy or closed.
        """
        with self.admitted(operation):
            identifier = run_id or str(uuid.uuid4())
            self._began(operation, identifier)
            try:
                result = work(identifier)
            except BaseException as error:
                self._failed_by("operation.failed", error)
                raise
            self._ended(operation, result.status)
            return result

    @contextmanager
    def admitted(self, operation: str) -> Generator[None]:
        """Let one operation in at a time; let go whatever happens.

        Raises:
            LifecycleError: The session is busy or closed.
        """
        if self._closed:
            raise LifecycleError(
                f"the driver is closed, '{operation}' came too late",
                remedy="Make a new DataCoolieDriver.",
            )
        if not self._busy.acquire(blocking=False):
            raise LifecycleError(
                f"the driver is busy, '{operation}' came too early",
                remedy="Wait for the running operation, or make a second driver.",
            )
        try:
            yield
        finally:
            self._busy.release()

    def _began(self, operation: str, run_id: str) -> None:
        if self.system is not None:
            self.system.begin(run_id)
        self.tell("operation.started", operation)
        if operation == "run_replay":
            self.tell("replay.started", operation)

    def _ended(self, operation: str, status: str) -> None:
        """Say how an operation ended; its dataflows have said the rest."""
        self._failed |= status != "succeeded"
        if operation == "run_replay":
            self.tell("replay.finished", status)
        if status == "failed":
            self.tell("operation.failed", f"{operation}: {status}", level="ERROR")
        else:
            self.tell("operation.finished", f"{operation}: {status}")
        if self.system is not None:
            self.system.begin(None)

    def _failed_by(self, event_name: str, error: BaseException) -> None:
        """Note a failure that is no dataflow's: of start, scheduling or teardown."""
        self._failed = True
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        self._failures.append(text)
        self.tell(event_name, text, level="ERROR")

    def close(self, owned: Sequence[object] = ()) -> None:
        """End the session: providers, the job's record, the execution log, then the system log.

        Each gets its attempt. The first failure of a provider, an interruption too, is raised when
        all have had it; failures of log stores are only said.

        Args:
            owned: What is closed, if it can be.

        Raises:
            LifecycleError: While an operation runs.
        """
        if self._closed:
            return
        with self.admitted("close"):
            self._closed = True
            self._end(owned)

    def _end(self, owned: Sequence[object] = ()) -> None:
        self._closed = True
        self.tell("session.finishing", "the session ends")
        first: BaseException | None = None
        for one in owned:
            close = getattr(one, "close", None)
            if not callable(close):
                continue
            try:
                close()
            except BaseException as error:  # noqa: BLE001 - all others must still be closed
                self._failed_by("session.teardown_failed", error)
                first = first or error
        status = "failed" if self._failed else "succeeded"
        if (execution := self.execution) is not None:
            self._quietly(lambda: execution.finish(status, self._failures))
            self._quietly(execution.close)
        if (system := self.system) is not None:
            self._quietly(system.close)
        if first is not None:
            raise first

    def _quietly(self, step: Callable[[], Any]) -> None:
        try:
            step()
        except Exception:  # a log never changes what was loaded
            _LOGGER.exception("a log could not be written")


def job_settings(
    config: DataCoolieRunConfig, assembly: Assembly, manager: object
) -> dict[str, Any]:
    """Return the columns of the job's record that are known from the start.

    Args:
        config: How runs go.
        assembly: Names engine, platform and provider.
        manager: Keeps the watermarks.
    """
    provider = assembly.provider
    return {
        "workspace_id": None,
        "stages": [],
        "engine_name": assembly.engine.name,
        "platform_name": assembly.platform.name,
        "metadata_provider_name": None if provider is None else type(provider).__name__,
        "watermark_manager_name": type(manager).__name__,
        "max_workers": config.max_workers,
        "stop_on_error": config.stop_on_error,
        "retry_count": config.retry_count,
        "retry_delay": config.retry_delay,
        "dry_run": config.dry_run,
        "retention_hours": config.retention_hours,
        "run_attributes": dict(config.run_attributes),
    }
