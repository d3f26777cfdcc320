"""Warnings about dataflows that will run, but not as somebody may expect."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from datacoolie_core.plan.lookback import appends_files_again
from datacoolie_core.plan.replay import replaces_windows, shared_by
from datacoolie_core.plan.scd2 import one_version_a_file
from datacoolie_core.plan.selection import skip_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.replay import Chunks
    from datacoolie_core.plan.windows import Scalar, Watermark

_FUTURE = timedelta(days=1)
_WHOLE = ("overwrite", "full_load")


def advice_for(
    dataflow: Dataflow,
    graph: Graph,
    *,
    watermark: Watermark | None = None,
    now: datetime | None = None,
    replay: Chunks | None = None,
) -> tuple[str, ...]:
    """Return the warnings about one dataflow.

    Args:
        dataflow: One that is not skipped, or nobody needs to know.
        graph: Tells who writes what it reads and who else writes where it writes.
        watermark: What is stored, as far as it is known.
        now: The current instant, aware.
        replay: Its chunks, where the plan loads windows again; None for a normal load.
    """
    if skip_reason(dataflow) is not None:
        return ()
    if replay is not None:
        return (*_unseen_below(dataflow, graph), *_gap(dataflow, watermark or {}, replay))
    return (
        *_append_twice(dataflow),
        *_one_version_a_file(dataflow),
        *_unseen_replay(dataflow, graph),
        *_shared(dataflow, graph),
        *_only_new_rows_left(dataflow),
        *_future(dataflow, watermark or {}, now),
        *_look_back_at_numbers(dataflow, watermark or {}),
    )


def _append_twice(dataflow: Dataflow) -> Iterator[str]:
    destination = dataflow.destination
    flat = destination.connection.connection_type == "file"
    if appends_files_again(dataflow):
        yield (
            f"'{dataflow.label}' looks back by the time of files and appends to files: every run "
            "appends the files of the look-back again, and their rows are there twice. Write to "
            "Delta, where rows that are there are left out, or take the look-back away"
        )
    elif flat and destination.load_type == "append" and dataflow.source.look_back() is not None:
        yield (
            f"'{dataflow.label}' looks back and appends to files: every run reads the files that may "
            "hold rows of the look-back, to tell which are there. Write to Delta, or take the "
            "look-back away"
        )


def _one_version_a_file(dataflow: Dataflow) -> Iterator[str]:
    if one_version_a_file(dataflow):
        yield (
            f"'{dataflow.label}' keeps one version of a key from each file, the newest, since only "
            "the file's columns order its rows. To keep them all, set "
            "transform.deduplicate_columns to the keys and the column that versions are valid from"
        )


def _unseen_replay(dataflow: Dataflow, graph: Graph) -> Iterator[str]:
    if not _reads_by_event_time(dataflow):
        return
    for edge in graph.upstream_edges(dataflow.dataflow_id):
        writer = graph.by_id[edge.upstream_id]
        replayed = writer.options.replay is not None and replaces_windows(writer)
        if edge.origin == "lineage" and replayed:
            yield _unseen(dataflow, writer)


def _unseen_below(dataflow: Dataflow, graph: Graph) -> Iterator[str]:
    """Warn of readers that will not notice that this dataflow's windows were loaded again."""
    if not replaces_windows(dataflow):
        return
    for identifier in graph.downstream_ids(dataflow.dataflow_id):
        reader = graph.by_id[identifier]
        origins = {
            edge.origin
            for edge in graph.upstream_edges(identifier)
            if edge.upstream_id == dataflow.dataflow_id
        }
        if "lineage" in origins and skip_reason(reader) is None and _reads_by_event_time(reader):
            yield _unseen(reader, dataflow)


def _reads_by_event_time(dataflow: Dataflow) -> bool:
    columns = {column.casefold() for column in dataflow.source.watermark_columns}
    delta = dataflow.source.connection.format == "delta"
    return delta and bool(columns) and "__updated_at" not in columns


def _unseen(reader: Dataflow, writer: Dataflow) -> str:
    return (
        f"'{reader.label}' reads '{writer.label}' by "
        f"{', '.join(reader.source.watermark_columns)}: it does not see old windows "
        "that are loaded again there. Use __updated_at as its watermark column"
    )


def _shared(dataflow: Dataflow, graph: Graph) -> Iterator[str]:
    destination = dataflow.destination
    labels = shared_by(dataflow, graph)
    flat = destination.connection.connection_type == "file"
    if not labels or not replaces_windows(dataflow):
        return
    if destination.load_type in _WHOLE:
        yield (
            f"'{dataflow.label}' replaces a table that {labels} writes too: whoever runs last wins"
        )
    elif not (flat or destination.configure.datacoolie.replay_filter):
        yield (
            f"'{dataflow.label}' adds to a table that {labels} writes too: its windows can't be "
            "replayed, since nothing tells its rows apart. Set "
            "destination.configure.datacoolie.replay_filter if they should be"
        )


def _only_new_rows_left(dataflow: Dataflow) -> Iterator[str]:
    columns = dataflow.source.watermark_columns
    if columns and dataflow.destination.load_type in _WHOLE:
        yield (
            f"'{dataflow.label}' reads only what is above its watermark ({', '.join(columns)}) "
            f"and replaces the whole table by it. Use append or merge_upsert, or take "
            "watermark_columns away"
        )


def _future(dataflow: Dataflow, watermark: Watermark, now: datetime | None) -> Iterator[str]:
    for column, value in watermark.items():
        if now is not None and _is_after(value, now + _FUTURE):
            yield (
                f"the watermark of '{dataflow.label}' is in the future ({column} {value}): rows "
                "that come with an earlier value are not loaded. Set source.configure.datacoolie."
                "max_watermark, such as 'now + 1d', and run with --full-refresh"
            )


def _is_after(value: Scalar, limit: datetime) -> bool:
    if isinstance(value, datetime):
        return value > (limit if value.tzinfo else limit.replace(tzinfo=None))
    return isinstance(value, date) and value > limit.date()


def _gap(dataflow: Dataflow, watermark: Watermark, replay: Chunks) -> Iterator[str]:
    """Warn of rows that no run would ever load: between the saved watermark and the range."""
    column = next(iter(dataflow.source.watermark_columns), None)
    first = next(iter(replay.windows), None)
    if not replay.save_watermark or column is None or first is None or first.lower is None:
        return
    stored = watermark.get(column)
    same = column.casefold() == first.column.casefold()
    if not same or (stored is not None and not _lies_between(stored, first.lower)):
        return
    known = "the beginning" if stored is None else f"the saved watermark ({stored})"
    yield (
        f"'{dataflow.label}' saves its watermark while rows between {known} and the start of the "
        f"range ({first.lower}) are not loaded: later runs start above them. Start the range "
        "there, or leave save_watermark away"
    )


def _lies_between(stored: Scalar, start: Scalar) -> bool:
    low, high = _roughly(stored), _roughly(start)
    try:
        return bool(low < high)  # pyright: ignore[reportOperatorIssue, reportUnknownArgumentType]
    except TypeError:
        return False


def _roughly(value: Scalar) -> Scalar:
    """Return a value that compares with its like: moments without their zones."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return value


def _look_back_at_numbers(dataflow: Dataflow, watermark: Watermark) -> Iterator[str]:
    if dataflow.source.look_back() is None:
        return
    for column, value in watermark.items():
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            yield (
                f"'{dataflow.label}' looks back by a time, but its watermark {column} is a "
                f"number ({value}), which does not move. Take the look-back away"
            )
