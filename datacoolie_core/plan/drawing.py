"""The graph as a picture: what waits for what, and why (docs/concepts.md, "Order")."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core.plan.selection import skip_reason
from datacoolie_core.plan.waiting import kept_buckets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.edges import Edge
    from datacoolie_core.plan.graph import Graph

NARROW = 100
"""Order edges between two buckets of a group that are drawn one by one."""

Origin = Literal["order", "declared", "lineage", "source"]


@dataclass(frozen=True)
class Box:
    """A dataflow, a source that none writes, or a joint: all of one order before all of the next.

    Attributes:
        id: Unique in the drawing.
        label: For people.
        kind: What it is.
        stage: Of a dataflow.
        notes: Load type, group and order, why it does not run.
    """

    id: str
    label: str
    kind: Literal["dataflow", "inactive", "source", "joint"]
    stage: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """From what runs first to what waits, with the reason."""

    upstream: str
    downstream: str
    origin: Origin
    detail: str


@dataclass(frozen=True)
class Drawing:
    """What is drawn, in an order that is the same each time.

    Attributes:
        boxes: By id.
        lines: Each once.
    """

    boxes: Mapping[str, Box] = field(default_factory=dict[str, Box])
    lines: tuple[Line, ...] = ()

    def stages(self) -> dict[str | None, list[Box]]:
        """Return the dataflows of each stage, stages in the order of their first dataflow."""
        found: dict[str | None, list[Box]] = {}
        for box in self.boxes.values():
            if box.kind in ("dataflow", "inactive"):
                found.setdefault(box.stage, []).append(box)
        return found


def draw(graph: Graph, selected: Collection[str] | None = None) -> Drawing:
    """Return the drawing of a graph.

    Args:
        graph: All dataflows.
        selected: Ids of those that are drawn; None draws all.
    """
    shown = [f for f in graph.dataflows if selected is None or f.dataflow_id in selected]
    ids = {flow.dataflow_id for flow in shown}
    boxes = {flow.dataflow_id: _box(flow) for flow in shown}
    lines = [
        _line(e) for f in shown for e in graph.upstream_edges(f.dataflow_id) if e.upstream_id in ids
    ]
    for flow in shown:
        for one in graph.externals.get(flow.dataflow_id, ()):
            source = _free("source:" + "/".join(one.key), ids)
            boxes.setdefault(source, Box(source, "/".join(one.key), "source"))
            lines.append(Line(source, flow.dataflow_id, "source", f"reads {'/'.join(one.key)}"))
    known = {(line.upstream, line.downstream) for line in lines}
    for box, line in _order(graph, ids):
        if box is not None:
            boxes.setdefault(box.id, box)
        if (line.upstream, line.downstream) not in known:
            lines.append(line)
    return Drawing(boxes, tuple(lines))


def _free(name: str, taken: Collection[str]) -> str:
    return name if name not in taken else _free(f"{name} ", taken)


def _box(flow: Dataflow) -> Box:
    reason = skip_reason(flow)
    notes = [flow.destination.load_type]
    if flow.group_number is not None:
        notes.append(f"group {flow.group_number}, order {flow.execution_order or 0}")
    if reason is not None:
        notes.append(reason)
    kind = "dataflow" if reason is None else "inactive"
    return Box(flow.dataflow_id, flow.label, kind, flow.stage, tuple(notes))


def _line(edge: Edge) -> Line:
    return Line(edge.upstream_id, edge.downstream_id, edge.origin, edge.detail)


def _order(graph: Graph, ids: Collection[str]) -> Iterator[tuple[Box | None, Line]]:
    """Yield the lines of declared order; wide joints are one box that all lead to and come from."""
    for group, buckets in kept_buckets(graph, ids).items():
        for lower, upper in pairwise(buckets):
            before, after = graph.places[lower[0]].order, graph.places[upper[0]].order
            detail = f"group {group}: order {after} after {before}"
            if len(lower) * len(upper) <= NARROW:
                yield from (
                    (None, Line(up, down, "order", detail)) for down in upper for up in lower
                )
                continue
            text = f"{detail} ({len(upper)} after {len(lower)})"
            joint = Box(_free(f"joint:{group}:{before}", ids), text, "joint")
            yield from ((joint, Line(up, joint.id, "order", detail)) for up in lower)
            yield from ((joint, Line(joint.id, down, "order", detail)) for down in upper)


def as_document(drawing: Drawing) -> dict[str, Any]:
    """Return a drawing as JSON."""
    return {
        "version": 1,
        "nodes": [
            {"id": b.id, "label": b.label, "kind": b.kind, "stage": b.stage, "notes": list(b.notes)}
            for b in drawing.boxes.values()
        ],
        "edges": [
            {
                "upstream": line.upstream,
                "downstream": line.downstream,
                "origin": line.origin,
                "detail": line.detail,
            }
            for line in drawing.lines
        ],
    }


def as_text(drawing: Drawing) -> str:
    """Return a drawing as text: each dataflow, and below it what it waits for."""
    return "\n".join(_text(drawing)) + "\n"


def _text(drawing: Drawing) -> Iterator[str]:
    waits: dict[str, list[Line]] = {}
    for line in drawing.lines:
        waits.setdefault(line.downstream, []).append(line)
    for stage, boxes in drawing.stages().items():
        yield stage or "(no stage)"
        width = max(len(box.label) for box in boxes)
        for box in boxes:
            yield f"  {box.label:<{width}}  {' · '.join(box.notes)}".rstrip()
            for line in waits.get(box.id, ()):
                upstream = drawing.boxes[line.upstream]
                if upstream.kind == "joint":
                    yield f"      after    {upstream.label}"
                else:
                    word = "reads" if upstream.kind == "source" else "after"
                    why = "" if upstream.kind == "source" else f"  ({line.origin}: {line.detail})"
                    yield f"      {word:<8} {upstream.label}{why}"


def as_mermaid(drawing: Drawing) -> str:
    """Return a drawing as a Mermaid flowchart: stages are boxes, lines say why."""
    names = {one: f"n{index}" for index, one in enumerate(drawing.boxes)}
    lines = ["flowchart LR"]
    for index, (stage, boxes) in enumerate(drawing.stages().items()):
        lines.append(f'  subgraph s{index}["{_entities(stage or "(no stage)")}"]')
        lines += [f'    {names[b.id]}["{_entities(b.label)}"]' for b in boxes]
        lines.append("  end")
    for box in drawing.boxes.values():
        if box.kind == "source":
            lines.append(f'  {names[box.id]}[("{_entities(box.label)}")]')
        elif box.kind == "joint":
            lines.append(f'  {names[box.id]}{{{{"{_entities(box.label)}"}}}}')
    for line in drawing.lines:
        arrow = "-.->" if line.origin == "order" else "-->"
        text = "" if _is_plain(drawing, line) else f'|"{_entities(line.detail)}"|'
        lines.append(f"  {names[line.upstream]} {arrow}{text} {names[line.downstream]}")
    inactive = [names[b.id] for b in drawing.boxes.values() if b.kind == "inactive"]
    if inactive:
        lines += [
            "  classDef inactive stroke-dasharray: 4 4",
            f"  class {','.join(inactive)} inactive",
        ]
    return "\n".join(lines) + "\n"


def _is_plain(drawing: Drawing, line: Line) -> bool:
    """Whether a line needs no words: its ends say all."""
    kinds = {drawing.boxes[line.upstream].kind, drawing.boxes[line.downstream].kind}
    return line.origin == "source" or "joint" in kinds


def _entities(text: str) -> str:
    """Return a text as Mermaid takes it between quotes: everything odd as a number.

    >>> print(_entities('a "b" [c]'))
    a #34;b#34; #91;c#93;
    """
    return "".join(one if one.isalnum() or one in " _-./:,()" else f"#{ord(one)};" for one in text)


def as_dot(drawing: Drawing) -> str:
    """Return a drawing in Graphviz' language: stages are clusters, lines say why."""
    lines = ["digraph dataflows {", "  rankdir=LR;", "  node [shape=box];"]
    for index, (stage, boxes) in enumerate(drawing.stages().items()):
        lines.append(f"  subgraph cluster_{index} {{")
        lines.append(f"    label={_quoted(stage or '(no stage)')};")
        lines += [f"    {_quoted(b.id)} [{_attributes(b)}];" for b in boxes]
        lines.append("  }")
    others: Iterable[Box] = (b for b in drawing.boxes.values() if b.kind in ("source", "joint"))
    lines += [f"  {_quoted(b.id)} [{_attributes(b)}];" for b in others]
    for line in drawing.lines:
        style = ", style=dashed" if line.origin == "order" else ""
        ends = f"{_quoted(line.upstream)} -> {_quoted(line.downstream)}"
        lines.append(f"  {ends} [tooltip={_quoted(line.detail)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(box: Box) -> str:
    shapes = {
        "source": ", shape=cylinder",
        "joint": ", shape=hexagon",
        "inactive": ", style=dashed",
    }
    return f"label={_quoted(box.label)}{shapes.get(box.kind, '')}"


def _quoted(text: str) -> str:
    r"""Return a text as a DOT string.

    >>> print(_quoted('a "b" \\ c'))
    "a \"b\" \\ c"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def render(drawing: Drawing, form: str) -> str:
    """Return a drawing as ``text``, ``mermaid`` or ``dot``."""
    forms = {"text": as_text, "mermaid": as_mermaid, "dot": as_dot}
    return forms[form](drawing)
