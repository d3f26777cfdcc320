"""Warnings of a plan, and the SQL that it shows."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from datacoolie_core.metadata.models import Dataflow, Metadata
from datacoolie_core.plan.bounded_query import Above, bounded_query, without_terminator
from datacoolie_core.plan.describe import describe_step, describe_window, plan_document, sql_of
from datacoolie_core.plan.graph import Graph, build_graph
from datacoolie_core.plan.planner import Plan, build_plan
from datacoolie_core.plan.selection import select
from datacoolie_core.plan.windows import Window

NOW = datetime(2025, 4, 1, 12, tzinfo=UTC)
LAKE = {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}
FILES = {"name": "files", "format": "csv", "configure": {"base_path": "in"}}


def flow(name: str = "f", **given: Any) -> Dataflow:
    source = {"connection": FILES, "table": name, **given.pop("source", {})}
    destination = {"connection": LAKE, "table": name, **given.pop("destination", {})}
    return Dataflow.model_validate(
        {"name": name, "dataflow_id": name, "source": source, "destination": destination, **given}
    )


def database(kind: str = "postgresql", **source: Any) -> Dataflow:
    shop = {"name": "shop", "format": "sql", "configure": {"database_type": kind, "host": "h"}}
    return flow(source={"connection": shop, "table": None, **source})


def graph_of(*flows: Dataflow) -> Graph:
    return build_graph(Metadata(dataflows=flows))


def plan_of(graph: Graph, **given: Any) -> Plan:
    options: dict[str, Any] = {"watermarks": {}, "now": NOW, **given}
    return build_plan(graph, select(graph), **options)


def test_a_watermark_in_the_future_warns() -> None:
    """wm-future-dated-row: the plan says it before the next run finds nothing."""
    graph = graph_of(flow(source={"watermark_columns": ["ts"]}))
    for late in (NOW + timedelta(days=2), datetime(9999, 12, 31), date(9999, 12, 31)):
        (warning,) = plan_of(graph, watermarks={"f": {"ts": late}}).warnings
        assert (
            "the watermark of 'f' is in the future (ts 9999" in warning or "2025-04-03" in warning
        )
        assert "max_watermark" in warning
    for fine in (NOW, datetime(2025, 4, 2), date(2025, 4, 1), 7, "9999"):
        assert plan_of(graph, watermarks={"f": {"ts": fine}}).warnings == ()


def test_an_overwrite_that_reads_only_new_rows_warns() -> None:
    graph = graph_of(
        flow("a", source={"watermark_columns": ["ts"]}, destination={"load_type": "full_load"}),
        flow("b", destination={"load_type": "overwrite"}),
    )
    (warning,) = plan_of(graph).warnings
    assert "'a' reads only what is above its watermark (ts) and replaces the whole table" in warning


def test_a_history_that_keeps_one_version_of_a_key_from_each_file_warns() -> None:
    history = {
        "load_type": "scd2",
        "merge_keys": ["id"],
        "configure": {"scd2_effective_column": "at"},
    }
    by_file = {"watermark_columns": ["__file_modification_time"]}
    keyed = {"deduplicate_columns": ["id", "at"]}
    (warning,) = plan_of(graph_of(flow("a", source=by_file, destination=history))).warnings
    assert "'a' keeps one version of a key from each file" in warning
    for fine in (
        flow("b", source={"watermark_columns": ["at"]}, destination=history),
        flow("c", source=by_file, destination=history, transform=keyed),
        flow("d", source=by_file, destination={"load_type": "merge_upsert", "merge_keys": ["id"]}),
    ):
        assert plan_of(graph_of(fine)).warnings == ()


def test_a_table_that_several_append_to_warns_unless_rows_can_be_told_apart() -> None:
    told = {"table": "t", "configure": {"datacoolie": {"replay_filter": "region = 'eu'"}}}
    graph = graph_of(
        flow("a", destination={"table": "t"}),
        flow("b", destination=told),
        flow("c", destination={"table": "t", "load_type": "merge_upsert", "merge_keys": ["id"]}),
    )
    (warning,) = plan_of(graph).warnings
    assert "'a' adds to a table that 'b', 'c' writes too" in warning
    assert "replay_filter" in warning


def test_a_look_back_by_time_at_a_number_warns() -> None:
    """wm-lag-unit-depends-on-data: the look-back has a unit, and a number does not move by it."""
    graph = graph_of(
        flow(source={"watermark_columns": ["id"], "configure": {"backward": {"days": 3}}})
    )
    (warning,) = plan_of(graph, watermarks={"f": {"id": 7}}).warnings
    assert "watermark id is a number (7), which does not move" in warning
    assert plan_of(graph, watermarks={"f": {"id": NOW}}).warnings == ()


def test_a_full_refresh_of_a_shared_table_would_fail() -> None:
    graph = graph_of(flow("a", destination={"table": "t"}), flow("b", destination={"table": "t"}))
    plan = plan_of(graph, full_refresh=True)
    assert all("writes the same table" in (step.refusal or "") for step in plan.steps)
    assert all(step.refusal is None for step in plan_of(graph).steps)
    told = {"configure": {"datacoolie": {"replay_filter": "region = 'eu'"}}}
    graph = graph_of(
        flow("a", destination={"table": "t", **told}), flow("b", destination={"table": "t"})
    )
    refused = {s.dataflow.name for s in plan_of(graph, full_refresh=True).steps if s.refusal}
    assert refused == {"b"}


@pytest.mark.parametrize(
    ("destination", "source", "words"),
    [
        (
            {
                "load_type": "merge_overwrite",
                "merge_keys": ["id"],
                "configure": {"replace_by_watermark": True},
            },
            {"watermark_columns": ["ts"], "configure": {"backward": {"days": 1}}},
            "replacing a window would take those rows",
        ),
        (
            {
                "load_type": "scd2",
                "merge_keys": ["id"],
                "configure": {
                    "scd2_effective_column": "ts",
                    "datacoolie": {"scd2_close_missing": True},
                },
            },
            {},
            "closing missing keys would close theirs",
        ),
    ],
)
def test_a_load_that_would_take_rows_of_others_would_fail(destination, source, words) -> None:
    mine = flow("a", destination={"table": "t", **destination}, source=source)
    graph = graph_of(mine, flow("b", destination={"table": "t"}))
    refusals = {step.dataflow.name: step.refusal for step in plan_of(graph).steps}
    assert words in (refusals["a"] or "")
    assert refusals["b"] is None
    assert plan_of(graph_of(mine)).steps[0].refusal is None


def test_what_can_not_be_read_is_told_of_its_dataflow() -> None:
    graph = graph_of(flow("a"), flow("b"))
    plan = plan_of(graph, troubles={"b": "the state file is broken"})
    assert [one["action"] for one in plan_document(plan)["steps"]] == ["run", "fail"]
    assert describe_step(plan.steps[1]) == "would fail: the state file is broken"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ({}, ""),
        ({"watermark_columns": ["ts"]}, "ts from the saved watermark → now"),
        (
            {
                "watermark_columns": ["ts", "id"],
                "configure": {"datacoolie": {"watermark_boundary": "exclusive"}},
            },
            "ts, id above the saved watermark → now",
        ),
        (
            {"watermark_columns": ["ts"], "configure": {"backward": {"months": 1, "days": 2}}},
            "ts from the saved watermark less 1 month, 2 days → now",
        ),
        (
            {"watermark_columns": ["ts"], "configure": {"backward": {"closing_day": 5}}},
            "ts from the saved watermark less back to the first of a month that closes on day 5"
            " → now",
        ),
    ],
)
def test_without_state_windows_are_rules(source: dict[str, Any], rule: str) -> None:
    (step,) = plan_of(graph_of(flow(source=source)), watermarks=None).steps
    assert describe_window(step) == rule
    assert not step.state_known


def test_the_sql_of_a_step_has_its_bounds() -> None:
    query = "SELECT id, ts FROM orders -- all of them"
    reader = {"connection": LAKE, "table": None, "query": query, "watermark_columns": ["ts"]}
    graph = graph_of(flow(source=reader))
    (first,) = plan_of(graph).steps
    assert sql_of(first) == query
    (step,) = plan_of(graph, watermarks={"f": {"ts": datetime(2025, 3, 1)}}).steps
    assert sql_of(step) == (
        f"SELECT * FROM (\n{query}\n) AS source\nWHERE \"ts\" >= TIMESTAMP '2025-03-01 00:00:00'"
    )
    windows = {"f": [Window("ts", date(2025, 1, 1), date(2025, 2, 1), "2025-01")]}
    document = plan_document(plan_of(graph, replay=windows))["steps"][0]
    assert document["sql"] is None
    assert document["windows"][0]["sql"].endswith(
        "WHERE \"ts\" >= DATE '2025-01-01' AND \"ts\" < DATE '2025-02-01'"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, '"ts" >= 5'),
        ({"watermark_boundary": "exclusive"}, '"ts" > 5'),
        ({"null_watermark": "include"}, '("ts" >= 5 OR "ts" IS NULL)'),
    ],
)
def test_the_options_of_the_watermark_show_in_the_sql(options, expected) -> None:
    source = {
        "query": "SELECT 1",
        "configure": {"datacoolie": options},
        "watermark_columns": ["ts"],
    }
    graph = graph_of(database(**source))
    (step,) = plan_of(graph, watermarks={"f": {"ts": 5}}).steps
    assert (sql_of(step) or "").splitlines()[-1] == f"WHERE {expected}"


@pytest.mark.parametrize(
    ("kind", "column", "written"),
    [
        ("postgresql", 'or"der', '"or""der"'),
        ("mysql", "order", "`order`"),
        ("mssql", "or]der", "[or]]der]"),
        ("oracle", "order", '"order"'),
    ],
)
def test_names_are_quoted_in_each_dialect(kind: str, column: str, written: str) -> None:
    """W57."""
    found = bounded_query(database(kind, table="t"), None, Window(column, 1, None))
    table = {"mysql": "`t`", "mssql": "[t]"}.get(kind, '"t"')
    assert found == f"SELECT * FROM {table}\nWHERE {written} >= 1"


@pytest.mark.parametrize(
    ("query", "bare"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1;", "SELECT 1"),
        ("SELECT 1 ;\n ; ", "SELECT 1"),
        ("SELECT ';' AS a; -- the end;", "SELECT ';' AS a -- the end;"),
        ("SELECT 1 /* ; */", "SELECT 1 /* ; */"),
    ],
)
def test_the_end_of_a_query_does_not_reach_what_is_put_around_it(query: str, bare: str) -> None:
    """W56; a database takes the text."""
    assert without_terminator(query) == bare
    found = bounded_query(database("sqlite", query=query), query, Above({"x": 0}))
    assert found is not None
    with sqlite3.connect(":memory:") as connection:
        connection.execute(found.replace('"x" >= 0', "1 = 1"))


def test_values_are_written_as_the_standard_has_them() -> None:
    lower = {
        "a": datetime(2025, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
        "b": Decimal("1.50"),
        "c": "O'Brien",
        "d": True,
        "e": b"\x01",
    }
    found = bounded_query(database(query="SELECT 1"), "SELECT 1", Above(lower, inclusive=False))
    assert found is not None
    assert found.splitlines()[-1] == (
        'WHERE ("a" > TIMESTAMP \'2025-01-01 00:00:00.000005+00:00\' OR "b" > 1.50 '
        "OR \"c\" > 'O''Brien' OR \"d\" > TRUE OR \"e\" > X'01')"
    )


def test_the_filter_of_a_source_is_part_of_its_sql() -> None:
    given = database(table="t", schema_name="s", filter_expression="a > 1 -- large")
    found = bounded_query(given, None, Window("n", 1, 5))
    assert found == 'SELECT * FROM "s"."t"\nWHERE "n" >= 1 AND "n" < 5 AND (a > 1 -- large\n)'
    assert bounded_query(flow(), None, Above()) is None
