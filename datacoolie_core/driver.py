"""The front door: plan, run and replay. No logic of its own."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from datacoolie_core import clock, storage
from datacoolie_core.errors import LifecycleError
from datacoolie_core.metadata.loader import load_metadata
from datacoolie_core.plan.graph import build_graph
from datacoolie_core.plan.planner import Plan, build_plan
from datacoolie_core.plan.query import query_reader
from datacoolie_core.plan.selection import select, skip_reason
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_core.run.context import RunContext
from datacoolie_core.run.events import DataflowFinished, RunFinished, RunStarted
from datacoolie_core.run.executor import Outcome, ParallelExecutor
from datacoolie_core.run.locks import Locks
from datacoolie_core.run.outlook import look
from datacoolie_core.run.records import RunRecorder
from datacoolie_core.run.results import DataflowResult, ExecutionResult
from datacoolie_core.run.step import run_step
from datacoolie_core.settings import find_project_dir
from datacoolie_core.state.stores import FileStateStore, StateStore

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow, Metadata
    from datacoolie_core.metadata.scope import OnInvalid
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.planner import Step
    from datacoolie_core.plan.replay import Replay
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.connect import Connected
    from datacoolie_core.run.events import Event, Listener
    from datacoolie_core.run.maintain_results import MaintenanceResult

DEFAULT_STATE = ".datacoolie/state"


class DataCoolieDriver:
    """Plans and runs the dataflows of one metadata scope; a context manager.

    Args:
        metadata: The scope, loaded; or the paths of its files and folders.
        project_dir: Root of relative paths; None finds it (docs/reference/cli.md).
        state: A store, or the folder of one; None is ``.datacoolie/state`` in the project.
        config: How runs go.
        listeners: Told of every event; called from worker threads.
        log_path: Folder of the run records; None writes none.
        sql_paths: Roots of SQL files; empty means the project root.
        resolvers: Secret resolvers by prefix, beside the built-in ``env``.
        on_invalid: ``fail`` raises for wrong metadata; ``quarantine`` runs the valid rest and
            reports the others as failed.
        sleep: Waits between attempts, in seconds.

    Raises:
        MetadataError: When the metadata is wrong; it holds every problem.
    """

    def __init__(
        self,
        metadata: Metadata | str | Sequence[str],
        *,
        project_dir: str | None = None,
        state: StateStore | str | None = None,
        config: DataCoolieRunConfig | None = None,
        listeners: Sequence[Listener] = (),
        log_path: str | None = None,
        sql_paths: Sequence[str] = (),
        resolvers: Mapping[str, Any] | None = None,
        on_invalid: OnInvalid = "fail",
        sleep: Callable[[float], None] = clock.sleep,
    ) -> None:
        self.project_dir = find_project_dir(project_dir)
        self.config = config or DataCoolieRunConfig()
        if isinstance(metadata, str):
            metadata = [metadata]
        if isinstance(metadata, Sequence):
            metadata = load_metadata(metadata, project_dir=self.project_dir, on_invalid=on_invalid)
        self.metadata: Metadata = metadata
        self.store = self._open_store(state)
        self._listeners = tuple(listeners)
        self._log_path = None if log_path is None else self._resolve(log_path)
        self._sql_paths = tuple(self._resolve(path) for path in sql_paths)
        self._resolvers = dict(resolvers or {})
        self._on_invalid: OnInvalid = on_invalid
        self._sleep = sleep
        self._locks = Locks(self.project_dir)
        self._busy = threading.Lock()
        self._closed = False
        self._graph: Graph | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the driver; it takes no more work.

        Raises:
            LifecycleError: While an operation runs.
        """
        if self._closed:
            return
        with self._admitted("close"):
            self._closed = True

    @property
    def graph(self) -> Graph:
        """The dataflows and what each waits for; built at first use."""
        if self._graph is None:
            reader = query_reader(self.project_dir, self._sql_paths)
            self._graph = build_graph(self.metadata, read_query=reader, on_invalid=self._on_invalid)
        return self._graph

    def plan(
        self,
        *,
        stages: str | Sequence[str] | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        dataflows: Sequence[Dataflow] | None = None,
        full_refresh: bool = False,
        replay: Replay | None = None,
        save_watermark: bool = False,
        read_state: bool = True,
    ) -> Plan:
        """Return what would run, in which order and why; writes nothing.

        Args:
            stages: Stage names, a comma text or a list; None is all.
            include: Patterns such as ``silver/flights``, ``bronze/*``, ``+gold/x``, ``x+``.
            exclude: The same, taken away.
            dataflows: This list as given, without stage or shard filter.
            full_refresh: Windows as of a run that reads from the beginning.
            replay: What to load again, as in :meth:`run_replay`; None plans a normal load.
            save_watermark: As in :meth:`run_replay`.
            read_state: False opens no state, and shows windows as rules.

        Raises:
            SelectionError: For a stage or pattern that matches nothing.
            SettingsError: For a range that makes no sense.
        """
        shard = (self.config.job_num, self.config.job_index)
        selection = select(
            self.graph,
            stages=stages,
            include=include,
            exclude=exclude,
            dataflows=None if dataflows is None else [one.dataflow_id for one in dataflows],
            shard=None if dataflows is not None else shard,
        )
        outlook = look(
            selection.dataflows,
            self.graph,
            query_reader(self.project_dir, self._sql_paths),
            self.store if read_state else None,
            full_refresh=full_refresh,
        )
        return build_plan(
            self.graph,
            selection,
            watermarks=outlook.watermarks,
            now=clock.utc_now(),
            replay=replay,
            save_watermark=save_watermark,
            full_refresh=full_refresh,
            troubles=outlook.troubles,
        )

    def run(
        self,
        plan: Plan | None = None,
        *,
        stages: str | Sequence[str] | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        dataflows: Sequence[Dataflow] | None = None,
        full_refresh: bool = False,
        dry_run: bool = False,
        run_id: str | None = None,
    ) -> ExecutionResult:
        """Run a plan, or what the selection gives.

        Args:
            plan: From :meth:`plan`, of a load or of a replay; else the other arguments make
                one. Saved values are read again when each dataflow starts.
            stages: As in :meth:`plan`.
            include: As in :meth:`plan`.
            exclude: As in :meth:`plan`.
            dataflows: As in :meth:`plan`.
            full_refresh: Read from the beginning and replace what is there.
            dry_run: Check preparation alone; every target is skipped, or failed.
            run_id: The caller's own id; a repeat with the same id never loads twice what the
                first one committed.

        Raises:
            KeyboardInterrupt: After what runs was drained and the result was emitted.
            LifecycleError: When the driver is busy or closed.
        """
        with self._admitted("run"):
            if plan is None:
                plan = self.plan(
                    stages=stages,
                    include=include,
                    exclude=exclude,
                    dataflows=dataflows,
                    full_refresh=full_refresh,
                    read_state=not dry_run,
                )
            context = self._context(run_id, full_refresh=full_refresh)
            return self._execute(plan, context, dry_run=dry_run)

    def run_replay(
        self,
        dataflows: Sequence[Dataflow],
        replay: Replay,
        *,
        save_watermark: bool = False,
        dry_run: bool = False,
        run_id: str | None = None,
    ) -> ExecutionResult:
        """Load chunks of dataflows again (docs/replay.md).

        Dataflows run beside each other, the chunks of one in turn; the first chunk that fails
        ends its dataflow and keeps the earlier ones.

        Args:
            dataflows: This list as given; group and order do not sequence it, unless
                ``respect_order`` does.
            replay: One range for all; or dataflow id → its own range, or its chunks ready cut.
            save_watermark: Whether all chunks move the saved watermark, whatever a range says.
            dry_run: As in :meth:`run`; the result holds the chunks.
            run_id: As in :meth:`run`.

        Raises:
            KeyboardInterrupt: After what runs was drained and the result was emitted.
            LifecycleError: When the driver is busy or closed.
            SettingsError: For a range that makes no sense.
        """
        with self._admitted("run_replay"):
            plan = self.plan(
                dataflows=dataflows,
                replay=replay,
                save_watermark=save_watermark,
                read_state=not dry_run,
            )
            return self._execute(plan, self._context(run_id), dry_run=dry_run)

    def run_maintenance(
        self,
        *,
        connection: str | Sequence[str] | None = None,
        tables: Sequence[str] = (),
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        dataflows: Sequence[Dataflow] | None = None,
        do_compact: bool = True,
        do_cleanup: bool = True,
        allow_short_retention: bool = False,
        dry_run: bool = False,
        run_id: str | None = None,
    ) -> MaintenanceResult:
        """Compact tables and clean up behind them, safely beside running loads.

        Each table is taken once, whoever writes it (docs/maintenance.md).

        Args:
            connection: Only tables of these destination connections.
            tables: Only these: ``table``, ``schema.table``.
            include: Only what these patterns of dataflows write, as in :meth:`plan`.
            exclude: The same, taken away.
            dataflows: This list as given, without any other condition and without the shard.
            do_compact: Write small files anew as large ones.
            do_cleanup: Delete what nobody needs any more; checkpoint; clean the log.
            allow_short_retention: Let ``config.retention_hours`` be below a table's own.
            dry_run: Only say what would be done.
            run_id: The caller's own id.

        Raises:
            KeyboardInterrupt: After what runs was drained and the result was emitted.
            LifecycleError: When the driver is busy or closed.
            SelectionError: For a connection, table or pattern that matches nothing.
        """
        from datacoolie_core.plan.targets import maintenance_targets, writing_to
        from datacoolie_core.run.maintain import Wanted, maintain

        with self._admitted("run_maintenance"):
            shard = None if dataflows is not None else (self.config.job_num, self.config.job_index)
            if dataflows is None:
                dataflows = self.metadata.dataflows
                if include or exclude:
                    dataflows = select(self.graph, include=include, exclude=exclude).dataflows
                named = (connection,) if isinstance(connection, str) else tuple(connection or ())
                known = [one.name for one in self.metadata.connections]
                dataflows = writing_to(dataflows, connections=named, tables=tables, known=known)
            targets = maintenance_targets(dataflows, project_dir=self.project_dir, shard=shard)
            wanted = Wanted(do_compact, do_cleanup, allow_short_retention, dry_run)
            return maintain(targets, self._context(run_id), wanted)

    def connect(self, plan: Plan) -> dict[str, Connected]:
        """Ask sources and destinations of a plan whether they answer and fit; writes nothing.

        Args:
            plan: From :meth:`plan`.

        Returns:
            Dataflow id → what was found, without steps that are skipped or refused.

        Raises:
            LifecycleError: When the driver is busy or closed.
        """
        from datacoolie_core.run.connect import connect

        with self._admitted("connect"):
            return connect(plan, self._context(None))

    def count_windows(self, dataflow: Dataflow, windows: Sequence[Window]) -> list[int]:
        """Return how many rows of the destination lie in each window, from one pass."""
        from datacoolie_core.run.measure import count_windows

        return count_windows(dataflow, windows, self._context(None))

    def _execute(self, plan: Plan, context: RunContext, *, dry_run: bool) -> ExecutionResult:
        since = clock.monotonic()
        context.emit(RunStarted(context.run_id, len(plan.steps)))

        def told(one: Step, stale: tuple[str, ...]) -> DataflowResult:
            result = run_step(one, context, stale, mode=plan.mode, dry_run=dry_run)
            context.emit(DataflowFinished(result))
            return result

        executor = ParallelExecutor(
            self.config.max_workers, self.config.stop_on_error, self.config.on_upstream_failure
        )
        outcome: Outcome = executor.run(plan, told, context.stopping.set)
        result = ExecutionResult(
            run_id=context.run_id,
            dataflows=tuple(outcome.results[one.dataflow.dataflow_id] for one in plan.steps),
            duration_seconds=clock.monotonic() - since,
            interrupted=outcome.interruption is not None,
            invalid=plan.invalid,
        )
        context.emit(RunFinished(result))
        if outcome.interruption is not None:
            raise outcome.interruption
        return result

    def _context(self, run_id: str | None, *, full_refresh: bool = False) -> RunContext:
        listeners = list(self._listeners)
        if self._log_path is not None:
            listeners.append(RunRecorder(self._log_path, self.config.run_attributes))

        def emit(event: Event) -> None:
            for listener in listeners:
                try:
                    listener(event)
                except Exception:  # a listener never changes what is loaded
                    logging.getLogger(__name__).exception("a listener failed on %s", event)

        return RunContext(
            run_id=run_id or str(uuid.uuid4()),
            project_dir=self.project_dir,
            store=self.store,
            locks=self._locks,
            emit=emit,
            sleep=self._sleep,
            config=self.config,
            sql_paths=self._sql_paths,
            resolvers=self._resolvers,
            full_refresh=full_refresh,
            shared=self._shared(),
        )

    def _shared(self) -> set[str]:
        """Return the ids of dataflows whose destination other active dataflows write too."""
        shared: set[str] = set()
        for writers in self.graph.destinations.values():
            active = {one for one in writers if skip_reason(self.graph.by_id[one]) is None}
            shared |= {one for one in writers if active - {one}}
        return shared

    def _open_store(self, state: StateStore | str | None) -> StateStore:
        if state is None or isinstance(state, str):
            return FileStateStore(self._resolve(state or DEFAULT_STATE))
        return state

    def _resolve(self, path: str) -> str:
        return storage.resolve(path, self.project_dir)

    @contextmanager
    def _admitted(self, operation: str) -> Generator[None]:
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
