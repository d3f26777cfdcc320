"""The plan: order and reasons of what is selected, windows, warnings, refusals."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.models import Dataflow, Metadata
from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.plan.graph import Graph, build_graph
from datacoolie_core.plan.planner import (
    Plan,
    build_plan,
    describe_step,
    plan_document,
    replay_refusal,
)
from datacoolie_core.plan.selection import select

NOW = datetime(2025, 4, 1, 12, tzinfo=UTC)
LAKE: dict[str, Any] = {
    "name": "lake",
    "connection_type": "lakehouse",
    "format": "delta",
    "configure": {"base_path": "lake"},
}
FILES: dict[str, Any] = {"name": "files", "format": "csv", "configure": {"base_path": "in"}}


def flow(
    name: str,
    *,
    reads: str | None = None,
    source: dict[str, Any] | None = None,
    destination: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    **given: Any,
) -> Dataflow:
    """A dataflow that writes ``lake/<name>`` and reads a file, or a table of the lake."""
    read: dict[str, Any] = {"connection": FILES, "table": name}
    if reads is not None:
        read = {"connection": LAKE, "table": reads}
    return Dataflow.model_validate(
        {
            "name": name,
            "dataflow_id": name,
            "source": {**read, **(source or {})},
            "destination": {"connection": LAKE, "table": name, **(destination or {})},
            "configure": {"datacoolie": options or {}},
            **given,
        }
    )


def graph_of(*flows: Dataflow) -> Graph:
    return build_graph(Metadata(dataflows=flows))


def plan_of(
    graph: Graph,
    *include: str,
    watermarks: dict[str, Any] | None = None,
    replay: dict[str, Any] | None = None,
) -> Plan:
    selection = select(graph, include=include)
    return build_plan(graph, selection, watermarks=watermarks or {}, now=NOW, replay=replay)


def described(plan: Plan) -> dict[str, str]:
    return {step.dataflow.label: describe_step(step) for step in plan.steps}


def waits(plan: Plan) -> dict[str, set[str]]:
    return {
        step.dataflow.dataflow_id: {edge.upstream_id for edge in step.waits_for}
        for step in plan.steps
    }


def test_a_plan_says_what_each_step_reads_and_waits_for() -> None:
    graph = graph_of(
        flow("orders", source={"watermark_columns": ["ts"]}),
        flow("items", source={"watermark_columns": ["ts"]}),
        flow("product"),
        flow("order_item", reads="orders", options={"depends_on": ["product"]}),
        flow("legacy", is_active=False),
        flow("late", group_number=1, execution_order=10),
        flow("later", group_number=1, execution_order=20),
    )
    plan = plan_of(graph, watermarks={"orders": {"ts": datetime(2025, 3, 31, tzinfo=UTC)}})
    assert described(plan) == {
        "late": "",
        "later": "after order 10 of group 1",
        "orders": "2025-03-31 00:00 → now",
        "items": "from the beginning → now",
        "product": "",
        "order_item": "after product (depends_on); after orders (lineage)",
        "legacy": "inactive",
    }
    assert plan.order_groups == {1: (("late",), ("later",))}
    assert [step.bucket for step in plan.steps if step.group == 1] == [0, 1]


def test_many_reasons_are_cut_short() -> None:
    parts = [f"p{index}" for index in range(7)]
    graph = graph_of(*(flow(one) for one in parts), flow("all", options={"depends_on": parts}))
    assert described(plan_of(graph))["all"] == "after p0, p1, p2, p3, p4 and 2 more (depends_on)"


def test_a_window_starts_below_the_watermark_by_the_look_back() -> None:
    graph = graph_of(
        flow("f", source={"watermark_columns": ["ts"], "configure": {"backward_days": 2}})
    )
    plan = plan_of(graph, watermarks={"f": {"ts": datetime(2025, 3, 31, 6, 30, 5, tzinfo=UTC)}})
    assert described(plan)["f"] == "2025-03-29 06:30:05 → now"
    assert plan.steps[0].lower == {"ts": datetime(2025, 3, 29, 6, 30, 5, tzinfo=UTC)}


def test_several_watermark_columns_are_named() -> None:
    graph = graph_of(flow("f", source={"watermark_columns": ["id", "day"]}))
    plan = plan_of(graph, watermarks={"f": {"id": 7, "day": date(2025, 3, 31)}})
    assert described(plan)["f"] == "id 7, day 2025-03-31 → now"


def test_only_selected_dataflows_are_waited_for() -> None:
    graph = graph_of(flow("a"), flow("b", reads="a"), flow("c", reads="b"))
    plan = plan_of(graph, "b", "c")
    assert waits(plan) == {"b": set(), "c": {"b"}}


def test_a_way_through_unselected_dataflows_still_counts() -> None:
    graph = graph_of(flow("a"), flow("b", reads="a"), flow("c", reads="b"), flow("d", reads="c"))
    assert waits(plan_of(graph, "a", "d")) == {"a": set(), "d": {"a"}}


def test_a_way_through_the_order_of_unselected_dataflows_counts() -> None:
    """x -> (lineage) m1 -> (order) m2 -> (lineage) y, with only x and y selected."""
    graph = graph_of(
        flow("x"),
        flow("m1", reads="x", group_number=1, execution_order=1),
        flow("other", group_number=1, execution_order=1),
        flow("m2", group_number=1, execution_order=2),
        flow("y", reads="m2"),
        flow("z", group_number=1, execution_order=3),
    )
    assert waits(plan_of(graph, "x", "y")) == {"x": set(), "y": {"x"}}
    assert waits(plan_of(graph, "other", "y")) == {"other": set(), "y": {"other"}}
    assert waits(plan_of(graph, "x", "z")) == {"x": set(), "z": {"x"}}


def test_empty_buckets_of_a_selection_go() -> None:
    graph = graph_of(*(flow(f"f{n}", group_number=1, execution_order=n) for n in range(3)))
    plan = plan_of(graph, "f0", "f2")
    assert plan.order_groups == {1: (("f0",), ("f2",))}
    assert described(plan)["f2"] == "after order 0 of group 1"


def test_a_replay_is_flat_unless_a_dataflow_respects_the_order() -> None:
    months = {"start": "2025-01-01", "end": "2025-04-01", "chunk_interval": {"months": 1}}
    windows = generate_chunks(**months, column="ts")
    strict = {"replay": {**months, "respect_order": True}}
    graph = graph_of(
        flow("a", options=strict, group_number=1),
        flow("b", reads="a", options=strict, group_number=1, execution_order=1),
        flow("c", reads="a", group_number=1, execution_order=1),
    )
    plan = plan_of(graph, replay=dict.fromkeys("abc", windows))
    assert plan.mode == "replay"
    assert waits(plan) == {"a": set(), "b": {"a"}, "c": set()}
    assert plan.order_groups == {1: (("a",), ("b",))}
    assert described(plan)["c"] == "3 chunks of ts, 2025-01 → 2025-03"
    one = plan_of(graph, "c", replay={"c": windows[:1]})
    assert described(one)["c"] == "ts 2025-01-01 → 2025-02-01"


def test_append_with_look_back_onto_files_warns() -> None:
    """W47."""
    look_back = {"watermark_columns": ["ts"], "configure": {"backward_days": 1}}
    graph = graph_of(
        flow("files", source=look_back, destination={"connection": FILES}),
        flow("delta", source=look_back),
        flow("merged", source=look_back, destination={"load_type": "merge_upsert", "merge_keys": ["i"]}),
    )  # fmt: skip
    (warning,) = plan_of(graph).warnings
    assert "'files' looks back and appends to files" in warning


def test_a_replayed_table_that_is_read_by_event_time_warns() -> None:
    replay = {"replay": {"start": "2025-01-01", "chunk_interval": {"months": 1}}}
    graph = graph_of(
        flow("bronze", options=replay, source={"watermark_columns": ["ts"]}),
        flow("by_event", reads="bronze", source={"watermark_columns": ["ts"]}),
        flow("by_write", reads="bronze", source={"watermark_columns": ["__updated_at"]}),
        flow("whole", reads="bronze"),
    )
    (warning,) = plan_of(graph).warnings
    assert "'by_event' reads 'bronze' by ts" in warning
    assert "Use __updated_at" in warning


def test_two_that_replace_one_table_warn() -> None:
    """W38."""
    target = {"table": "t", "load_type": "full_load"}
    graph = graph_of(
        flow("a", destination=target),
        flow("b", destination=target),
        flow("off", destination=target, is_active=False),
    )
    first, second = plan_of(graph).warnings
    assert "'a' replaces a table that 'b' writes too" in first
    assert "'b' replaces a table that 'a' writes too" in second


def test_warnings_of_the_graph_come_with_their_dataflow() -> None:
    broken = flow("broken", source={"connection": LAKE, "table": None, "query": "SELECT ((("})
    graph = graph_of(broken, flow("fine"))
    assert plan_of(graph, "fine").warnings == ()
    assert len(plan_of(graph, "broken").warnings) == 1


def test_a_plan_is_plain_data_for_scripts() -> None:
    graph = graph_of(
        flow("a", source={"watermark_columns": ["ts"]}, stage="bronze"),
        flow("b", reads="a", group_number=3, execution_order=1),
    )
    plan = plan_of(graph, watermarks={"a": {"ts": datetime(2025, 3, 31, tzinfo=UTC)}})
    document = json.loads(json.dumps(plan_document(plan)))
    assert document["shard"] == {"job_num": 1, "job_index": 0}
    by_name = {one["name"]: one for one in document["steps"]}
    assert by_name["a"]["lower"] == {"ts": "2025-03-31T00:00:00+00:00"}
    assert by_name["b"]["waits_for"] == [
        {"dataflow_id": "a", "origin": "lineage", "detail": "reads lake/a"}
    ]
    assert by_name["b"].keys() == by_name["a"].keys()
    windows = generate_chunks("2025-01-01", "2025-02-01", column="ts")
    replay = plan_document(plan_of(graph, "a", replay={"a": windows}))
    assert replay["steps"][0]["windows"] == [
        {
            "key": "2025-01-01_2025-02-01",
            "column": "ts",
            "lower": "2025-01-01",
            "upper": "2025-02-01",
            "sql": None,
        }
    ]


WATERMARK = {"watermark_columns": ["ts"]}


def test_a_window_that_can_be_replaced_is_not_refused() -> None:
    graph = graph_of(
        flow("f", source=WATERMARK, transform={"rename_columns": {"ts": "event_time"}})
    )
    assert replay_refusal(graph.dataflows[0], graph) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing says which column its chunks bound. Set watermark_columns"),
        (
            {"source": WATERMARK, "transform": {"drop_columns": ["ts"]}},
            "'ts': drop_columns drop it. Set configure.datacoolie.replay.chunk_column",
        ),
        ({"source": {"watermark_columns": ["__updated_at"]}}, "the load writes its own"),
        (
            {
                "source": WATERMARK,
                "options": {"replay": {"start": 1, "chunk_column": "x"}},
                "transform": {"masking_rules": [{"method": "nullify", "columns": ["x"]}]},
            },
            "'x': masking_rules hide it",
        ),
        (
            {
                "source": WATERMARK,
                "destination": {"load_type": "overwrite"},
                "transform": {"select_columns": ["id"]},
            },
            "select_columns leave it out",
        ),
    ],
)
def test_a_window_that_can_not_be_told_in_the_destination_is_refused(
    given: dict[str, Any], words: str
) -> None:
    graph = graph_of(flow("f", **given))
    refusal = replay_refusal(graph.dataflows[0], graph)
    assert refusal is not None
    assert words in refusal


def test_a_merge_may_lose_the_column_since_it_replaces_no_window() -> None:
    graph = graph_of(
        flow(
            "f",
            source=WATERMARK,
            destination={"load_type": "merge_upsert", "merge_keys": ["id"]},
            transform={"drop_columns": ["ts"]},
        )
    )
    assert replay_refusal(graph.dataflows[0], graph) is None


def test_a_window_of_a_table_with_another_active_writer_is_not_replaced() -> None:
    shared = {"table": "t"}
    graph = graph_of(
        flow("eu", source=WATERMARK, destination=shared),
        flow("us", source=WATERMARK, destination=shared),
        flow("old", destination=shared, is_active=False),
    )
    refusal = replay_refusal(graph.by_id["eu"], graph)
    assert refusal is not None
    assert "'us' writes the same destination" in refusal
    assert "destination of its own" in refusal
    assert replay_refusal(graph.by_id["us"], graph) is not None
    alone = graph_of(flow("eu", source=WATERMARK, destination=shared), graph.by_id["old"])
    assert replay_refusal(alone.by_id["eu"], alone) is None


names = [f"f{index}" for index in range(9)]


@st.composite
def random_flows(draw: st.DrawFn) -> list[Dataflow]:
    found = []
    for index, name in enumerate(names):
        earlier = names[:index]
        found.append(
            flow(
                name,
                reads=draw(st.sampled_from([None, *earlier])) if earlier else None,
                options={"depends_on": draw(st.lists(st.sampled_from(earlier), max_size=1))}
                if earlier
                else {},
                group_number=draw(st.sampled_from([None, None, 0, 1])),
                execution_order=draw(st.integers(0, 3)),
            )
        )
    return found


def _must_wait(graph: Graph) -> set[tuple[str, str]]:
    """All pairs (upstream, downstream) of the whole graph, directly or not."""
    above: dict[str, set[str]] = {}
    for one in graph.dataflows:
        direct = {edge.upstream_id for edge in graph.upstream_edges(one.dataflow_id, order=True)}
        above[one.dataflow_id] = direct.union(*(above[up] for up in direct))
    return {(up, down) for down, ups in above.items() for up in ups}


def _allowed_before(plan: Plan) -> set[tuple[str, str]]:
    """All pairs that the plan's edges and buckets keep apart, directly or not."""
    direct = waits(plan)
    for buckets in plan.order_groups.values():
        for lower, upper in pairwise(buckets):
            for one in upper:
                direct[one] |= set(lower)
    found = {(up, down) for down, ups in direct.items() for up in ups}
    for _ in direct:
        found |= {(a, d) for a, b in found for c, d in found if b == c}
    return found


@given(random_flows(), st.sets(st.sampled_from(names), min_size=1))
@settings(max_examples=150, deadline=None)
def test_no_selection_starts_a_dataflow_before_what_it_waits_for(
    flows: list[Dataflow], chosen: set[str]
) -> None:
    try:
        graph = graph_of(*flows)
    except MetadataError:
        assume(False)
        return
    plan = plan_of(graph, *sorted(chosen))
    needed = {(up, down) for up, down in _must_wait(graph) if {up, down} <= chosen}
    kept = _allowed_before(plan)
    assert needed <= kept
    assert kept <= needed
    position = {step.dataflow.dataflow_id: index for index, step in enumerate(plan.steps)}
    assert all(position[up] < position[down] for up, down in needed)
