"""What the step of one asset does: load what is new, or replay the partitions asked for."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from datacoolie_core import clock
from datacoolie_core.errors import DataCoolieError
from datacoolie_dagster.partitions import running_window, windows_for
from datacoolie_dagster.project import asked_partitions
from datacoolie_dagster.provenance import input_tags
from datacoolie_dagster.recording import (
    ChunkRecorder,
    counter,
    earlier_chunks,
    record_failure,
    record_marks,
)
from datacoolie_dagster.results import data_version, event_metadata, failure_of, state_metadata
from datacoolie_dagster.turns import Turn

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.executor import FailedBefore
    from datacoolie_core.run.results import DataflowResult
    from datacoolie_dagster.project import Loaded, Project
    from datacoolie_dagster.quarantine import Broken
    from datacoolie_dagster.resources import DataCoolieResource

BUSY = "already running"
"""How the reason of a dataflow begins that is skipped because it runs elsewhere."""
_SHOWN = 5
"""Errors that a failure's first text has; all are in its metadata."""
BLOCKED = "upstream failed"
"""How the reason of a dataflow begins that is skipped because of what it waits for."""


@dataclass(frozen=True)
class Request:
    """What the run config of a step asks for.

    Attributes:
        full_refresh: Read from the beginning and replace what is there.
        reload: Replay the running partition too, in place of loading what is new.
        save_watermark: Whether replayed chunks move the saved watermark.
    """

    full_refresh: bool = False
    reload: bool = False
    save_watermark: bool = False


@contextmanager
def told_whole() -> Generator[None]:
    """Turn the core's own errors into a failure that has their whole text, and is final."""
    try:
        yield
    except DataCoolieError as error:
        raise dg.Failure(
            description=str(error),
            metadata={"code": error.code},
            allow_retries=bool(getattr(error, "retryable", False)),
        ) from error


def load_asset(
    context: dg.AssetExecutionContext,
    project: Project,
    loaded: Loaded,
    resource: DataCoolieResource,
    request: Request,
) -> dg.MaterializeResult[Any]:
    """Load one dataflow as its run asks: by partition keys, or from where it stands.

    Raises:
        Failure: The dataflow failed, or runs elsewhere.
    """
    with told_whole():
        before = Turn(context, project, [loaded]).failed_before()
        step = _Step(context, project, loaded, resource, request, before)
        asked = asked_partitions(context, loaded)
        return step.replay(asked) if asked else step.load()


@dataclass(frozen=True)
class _Step:
    context: dg.AssetExecutionContext
    project: Project
    loaded: Loaded
    resource: DataCoolieResource
    request: Request
    failed_before: FailedBefore

    def load(self) -> dg.MaterializeResult[Any]:
        """Load what is new."""
        with self.project.open(self.context, self.resource, [self.loaded.dataflow]) as driver:
            result = self._incremental(driver, own=None)
        return _materialized(result, event_metadata(result, self.loaded.reads))

    def replay(self, keys: Sequence[str]) -> dg.MaterializeResult[Any]:
        """Replay partitions in turn; the running one of an open range is loaded up to now."""
        dataflow, now = self.loaded.dataflow, clock.utc_now()
        windows = windows_for(dataflow, keys, now)
        running = None if self.request.reload else running_window(dataflow, windows)
        closed = [window for window in windows if window != running]
        metadata: dict[str, Mapping[str, Any]] = {}
        inputs = input_tags(self.context.instance, self.loaded)
        recorder = ChunkRecorder(self.context, self.loaded, inputs=inputs)
        with self.project.open(
            self.context, self.resource, [dataflow], listeners=[recorder]
        ) as driver:
            recorder.count = counter(driver, self.loaded)
            result = self._chunks(driver, closed, recorder, metadata)
            if running is not None:
                result = self._incremental(driver, own=running.key)
                metadata[running.key] = event_metadata(result, self.loaded.reads)
            state = driver.store.load(dataflow.dataflow_id)
        # Dagster logs these events in an order of its own, and the newest one is the state
        newest = {} if state is None else state_metadata(state)
        for key, entries in metadata.items():
            self.context.add_asset_metadata({**entries, **newest}, partition_key=key)
        return _materialized(result, None)

    def _chunks(
        self,
        driver: DataCoolieDriver,
        windows: Sequence[Window],
        recorder: ChunkRecorder,
        metadata: dict[str, Mapping[str, Any]],
    ) -> DataflowResult | None:
        if not windows:
            return None
        metadata.update(earlier_chunks(self.context, self.loaded, [one.key for one in windows]))
        left = [window for window in windows if window.key not in metadata]
        if len(left) < len(windows):
            self.context.log.info("%d chunks are done already", len(windows) - len(left))
        if not left:
            return None
        dataflow = self.loaded.dataflow
        done = driver.run_replay(
            [dataflow],
            {dataflow.dataflow_id: left},
            save_watermark=self.request.save_watermark,
            run_id=self.context.run.run_id,
            failed_before=self.failed_before,
        )
        result = done.dataflows[0]
        metadata.update(recorder.recorded)
        _raise_bad(result)
        if recorder.problems:
            raise recorder.problems[0]
        return result

    def _incremental(self, driver: DataCoolieDriver, own: str | None) -> DataflowResult:
        dataflow = self.loaded.dataflow
        before = driver.store.load(dataflow.dataflow_id)
        inputs = input_tags(self.context.instance, self.loaded)
        done = driver.run(
            dataflows=[dataflow],
            full_refresh=self.request.full_refresh,
            run_id=self.context.run.run_id,
            failed_before=self.failed_before,
        )
        result = done.dataflows[0]
        if own is None and self.loaded.spec.partitions_def is not None and is_bad(result):
            # without a partition key, nothing else on the asset would say that it failed
            record_failure(self.context, self.loaded, result)
        _raise_bad(result)
        count = counter(driver, self.loaded)
        record_marks(self.context, self.loaded, result, before, count=count, inputs=inputs, own=own)
        return result


def is_bad(result: DataflowResult) -> bool:
    """Say whether a dataflow was not loaded although it was to be."""
    blocked = result.status == "skipped" and (result.reason or "").startswith(BLOCKED)
    return result.error is not None or result.status == "pending" or is_busy(result) or blocked


def is_busy(result: DataflowResult) -> bool:
    """Say whether a dataflow was left alone because it runs elsewhere."""
    return result.status == "skipped" and (result.reason or "").startswith(BUSY)


def _raise_bad(result: DataflowResult) -> None:
    if result.error is not None:
        raise failure_of(result, result.error)
    if is_bad(result):
        raise failure_of_many([result], total=1)


def failure_of_many(
    bad: Sequence[DataflowResult], *, total: int, broken: Sequence[Broken] = ()
) -> dg.Failure:
    """Return the failure of a step that names all dataflows that it did not load, and why.

    Args:
        bad: The dataflows.
        total: How many were to be loaded.
        broken: More, whose metadata is wrong.
    """
    failed = [one.dataflow for one in bad if one.error is not None]
    failed += [one.dataflow for one in broken]
    left = [one for one in bad if one.error is None]
    heads: list[str] = []
    if failed:
        names = "; ".join(f"{one.label} [{one.dataflow_id}]" for one in failed)
        heads.append(f"{len(failed)} of {total} dataflows failed: {names}.")
    if left:
        heads.append(f"{len(left)} not loaded: {'; '.join(map(_why_not_loaded, left))}.")
    texts = [one.error.message for one in bad if one.error is not None]
    texts += [one.problems for one in broken]
    shown = [f"- {text}" for text in texts]
    return dg.Failure(
        description="\n".join([" ".join(heads), *shown[:_SHOWN]]),
        metadata={"errors": dg.MetadataValue.md("\n".join(shown))},
        allow_retries=any(one.error.retryable if one.error else is_busy(one) for one in bad),
    )


def _why_not_loaded(result: DataflowResult) -> str:
    text = f"{result.dataflow.label}: {result.reason}"
    return f"{text}. Wait for that run, or end it, and load it again" if is_busy(result) else text


def _materialized(
    result: DataflowResult | None, metadata: Mapping[str, Any] | None
) -> dg.MaterializeResult[Any]:
    version = None if result is None else data_version(result)
    return dg.MaterializeResult(
        metadata=metadata,
        data_version=None if version is None else dg.DataVersion(version),
    )
