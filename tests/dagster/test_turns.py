"""Nothing starts before what it waits for, whatever is selected and however steps are cut."""

import json
import shutil
from contextlib import ExitStack

import dagster as dg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.plan.graph import build_graph
from datacoolie_core.plan.waiting import kept_buckets, waiting_edges
from datacoolie_dagster import groups
from tests.dagster.conftest import Lake
from tests.dagster.located import IN_PROCESS, MULTIPROCESS, execute

MONTHS = {"start": "2024-01-01", "end": "2024-03-01", "chunk_interval": {"months": 1}}


def name_of(index):
    """Later ones come first by name, as Dagster takes steps that wait for nothing."""
    return f"f{9 - index}"


@st.composite
def scopes(draw):
    """Some dataflows in groups and orders, with dependencies on earlier ones; a selection."""
    count = draw(st.integers(3, 9))
    orders = sorted(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
    flows = []
    for index in range(count):
        near = [name_of(one) for one in range(max(0, index - 3), index)]
        flows.append(
            {
                "group_number": draw(st.sampled_from([1, 1, 2, None])),
                "execution_order": orders[index],
                "depends_on": draw(st.lists(st.sampled_from(near), max_size=1)) if near else [],
                "is_active": draw(st.integers(0, 9)) > 0,
            }
        )
    left_out = draw(st.sets(st.integers(1, count - 2), min_size=1, max_size=count - 2))
    selected = [name_of(one) for one in range(count) if one not in left_out]
    return flows, selected, draw(st.sampled_from(["auto", "dataflow", "group"]))


def build(lake, flows, granularity):
    lake.arguments["granularity"] = granularity
    for index, one in enumerate(flows):
        name = name_of(index)
        changes = {key: one[key] for key in ("group_number", "execution_order", "is_active")}
        options = {"depends_on": [f"raw/{up}" for up in one["depends_on"]]}
        lake.flow(name, options=options, **{k: v for k, v in changes.items() if v is not None})
        lake.csv(name, "1,2024-01-01")


def spans(lake, result):
    """Return dataflow id → when it started and ended, as the core's records of the run say."""
    assert result.run_id
    found = {}
    for path in (lake.root / "logs").rglob("dataflow_*.json"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record["status"] != "skipped":
                found[record["dataflow_id"]] = record["start_time"], record["end_time"]
    return found


def waits(lake, selected):
    """Yield each selected dataflow with one that it waits for, as the core has it."""
    graph = build_graph(metadata_from_documents([("flows.json", lake.document)]))
    active = {one.dataflow_id for one in graph.dataflows if one.is_active}
    chosen = {f"raw/{one}" for one in selected} & active
    for one, edges in waiting_edges(graph, chosen).items():
        yield from ((edge.upstream_id, one) for edge in edges)
    for buckets in kept_buckets(graph, chosen).values():
        for index, bucket in enumerate(buckets):
            lower = [one for below in buckets[:index] for one in below]
            yield from ((up, one) for one in bucket for up in lower)


@pytest.fixture
def new_lake(tmp_path_factory, empty_home):
    with ExitStack() as stack:

        def make():
            root = tmp_path_factory.mktemp("lake")
            (root / "project").mkdir()
            shutil.copytree(empty_home, root / "home")
            return Lake(root / "project", root / "home", stack)

        yield make


@given(scope=scopes(), cut=st.sampled_from([1, 2, 200]))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_nothing_starts_before_what_it_waits_for(new_lake, monkeypatch, scope, cut):
    flows, selected, granularity = scope
    lake = new_lake()
    build(lake, flows, granularity)
    try:
        pairs = list(waits(lake, selected))
    except MetadataError:
        return  # a cycle is refused: nothing runs
    active = [
        f"raw/{name_of(index)}"
        for index, one in enumerate(flows)
        if one["is_active"] and name_of(index) in selected
    ]
    if not active:
        return
    with monkeypatch.context() as patch:
        patch.setattr(groups, "MOST_MEMBERS", cut)
        patch.setattr(groups, "NARROW", 1)
        result = execute(lake, *active)
    assert result.success, json.dumps(flows)
    found = spans(lake, result)
    assert set(found) == set(active)
    for before, after in pairs:
        assert found[before][1] <= found[after][0], (before, after)


@pytest.mark.parametrize("executor", [IN_PROCESS, MULTIPROCESS], ids=["in process", "processes"])
def test_a_selection_without_the_middle_keeps_the_order(lake, executor):
    """Dagster has no edge left between them; the step that comes too early waits."""
    lake.arguments["granularity"] = "dataflow"
    for order, name in enumerate("zya"):
        lake.flow(name, group_number=1, execution_order=order)
        lake.csv(name, "1,2024-01-01")
    result = execute(lake, "raw/z", "raw/a", executor=executor)
    assert result.success
    found = spans(lake, result)
    assert found["raw/z"][1] <= found["raw/a"][0]


def test_what_was_given_up_is_not_waited_for_without_end(lake):
    """z fails, so Dagster gives y up; a, which waits for y by order alone, sees that it failed."""
    lake.arguments["granularity"] = "dataflow"
    lake.flow("z")
    lake.flow("y", source={"connection_name": "raw", "table": "z"}, group_number=1)
    lake.flow("m", group_number=1, execution_order=1)
    lake.flow("a", group_number=1, execution_order=2, options={"on_upstream_failure": "block"})
    lake.csv("m", "1,2024-01-01")
    lake.csv("a", "1,2024-01-01")
    result = execute(lake, "raw/z", "raw/y", "raw/a")
    failed = {one.step_key for one in result.all_events if one.event_type_value == "STEP_FAILURE"}
    assert failed == {"raw__z", "raw__a"}
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    assert not lake.instance.get_asset_keys_for_run(result.run_id, of_type=kind)
