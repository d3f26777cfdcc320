"""One dataflow, from its step in the plan to its result: skip → lock → prepare → attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from datacoolie_core import clock
from datacoolie_core.errors import BusyError, DataCoolieError, PreparationError
from datacoolie_core.run.events import ChunkFinished, DataflowStarted, RetryScheduled
from datacoolie_core.run.failures import can_retry, failure_of, internal_failure
from datacoolie_core.run.job import Job, Loaded
from datacoolie_core.run.load import load
from datacoolie_core.run.measure import table_figures
from datacoolie_core.run.prepare import Prepared, prepare
from datacoolie_core.run.results import Attempt, DataflowResult
from datacoolie_core.run.retry import RetryHandler
from datacoolie_core.transforms.quarantine import SAMPLED

if TYPE_CHECKING:
    from datetime import datetime

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.results import Failure

Work = Callable[[Prepared], DataflowResult]
BadValues = Mapping[str, Mapping[str, int]]


def run_dataflow(
    dataflow: Dataflow, context: RunContext, *, stale_upstream: tuple[str, ...] = ()
) -> DataflowResult:
    """Load a dataflow from where its watermark stands.

    Never raises for a failure of the dataflow: it is in the result.

    Args:
        dataflow: The dataflow, as in the metadata.
        context: The run.
        stale_upstream: Ids of upstream dataflows that failed in this run.
    """

    def work(prepared: Prepared) -> DataflowResult:
        return _attempts(Job(prepared), context)

    result = _guarded(dataflow, context, work)
    return _evolve(result, stale_upstream=stale_upstream)


def replay_dataflow(
    dataflow: Dataflow,
    windows: Sequence[Window],
    context: RunContext,
    *,
    save_watermark: bool = False,
    stale_upstream: tuple[str, ...] = (),
) -> DataflowResult:
    """Load a dataflow's chunks strictly in turn; the first failed one stops it.

    Args:
        dataflow: The dataflow, as in the metadata.
        windows: Its chunks, in order.
        context: The run.
        save_watermark: Whether a chunk moves the saved watermark.
        stale_upstream: Ids of upstream dataflows that failed in this run.
    """

    def work(prepared: Prepared) -> DataflowResult:
        chunks: list[DataflowResult] = []
        for window in windows:
            if context.stopping.is_set():
                return _interrupted(_fold(dataflow, chunks), len(chunks), len(windows))
            chunk = _attempts(Job(prepared, window, save_watermark), context)
            chunks.append(chunk)
            context.emit(ChunkFinished(chunk))
            if chunk.status == "failed":
                break
        return _fold(dataflow, chunks)

    return _evolve(_guarded(dataflow, context, work), stale_upstream=stale_upstream)


def _guarded(dataflow: Dataflow, context: RunContext, work: Work) -> DataflowResult:
    """Run the work under the dataflow's lock; turn what goes wrong into a result."""
    started, since = context.now(), clock.monotonic()
    context.emit(DataflowStarted(dataflow))
    try:
        with context.locks.dataflow(dataflow.dataflow_id):
            context.phase(dataflow, "preparing")
            result = work(prepare(dataflow, context))
    except BusyError as error:
        context.warn(dataflow, str(error))
        result = DataflowResult(dataflow, "skipped", reason=error.message.removeprefix("it is "))
    except PreparationError as error:
        result = DataflowResult(dataflow, "failed", error=failure_of(error, dataflow, context))
    except Exception as error:  # noqa: BLE001 - a fault of ours ends in a result
        failure = internal_failure(error, dataflow, context)
        result = DataflowResult(dataflow, "failed", error=failure)
    return _evolve(result, started_at=started, duration_seconds=round(clock.monotonic() - since, 3))


def _attempts(job: Job, context: RunContext) -> DataflowResult:
    dataflow = job.prepared.original
    started, since = context.now(), clock.monotonic()
    trace = _Trace()
    delays = iter(_retry(dataflow, context).delays())
    while True:
        began, clocked = context.now(), clock.monotonic()
        try:
            loaded = load(job, context)
        except DataCoolieError as error:
            failure = failure_of(error, dataflow, context)
            trace.add(began, clocked, failure)
            delay = next(delays, None) if can_retry(error) else None
            if delay is None:
                result = DataflowResult(dataflow, "failed", error=failure)
                break
            context.emit(RetryScheduled(dataflow, len(trace.attempts), delay, failure))
            context.sleep(delay)
        else:
            trace.add(began, clocked, None, skipped=loaded.skipped is not None)
            result = _succeeded(job, loaded)
            break
    return _evolve(
        result,
        window=job.window,
        run_kind="replay" if job.window else result.run_kind,
        destination=job.prepared.uri,
        attempts=tuple(trace.attempts),
        started_at=started,
        duration_seconds=round(clock.monotonic() - since, 3),
    )


def _retry(dataflow: Dataflow, context: RunContext) -> RetryHandler:
    own, config = dataflow.options, context.config
    if not config.retries:
        return RetryHandler(0)
    return RetryHandler(
        config.retry_count if own.retry_count is None else own.retry_count,
        config.retry_delay if own.retry_delay is None else own.retry_delay,
    )


def _succeeded(job: Job, loaded: Loaded) -> DataflowResult:
    rows, schema = table_figures(job.prepared, loaded.write)
    return DataflowResult(
        job.prepared.original,
        "skipped" if loaded.skipped else "succeeded",
        reason=loaded.skipped,
        run_kind=loaded.run_kind,
        state=loaded.state if loaded.state.sequence else None,
        rows=loaded.rows,
        table_rows=rows,
        schema=schema,
        source_action=loaded.source_action or {},
        selected=loaded.selected,
        files=loaded.write.file_counts if loaded.write else {},
        warnings=loaded.warnings,
        bad_values=loaded.bad_values,
        bad_sample=loaded.bad_sample,
    )


def _fold(dataflow: Dataflow, chunks: Sequence[DataflowResult]) -> DataflowResult:
    """Return the result of a replay from those of its chunks."""
    if not chunks:
        return DataflowResult(dataflow, "skipped", reason="no chunks", run_kind="replay")
    last = chunks[-1]
    counted = [chunk.rows for chunk in chunks]
    rows = {
        name: sum(values)
        for name in dict.fromkeys(name for one in counted for name in one)
        if (values := [value for one in counted if (value := one.get(name)) is not None])
    }
    done = [chunk for chunk in chunks if chunk.state is not None]
    return _evolve(
        last,
        status=_fold_status(chunks),
        reason=last.reason if last.status == "skipped" else None,
        window=None,
        rows=rows,
        files={name: sum(chunk.files.get(name, 0) for chunk in chunks) for name in last.files},
        state=done[-1].state if done else None,
        bad_values=_summed([chunk.bad_values for chunk in chunks]),
        bad_sample=tuple(row for chunk in chunks for row in chunk.bad_sample)[:SAMPLED],
        warnings=tuple(dict.fromkeys(notice for chunk in chunks for notice in chunk.warnings)),
        attempts=tuple(attempt for chunk in chunks for attempt in chunk.attempts),
        chunks=tuple(chunks),
    )


def _summed(found: Sequence[BadValues]) -> BadValues:
    summed: dict[str, dict[str, int]] = {}
    for column, reasons in (item for one in found for item in one.items()):
        known = summed.setdefault(column, {})
        for reason, count in reasons.items():
            known[reason] = known.get(reason, 0) + count
    return summed


def _interrupted(result: DataflowResult, done: int, wanted: int) -> DataflowResult:
    reason = f"interrupted after {done} of {wanted} chunks; the same replay loads them again"
    return _evolve(result, status="pending", reason=reason)


def _fold_status(chunks: Sequence[DataflowResult]) -> str:
    statuses = {chunk.status for chunk in chunks}
    if "failed" in statuses:
        return "failed"
    return "skipped" if statuses == {"skipped"} else "succeeded"


@dataclass
class _Trace:
    attempts: list[Attempt] = field(default_factory=list)

    def add(
        self, began: datetime, clocked: float, error: Failure | None, *, skipped: bool = False
    ) -> None:
        status = "failed" if error else "skipped" if skipped else "succeeded"
        seconds = round(clock.monotonic() - clocked, 3)
        self.attempts.append(Attempt(len(self.attempts) + 1, began, seconds, status, error))


def _evolve(result: DataflowResult, **changes: object) -> DataflowResult:
    return replace(result, **changes)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
