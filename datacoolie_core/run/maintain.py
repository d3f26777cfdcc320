"""Maintain tables, several at once; what goes wrong with one leaves the others alone."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.errors import BusyError, DataCoolieError
from datacoolie_core.plan.columns import destination_column
from datacoolie_core.run.events import MaintenanceFinished, RunStarted, TargetFinished
from datacoolie_core.run.failures import failure_of, internal_failure
from datacoolie_core.run.maintain_options import options_of
from datacoolie_core.run.maintain_results import MaintenanceResult, TargetResult
from datacoolie_core.run.prepare import prepare_destination
from datacoolie_core.run.results import Failure, Notice
from datacoolie_core.writers.maintain import Work, is_there, operations
from datacoolie_core.writers.maintain_request import Operation, Upkeep
from datacoolie_core.writers.tables import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.targets import Target
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.writers.maintain_request import MaintainOptions, OperationName

NOTHING = "no table is selected"


@dataclass(frozen=True)
class Wanted:
    """What maintenance is to do with every table.

    Attributes:
        do_compact: Write small files anew, as large ones or along a z-order.
        do_cleanup: Delete what nobody needs; checkpoint; remove expired commits.
        allow_short_retention: Files may be deleted earlier than a table says.
        dry_run: Only say what would be done.
    """

    do_compact: bool = True
    do_cleanup: bool = True
    allow_short_retention: bool = False
    dry_run: bool = False


def maintain(targets: Sequence[Target], context: RunContext, wanted: Wanted) -> MaintenanceResult:
    """Maintain tables; ``max_workers`` caps how many at once.

    Args:
        targets: Each table once.
        context: The run.
        wanted: What to do.

    Raises:
        KeyboardInterrupt: After what runs was drained and the result was emitted.
    """
    since = clock.monotonic()
    context.emit(RunStarted(context.run_id, len(targets)))
    results, interruption = _all(targets, context, wanted)
    result = MaintenanceResult(
        context.run_id,
        results,
        clock.monotonic() - since,
        message=None if targets else NOTHING,
        interrupted=interruption is not None,
    )
    context.emit(MaintenanceFinished(result))
    if interruption is not None:
        raise interruption
    return result


def _all(
    targets: Sequence[Target], context: RunContext, wanted: Wanted
) -> tuple[tuple[TargetResult, ...], BaseException | None]:
    waiting = deque(enumerate(targets))
    done: dict[int, TargetResult] = {}

    def work(number: int, target: Target) -> TargetResult:
        # kept here too: an interrupt may strike before the future is looked at
        done[number] = result = maintain_target(target, context, wanted)
        context.emit(TargetFinished(result))
        return result

    interruption: BaseException | None = None
    running: set[Future[TargetResult]] = set()
    workers = max(1, min(context.config.max_workers, len(targets)))
    with ThreadPoolExecutor(workers, thread_name_prefix="maintenance") as pool:
        while True:
            try:
                while waiting and len(running) < workers:
                    running.add(pool.submit(work, *waiting.popleft()))
                if not running:
                    break
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                failed = any(one.result().status == "failed" for one in ended)
                if failed and context.config.stop_on_error:
                    waiting.clear()
            except (KeyboardInterrupt, SystemExit) as error:
                interruption = interruption or error
                waiting.clear()
                context.stopping.set()
    reason = "interrupted" if interruption else "stopped after a failure"
    return tuple(
        done.get(number) or TargetResult(target.dataflow, "pending", reason)
        for number, target in enumerate(targets)
    ), interruption


def maintain_target(target: Target, context: RunContext, wanted: Wanted) -> TargetResult:
    """Maintain one table; never raises for a failure of it."""
    flow = target.dataflow
    if target.skip_reason is not None:
        return TargetResult(flow, "skipped", target.skip_reason)
    started, since = context.now(), clock.monotonic()
    try:
        with context.locks.dataflow(_lock_name(target)):
            result = _maintained(flow, context, wanted)
    except BusyError as error:
        result = TargetResult(flow, "skipped", f"already being maintained: {error.message}")
    except DataCoolieError as error:
        result = TargetResult(flow, "failed", error=failure_of(error, flow, context))
    except Exception as error:  # noqa: BLE001 - a fault of ours ends in a result
        failure = internal_failure(error, flow, context, "write")
        result = TargetResult(flow, "failed", error=failure)
    return replace(result, started_at=started, duration_seconds=round(clock.monotonic() - since, 3))


def _lock_name(target: Target) -> str:
    digest = hashlib.sha256(target.identity.encode()).hexdigest()
    return f"maintenance-{digest[:32]}"


def _maintained(flow: Dataflow, context: RunContext, wanted: Wanted) -> TargetResult:
    destination, uri = prepare_destination(flow, context)
    options, notices = options_of(
        destination,
        context.config,
        allow_short_retention=wanted.allow_short_retention,
        dry_run=wanted.dry_run,
    )
    place = Place(uri, dict(destination.connection.configure.storage_options))
    result = TargetResult(flow, "skipped", destination=uri, warnings=notices)
    if not is_there(place):
        return replace(result, reason="the table is not there")
    if not (wanted.do_compact or wanted.do_cleanup):
        return replace(result, reason="neither compaction nor clean-up is wanted")
    with context.locks.destination(uri):
        return _operated(result, place, options, context, wanted)


def _operated(
    result: TargetResult,
    place: Place,
    options: MaintainOptions,
    context: RunContext,
    wanted: Wanted,
) -> TargetResult:
    searched = _searched(result.dataflow)

    def on_phase(phase: str) -> None:
        context.phase(result.dataflow, phase)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    upkeep = Upkeep(
        place, options, context.run_id, searched, context.sleep, on_phase, context.now()
    )
    done: list[Operation] = []
    first: Failure | None = None
    for name, work in operations(
        options, do_compact=wanted.do_compact, do_cleanup=wanted.do_cleanup
    ):
        if context.stopping.is_set():
            break
        operation, failure = _timed(name, work, upkeep, result.dataflow, context)
        done.append(operation)
        first = first or failure
    told = [Notice(code, text) for one in done for code, text in one.warnings]
    for notice in told:
        context.warn(result.dataflow, notice.message)
    statuses = {one.status for one in done}
    status = "failed" if first else "succeeded" if "succeeded" in statuses else "skipped"
    reason = None
    if status == "skipped":
        reason = "dry run" if wanted.dry_run else "; ".join(dict.fromkeys(o.message for o in done))
    return replace(
        result,
        status=status,
        reason=reason,
        operations=tuple(done),
        warnings=(*result.warnings, *told),
        error=first,
    )


def _searched(flow: Dataflow) -> tuple[str, ...]:
    named = (destination_column(flow, one) for one in flow.source.watermark_columns)
    return (*flow.destination.merge_keys, *(one for one in named if one), "__updated_at")


def _timed(
    name: OperationName, work: Work, upkeep: Upkeep, flow: Dataflow, context: RunContext
) -> tuple[Operation, Failure | None]:
    since = clock.monotonic()
    failure = None
    operation = Operation(name, "failed", "")
    try:
        operation = work(upkeep)
    except DataCoolieError as error:
        failure = failure_of(error, flow, context)
    except Exception as error:  # noqa: BLE001 - a fault of ours ends in a result
        failure = internal_failure(error, flow, context, "write")
    if failure is not None:
        operation = replace(operation, message=failure.message)
    return replace(operation, duration_seconds=round(clock.monotonic() - since, 3)), failure
