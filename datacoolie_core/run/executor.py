"""Many dataflows at once, none before what it waits for (docs/concepts.md, "Order")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from datacoolie_core.run.results import DataflowResult

if TYPE_CHECKING:
    from datacoolie_core.metadata.options import UpstreamFailure
    from datacoolie_core.plan.planner import Plan, Step

StopReason = Literal["interrupted", "stopped after a failure"]

_AWAKE = 0.2
"""Seconds; the engine's own signal handler keeps a thread that waits without end from seeing Ctrl-C."""

FailedBefore = Mapping[str, Mapping[str, str]]
"""Dataflow id → the id and the label of each dataflow that it waits for and that failed."""

RunStep = Callable[["Step", tuple[str, ...]], DataflowResult]
"""Runs one step, told which upstream dataflows failed in this run; never raises."""


@dataclass(frozen=True)
class Outcome:
    """Results by dataflow id, and whether the run was interrupted."""

    results: dict[str, DataflowResult]
    interruption: BaseException | None = None


@dataclass
class ParallelExecutor:
    """One thread pool with a global cap; only ready work is admitted.

    Args:
        max_workers: Dataflows that run at once.
        stop_on_error: After the first failure nothing new starts; what runs is drained.
        on_upstream_failure: The default where a dataflow has no policy of its own.
    """

    max_workers: int = 8
    stop_on_error: bool = False
    on_upstream_failure: UpstreamFailure = "continue"

    def run(
        self,
        plan: Plan,
        run_step: RunStep,
        on_stop: Callable[[StopReason, int], None] = lambda _reason, _waiting: None,
        failed_before: FailedBefore | None = None,
    ) -> Outcome:
        """Run every step of a plan.

        Ctrl-C admits nothing more, waits for what runs, and is handed back in the outcome.

        Args:
            plan: What to run.
            run_step: Runs one step.
            on_stop: Called when nothing more is admitted, with the reason and how many wait;
                after Ctrl-C long steps can end early.
            failed_before: What a dataflow waits for and failed elsewhere, before this run.

        Returns:
            A result for every step; those never admitted are pending.
        """
        board = _Board.of(plan, failed_before or {})
        ended: dict[str, DataflowResult] = {}

        def work(step: Step, stale: tuple[str, ...]) -> DataflowResult:
            # Kept here too: an interrupt may strike before the future is noted below.
            result = ended[step.dataflow.dataflow_id] = run_step(step, stale)
            return result

        interruption: BaseException | None = None
        running: dict[Future[DataflowResult], str] = {}
        workers = max(1, min(self.max_workers, len(plan.steps)))
        with ThreadPoolExecutor(workers, thread_name_prefix="dataflow") as pool:
            while True:
                try:
                    if not board.stopped:
                        self._admit(board, pool, running, work, workers)
                    if not running:
                        break
                    done, _ = wait(running, timeout=_AWAKE, return_when=FIRST_COMPLETED)
                    for future in done:
                        board.end(running.pop(future), future.result())
                    if self.stop_on_error and board.failed and not board.stopped:
                        board.stopped = True
                        if board.waiting:
                            on_stop("stopped after a failure", len(board.waiting))
                except (KeyboardInterrupt, SystemExit) as error:
                    interruption = interruption or error
                    board.stopped = True
                    on_stop("interrupted", len(board.waiting))
        results = {**board.results, **ended}
        reason: StopReason = "interrupted" if interruption else "stopped after a failure"
        for step in plan.steps:
            results.setdefault(
                step.dataflow.dataflow_id, DataflowResult(step.dataflow, "pending", reason=reason)
            )
        return Outcome(results, interruption)

    def _admit(
        self,
        board: _Board,
        pool: ThreadPoolExecutor,
        running: dict[Future[DataflowResult], str],
        run_step: RunStep,
        workers: int,
    ) -> None:
        while len(running) < workers:
            identifier = board.next_ready()
            if identifier is None:
                return
            step = board.waiting.pop(identifier)
            failed = board.failed_upstream(step)
            policy = step.dataflow.options.on_upstream_failure or self.on_upstream_failure
            if failed and policy == "block" and step.skip_reason is None:
                names = ", ".join(board.label(one) for one in failed)
                result = DataflowResult(
                    step.dataflow, "skipped", reason=f"upstream failed: {names}"
                )
                board.end(identifier, result, blocked=True)
                continue
            running[pool.submit(run_step, step, failed)] = identifier


@dataclass
class _Board:
    """Who waits for whom; buckets are counted, never joined pairwise."""

    waiting: dict[str, Step]
    results: dict[str, DataflowResult] = field(default_factory=dict)
    bad: dict[str, None] = field(default_factory=dict)
    failed: bool = False
    stopped: bool = False
    _labels: dict[str, str] = field(default_factory=dict)
    _position: dict[str, tuple[int, int]] = field(default_factory=dict)
    _open: dict[tuple[int, int], int] = field(default_factory=dict)
    _buckets: dict[int, list[set[str]]] = field(default_factory=dict)
    _missing: dict[str, int] = field(default_factory=dict)
    _dependents: dict[str, list[str]] = field(default_factory=dict)
    _ready: list[str] = field(default_factory=list)
    _failed_before: FailedBefore = field(default_factory=dict[str, "Mapping[str, str]"])

    @staticmethod
    def of(plan: Plan, failed_before: FailedBefore) -> _Board:
        steps = {step.dataflow.dataflow_id: step for step in plan.steps}
        labels = {one: label for failed in failed_before.values() for one, label in failed.items()}
        labels |= {one: step.dataflow.label for one, step in steps.items()}
        board = _Board(dict(steps), _labels=labels, _failed_before=failed_before)
        for group, buckets in plan.order_groups.items():
            kept = [members for bucket in buckets if (members := set(bucket) & steps.keys())]
            board._buckets[group] = kept
            for index, members in enumerate(kept):
                board._open[group, index] = len(members)
                board._position.update(dict.fromkeys(members, (group, index)))
        for identifier, step in steps.items():
            upstream = {edge.upstream_id for edge in step.waits_for} & steps.keys()
            upstream.discard(identifier)
            board._missing[identifier] = len(upstream)
            for one in upstream:
                board._dependents.setdefault(one, []).append(identifier)
        board._offer(steps)
        return board

    def label(self, identifier: str) -> str:
        return self._labels[identifier]

    def _offer(self, candidates: Iterable[str]) -> None:
        for one in candidates:
            if one in self.waiting and self._missing[one] == 0 and self._bucket_is_open(one):
                self._ready.append(one)

    def _bucket_is_open(self, identifier: str) -> bool:
        position = self._position.get(identifier)
        if position is None or position[1] == 0:
            return True
        return self._open[position[0], position[1] - 1] == 0 and self._lower_done(position)

    def _lower_done(self, position: tuple[int, int]) -> bool:
        group, index = position
        return all(self._open[group, lower] == 0 for lower in range(index))

    def next_ready(self) -> str | None:
        return self._ready.pop(0) if self._ready else None

    def end(self, identifier: str, result: DataflowResult, *, blocked: bool = False) -> None:
        self.results[identifier] = result
        if result.status == "failed" or blocked:
            self.bad[identifier] = None
            self.failed |= result.status == "failed"
        freed = self._dependents.get(identifier, [])
        for one in freed:
            self._missing[one] -= 1
        position = self._position.get(identifier)
        opened: set[str] = set()
        if position is not None:
            self._open[position] -= 1
            group, index = position
            if self._open[position] == 0 and index + 1 < len(self._buckets[group]):
                opened = self._buckets[group][index + 1]
        self._offer(dict.fromkeys([*freed, *sorted(opened)]))

    def failed_upstream(self, step: Step) -> tuple[str, ...]:
        """Return the ids that failed (or were blocked) among all that the step waits for."""
        identifier = step.dataflow.dataflow_id
        before = tuple(self._failed_before.get(identifier, ()))
        if not self.bad:
            return before
        direct = {edge.upstream_id for edge in step.waits_for}
        mine = self._position.get(identifier)
        return before + tuple(
            one
            for one in self.bad
            if one in direct
            or (
                mine is not None
                and (theirs := self._position.get(one)) is not None
                and theirs[0] == mine[0]
                and theirs[1] < mine[1]
            )
        )
