"""What a step tells Dagster of a load: materializations, partitions, observations of failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from datacoolie_core.errors import DataCoolieError
from datacoolie_core.run.events import ChunkFinished
from datacoolie_dagster.coverage import MOST_MARKS, marks_of
from datacoolie_dagster.project import resumed_runs
from datacoolie_dagster.results import BAD_VALUES, event_metadata, event_tags

if TYPE_CHECKING:
    from datacoolie_core.driver import DataCoolieDriver
    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.results import DataflowResult
    from datacoolie_core.state.record import StateRecord
    from datacoolie_dagster.project import Loaded

_OF_THE_LOAD = {
    "datacoolie/duration_seconds",
    "dagster/column_schema",
    "dagster/column_lineage",
    BAD_VALUES,
}
PARTITION_ROWS = "dagster/partition_row_count"
Context = dg.AssetExecutionContext | dg.OpExecutionContext
Count = Callable[[Sequence["Window"]], Sequence[int]]


def counter(driver: DataCoolieDriver, loaded: Loaded) -> Count:
    """Return what counts the rows of windows in a dataflow's destination."""
    return lambda windows: driver.count_windows(loaded.dataflow, windows)


@dataclass
class ChunkRecorder:
    """A listener that records each chunk of a replay as soon as it is durable.

    Attributes:
        context: The step's.
        loaded: What is replayed.
        count: Counts the rows of a chunk.
        inputs: The tags of the inputs that the replay sees.
        recorded: Partition key → the metadata of its event.
        problems: What went wrong while recording; a listener can't raise.
    """

    context: dg.AssetExecutionContext
    loaded: Loaded
    count: Count | None = None
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    recorded: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    problems: list[Exception] = field(default_factory=list[Exception])

    def __call__(self, event: Event) -> None:
        """Record a chunk that ended well."""
        if not isinstance(event, ChunkFinished) or event.result.window is None:
            return
        if event.result.status == "failed":
            return
        try:
            self._record(event.result, event.result.window)
        except Exception as error:
            self.context.log.exception("chunk %s was not recorded", event.result.window.key)
            self.problems.append(error)

    def _record(self, result: DataflowResult, window: Window) -> None:
        metadata = event_metadata(result, self.loaded.reads)
        rows = partition_rows(self.context, self.count, [window])
        if rows:
            metadata[PARTITION_ROWS] = rows[0]
        event = materialization(self.loaded, result, metadata, window.key, inputs=self.inputs)
        self.context.log_event(event)
        self.recorded[window.key] = metadata


def earlier_chunks(
    context: dg.AssetExecutionContext,
    loaded: Loaded,
    keys: Sequence[str],
    *,
    own: bool = False,
) -> dict[str, Mapping[str, Any]]:
    """Return the chunks that earlier tries of this run recorded: key → metadata.

    Args:
        context: The step's.
        loaded: What was replayed.
        keys: Its partitions that count.
        own: Whether the first try counts too.
    """
    runs = {*resumed_runs(context), *((context.run.run_id,) if own else ())}
    if not runs or not keys:
        return {}
    wanted = dg.AssetRecordsFilter(asset_key=loaded.key, asset_partitions=list(keys))
    page = context.instance.fetch_materializations(wanted, limit=2 * len(keys) + 100)
    found: dict[str, Mapping[str, Any]] = {}
    for record in page.records:
        event = record.asset_materialization
        if event is not None and event.partition is not None and record.run_id in runs:
            found.setdefault(event.partition, event.metadata)
    return found


def partition_rows(
    context: Context, count: Count | None, windows: Sequence[Window]
) -> Sequence[int]:
    """Return the rows of windows; none where they can't be counted, which fails no load."""
    if count is None or not windows:
        return ()
    try:
        return count(windows)
    except (DataCoolieError, OSError) as error:
        context.log.warning("the rows of %d partitions were not counted: %s", len(windows), error)
        return ()


def materialization(
    loaded: Loaded,
    result: DataflowResult,
    metadata: Mapping[str, Any],
    partition: str | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
) -> dg.AssetMaterialization:
    """Return the event of a load, with the tags by which Dagster knows code, data and inputs."""
    return dg.AssetMaterialization(
        loaded.key,
        description=result.reason,
        partition=partition,
        metadata=metadata,
        tags={**event_tags(result, loaded.spec.code_version), **(inputs or {})},
    )


def record_marks(
    context: Context,
    loaded: Loaded,
    result: DataflowResult,
    before: StateRecord | None,
    *,
    count: Count | None = None,
    inputs: Mapping[str, str] | None = None,
    own: str | None = None,
) -> None:
    """Log an event for each partition that an incremental load covers.

    Args:
        context: The step's.
        loaded: What was loaded.
        result: How it ended.
        before: The state before it.
        count: Counts the rows of partitions.
        inputs: The tags of the inputs that the load saw.
        own: A partition that the step records by itself.
    """
    if loaded.spec.partitions_def is None:
        return
    materialized = context.instance.get_materialized_partitions(loaded.key)
    marks = marks_of(result, before, materialized)
    windows = [window for window in marks.windows if window.key != own]
    rows = partition_rows(context, count, windows)
    shared = _of_the_state(event_metadata(result))
    for index, window in enumerate(windows):
        counted = {PARTITION_ROWS: rows[index]} if rows else {}
        metadata = {**shared, **counted}
        event = materialization(loaded, result, metadata, window.key, inputs=inputs)
        context.log_event(event)
    if marks.left:
        context.log.info(
            "%s: %d more partitions are covered; the next incremental loads mark them, %d a run",
            loaded.dataflow.label,
            marks.left,
            MOST_MARKS,
        )


def _of_the_state(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is true of every partition: counts and seconds are those of the whole load."""
    return {
        name: value
        for name, value in metadata.items()
        if not name.startswith("datacoolie/rows_") and name not in _OF_THE_LOAD
    }


def record_failure(context: Context, loaded: Loaded, result: DataflowResult) -> None:
    """Log what shows on the asset that a load of it failed."""
    error = result.error
    context.log_event(
        dg.AssetObservation(
            loaded.key,
            description=error.message if error else result.reason,
            metadata=event_metadata(result),
        )
    )
