"""The graph as text, Mermaid, DOT and JSON: every edge with its reason, any name, any width."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from typer.testing import CliRunner

from datacoolie_core.cli.main import app
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.plan.drawing import Drawing, as_document, as_dot, as_mermaid, as_text, draw
from datacoolie_core.plan.graph import build_graph


def flow(name, *, stage="raw", reads=None, **changes):
    source = {"connection_name": "in", "table": f"{name}.csv"}
    if reads is not None:
        source = {"connection_name": "lake", "table": reads}
    options = changes.pop("options", {})
    return {
        "name": name,
        "dataflow_id": f"{stage}/{name}",
        "stage": stage,
        "source": source,
        "destination": {"connection_name": "lake", "table": name},
        "configure": {"datacoolie": options},
        **changes,
    }


def document(*flows):
    return {
        "connections": [
            {"name": "in", "format": "csv", "configure": {"base_path": "in"}},
            {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
        ],
        "dataflows": list(flows),
    }


def drawn(*flows, selected=None) -> Drawing:
    return draw(build_graph(metadata_from_documents([("m.json", document(*flows))])), selected)


SMALL = (
    flow("a", group_number=1),
    flow("b", group_number=1, execution_order=1, is_active=False),
    flow("c", stage="clean", reads="a", options={"depends_on": ["raw/b"]}),
)


def test_text_says_what_each_waits_for_and_why():
    assert as_text(drawn(*SMALL)) == snapshot(
        """\
raw
  raw/a  append · group 1, order 0
      reads    in/a.csv
  raw/b  append · group 1, order 1 · inactive
      reads    in/b.csv
      after    raw/a  (order: group 1: order 1 after 0)
clean
  clean/c  append
      after    raw/b  (declared: depends_on: raw/b)
      after    raw/a  (lineage: reads lake/a)
"""
    )


def test_mermaid_and_dot_have_stages_as_boxes_and_order_dashed():
    mermaid = as_mermaid(drawn(*SMALL))
    assert mermaid.startswith('flowchart LR\n  subgraph s0["raw"]\n    n0["raw/a"]\n')
    assert '  n0 -->|"reads lake/a"| n2' in mermaid
    assert '  n0 -.->|"group 1: order 1 after 0"| n1' in mermaid
    assert mermaid.endswith("  class n1 inactive\n")
    dot = as_dot(drawn(*SMALL))
    assert '  subgraph cluster_1 {\n    label="clean";\n    "clean/c" [label="clean/c"];' in dot
    assert '"raw/a" -> "raw/b" [tooltip="group 1: order 1 after 0", style=dashed];' in dot
    assert '"source:in/a.csv" [label="in/a.csv", shape=cylinder];' in dot


def test_wide_joints_are_one_box_that_says_how_many():
    flows = [flow(f"t{n}", group_number=1, execution_order=n % 2) for n in range(60)]
    found = drawn(*flows)
    joints = [box for box in found.boxes.values() if box.kind == "joint"]
    assert [one.label for one in joints] == ["group 1: order 1 after 0 (30 after 30)"]
    assert len(found.lines) == 60 + 60
    assert "after    group 1: order 1 after 0 (30 after 30)" in as_text(found)
    assert 'n120{{"group 1: order 1 after 0 (30 after 30)"}}' in as_mermaid(found)


def test_a_selection_draws_the_edges_among_its_own():
    found = drawn(*SMALL, selected={"raw/a", "clean/c"})
    assert [(one.upstream, one.downstream) for one in found.lines] == [
        ("raw/a", "clean/c"),
        ("source:in/a.csv", "raw/a"),
    ]


NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name.strip() == name and name)


@given(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold), NAMES)
def test_any_name_comes_back_from_every_form(names, stage):
    flows = [flow(f"f{index}") for index in range(len(names))]
    found = drawn(*flows)
    boxes = {
        one.id: type(one)(one.id, names[index], one.kind, stage, one.notes)
        for index, one in enumerate(b for b in found.boxes.values() if b.kind == "dataflow")
    }
    renamed = Drawing(boxes, ())
    quoted = re.findall(r'\[label="((?:[^"\\]|\\.)*)"\]', as_dot(renamed), re.DOTALL)
    back = [
        re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], one, flags=re.DOTALL)
        for one in quoted
    ]
    assert back == names
    written = re.findall(r'^    n\d+\["(.*)"\]$', as_mermaid(renamed), re.MULTILINE)
    assert [re.sub(r"#(\d+);", lambda m: chr(int(m[1])), one) for one in written] == names
    assert [one["label"] for one in as_document(renamed)["nodes"]] == names


@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "json"])
def test_the_command_draws_every_form(tmp_path, form):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "m.json").write_text(json.dumps(document(*SMALL)))
    command = ["graph", "--project-dir", str(tmp_path), "--format", form]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "clean/c" in done.stdout
    if form == "json":
        found = json.loads(done.stdout)
        assert {one["kind"] for one in found["nodes"]} == {"dataflow", "inactive", "source"}
    narrowed = CliRunner().invoke(app, [*command, "--select", "raw/a"])
    assert "clean/c" not in narrowed.stdout
