"""The front door: plan, run, replay and maintain. No logic of its own."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from datacoolie_core import clock
from datacoolie_core.assembly import Given, assemble
from datacoolie_core.operations import TargetChoice, Workplace, chosen_store
from datacoolie_core.plan.selection import select
from datacoolie_core.run.config import DataCoolieRunConfig
from datacoolie_core.run.locks import Locks
from datacoolie_core.session import Session, job_settings
from datacoolie_core.settings import find_project_dir
from datacoolie_core.watermark_manager import WatermarkManager

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacoolie_core.assembly import MetadataProvider, SecretProvider
    from datacoolie_core.metadata.models import Dataflow, Metadata
    from datacoolie_core.metadata.scope import OnInvalid
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.planner import Plan
    from datacoolie_core.plan.replay import Replay
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.platforms import LocalPlatform, PolarsEngine
    from datacoolie_core.run.connect import Connected
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.events import Listener
    from datacoolie_core.run.executor import FailedBefore
    from datacoolie_core.run.logs.execution import ExecutionLogger
    from datacoolie_core.run.logs.system import SystemLogger
    from datacoolie_core.run.maintain_results import MaintenanceResult
    from datacoolie_core.run.results import ExecutionResult
    from datacoolie_core.state.stores import StateStore


class DataCoolieDriver:
    """Plans and runs the dataflows of one valid metadata scope; a context manager.

    Args:
        metadata: The scope, loaded; or the paths of its files and folders.
        engine: Runs the dataflows; polars if None.
        platform: Where the engine runs; not another one than the engine's own.
        metadata_provider, metadata_base_path: What gives the metadata instead, or its folder.
        artifact_base_path: Root of ``artifact:/…``; its ``metadata`` folder holds the metadata
            where nothing else names it. Without any, only explicit dataflows can be run.
        state_base_path: Folder or URI of the state; ``state`` is the same.
        sql_base_path: Roots of SQL files; empty means the project root, ``sql_paths`` is the same.
        log_base_path: Folder of the logs; None writes none. ``log_path`` is the same.
        watermark_manager: Its store is used instead of ``state``.
        secret_provider: Gives the secrets that no resolver's prefix names.
        config: How runs go.
        execution_logger, system_logger: Instead of those below ``log_base_path``.
        project_dir: Root of relative paths; None finds it (docs/reference/cli.md).
        state: A store, or the folder or URI of one; None is ``.datacoolie/state`` in the project.
        listeners: Hooks, told of every event after it is logged; called from worker threads.
        resolvers: Secret resolvers by prefix, beside the built-in ``env``.
        on_invalid: ``quarantine`` runs the valid rest and reports the others as failed.
        environment: Whose overlays are laid over metadata that is given as paths.
        graph: That of ``metadata``, where the caller has it already; else it is built when needed.
        sleep: Waits between attempts, in seconds.

    Raises:
        SettingsError: Two arguments contradict each other; nothing was read.
        MetadataError: When the metadata is wrong; it holds every problem.
    """

    def __init__(
        self,
        metadata: Metadata | str | Sequence[str] | None = None,
        *,
        engine: PolarsEngine | None = None,
        platform: LocalPlatform | None = None,
        metadata_provider: MetadataProvider | None = None,
        metadata_base_path: str | None = None,
        artifact_base_path: str | None = None,
        state_base_path: str | None = None,
        sql_base_path: str | Sequence[str] = (),
        log_base_path: str | None = None,
        watermark_manager: WatermarkManager | None = None,
        secret_provider: SecretProvider | None = None,
        config: DataCoolieRunConfig | None = None,
        execution_logger: ExecutionLogger | None = None,
        system_logger: SystemLogger | None = None,
        project_dir: str | None = None,
        state: StateStore | str | None = None,
        listeners: Sequence[Listener] = (),
        log_path: str | None = None,
        sql_paths: Sequence[str] = (),
        resolvers: Mapping[str, Any] | None = None,
        on_invalid: OnInvalid = "fail",
        environment: str | None = None,
        graph: Graph | None = None,
        sleep: Callable[[float], None] = clock.sleep,
    ) -> None:
        self.project_dir = find_project_dir(project_dir)
        self.config = config or DataCoolieRunConfig()
        self._assembly = assemble(
            Given(
                project_dir=self.project_dir,
                metadata=metadata,
                engine=engine,
                platform=platform,
                metadata_provider=metadata_provider,
                metadata_base_path=metadata_base_path,
                artifact_base_path=artifact_base_path,
                state_base_path=state_base_path,
                sql_base_path=sql_base_path or tuple(sql_paths),
                log_base_path=log_base_path or log_path,
                secret_provider=secret_provider,
                resolvers=resolvers or {},
                on_invalid=on_invalid,
                environment=environment,
            )
        )
        self.store = chosen_store(state, watermark_manager, self._assembly, self.project_dir)
        self._session = Session(
            self.config,
            self._assembly.log_root,
            execution=execution_logger,
            system=system_logger,
            settings=job_settings(self.config, self._assembly, watermark_manager or self.store),
        )
        self._work = Workplace(
            project_dir=self.project_dir,
            config=self.config,
            assembly=self._assembly,
            store=self.store,
            locks=Locks(self.project_dir),
            listeners=(*self._session.listeners, *listeners),
            on_invalid=on_invalid,
            sleep=sleep,
        )
        self._graph = graph
        self.metadata: Metadata = self._session.start(
            self._assembly.provider, self._assembly.metadata
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self.close()
        except Exception:
            if error is None:
                raise
            # the error that ended the block comes first
            logging.getLogger(__name__).exception("the driver could not be closed")

    def close(self) -> None:
        """End the driver; it takes no more work.

        Raises:
            LifecycleError: While an operation runs.
        """
        self._session.close((self._assembly.provider, self.store))

    @property
    def graph(self) -> Graph:
        """The dataflows and what each waits for; built at first use."""
        if self._graph is None:
            self._graph = self._work.graph(self.metadata)
        return self._graph

    def _graph_of(self, dataflows: Sequence[Dataflow] | None) -> Graph:
        """Return the graph, with a list of the caller's own as it is given."""
        return self._work.graph_of(self.graph, self.metadata, dataflows)

    @property
    def watermarks(self) -> WatermarkManager:
        """Shows, sets, resets and imports the watermarks of dataflows."""
        return WatermarkManager(self.store, lambda: self._context(None))

    def load_dataflows(self, stage: str | Sequence[str] | None = None) -> list[Dataflow]:
        """Return the dataflows of stages that may run, of this job's share.

        Args:
            stage: Stage names, a comma text or a list; None is all.

        Raises:
            SelectionError: For a stage that there is none of.
        """
        shard = (self.config.job_num, self.config.job_index)
        chosen = select(self.graph, stages=stage, shard=shard)
        return [one for one in chosen.dataflows if one.dataflow_id not in chosen.skip_reasons]

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
        respect_order: bool = False,
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
            respect_order: As in :meth:`run_replay`.
            read_state: False opens no state, and shows windows as rules.

        Raises:
            SelectionError: For a stage or pattern that matches nothing.
            SettingsError: For a range that makes no sense.
        """
        return self._work.plan(
            self._graph_of(dataflows),
            stages=stages,
            include=include,
            exclude=exclude,
            dataflows=dataflows,
            full_refresh=full_refresh,
            replay=replay,
            save_watermark=save_watermark,
            respect_order=respect_order,
            read_state=read_state,
        )

    def run(
        self,
        plan: Plan | None = None,
        *,
        stage: str | Sequence[str] | None = None,
        stages: str | Sequence[str] | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        dataflows: Sequence[Dataflow] | None = None,
        full_refresh: bool = False,
        dry_run: bool = False,
        run_id: str | None = None,
        failed_before: FailedBefore | None = None,
    ) -> ExecutionResult:
        """Run a plan, or what the selection gives.

        Args:
            plan: From :meth:`plan`, of a load or of a replay; else the other arguments make
                one. Saved values are read again when each dataflow starts.
            stage: The same as ``stages``.
            stages: As in :meth:`plan`.
            include: As in :meth:`plan`.
            exclude: As in :meth:`plan`.
            dataflows: As in :meth:`plan`.
            full_refresh: Read from the beginning and replace what is there.
            dry_run: Check preparation alone; every target is skipped, or failed.
            run_id: The caller's own id; a repeat with the same id never loads twice what the
                first one committed.
            failed_before: Dataflow id → id and label of what it waits for and failed elsewhere,
                such as in an earlier step of the same Dagster run.

        Raises:
            KeyboardInterrupt: After what runs was drained and the result was emitted.
            LifecycleError: When the driver is busy or closed.
        """
        rehearsal = dry_run or self.config.dry_run
        graph = self._graph_of(dataflows)

        def work(identifier: str) -> ExecutionResult:
            chosen = plan or self.plan(
                stages=stage if stages is None else stages,
                include=include,
                exclude=exclude,
                dataflows=dataflows,
                full_refresh=full_refresh,
                read_state=not rehearsal,
            )
            context = self._context(identifier, graph=graph, full_refresh=full_refresh)
            return self._work.execute(chosen, context, rehearsal, failed_before)

        return self._session.operate("run", run_id, work)

    def run_replay(
        self,
        dataflows: Sequence[Dataflow],
        replay: Replay,
        *,
        save_watermark: bool = False,
        respect_order: bool = False,
        dry_run: bool = False,
        run_id: str | None = None,
        failed_before: FailedBefore | None = None,
    ) -> ExecutionResult:
        """Load chunks of dataflows again (docs/replay.md).

        Dataflows run beside each other, the chunks of one in turn; the first chunk that fails
        ends its dataflow and keeps the earlier ones.

        Args:
            dataflows: This list as given; group and order do not sequence it, unless
                ``respect_order`` does.
            replay: One range for all; or dataflow id → its own range, or its chunks ready cut.
            save_watermark: Whether all chunks move the saved watermark, whatever a range says.
            respect_order: Whether all wait as in :meth:`run`, whatever a range says.
            dry_run: As in :meth:`run`; the result holds the chunks.
            run_id: As in :meth:`run`.
            failed_before: As in :meth:`run`.

        Raises:
            KeyboardInterrupt: After what runs was drained and the result was emitted.
            LifecycleError: When the driver is busy or closed.
            SettingsError: For a range that makes no sense.
        """
        rehearsal = dry_run or self.config.dry_run
        graph = self._graph_of(dataflows)

        def work(identifier: str) -> ExecutionResult:
            plan = self.plan(
                dataflows=dataflows,
                replay=replay,
                save_watermark=save_watermark,
                respect_order=respect_order,
                read_state=not rehearsal,
            )
            context = self._context(identifier, graph=graph)
            return self._work.execute(plan, context, rehearsal, failed_before)

        return self._session.operate("run_replay", run_id, work)

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
        from datacoolie_core.run.maintain import Wanted

        rehearsal = dry_run or self.config.dry_run
        wanted = Wanted(do_compact, do_cleanup, allow_short_retention, rehearsal)
        chosen = TargetChoice(connection, tables, include, exclude, dataflows)

        def work(identifier: str) -> MaintenanceResult:
            return self._work.maintain(self.metadata, chosen, wanted, identifier)

        return self._session.operate("run_maintenance", run_id, work)

    def connect(self, plan: Plan) -> dict[str, Connected]:
        """Ask what the steps of a plan that would run need, and return what each found, by id."""
        from datacoolie_core.run.connect import connect

        with self._session.admitted("connect"):
            return connect(plan, self._context(None))

    def count_windows(self, dataflow: Dataflow, windows: Sequence[Window]) -> list[int]:
        """Return how many rows of the destination lie in each window, from one pass."""
        from datacoolie_core.run.measure import count_windows

        return count_windows(dataflow, windows, self._context(None))

    def _context(
        self, run_id: str | None, *, graph: Graph | None = None, full_refresh: bool = False
    ) -> RunContext:
        return self._work.context(graph or self.graph, run_id, full_refresh=full_refresh)


def create_driver(*arguments: Any, **settings: Any) -> DataCoolieDriver:
    """Return a driver; arguments, rules and errors are those of :class:`DataCoolieDriver`."""
    return DataCoolieDriver(*arguments, **settings)
