"""Which dataflows are meant: stages, patterns, shards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from datacoolie_core.errors import SelectionError
from datacoolie_core.metadata.models import Dataflow, InvalidDataflow, Metadata
from datacoolie_core.plan.graph import Graph, build_graph
from datacoolie_core.plan.selection import select, shard_of

LAKE: dict[str, Any] = {
    "name": "lake",
    "connection_type": "lakehouse",
    "format": "delta",
    "configure": {"base_path": "lake"},
}
FILES: dict[str, Any] = {"name": "files", "format": "csv", "configure": {"base_path": "in"}}


def flow(
    stage: str, name: str, reads: str | None = None, *, connection: Any = FILES, **given: Any
) -> Dataflow:
    source: dict[str, Any] = {"connection": connection, "table": name}
    if reads is not None:
        schema, table = reads.split("/")
        source = {"connection": LAKE, "schema_name": schema, "table": table}
    return Dataflow.model_validate(
        {
            "name": name,
            "dataflow_id": f"id-{stage}-{name}",
            "stage": stage,
            "source": source,
            "destination": {"connection": LAKE, "schema_name": stage, "table": name},
            **given,
        }
    )


@pytest.fixture
def graph() -> Graph:
    """bronze customer, product, order, calendar; silver order, item; gold summary."""
    return build_graph(
        Metadata(
            dataflows=(
                flow("bronze", "customer", group_number=1),
                flow("bronze", "order", group_number=1, execution_order=2),
                flow("bronze", "calendar"),
                flow("silver", "order", "bronze/order"),
                flow("silver", "item", "silver/order"),
                flow("gold", "summary", "silver/item"),
                flow("gold", "dates", "bronze/calendar"),
            ),
            invalid=(InvalidDataflow(label="gold/broken", dataflow_id="id-b", stage="gold"),),
        )
    )


def labels(graph: Graph, **options: Any) -> list[str]:
    return [one.label for one in select(graph, **options).dataflows]


def test_everything_is_selected_by_default_in_the_order_of_the_graph(graph: Graph) -> None:
    assert labels(graph) == [one.label for one in graph.dataflows]


@pytest.mark.parametrize(
    "stages", ["silver, gold", ["gold", "silver"], ["gold,silver"], "gold,,silver"]
)
def test_stages_are_a_union_and_never_an_order(graph: Graph, stages: Any) -> None:
    assert labels(graph, stages=stages) == [
        "silver/order",
        "silver/item",
        "gold/summary",
        "gold/dates",
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("silver/order", ["silver/order"]),
        ("order", ["bronze/order", "silver/order"]),
        ("id-gold-dates", ["gold/dates"]),
        ("bronze/*", ["bronze/customer", "bronze/order", "bronze/calendar"]),
        ("*/d?tes", ["gold/dates"]),
        ("+silver/item", ["bronze/customer", "bronze/order", "silver/order", "silver/item"]),
        ("silver/order+", ["silver/order", "silver/item", "gold/summary"]),
        ("bronze/customer+", ["bronze/customer", "bronze/order", "silver/order", "silver/item", "gold/summary"]),
        ("+silver/order+", ["bronze/customer", "bronze/order", "silver/order", "silver/item", "gold/summary"]),
        ("+gold/d*", ["bronze/calendar", "gold/dates"]),
    ],
)  # fmt: skip
def test_patterns_name_dataflows_and_what_hangs_together(
    graph: Graph, pattern: str, expected: list[str]
) -> None:
    """Case orch-subset-and-order-of-names."""
    assert labels(graph, include=[pattern]) == expected


def test_exclusions_are_taken_away_last(graph: Graph) -> None:
    found = labels(graph, include=["silver/*", "gold/*"], exclude=["gold/dates", "silver/item+"])
    assert found == ["silver/order"]


def test_conditions_are_met_together(graph: Graph) -> None:
    assert labels(graph, stages="gold", include=["+gold/summary"]) == ["gold/summary"]
    assert labels(graph, names=["order"], connections=["files"]) == ["bronze/order"]
    assert labels(graph, groups=[1]) == ["bronze/customer", "bronze/order"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": "glod"}, "no stage 'glod'. Did you mean 'gold'?"),
        ({"stages": "x"}, "no stage 'x'. There are bronze, gold, silver."),
        ({"include": ["silver/ordr"]}, "no dataflow 'silver/ordr'. Did you mean 'silver/order'?"),
        ({"include": ["+silver/itm+"]}, "no dataflow 'silver/itm'. Did you mean 'silver/item'?"),
        ({"include": ["platinum/*"]}, "no dataflow 'platinum/*'"),
        ({"include": ["+"]}, "no dataflow '+'"),
        ({"exclude": ["gold/dtes"]}, "no dataflow 'gold/dtes'. Did you mean 'gold/dates'?"),
        ({"names": ["itm"]}, "no dataflow 'itm'. Did you mean 'item'?"),
        ({"connections": ["lak"]}, "no connection 'lak'. Did you mean 'lake'?"),
        ({"groups": [7]}, "no group '7'. There are 1."),
        ({"dataflows": ["id-gold-date"]}, "no dataflow 'id-gold-date'. Did you mean"),
    ],
)
def test_what_is_unknown_is_an_error_with_the_name_meant(
    graph: Graph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SelectionError) as caught:
        select(graph, **options)
    assert message in str(caught.value)


def test_an_explicit_list_is_taken_as_given(graph: Graph) -> None:
    selection = select(
        graph, stages="gold", dataflows=["id-silver-item", "id-bronze-order"], shard=(2, 0)
    )
    assert [one.label for one in selection.dataflows] == ["bronze/order", "silver/item"]
    assert selection.shard is None
    assert select(graph, dataflows=[]).dataflows == ()


def test_inactive_dataflows_and_connections_stay_with_their_reason() -> None:
    off = {**FILES, "name": "off", "is_active": False}
    graph = build_graph(
        Metadata(
            dataflows=(
                flow("bronze", "a", is_active=False),
                flow("bronze", "b", connection=off),
                flow("bronze", "c", connection=off, is_active=False),
                flow("bronze", "d"),
            )
        )
    )
    selection = select(graph)
    assert len(selection.dataflows) == 4
    assert selection.skip_reasons == {
        "id-bronze-a": "inactive",
        "id-bronze-b": "source connection 'off' is inactive",
        "id-bronze-c": "inactive; source connection 'off' is inactive",
    }


def test_a_dataflow_that_can_not_be_loaded_is_selected_like_the_others(graph: Graph) -> None:
    assert [one.label for one in select(graph).invalid] == ["gold/broken"]
    assert select(graph, stages="silver").invalid == ()
    chosen = select(graph, include=["gold/broken"])
    assert (chosen.dataflows, len(chosen.invalid)) == ((), 1)


def test_shards_are_where_they_always_were() -> None:
    assert shard_of("abc", None, 4) == 2
    assert shard_of("flow-1", None, 4) == 3
    assert shard_of("fca29d2a-6fc7-50ba-9a82-3ed910c6b50e", None, 4) == 3
    assert shard_of("abc", 6, 4) == 2
    assert shard_of("abc", -3, 4) == 1
    assert shard_of("abc", 0, 4) == 0


@given(st.integers(1, 6))
def test_each_dataflow_is_in_exactly_one_shard(jobs: int) -> None:
    flows = tuple(flow("s", f"f{index}", group_number=index % 3 or None) for index in range(12))
    graph = build_graph(Metadata(dataflows=flows))
    found = [
        one.dataflow_id for job in range(jobs) for one in select(graph, shard=(jobs, job)).dataflows
    ]
    assert sorted(found) == sorted(one.dataflow_id for one in flows)
