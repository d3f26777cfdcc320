"""A plan in words, and as a document for scripts."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """Return one step's window and what it waits for, or why it is skipped."""
    if step.skip_reason is not None:
        return step.skip_reason
    return "; ".join(part for part in (describe_window(step), step.reason) if part)


def describe_window(step: Step) -> str:
    """Return what a step reads: a range, chunks, or nothing to say for a full read."""
    if step.windows:
        return _chunks(step.windows)
    if not step.dataflow.source.watermark_columns:
        return ""
    if not step.lower:
        return "from the beginning → now"
    if len(step.lower) == 1:
        return f"{_short(next(iter(step.lower.values())))} → now"
    bounds = ", ".join(f"{column} {_short(value)}" for column, value in step.lower.items())
    return f"{bounds} → now"


def _chunks(windows: Sequence[Window]) -> str:
    if len(windows) == 1:
        lower, upper = (
            "…" if bound is None else _short(bound)
            for bound in (windows[0].lower, windows[0].upper)
        )
        return f"{windows[0].column} {lower} → {upper}"
    column, first, last = windows[0].column, windows[0].key, windows[-1].key
    return f"{len(windows)} chunks of {column}, {first} → {last}"


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
        "action": "run" if step.skip_reason is None else "skip",
        "skip_reason": step.skip_reason,
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
            }
            for one in step.windows
        ],
        "query": step.query,
        "warnings": list(step.warnings),
    }


def _json(value: Scalar) -> bool | int | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
