"""What a replay means for one dataflow: its chunks, or why it can't be loaded again safely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

from datacoolie_core.metadata.hint_types import hint_dialect, parse_type
from datacoolie_core.metadata.identity import destination_identity
from datacoolie_core.plan.columns import DATE_FOLDER, blocked_by
from datacoolie_core.plan.replay_config import ReplayConfig
from datacoolie_core.plan.scd2 import keeps_history, valid_from_load
from datacoolie_core.plan.selection import skip_reason
from datacoolie_core.plan.windows import Window

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.graph import Graph
    from datacoolie_core.plan.windows import Scalar

Replay = ReplayConfig | Mapping[str, ReplayConfig | Sequence[Window]]
"""One range for all dataflows; or dataflow id → its own range, or its chunks ready cut."""

_CHANGE_COLUMN = "Set configure.datacoolie.replay.chunk_column to a column that arrives unchanged"


@dataclass(frozen=True)
class Chunks:
    """What a replay means for one dataflow.

    Attributes:
        windows: Its chunks, in order.
        save_watermark: Whether each chunk moves the saved watermark.
        respect_order: Whether it waits for all chunks of what it waits for in a normal run.
        refusal: Why it can't be replayed safely, with the remedy; None if it can.
    """

    windows: tuple[Window, ...] = ()
    save_watermark: bool = False
    respect_order: bool = False
    refusal: str | None = None


def chunks_for(dataflow: Dataflow, graph: Graph, replay: Replay, now: datetime) -> Chunks:
    """Return the chunks of a dataflow in a replay, with none if it is not named there.

    Args:
        dataflow: Any dataflow.
        graph: Tells who else writes its destination.
        replay: What is asked for.
        now: The current instant, aware; where an open range ends.
    """
    given = replay if isinstance(replay, ReplayConfig) else replay.get(dataflow.dataflow_id, ())
    options = dataflow.options.replay
    ordered = options is not None and options.respect_order
    if not isinstance(given, ReplayConfig):
        windows = tuple(given)
        return Chunks(windows, False, ordered, replay_refusal(dataflow, graph, windows=windows))
    column = given.chunk_column or chunk_column(dataflow)
    windows = () if column is None else given.windows(column, now)
    return Chunks(
        windows=windows,
        save_watermark=given.save_watermark,
        respect_order=given.respect_order or ordered,
        refusal=replay_refusal(dataflow, graph, column, windows=windows),
    )


def chunk_column(dataflow: Dataflow) -> str | None:
    """Return the source column that the chunks of a dataflow bound, None if nothing says it."""
    options = dataflow.options.replay
    if options is not None and options.chunk_column:
        return options.chunk_column
    return next(iter(dataflow.source.watermark_columns), None)


def replaces_windows(dataflow: Dataflow) -> bool:
    """Return whether a replay replaces the rows of its window, rather than merging by key."""
    destination = dataflow.destination
    if destination.load_type == "merge_overwrite":
        return destination.configure.replace_by_watermark
    return destination.load_type in {"append", "overwrite", "full_load"}


def replay_refusal(
    dataflow: Dataflow,
    graph: Graph,
    column: str | None = None,
    *,
    windows: Sequence[Window] = (),
) -> str | None:
    """Return why a dataflow can't be replayed safely, with the remedy; None if it can.

    Args:
        dataflow: Any dataflow.
        graph: Tells who else writes its destination.
        column: The source column of the chunks; None takes that of the windows, or the
            dataflow's own.
        windows: The chunks, if they are cut already.
    """
    bound = column or next((one.column for one in windows), None) or chunk_column(dataflow)
    if bound is None:
        return (
            "nothing says which column its chunks bound. Set watermark_columns of the source, or "
            "configure.datacoolie.replay.chunk_column"
        )
    if bound.casefold() == DATE_FOLDER:
        return (
            f"'{bound}' is no column, but the date in a folder's name. Set "
            "configure.datacoolie.replay.chunk_column to a column of the files"
        )
    if keeps_history(dataflow) and valid_from_load(dataflow):
        return (
            "its versions are valid from the time of the load, so old rows that are loaded again "
            "would be new versions. Set destination.configure.scd2_effective_column"
        )
    if refusal := _unbounded_api(dataflow, bound) or _mistyped(dataflow, bound, windows):
        return refusal
    if not replaces_windows(dataflow):
        return None
    blocked = blocked_by(dataflow, bound)
    if blocked is not None:
        return (
            f"rows of a window can't be told in the destination by '{bound}': {blocked}. "
            f"{_CHANGE_COLUMN}, or use load_type merge_upsert"
        )
    return _shared_destination(dataflow, graph)


def _unbounded_api(dataflow: Dataflow, column: str) -> str | None:
    """Return why an API can't be asked for a window: it takes no bounds for this column."""
    if dataflow.source.connection.connection_type != "api":
        return None
    mapping = _mapping(_mapping(dataflow.source.configure.model_extra).get("range_param_mapping"))
    named = {name.casefold(): parameters for name, parameters in mapping.items()}
    bounds = _mapping(named.get(column.casefold()))
    missing = [side for side in ("lower", "upper") if not bounds.get(side)]
    if not missing:
        return None
    return (
        f"the API can't be asked for a window of '{column}': "
        f"source.configure.range_param_mapping names no {' and no '.join(missing)} parameter "
        "for it. Name both"
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


_NUMBERS = frozenset({"int8", "int16", "int32", "int64", "float32", "float64", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def _mistyped(dataflow: Dataflow, column: str, windows: Sequence[Window]) -> str | None:
    """Return why the bounds can't be compared with the column, as far as a hint types it."""
    hinted = _hint(dataflow, column)
    bounds = [one for window in windows for one in _bounds(window) if one is not None]
    if hinted is None or not bounds or isinstance(bounds[0], str):
        return None
    name, kind = hinted
    if kind not in (_TIMES if isinstance(bounds[0], date) else _NUMBERS):
        return (
            f"its hint makes '{column}' a {name}, which can't be compared with the bound "
            f"{bounds[0]} ({type(bounds[0]).__name__}). Give bounds of that type, correct the "
            "hint, or name another chunk_column"
        )
    zone = windows[0].zone or dataflow.transform.configure.timestamp_timezone
    if kind == "date" and any(_inside_a_day(one, zone) for one in bounds):
        return (
            f"its hint makes '{column}' a {name}, and chunks end inside a day. Choose whole "
            "days, or hint it as a timestamp"
        )
    return None


def _hint(dataflow: Dataflow, column: str) -> tuple[str, str] | None:
    connection = dataflow.source.connection
    if not connection.configure.use_schema_hint:
        return None
    for hint in dataflow.transform.schema_hints:
        if hint.is_active and hint.column_name.casefold() == column.casefold():
            dialect = hint_dialect(connection)
            found = parse_type(hint.data_type, dialect, hint.precision, hint.scale)
            return hint.data_type, found.kind
    return None


def _bounds(window: Window) -> tuple[Scalar | None, Scalar | None]:
    return window.lower, window.upper


def _inside_a_day(bound: Scalar, zone: str | None) -> bool:
    if not isinstance(bound, datetime):
        return False
    local = bound if bound.tzinfo is None or zone is None else bound.astimezone(ZoneInfo(zone))
    return local.time() != time()


def _shared_destination(dataflow: Dataflow, graph: Graph) -> str | None:
    destination = dataflow.destination
    # a folder's manifests say whose each file is
    told_apart = destination.connection.connection_type == "file" or (
        destination.configure.datacoolie.replay_filter
    )
    others = shared_by(dataflow, graph)
    if told_apart or not others:
        return None
    return (
        f"{others} writes the same destination, so replacing a window would take "
        "those rows too. Say which rows are this dataflow's "
        "(destination.configure.datacoolie.replay_filter), give it a destination of its own, or "
        "use load_type merge_upsert"
    )


def shared_by(dataflow: Dataflow, graph: Graph) -> str:
    """Return the other active dataflows that write a destination, for a message; empty if none."""
    identity = destination_identity(dataflow.destination)
    writers = () if identity is None else graph.writers_of(identity)
    others = [graph.by_id[one] for one in writers if one != dataflow.dataflow_id]
    return ", ".join(f"'{one.label}'" for one in others if skip_reason(one) is None)
