"""``depends_on``: edges that somebody wrote down."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from datacoolie_core.errors import Problem
from datacoolie_core.plan.edges import Edge, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.models import Dataflow, Metadata


def names_of(flow: Dataflow) -> tuple[str, ...]:
    """Return the names by which a dataflow can be called: name, ``stage/name`` and id."""
    return tuple(dict.fromkeys(one for one in (flow.name, flow.label, flow.dataflow_id) if one))


def declared_edges(metadata: Metadata) -> tuple[list[Edge], list[Fault]]:
    """Return the edges of all ``depends_on``, and what is wrong with the others.

    A name that only an invalid dataflow has makes no edge: that dataflow fails by itself.
    """
    known: dict[str, list[Dataflow]] = {}
    for flow in metadata.dataflows:
        for name in names_of(flow):
            known.setdefault(name, []).append(flow)
    broken = {
        name
        for one in metadata.invalid
        for name in (one.label, one.label.rpartition("/")[2], one.dataflow_id)
    }
    edges: list[Edge] = []
    faults: list[Fault] = []
    for flow in metadata.dataflows:
        for name in flow.options.depends_on:
            found = _resolved(flow, name, known)
            if isinstance(found, Edge):
                edges.append(found)
            elif name not in broken:
                source = metadata.origins.get(flow.dataflow_id, found.source)
                faults.append(Fault((flow.dataflow_id,), replace(found, source=source)))
    return edges, faults


def _resolved(flow: Dataflow, name: str, known: Mapping[str, list[Dataflow]]) -> Edge | Problem:
    meant = known.get(name, [])
    by_id = [one for one in meant if one.dataflow_id == name]
    if len(meant) > 1 and not by_id:
        labels = ", ".join(f"'{one.label}' [{one.dataflow_id}]" for one in meant)
        return _problem(flow, f"'{name}' could be {labels}. Write stage/name or the id")
    if not meant:
        near = difflib.get_close_matches(name, known, n=1)
        return _problem(flow, f"depends on unknown '{name}'", near[0] if near else None)
    upstream = (by_id or meant)[0]
    if upstream.dataflow_id == flow.dataflow_id:
        return _problem(flow, f"{flow.label} depends on itself. Take it out of depends_on")
    return Edge(upstream.dataflow_id, flow.dataflow_id, "declared", f"depends_on: {name}")


def _problem(flow: Dataflow, message: str, suggestion: str | None = None) -> Problem:
    return Problem(
        message,
        dataflow=flow.label,
        field="configure.datacoolie.depends_on",
        suggestion=suggestion,
    )
