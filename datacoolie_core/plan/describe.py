"""A plan in words, and as a document for scripts."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from datacoolie_core.plan.bounded_query import Above, bounded_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.metadata.models import Backward, Dataflow
    from datacoolie_core.plan.edges import Edge
    from datacoolie_core.plan.planner import Plan, Step
    from datacoolie_core.plan.windows import Scalar, Window

_MOST_NAMES = 5
_ORIGINS = {"declared": "depends_on", "lineage": "lineage", "order": "order"}


def reason_of(edges: Sequence[Edge], labels: Mapping[str, str], previous: str | None) -> str:
    """Return what a step waits for, in words.

    Args:
        edges: What it waits for by name.
        labels: Dataflow id → how people name it.
        previous: The bucket before its own, in words; None without one.
    """
    parts: list[str] = []
    for origin, word in _ORIGINS.items():
        names = [labels[edge.upstream_id] for edge in edges if edge.origin == origin]
        if names:
            parts.append(f"after {_listed(names)} ({word})")
    if previous is not None:
        parts.append(f"after {previous}")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def describe_step(step: Step) -> str:
    """Return one step's window and what it waits for, or why it is skipped or would fail."""
    if step.skip_reason is not None:
        return step.skip_reason
    failure = would_fail(step)
    if failure is not None:
        return f"would fail: {failure}"
    return "; ".join(part for part in (describe_window(step), step.reason) if part)


def would_fail(step: Step) -> str | None:
    """Return why a step would fail as things stand, None if nothing is known against it."""
    return None if step.skip_reason else step.refusal or step.trouble


def describe_window(step: Step) -> str:
    """Return what a step reads: a range, chunks, or nothing to say for a full read."""
    if step.windows:
        return _chunks(step.windows)
    columns = step.dataflow.source.watermark_columns
    if not columns:
        return ""
    if not step.state_known:
        return _rule(step.dataflow)
    if not step.lower:
        return "from the beginning → now"
    if len(step.lower) == 1:
        return f"{_short(next(iter(step.lower.values())))} → now"
    bounds = ", ".join(f"{column} {_short(value)}" for column, value in step.lower.items())
    return f"{bounds} → now"


def _rule(dataflow: Dataflow) -> str:
    """Return what a run will read, whatever its state is."""
    backward = dataflow.source.look_back()
    less = "" if backward is None else f" less {_look_back(backward)}"
    inclusive = dataflow.source.configure.datacoolie.watermark_boundary == "inclusive"
    word = "from" if inclusive or less else "above"
    return f"{', '.join(dataflow.source.watermark_columns)} {word} the saved watermark{less} → now"


def _look_back(backward: Backward) -> str:
    parts = [
        f"{value} {unit if value != 1 else unit[:-1]}"
        for unit in ("years", "months", "days", "hours")
        if (value := getattr(backward, unit))
    ]
    if backward.closing_day is not None:
        parts.append(f"back to the first of a month that closes on day {backward.closing_day}")
    return ", ".join(parts) or "nothing"


def sql_of(step: Step, window: Window | None = None) -> str | None:
    """Return the SQL that a step reads by, with its bounds; None if it reads by no SQL.

    Args:
        step: Of a plan.
        window: One of its chunks.
    """
    if step.dataflow.source.query is not None and step.query is None:
        return None
    if window is not None:
        return bounded_query(step.dataflow, step.query, window)
    options = step.dataflow.source.configure.datacoolie
    looks_back = step.dataflow.source.look_back() is not None
    bounds = Above(
        step.lower,
        inclusive=looks_back or options.watermark_boundary == "inclusive",
        with_nulls=options.null_watermark == "include",
    )
    return bounded_query(step.dataflow, step.query, bounds)


def _chunks(windows: Sequence[Window]) -> str:
    if len(windows) == 1:
        return f"{windows[0].column} {describe_bounds(windows[0])}"
    column, first, last = windows[0].column, windows[0].key, windows[-1].key
    return f"{len(windows)} chunks of {column}, {first} → {last}"


def describe_bounds(window: Window) -> str:
    """Return the bounds of a chunk: from → to."""
    lower, upper = (
        "…" if bound is None else _short(bound) for bound in (window.lower, window.upper)
    )
    return f"{lower} → {upper}"


def _short(value: Scalar) -> str:
    if isinstance(value, datetime):
        fine = value.second or value.microsecond
        text = value.replace(tzinfo=None).isoformat(" ", "auto" if fine else "minutes")
        offset = value.strftime("%z")
        return text if offset in {"", "+0000"} else f"{text} {offset}"
    return str(value)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data, for JSON; no key is ever missing."""
    number, index = plan.shard or (1, 0)
    return {
        "version": 1,
        "mode": plan.mode,
        "shard": {"job_num": number, "job_index": index},
        "steps": [_step_document(step) for step in plan.steps],
        "invalid": [
            {
                "name": one.label,
                "dataflow_id": one.dataflow_id,
                "problems": [str(problem) for problem in one.problems],
            }
            for one in plan.invalid
        ],
        "warnings": list(plan.warnings),
    }


def _step_document(step: Step) -> dict[str, Any]:
    flow = step.dataflow
    return {
        "name": flow.name,
        "dataflow_id": flow.dataflow_id,
        "stage": flow.stage,
        "load_type": flow.destination.load_type,
        "action": _action(step),
        "skip_reason": step.skip_reason,
        "error": would_fail(step),
        "group": step.group,
        "execution_order": flow.execution_order,
        "bucket": step.bucket,
        "waits_for": [
            {"dataflow_id": one.upstream_id, "origin": one.origin, "detail": one.detail}
            for one in step.waits_for
        ],
        "reason": step.reason,
        "watermark_columns": list(flow.source.watermark_columns),
        "lower": {column: _json(value) for column, value in step.lower.items()},
        "window": describe_window(step),
        "windows": [
            {
                "key": one.key,
                "column": one.column,
                "lower": None if one.lower is None else _json(one.lower),
                "upper": None if one.upper is None else _json(one.upper),
                "sql": sql_of(step, one),
            }
            for one in step.windows
        ],
        "save_watermark": step.save_watermark,
        "query": step.query,
        "sql": None if step.windows else sql_of(step),
        "warnings": list(step.warnings),
    }


def _action(step: Step) -> str:
    if step.skip_reason is not None:
        return "skip"
    return "run" if would_fail(step) is None else "fail"


def _json(value: Scalar) -> bool | int | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
