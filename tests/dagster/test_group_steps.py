"""A step for a group: what is recorded, what still runs, what a repeat loads."""

import textwrap

import dagster as dg
import pytest

from datacoolie_dagster.silent_output import is_known
from tests.dagster.conftest import MONTHS
from tests.dagster.located import IN_PROCESS, MULTIPROCESS, execute


def group(lake, *names, order=0, number=1, **changes):
    for name in names:
        lake.flow(name, group_number=number, execution_order=order, **changes)
        lake.csv(name, "1,2024-01-01")


@pytest.fixture
def groups(lake):
    """Two groups of three; each of the second reads one of the first."""
    lake.arguments["granularity"] = "group"
    group(lake, "a0", "a1", "a2")
    for index in range(3):
        source = {"connection_name": "raw", "table": f"a{index}"}
        lake.flow(f"b{index}", source=source, group_number=2, stage="clean")
    return lake


def recorded(lake, result):
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    keys = lake.instance.get_asset_keys_for_run(result.run_id, of_type=kind)
    return sorted(key.to_user_string() for key in keys)


def steps(result, kind="STEP_START"):
    return [one.step_key for one in result.all_events if one.event_type_value == kind]


def failures(result):
    return [
        one.step_failure_data.user_failure_data.description
        for one in result.all_events
        if one.event_type_value == "STEP_FAILURE"
    ]


def break_(lake, name):
    (lake.root / "landing" / f"{name}.csv").unlink()


def test_a_group_is_one_step_and_each_dataflow_an_asset_with_its_event(groups):
    result = execute(groups)
    assert result.success
    assert steps(result) == ["group_1", "group_2"]
    assert recorded(groups, result) == [
        "clean/b0", "clean/b1", "clean/b2", "raw/a0", "raw/a1", "raw/a2",
    ]  # fmt: skip
    assert groups.newest("raw/a1")["datacoolie/rows_written"] == 1
    assert groups.rows("clean/b2").height == 1


def test_the_same_tables_watermarks_and_metadata_come_of_both_granularities(lake, tmp_path):
    def loaded(granularity):
        lake.arguments["granularity"] = granularity
        assert execute(lake).success
        events = [lake.newest(key) for key in ("raw/events", "raw/a0", "clean/b0")]
        for one in events:
            for name in ("duration_seconds", "watermark", "lag_seconds"):
                one.pop(f"datacoolie/{name}", None)
        return events, lake.rows("clean/b0").drop(
            "__created_at", "__updated_at", "__dataflow_run_id"
        )

    lake.events_flow(replay=None, group_number=1)
    lake.events_csv("2024-01-05", "2024-02-05")
    group(lake, "a0")
    lake.flow("b0", source={"connection_name": "raw", "table": "a0"}, group_number=2, stage="clean")
    first = loaded("dataflow")
    lake.instance.wipe()
    for folder in ("raw", "clean"):
        (lake.root / "lake" / folder).rename(tmp_path / folder)
    second = loaded("group")
    assert [set(one) for one in second[0]] == [set(one) for one in first[0]]
    for one, other in zip(*(found[0] for found in (first, second)), strict=True):
        alike = {name for name in one if one[name] == other[name]}
        assert {"datacoolie/status", "datacoolie/rows_read", "dagster/row_count"} <= alike
    assert first[1].equals(second[1])


def test_one_failure_leaves_the_others_recorded_and_what_depends_on_them_runs(groups):
    group(groups, "a1", options={"on_upstream_failure": "block"})
    groups.flow(
        "b1",
        source={"connection_name": "raw", "table": "a1"},
        group_number=2,
        stage="clean",
        options={"on_upstream_failure": "block"},
    )
    break_(groups, "a1")
    result = execute(groups)
    assert not result.success
    assert steps(result, "STEP_FAILURE") == ["group_1", "group_2"]
    assert recorded(groups, result) == ["clean/b0", "clean/b2", "raw/a0", "raw/a2"]
    texts = failures(result)
    assert texts[0].startswith(
        "1 of 3 dataflows failed: raw/a1 [raw/a1].\n- dataflow 'raw/a1', read"
    )
    assert texts[1] == "1 not loaded: clean/b1: upstream failed: raw/a1."
    failed = groups.observations("raw/a1")[-1]
    assert failed.metadata["datacoolie/status"].value == "failed"


def test_what_depends_on_a_failed_dataflow_runs_if_its_policy_is_to_continue(groups):
    execute(groups)
    break_(groups, "a1")
    result = execute(groups)
    assert recorded(groups, result) == ["clean/b0", "clean/b1", "clean/b2", "raw/a0", "raw/a2"]
    assert groups.newest("clean/b1")["datacoolie/stale_upstream"] == ["raw/a1"]


def test_a_step_of_one_dataflow_follows_the_policy_too(groups):
    groups.flow(
        "alone",
        source={"connection_name": "raw", "table": "a1"},
        stage="clean",
        options={"on_upstream_failure": "block"},
    )
    break_(groups, "a1")
    result = execute(groups)
    assert "clean__alone" in steps(result, "STEP_FAILURE")
    assert "clean/alone" not in recorded(groups, result)
    assert "clean/b0" in recorded(groups, result)


def test_what_depends_on_a_failed_step_of_one_dataflow_does_not_start(lake):
    """Between steps Dagster's own rule holds."""
    lake.arguments["granularity"] = "group"
    lake.flow("alone")
    lake.csv("x", "1,2024-01-01")
    for index in range(2):
        source = {"connection_name": "raw", "table": "alone"}
        lake.flow(f"b{index}", source=source, group_number=2, stage="clean")
    result = execute(lake)
    assert steps(result, "STEP_FAILURE") == ["raw__alone"]
    assert recorded(lake, result) == []


def test_order_inside_a_group_step_is_kept(lake):
    lake.arguments["granularity"] = "group"
    for order in (2, 0, 1):
        group(lake, f"x{order}", f"y{order}", order=order)
    result = execute(lake)
    times = {
        key: lake.instance.fetch_materializations(dg.AssetKey(["raw", key]), 1).records[0].timestamp
        for key in ("x0", "y0", "x1", "y1", "x2", "y2")
    }
    assert result.success
    for order in (0, 1):
        before = max(times[f"x{order}"], times[f"y{order}"])
        assert before <= min(times[f"x{order + 1}"], times[f"y{order + 1}"])


def test_stop_on_error_stops_the_group_and_names_what_was_not_loaded(lake):
    lake.arguments["granularity"] = "group"
    group(lake, "bad")
    group(lake, "next", order=1)
    break_(lake, "bad")
    config = {"resources": {"datacoolie": {"config": {"stop_on_error": True}}}}
    result = execute(lake, run_config=config)
    (text,) = failures(result)
    assert "1 of 2 dataflows failed: raw/bad" in text
    assert "1 not loaded: raw/next: stopped after a failure" in text
    assert recorded(lake, result) == []


def test_only_selected_assets_are_loaded(groups):
    result = execute(groups, "raw/a0", "raw/a2")
    assert result.success
    assert recorded(groups, result) == ["raw/a0", "raw/a2"]
    assert not (groups.root / "lake/raw/a1").exists()


def test_a_repeat_of_the_step_loads_only_what_is_missing(groups, monkeypatch):
    """The source answers late: the second try finds it."""
    tries = groups.root / "tries"
    code = """
        from pathlib import Path
        import polars as pl

        def load(**_):
            tries = Path(__file__).parent / "tries"
            tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
            if len(tries.read_text()) < 2:
                raise ConnectionError("not there yet")
            return pl.DataFrame({"id": [1]})
    """
    (groups.root / "late.py").write_text(textwrap.dedent(code))
    groups.connect("code", "function", ".", connection_type="function")
    groups.flow(
        "a1", source={"connection_name": "code", "python_function": "late.load"}, group_number=1
    )
    result = execute(groups, retries=2)
    assert result.success
    assert tries.read_text() == "xx"
    assert steps(result, "STEP_RESTARTED") == ["group_1"]
    assert len(recorded(groups, result)) == 6
    started = [one.event_type_value for one in result.all_events if one.step_key == "group_2"]
    restarted = [one.event_type_value for one in result.all_events].index("STEP_RESTARTED")
    assert started
    assert all(one.step_key != "group_2" for one in list(result.all_events)[:restarted])


@pytest.mark.parametrize("executor", [IN_PROCESS, MULTIPROCESS], ids=["in process", "processes"])
def test_a_resumed_run_loads_what_its_parent_has_not(groups, executor):
    """retry-good-siblings-again."""
    break_(groups, "a1")
    first = execute(groups, executor=executor)
    groups.csv("a1", "5,2024-01-01")
    second = execute(
        groups,
        executor=executor,
        tags={"dagster/is_resume_retry": "true"},
        reexecution_options=dg.ReexecutionOptions.from_failure(first.run_id, groups.instance),
    )
    assert second.success
    assert recorded(groups, second) == ["clean/b1", "raw/a1"]
    assert groups.ids("clean/b1") == [5]


def test_the_private_name_that_group_steps_rely_on_is_known():
    assert is_known()


ALL = ("2024-01", "2024-04")
BROKEN_MARCH = ("1,2024-01-10T12:00:00Z", "3,2024-02-10T12:00:00Z", "x,2024-03-10T12:00:00Z")


def months_tags(first=ALL[0], last=ALL[1]):
    return {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }


def partitioned(lake, *names, order=0, replay=MONTHS, **changes):
    for name in names:
        lake.events_flow(replay, group_number=1, execution_order=order, **changes)
        flow = lake.dataflows.pop()
        flow |= {"name": name, "dataflow_id": f"raw/{name}"}
        flow["source"] = {**flow["source"], "table": f"{name}.csv"}
        flow["destination"] = {**flow["destination"], "table": name}
        lake.dataflows.append(flow)
        lake.csv(name, "1,2024-01-10T12:00:00Z", "3,2024-03-10T12:00:00Z")


def test_a_backfill_of_a_group_loads_every_month_of_each_in_one_step(lake):
    lake.arguments["granularity"] = "group"
    partitioned(lake, "p0", "p1")
    partitioned(lake, "p2", order=1)
    result = execute(lake, tags=months_tags())
    assert result.success
    assert steps(result) == ["group_1"]
    for name in ("p0", "p1", "p2"):
        assert lake.ids(f"raw/{name}") == [1, 3]
        assert set(lake.statuses(f"raw/{name}").values()) == {"materialized"}
        assert lake.marked(f"raw/{name}") == ["2024-01", "2024-02", "2024-03", "2024-04"]
        assert lake.events(f"raw/{name}")[0].metadata["dagster/partition_row_count"].value == 1


def test_a_failed_month_of_one_dataflow_stops_it_alone_and_a_resume_goes_on(lake):
    """Case ui-status-disagrees."""
    lake.arguments["granularity"] = "group"
    partitioned(lake, "p0", "p1")
    lake.csv("p1", *BROKEN_MARCH)
    first = execute(lake, tags=months_tags())
    assert not first.success
    assert set(lake.statuses("raw/p0").values()) == {"materialized"}
    assert lake.statuses("raw/p1") == {
        "2024-01": "materialized",
        "2024-02": "materialized",
        "2024-03": "failed",
        "2024-04": "failed",
    }
    (text,) = failures(first)
    assert text.startswith("1 of 2 dataflows failed: raw/p1 [raw/p1].")
    assert "'x'" in text
    lake.csv("p1", "1,2024-01-10T12:00:00Z", "3,2024-02-10T12:00:00Z", "5,2024-03-10T12:00:00Z")
    again = dg.ReexecutionOptions.from_failure(first.run_id, lake.instance)
    second = execute(
        lake,
        tags={**months_tags(), "dagster/is_resume_retry": "true"},
        reexecution_options=again,
    )
    assert second.success
    assert lake.ids("raw/p1") == [1, 3, 5]
    assert lake.marked("raw/p0") == ["2024-01", "2024-02", "2024-03", "2024-04"]
    assert lake.marked("raw/p1") == ["2024-01", "2024-02", "2024-03", "2024-04"]


def test_the_running_partition_of_a_group_is_loaded_up_to_now(lake):
    lake.arguments["granularity"] = "group"
    partitioned(lake, "p0", "p1", replay={"start": "2024-01-01", "chunk_interval": {"months": 1}})
    newest = lake.spec("raw/p0").partitions_def.get_partition_keys()[-1]
    result = execute(lake, tags={"dagster/partition": newest})
    assert result.success
    assert lake.ids("raw/p0") == lake.ids("raw/p1") == [1, 3]
    assert lake.newest("raw/p1")["datacoolie/run_kind"] == "full"
    assert lake.statuses("raw/p1")[newest] == "materialized"
    assert lake.statuses("raw/p1")["2024-01"] == "materialized"


def test_groups_with_different_partitions_are_cut_apart(lake):
    lake.arguments["granularity"] = "group"
    partitioned(lake, "p0", "p1")
    group(lake, "w0", "w1", order=1)
    project = lake.definitions.resolve_asset_graph()
    names = {
        one.key.to_user_string(): lake.definitions.resolve_assets_def(one.key).op.name
        for one in project.asset_nodes
        if one.is_materializable
    }
    assert names["raw/p0"] == names["raw/p1"] != names["raw/w0"] == names["raw/w1"]


def test_groups_that_need_each_other_fall_apart(lake):
    lake.arguments["granularity"] = "group"
    group(lake, "a0", "a1")
    for index, (name, reads, number) in enumerate(
        [("b0", "a0", 2), ("c0", "b0", 1), ("b1", "a1", 2)]
    ):
        lake.flow(
            name,
            source={"connection_name": "raw", "table": reads},
            group_number=number,
            execution_order=index,
        )
    result = execute(lake)
    assert result.success
    assert len(recorded(lake, result)) == 5
    names = set(steps(result))
    assert not {"group_1", "group_2"} <= names


def test_many_dataflows_are_cut_into_steps_that_follow_each_other(lake, monkeypatch):
    from datacoolie_dagster import groups

    monkeypatch.setattr(groups, "MOST_MEMBERS", 3)
    monkeypatch.setattr(groups, "NARROW", 4)
    for order in range(3):
        group(lake, *(f"x{order}{one}" for one in range(3)), order=order)
    result = execute(lake)
    assert result.success
    assert sorted(name.partition("_")[0] for name in steps(result)) == ["group"] * 3
    third = lake.spec("raw/x20")
    assert [dep.asset_key.to_user_string() for dep in third.deps if "x1" in str(dep.asset_key)] == [
        "raw/x12"
    ]
    (edge,) = [
        r.data for r in third.metadata["datacoolie/edges"].records if r.data["origin"] == "order"
    ]
    assert edge["detail"] == "group 1: order 2 after 1, and 2 more of that order"


def test_a_group_with_few_edges_stays_a_step_for_each_dataflow(lake):
    group(lake, "a0", "a1")
    group(lake, "b0", order=1)
    result = execute(lake)
    assert sorted(steps(result)) == ["raw__a0", "raw__a1", "raw__b0"]
