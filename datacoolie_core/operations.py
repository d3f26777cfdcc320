"""What a driver's operations have in common: the plan, the context of a run, and its execution."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.plan.graph import build_graph
from datacoolie_core.plan.planner import Plan, build_plan
from datacoolie_core.plan.query import query_reader
from datacoolie_core.plan.selection import select, skip_reason
from datacoolie_core.run.context import RunContext
from datacoolie_core.run.events import (
    AdmissionStopped,
    DataflowFinished,
    RunFinished,
    RunStarted,
)
from datacoolie_core.run.executor import Outcome, ParallelExecutor, StopReason
from datacoolie_core.run.outlook import look
from datacoolie_core.run.results import DataflowResult, ExecutionResult
from datacoolie_core.run.step import run_step
from datacoolie_core.state.open_store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacoolie_core.assembly import Assembly
    from datacoolie_core.metadata.models import Dataflow, Metadata
    from datacoolie_core.metadata.scope import OnInvalid
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.planner import Step
    from datacoolie_core.plan.replay import Replay
    from datacoolie_core.plan.targets import Target
    from datacoolie_core.run.config import DataCoolieRunConfig
    from datacoolie_core.run.events import Event, Listener
    from datacoolie_core.run.executor import FailedBefore
    from datacoolie_core.run.locks import Locks
    from datacoolie_core.run.maintain import Wanted
    from datacoolie_core.run.maintain_results import MaintenanceResult
    from datacoolie_core.state.stores import StateStore
    from datacoolie_core.watermark_manager import WatermarkManager


@dataclass(frozen=True)
class TargetChoice:
    """Which tables are to be maintained; see the driver's ``run_maintenance``."""

    connection: str | Sequence[str] | None = None
    tables: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    dataflows: Sequence[Dataflow] | None = None


@dataclass(frozen=True)
class Workplace:
    """What every operation of a driver uses.

    Attributes:
        project_dir: Root of relative paths.
        config: How runs go.
        assembly: Roots and resolvers.
        store: Of the state.
        locks: Shared by all operations.
        listeners: Told of every event: the logs first, then the caller's hooks.
        on_invalid: What wrong dataflows do.
        sleep: Waits between attempts.
    """

    project_dir: str
    config: DataCoolieRunConfig
    assembly: Assembly
    store: StateStore
    locks: Locks
    listeners: Sequence[Listener]
    on_invalid: OnInvalid
    sleep: Callable[[float], None]

    def graph(self, metadata: Metadata) -> Graph:
        """Return the dataflows of a scope and what each waits for."""
        return build_graph(metadata, read_query=self._query(), on_invalid=self.on_invalid)

    def graph_of(
        self, graph: Graph, metadata: Metadata, dataflows: Sequence[Dataflow] | None
    ) -> Graph:
        """Return the graph, with dataflows of the caller's own as they are given.

        Args:
            graph: Of the metadata.
            metadata: The scope.
            dataflows: The caller's list; it may hold changed copies and new ones.
        """
        known = graph.by_id
        if dataflows is None or all(known.get(one.dataflow_id) is one for one in dataflows):
            return graph
        merged = {**known, **{one.dataflow_id: one for one in dataflows}}
        return self.graph(metadata.model_copy(update={"dataflows": tuple(merged.values())}))

    def maintain(
        self, metadata: Metadata, choice: TargetChoice, wanted: Wanted, run_id: str
    ) -> MaintenanceResult:
        """Maintain the tables that are chosen; the arguments are those of the driver's method."""
        from datacoolie_core.run.maintain import maintain

        return maintain(self._targets(metadata, choice), self.context(None, run_id), wanted)

    def _targets(self, metadata: Metadata, choice: TargetChoice) -> Sequence[Target]:
        from datacoolie_core.plan.targets import maintenance_targets, writing_to

        dataflows = choice.dataflows
        shard = None if dataflows is not None else (self.config.job_num, self.config.job_index)
        if dataflows is None:
            dataflows = metadata.dataflows
            if choice.include or choice.exclude:
                graph = self.graph(metadata)
                chosen = select(graph, include=choice.include, exclude=choice.exclude)
                dataflows = chosen.dataflows
            wanted = choice.connection
            named = (wanted,) if isinstance(wanted, str) else tuple(wanted or ())
            known = [one.name for one in metadata.connections]
            dataflows = writing_to(dataflows, connections=named, tables=choice.tables, known=known)
        return maintenance_targets(dataflows, project_dir=self.project_dir, shard=shard)

    def _query(self) -> Callable[[Dataflow], str | None]:
        return query_reader(self.project_dir, self.assembly.sql_roots, self.assembly.artifact_root)

    def plan(
        self,
        graph: Graph,
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
        """Return a plan; the arguments are those of the driver's own method."""
        shard = (self.config.job_num, self.config.job_index)
        selection = select(
            graph,
            stages=stages,
            include=include,
            exclude=exclude,
            dataflows=None if dataflows is None else [one.dataflow_id for one in dataflows],
            shard=None if dataflows is not None else shard,
        )
        outlook = look(
            selection.dataflows,
            graph,
            self._query(),
            self.store if read_state else None,
            full_refresh=full_refresh,
        )
        return build_plan(
            graph,
            selection,
            watermarks=outlook.watermarks,
            now=clock.utc_now(),
            replay=replay,
            save_watermark=save_watermark,
            respect_order=respect_order,
            full_refresh=full_refresh,
            troubles=outlook.troubles,
        )

    def context(
        self, graph: Graph | None, run_id: str | None = None, *, full_refresh: bool = False
    ) -> RunContext:
        """Return what every part of one run is handed.

        Args:
            graph: Tells which destinations are shared; None where nothing is loaded.
            run_id: The run's id; None gives a new one.
            full_refresh: Read from the beginning and replace what is there.
        """

        def emit(event: Event) -> None:
            for listener in self.listeners:
                try:
                    listener(event)
                except Exception:  # a listener never changes what is loaded
                    logging.getLogger(__name__).exception("a listener failed on %s", event)

        return RunContext(
            run_id=run_id or str(uuid.uuid4()),
            project_dir=self.project_dir,
            store=self.store,
            locks=self.locks,
            emit=emit,
            sleep=self.sleep,
            config=self.config,
            sql_paths=self.assembly.sql_roots,
            artifact_root=self.assembly.artifact_root,
            resolvers=self.assembly.resolvers,
            full_refresh=full_refresh,
            shared=set() if graph is None else _shared(graph),
        )

    def execute(
        self,
        plan: Plan,
        context: RunContext,
        dry_run: bool,
        failed_before: FailedBefore | None = None,
    ) -> ExecutionResult:
        """Run the steps of a plan.

        Args:
            plan: What to run.
            context: The run's.
            dry_run: Check preparation alone.
            failed_before: What failed elsewhere, as the driver's ``run`` takes it.

        Raises:
            KeyboardInterrupt: After what runs was drained and the result was emitted.
        """
        since = clock.monotonic()
        context.emit(RunStarted(context.run_id, len(plan.steps)))

        def told(one: Step, stale: tuple[str, ...]) -> DataflowResult:
            result = run_step(one, context, stale, mode=plan.mode, dry_run=dry_run)
            context.emit(DataflowFinished(result))
            return result

        def stopped(reason: StopReason, waiting: int) -> None:
            if reason == "interrupted":
                context.stopping.set()
            context.emit(AdmissionStopped(reason, waiting))

        config = self.config
        executor = ParallelExecutor(
            config.max_workers, config.stop_on_error, config.on_upstream_failure
        )
        outcome: Outcome = executor.run(plan, told, stopped, failed_before)
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


def _shared(graph: Graph) -> set[str]:
    """Return the ids of dataflows whose destination other active dataflows write too."""
    shared: set[str] = set()
    for writers in graph.destinations.values():
        active = {one for one in writers if skip_reason(graph.by_id[one]) is None}
        shared |= {one for one in writers if active - {one}}
    return shared


def chosen_store(
    state: StateStore | str | None,
    manager: WatermarkManager | None,
    assembly: Assembly,
    project_dir: str,
) -> StateStore:
    """Return the store of a driver: its manager's, the one given, or the one at a place.

    Args:
        state: A store, or where one is; None is the assembly's place.
        manager: A watermark manager of the caller's own.
        assembly: Names the default place.
        project_dir: Root of relative paths.
    """
    if manager is not None:
        return manager.store
    if state is None or isinstance(state, str):
        return open_store(state or assembly.state, project_dir)
    return state
