"""One graph: declared order, depends_on, lineage, cycles."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from datacoolie_core.errors import MetadataError, PreparationError
from datacoolie_core.metadata.models import Dataflow, InvalidDataflow, Metadata
from datacoolie_core.plan.graph import Graph, build_graph
from datacoolie_core.plan.lineage import ExternalSource
from datacoolie_core.plan.sql_tables import tables_in

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
    writes: str | None = None,
    query: str | None = None,
    depends_on: tuple[str, ...] = (),
    source: dict[str, Any] | None = None,
    **given: Any,
) -> Dataflow:
    """A dataflow; ``reads`` and ``writes`` are ``schema/table`` of the lake."""
    if source is None and query is not None:
        source = {"connection": LAKE, "query": query}
    elif source is None and reads is not None:
        source = {"connection": LAKE, **_table(reads)}
    elif source is None:
        source = {"connection": FILES, "table": name}
    return Dataflow.model_validate(
        {
            "name": name,
            "dataflow_id": given.pop("dataflow_id", name),
            "source": source,
            "destination": {"connection": LAKE, **_table(writes or f"out/{name}")},
            "configure": {"datacoolie": {"depends_on": list(depends_on)}},
            **given,
        }
    )


def _table(text: str) -> dict[str, str]:
    *schema, table = text.split("/")
    return {"table": table} | ({"schema_name": schema[0]} if schema else {})


def graph_of(*flows: Dataflow, **options: Any) -> Graph:
    return build_graph(Metadata(dataflows=flows), **options)


def edges(graph: Graph, *, order: bool = False) -> set[tuple[str, str, str]]:
    return {
        (edge.upstream_id, edge.downstream_id, edge.origin)
        for one in graph.dataflows
        for edge in graph.upstream_edges(one.dataflow_id, order=order)
    }


def ids(graph: Graph) -> list[str]:
    return [one.dataflow_id for one in graph.dataflows]


def test_a_bucket_waits_for_all_of_the_next_lower_one_across_stages() -> None:
    graph = graph_of(
        flow("late", group_number=1, execution_order=20, stage="gold"),
        flow("a", group_number=1, execution_order=-5, stage="bronze"),
        flow("middle", group_number=1, stage="silver"),
        flow("b", group_number=1, execution_order=-5),
        flow("other", group_number=2, execution_order=1),
    )
    assert graph.order_groups == {1: (("a", "b"), ("middle",), ("late",)), 2: (("other",),)}
    assert edges(graph) == set()
    assert edges(graph, order=True) == {
        ("a", "middle", "order"),
        ("b", "middle", "order"),
        ("middle", "late", "order"),
    }
    assert ids(graph) == ["a", "b", "middle", "late", "other"]
    (edge,) = graph.upstream_edges("late", order=True)
    assert edge.detail == "group 1: order 20 after 0"


def test_group_zero_is_a_group_and_no_group_has_no_order() -> None:
    graph = graph_of(
        flow("free2", execution_order=2),
        flow("second", group_number=0, execution_order=1),
        flow("free1", execution_order=1),
        flow("first", group_number=0),
    )
    assert edges(graph, order=True) == {("first", "second", "order")}
    assert ids(graph) == ["first", "second", "free2", "free1"]


def test_depends_on_takes_a_name_a_stage_and_name_or_an_id() -> None:
    graph = graph_of(
        flow("orders", stage="bronze", dataflow_id="b-orders"),
        flow("orders", stage="silver", dataflow_id="s-orders", depends_on=("bronze/orders",)),
        flow("items", depends_on=("s-orders",)),
        flow("report", depends_on=("items",)),
    )
    assert edges(graph) == {
        ("b-orders", "s-orders", "declared"),
        ("s-orders", "items", "declared"),
        ("items", "report", "declared"),
    }


def test_all_wrong_names_are_reported_at_once() -> None:
    """Case orch-missing-upstream."""
    with pytest.raises(MetadataError) as caught:
        graph_of(
            flow("customers"),
            flow("orders", depends_on=("custmers",)),
            flow("x", stage="a", dataflow_id="1"),
            flow("x", stage="b", dataflow_id="2"),
            flow("y", depends_on=("x",)),
        )
    first, second = (str(problem) for problem in caught.value.problems)
    assert "orders" in first
    assert "depends on unknown 'custmers'. Did you mean 'customers'?" in first
    assert "'x' could be 'a/x' [1], 'b/x' [2]. Write stage/name or the id" in second


def test_waiting_for_a_dataflow_that_can_not_be_loaded_is_no_second_error() -> None:
    broken = InvalidDataflow(label="bronze/orders", dataflow_id="o", stage="bronze")
    scope = Metadata(
        dataflows=(flow("x", depends_on=("bronze/orders", "orders", "o")),), invalid=(broken,)
    )
    graph = build_graph(scope)
    assert ids(graph) == ["x"]
    assert graph.invalid == (broken,)


def test_every_cycle_is_printed_in_one_go() -> None:
    """Case orch-cycle."""
    with pytest.raises(MetadataError) as caught:
        graph_of(
            flow("A", depends_on=("C",)),
            flow("B", depends_on=("A",)),
            flow("C", depends_on=("B",)),
            flow("D", depends_on=("D",)),
            flow("E", depends_on=("F",)),
            flow("F", depends_on=("E", "A")),
            flow("fine", depends_on=("A",)),
        )
    text = str(caught.value)
    assert "A -> C -> B -> A" in text
    assert "D depends on itself" in text
    assert "E -> F -> E" in text
    assert len(caught.value.problems) == 3


def test_quarantine_leaves_out_what_can_not_have_a_place_and_keeps_the_rest() -> None:
    graph = graph_of(
        flow("A", depends_on=("B",), stage="gold"),
        flow("B", depends_on=("gold/A",)),
        flow("lost", depends_on=("nobody",)),
        flow("after", depends_on=("gold/A", "fine")),
        flow("fine"),
        on_invalid="quarantine",
    )
    assert ids(graph) == ["fine", "after"]
    assert edges(graph) == {("fine", "after", "declared")}
    assert [one.label for one in graph.invalid] == ["gold/A", "B", "lost"]
    assert "gold/A -> B -> gold/A" in str(graph.invalid[1].problems[0])


def test_a_cycle_through_order_names_the_dataflows_alone() -> None:
    with pytest.raises(MetadataError, match="one -> two -> one"):
        graph_of(
            flow("one", group_number=1, execution_order=1, depends_on=("two",)),
            flow("two", group_number=1, execution_order=2),
        )


def test_reading_what_another_writes_makes_an_edge_with_its_reason() -> None:
    graph = graph_of(
        flow("report", reads="silver/orders"),
        flow("one", writes="silver/orders"),
        flow("two", writes="silver/orders"),
    )
    assert edges(graph) == {("one", "report", "lineage"), ("two", "report", "lineage")}
    assert {edge.detail for edge in graph.upstream_edges("report")} == {"reads lake/silver/orders"}
    assert graph.writers_of("lake/silver/orders") == ("one", "two")
    assert graph.writers_of("lake/nothing") == ()
    assert ids(graph) == ["one", "two", "report"]


def test_different_spellings_of_a_place_are_one_place() -> None:
    """Case path-same-table-two-spellings."""
    other = LAKE | {"configure": {"base_path": "./lake//silver/"}}
    graph = graph_of(
        flow("one", writes="silver/orders"),
        flow("report", source={"connection": other, "table": "orders"}),
    )
    assert edges(graph) == {("one", "report", "lineage")}


def test_reading_ones_own_destination_makes_no_edge() -> None:
    graph = graph_of(
        flow("one", reads="silver/orders", writes="silver/orders"),
        flow("two", reads="silver/orders", writes="silver/orders"),
        flow("self", query="SELECT * FROM out.self"),
    )
    assert edges(graph) == set()
    assert graph.externals == {}


def test_tables_that_a_query_names_are_found_below_the_base_path() -> None:
    graph = graph_of(
        flow("a", writes="silver/a"),
        flow("b", writes="b"),
        flow("c", writes="Strange/c d"),
        flow("d", writes="silver/d"),
        flow(
            "gold",
            query='WITH x AS (SELECT * FROM silver.a) SELECT * FROM x JOIN b JOIN "Strange"."c d"',
        ),
        flow(
            "plain",
            source={"connection": LAKE, "schema_name": "silver", "query": "SELECT 1 FROM d"},
        ),
    )
    assert edges(graph) == {
        ("a", "gold", "lineage"),
        ("b", "gold", "lineage"),
        ("c", "gold", "lineage"),
        ("d", "plain", "lineage"),
    }


def test_a_catalog_qualified_name_is_found_with_and_without_its_catalog() -> None:
    unity = LAKE | {"name": "unity", "catalog": "main", "configure": {}}
    writer = flow("w").model_copy(
        update={
            "destination": flow("w").destination.model_validate(
                {"connection": unity, "schema_name": "silver", "table": "orders"}
            )
        }
    )
    reader = {"connection": unity, "query": "SELECT * FROM main.silver.orders"}
    short = {"connection": unity, "query": "SELECT * FROM silver.orders"}
    graph = graph_of(writer, flow("r", source=reader), flow("s", source=short))
    assert edges(graph) == {("w", "r", "lineage"), ("w", "s", "lineage")}


def test_the_text_of_a_query_file_comes_from_the_reader_that_was_passed_in() -> None:
    flows = (flow("a", writes="silver/a"), flow("gold", query="sql/gold.sql"))
    texts = {"gold": "SELECT * FROM silver.a"}
    graph = graph_of(*flows, read_query=lambda one: texts.get(one.dataflow_id))
    assert edges(graph) == {("a", "gold", "lineage")}
    assert graph.queries == texts
    unread = graph_of(*flows)
    assert edges(unread) == set()


def test_a_query_that_can_not_be_read_or_parsed_warns_and_stops_nobody_else() -> None:
    def read(one: Dataflow) -> str | None:
        if one.dataflow_id == "lost":
            raise PreparationError("there is no file lost.sql")
        return one.source.query

    graph = graph_of(
        flow("a", writes="silver/a"),
        flow("lost", query="lost.sql"),
        flow("broken", query="SELECT FROM ((("),
        flow("good", query="SELECT * FROM silver.a"),
        read_query=read,
    )
    assert edges(graph) == {("a", "good", "lineage")}
    lost, broken = sorted(graph.warnings, key=lambda one: one.dataflow_id, reverse=True)
    assert "can't be read: there is no file lost.sql" in str(lost)
    assert "'broken': its query is not understood" in str(broken)
    assert graph.externals["lost"][0].kind == "query"


def test_what_nobody_writes_is_external_with_its_key() -> None:
    api = {
        "name": "shop",
        "connection_type": "api",
        "format": "api",
        "configure": {"base_url": "https://shop"},
    }
    db = {
        "name": "crm",
        "connection_type": "database",
        "format": "sql",
        "configure": {"database_type": "mssql"},
    }
    function = {"name": "code", "connection_type": "function", "format": "function"}
    graph = graph_of(
        flow("file", source={"connection": FILES, "schema_name": "raw", "table": "a.csv"}),
        flow("lake", reads="old/table"),
        flow("api", source={"connection": api, "configure": {"endpoint": "/v1/orders"}}),
        flow("db", source={"connection": db, "schema_name": "dbo", "table": "orders"}),
        flow("sql", source={"connection": db, "query": "SELECT * FROM [dbo].[items], orders"}),
        flow("code", source={"connection": function, "python_function": "shop.load"}),
    )
    found = {
        one: [(external.key, external.kind) for external in externals]
        for one, externals in graph.externals.items()
    }
    assert found == {
        "file": [(("files", "raw", "a.csv"), "path")],
        "lake": [(("lake", "old", "table"), "table")],
        "api": [(("shop", "/v1/orders"), "endpoint")],
        "db": [(("crm", "dbo", "orders"), "table")],
        "sql": [(("crm", "dbo", "items"), "table"), (("crm", "orders"), "table")],
        "code": [(("code", "shop.load"), "function")],
    }
    assert isinstance(graph.externals["file"][0], ExternalSource)
    assert graph.externals["file"][0].connection.format == "csv"


def test_a_lineage_edge_against_declared_order_is_dropped_with_a_warning() -> None:
    graph = graph_of(
        flow("early", reads="silver/late", group_number=1, execution_order=1),
        flow("late", writes="silver/late", group_number=1, execution_order=2),
    )
    assert edges(graph) == set()
    assert ids(graph) == ["early", "late"]
    (warning,) = graph.warnings
    assert warning.dataflow_id == "early"
    assert "'early' reads lake/silver/late, which 'late' writes, but the declared order" in str(
        warning
    )


def test_order_wins_over_lineage_through_other_dataflows_too() -> None:
    """early -> (order) late; between waits for late by depends_on; early reads what it writes."""
    graph = graph_of(
        flow("early", reads="silver/between", group_number=1, execution_order=1),
        flow("late", group_number=1, execution_order=2),
        flow("between", writes="silver/between", depends_on=("late",)),
    )
    assert edges(graph) == {("late", "between", "declared")}
    assert len(graph.warnings) == 1


def test_two_lineage_edges_against_each_other_are_a_cycle() -> None:
    """Case ui-lineage-of-mutual-dependency."""
    with pytest.raises(MetadataError, match="a -> b -> a"):
        graph_of(
            flow("a", reads="silver/b", writes="silver/a"),
            flow("b", reads="silver/a", writes="silver/b"),
        )


def test_lineage_inside_a_bucket_and_along_the_order_is_kept() -> None:
    graph = graph_of(
        flow("b", reads="out/a", group_number=1),
        flow("a", group_number=1),
        flow("c", reads="out/b", group_number=1, execution_order=1),
    )
    assert edges(graph) == {("a", "b", "lineage"), ("b", "c", "lineage")}
    assert ids(graph) == ["a", "b", "c"]
    assert edges(graph, order=True) == {
        ("a", "b", "lineage"),
        ("b", "c", "lineage"),
        ("a", "c", "order"),
    }


def test_an_edge_that_is_declared_and_lineage_is_one_edge() -> None:
    graph = graph_of(flow("a"), flow("b", reads="out/a", depends_on=("a",)))
    assert edges(graph) == {("a", "b", "declared")}


def test_wide_buckets_cost_no_pairs() -> None:
    wide = 1500
    flows = [
        flow(f"{order}-{index}", group_number=1, execution_order=order)
        for order in (1, 2)
        for index in range(wide)
    ]
    graph = graph_of(*flows)
    assert graph.edges == ()
    assert len(graph.upstream_edges("2-0", order=True)) == wide
    assert ids(graph)[:wide] == [f"1-{index}" for index in range(wide)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", {("t",)}),
        ("SELECT * FROM a.t JOIN b.t ON true", {("a", "t"), ("b", "t")}),
        ("SELECT * FROM `silver`.`x`", {("silver", "x")}),
        ("SELECT (SELECT max(i) FROM k) FROM m WHERE j IN (SELECT j FROM n)", {("k",), ("m",), ("n",)}),
        ("SELECT 1 FROM a UNION ALL SELECT 1 FROM b EXCEPT SELECT 1 FROM c", {("a",), ("b",), ("c",)}),
        ("WITH RECURSIVE r AS (SELECT * FROM x UNION ALL SELECT * FROM r) SELECT * FROM r", {("x",)}),
        ("SELECT * FROM a -- from b\n;", {("a",)}),
        ("SELECT 1", set()),
    ],
)  # fmt: skip
def test_tables_of_a_query_are_those_that_it_reads(
    sql: str, expected: set[tuple[str, ...]]
) -> None:
    found = tables_in(sql)
    assert found is not None
    assert set(found) == expected


def test_brackets_are_quotes_where_the_database_says_so() -> None:
    assert tables_in("SELECT TOP 5 * FROM [dbo].[Order Lines]", "mssql") == (
        ("dbo", "Order Lines"),
    )


def test_a_graph_without_queries_loads_no_heavy_module() -> None:
    code = (
        "import sys\n"
        "from datacoolie_core.metadata.models import Metadata\n"
        "from datacoolie_core.plan import chunks, graph, planner, query, selection\n"
        "graph.build_graph(Metadata())\n"
        "heavy = ('polars', 'deltalake', 'pyarrow', 'sqlglot', 'fsspec', 'filelock', 'dagster')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


names = [f"f{index}" for index in range(8)]


@st.composite
def random_flows(draw: st.DrawFn) -> list[Dataflow]:
    found = []
    for index, name in enumerate(names[: draw(st.integers(1, len(names)))]):
        earlier = names[:index]
        kind = draw(st.sampled_from(["file", "lake", "query"]))
        target = draw(st.sampled_from(earlier or ["none"]))
        found.append(
            flow(
                name,
                reads=f"out/{target}" if kind == "lake" else None,
                query=f"SELECT * FROM out.{target}" if kind == "query" else None,
                depends_on=tuple(draw(st.lists(st.sampled_from(earlier), max_size=2)))
                if earlier
                else (),
                group_number=draw(st.sampled_from([None, 0, 1])),
                execution_order=draw(st.sampled_from([None, -1, 0, 1, 2])),
            )
        )
    return found


def built(flows: list[Dataflow]) -> Graph | None:
    try:
        return graph_of(*flows)
    except MetadataError:
        return None


@given(random_flows(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_every_dataflow_comes_after_what_it_waits_for(flows: list[Dataflow], random: Any) -> None:
    random.shuffle(flows)
    graph = built(flows)
    assume(graph is not None)
    assert graph is not None
    assert sorted(ids(graph)) == sorted(one.dataflow_id for one in flows)
    position = {one: index for index, one in enumerate(ids(graph))}
    for upstream, downstream, _ in edges(graph, order=True):
        assert position[upstream] < position[downstream]
    for buckets in graph.order_groups.values():
        for lower, upper in itertools.pairwise(buckets):
            assert max(position[one] for one in lower) < min(position[one] for one in upper)
    again = graph_of(*flows)
    assert ids(again) == ids(graph)
