"""What a plan of a replay refuses, and with which remedy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from datacoolie_core import ReplayConfig
from datacoolie_core.metadata.models import Dataflow, Metadata
from datacoolie_core.plan.graph import Graph, build_graph
from datacoolie_core.plan.planner import Plan, build_plan, describe_step, plan_document
from datacoolie_core.plan.replay import chunks_for, replay_refusal
from datacoolie_core.plan.selection import select
from datacoolie_core.plan.windows import Window

NOW = datetime(2025, 4, 1, 12, tzinfo=UTC)
LAKE = {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}
FILES = {"name": "files", "format": "csv", "configure": {"base_path": "in"}}
API = {"name": "api", "format": "api", "configure": {"base_url": "https://example.org"}}
MONTHS = ReplayConfig("2025-01-01", "2025-03-01", {"months": 1})


def flow(name: str = "f", *, replay: dict[str, Any] | None = None, **given: Any) -> Dataflow:
    source = {"connection": FILES, "table": name, "watermark_columns": ["ts"]}
    source.update(given.pop("source", {}))
    destination = {"connection": LAKE, "table": name, **given.pop("destination", {})}
    if replay is not None:
        given["configure"] = {"datacoolie": {"replay": replay}}
    return Dataflow.model_validate(
        {"name": name, "dataflow_id": name, "source": source, "destination": destination, **given}
    )


def graph_of(*flows: Dataflow) -> Graph:
    return build_graph(Metadata(dataflows=flows))


def refusal(config: ReplayConfig = MONTHS, **given: Any) -> str | None:
    graph = graph_of(flow(**given))
    return chunks_for(graph.dataflows[0], graph, config, NOW).refusal


def plan_of(graph: Graph, replay: Any, **given: Any) -> Plan:
    return build_plan(graph, select(graph), watermarks={}, now=NOW, replay=replay, **given)


HINT = {"schema_hints": [{"column_name": "TS", "data_type": "date"}]}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("string", "its hint makes 'ts' a string"),
        ("boolean", "its hint makes 'ts' a boolean"),
        ("bigint", "can't be compared with the bound 2025-01-01 (date)"),
    ],
)
@pytest.mark.parametrize("load_type", ["append", "merge_upsert"])
def test_a_hint_of_another_type_than_the_bounds_is_refused(kind, words, load_type) -> None:
    """W10, before anything is opened."""
    told = refusal(
        transform={"schema_hints": [{"column_name": "TS", "data_type": kind}]},
        destination={"load_type": load_type, "merge_keys": ["id"]},
    )
    assert told is not None
    assert words in told


def test_a_hint_that_fits_is_not_refused() -> None:
    for kind in ("date", "timestamp", "timestamp_ntz"):
        assert (
            refusal(transform={"schema_hints": [{"column_name": "ts", "data_type": kind}]}) is None
        )
    numbers = {"schema_hints": [{"column_name": "ts", "data_type": "decimal(9,2)"}]}
    assert refusal(ReplayConfig(1, 9), transform=numbers) is None
    off = {"schema_hints": [{"column_name": "ts", "data_type": "string", "is_active": False}]}
    assert refusal(transform=off) is None


def test_chunks_inside_a_day_are_refused_for_a_date() -> None:
    hours = ReplayConfig("2025-01-01T00:00", "2025-01-02T00:00", {"hours": 6})
    assert "chunks end inside a day" in (refusal(hours, transform=HINT) or "")
    for timezone in ("UTC", "America/New_York"):
        days = ReplayConfig("2025-01-01T00:00", "2025-01-03T00:00", {"days": 1}, timezone=timezone)
        assert refusal(days, transform=HINT) is None
    tokyo = ReplayConfig("2025-01-01T00:00+09:00", "2025-01-02T00:00+09:00")
    assert refusal(tokyo, transform=HINT) is not None
    zone = {**HINT, "configure": {"timestamp_timezone": "Asia/Tokyo"}}
    assert refusal(tokyo, transform=zone) is None


@pytest.mark.parametrize("load_type", ["append", "merge_upsert"])
def test_the_date_of_a_folder_is_no_column(load_type) -> None:
    told = refusal(
        ReplayConfig("2025-01-01", "2025-02-01", chunk_column="__date_folder_partition__"),
        destination={"load_type": load_type, "merge_keys": ["id"]},
    )
    assert "date in a folder's name" in (told or "")


@pytest.mark.parametrize(
    ("mapping", "missing"),
    [
        (None, "no lower and no upper parameter"),
        ({"other": {"lower": "from", "upper": "to"}}, "no lower and no upper"),
        ({"ts": {"lower": "from"}}, "names no upper parameter"),
        ({"TS": {"lower": "from", "upper": {"name": "to"}}}, None),
    ],
)
def test_an_api_needs_both_bounds_as_parameters(mapping, missing) -> None:
    configure: dict[str, Any] = {"endpoint": "orders"}
    if mapping is not None:
        configure["range_param_mapping"] = mapping
    told = refusal(source={"connection": API, "table": None, "configure": configure})
    assert told is None if missing is None else missing in (told or "")


def test_rows_that_a_filter_tells_apart_may_be_replaced() -> None:
    told = {"configure": {"datacoolie": {"replay_filter": "region = 'eu'"}}, "table": "t"}
    graph = graph_of(flow("eu", destination=told), flow("us", destination={"table": "t"}))
    assert replay_refusal(graph.by_id["eu"], graph) is None
    assert "replay_filter" in (replay_refusal(graph.by_id["us"], graph) or "")


def test_each_dataflow_may_have_a_range_of_its_own() -> None:
    graph = graph_of(flow("a"), flow("b"), flow("c"))
    numbers = ReplayConfig(0, 10, step=5, chunk_column="id")
    ready = [Window("day", 1, 2, "one")]
    plan = plan_of(graph, {"a": MONTHS, "b": numbers, "c": ready})
    found = {one.dataflow.name: [w.key for w in one.windows] for one in plan.steps}
    assert found == {"a": ["2025-01", "2025-02"], "b": ["0", "5"], "c": ["one"]}
    assert {one.windows[0].column for one in plan.steps} == {"ts", "id", "day"}


def test_the_chunk_column_is_the_callers_then_the_dataflows_then_the_watermark() -> None:
    own = {"start": "2025-01-01", "chunk_column": "day"}
    graph = graph_of(flow("a", replay=own), flow("b"))
    assert {s.windows[0].column for s in plan_of(graph, MONTHS).steps} == {"day", "ts"}
    named = ReplayConfig("2025-01-01", "2025-03-01", chunk_column="x")
    assert {s.windows[0].column for s in plan_of(graph, named).steps} == {"x"}


def test_order_counts_when_the_caller_asks_for_it() -> None:
    a, b = flow("a", group_number=1), flow("b", group_number=1, execution_order=2)
    reader = flow("c", source={"connection": LAKE, "table": "a"})
    graph = graph_of(a, b, reader)
    flat = plan_of(graph, MONTHS)
    assert flat.order_groups == {}
    assert all(not step.waits_for for step in flat.steps)
    strict = ReplayConfig("2025-01-01", "2025-03-01", {"months": 1}, respect_order=True)
    plan = plan_of(graph, strict)
    assert plan.order_groups == {1: (("a",), ("b",))}
    waits = {s.dataflow.name: [e.upstream_id for e in s.waits_for] for s in plan.steps}
    assert waits == {"a": [], "b": [], "c": ["a"]}
    assert plan_of(graph, MONTHS, respect_order=True).order_groups == plan.order_groups


def test_a_refused_step_says_so_in_words_and_in_json() -> None:
    graph = graph_of(flow("f", transform={"drop_columns": ["ts"]}), flow("off", is_active=False))
    plan = plan_of(graph, MONTHS)
    assert describe_step(plan.steps[0]).startswith("would fail: rows of a window can't be told")
    first, second = plan_document(plan)["steps"]
    assert (first["action"], second["action"]) == ("fail", "skip")
    assert "drop_columns" in first["error"]
    assert second["error"] is None


def test_readers_by_event_time_are_named_when_their_source_is_replayed() -> None:
    reader = {"connection": LAKE, "table": "f"}
    graph = graph_of(
        flow("f"),
        flow("by_event", source=reader),
        flow("by_write", source={**reader, "watermark_columns": ["__updated_at"]}),
        flow("off", source=reader, is_active=False),
    )
    plan = build_plan(graph, select(graph, include=["f"]), watermarks={}, now=NOW, replay=MONTHS)
    (warning,) = plan.warnings
    assert "'by_event' reads 'f' by ts" in warning


@pytest.mark.parametrize(
    ("stored", "warned"),
    [
        ({}, True),
        ({"ts": datetime(2024, 12, 1)}, True),
        ({"ts": datetime(2025, 1, 1)}, False),
        ({"ts": datetime(2025, 2, 1, tzinfo=UTC)}, False),
        ({"ts": "text"}, False),
    ],
)
def test_progress_that_would_jump_over_rows_warns(stored, warned) -> None:
    graph = graph_of(flow("f"))
    plan = build_plan(
        graph,
        select(graph),
        watermarks={"f": stored},
        now=NOW,
        replay=MONTHS,
        save_watermark=True,
    )
    assert any("later runs start above them" in one for one in plan.warnings) is warned
    assert plan.steps[0].save_watermark
