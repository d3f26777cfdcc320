"""What dataflows look like as assets: keys, edges, metadata, and what is refused."""

import re
import string

import dagster as dg
import pytest
from hypothesis import given, settings, strategies as st

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_dagster import DagsterDataCoolieTranslator, build_datacoolie_definitions
from datacoolie_dagster.names import safe_name, safe_tag


def upstream(lake, key):
    return sorted(dep.asset_key.to_user_string() for dep in lake.spec(key).deps)


def reasons(lake, key):
    table = lake.spec(key).metadata["datacoolie/edges"]
    return [(r.data["upstream"], r.data["origin"], r.data["detail"]) for r in table.records]


def test_a_dataflow_is_an_asset_with_all_that_its_metadata_says(lake):
    lake.flow(
        "planes",
        description="All planes.",
        group_number=3,
        execution_order=2,
        destination={"load_type": "merge_upsert", "merge_keys": ["tailnum"], "table": "Planes"},
        source={"watermark_columns": ["at"]},
        options={"owners": ["team:air", "ana@air.example"], "tags": {"domain": "fleet"}},
    )
    spec = lake.spec("raw/planes")
    assert spec.group_name == "raw"
    assert spec.kinds == {"delta", "polars"}
    assert list(spec.owners) == ["team:air", "ana@air.example"]
    assert spec.tags["domain"] == "fleet"
    assert spec.tags["datacoolie/group"] == "3"
    assert spec.tags["datacoolie/order"] == "2"
    assert spec.tags["datacoolie/shard"] == "0"
    assert re.fullmatch(r"raw_planes-[0-9a-f]{8}", spec.tags["datacoolie/dataflow_id"])
    assert spec.metadata["datacoolie/dataflow_id"] == "raw/planes"
    assert spec.metadata["dagster/uri"] == "lake/raw/Planes"
    assert spec.metadata["dagster/table_name"] == "raw.planes"
    assert spec.metadata["datacoolie/load_type"] == "merge_upsert"
    assert spec.metadata["datacoolie/merge_keys"] == "tailnum"
    assert spec.metadata["datacoolie/watermark_columns"] == "at"
    assert spec.description.startswith("All planes.\n\n- **Reads:** `landing/planes.csv`")


def test_hints_give_the_columns_before_anything_is_loaded(lake):
    lake.flow(
        "planes",
        transform={
            "schema_hints": [
                {"column_name": "Seats", "data_type": "int", "ordinal_position": 2},
                {"column_name": "price", "data_type": "decimal", "precision": 9, "scale": 2},
                {"column_name": "secret", "data_type": "string"},
            ],
            "rename_columns": {"price": "cost"},
            "drop_columns": ["secret"],
        },
    )
    columns = lake.spec("raw/planes").metadata["dagster/column_schema"].columns
    assert [(one.name, one.type) for one in columns] == [("cost", "decimal(9,2)"), ("seats", "int")]


def test_the_code_version_follows_what_is_loaded_and_nothing_else(lake):
    lake.flow("planes")
    before = lake.spec("raw/planes").code_version
    lake.flow("planes", description="New words.", options={"owners": ["team:x"]}, group_number=4)
    assert lake.spec("raw/planes").code_version == before
    lake.flow("planes", source={"filter_expression": "id > 3"})
    assert lake.spec("raw/planes").code_version != before


def test_an_edge_says_where_it_comes_from(lake):
    lake.flow("a", group_number=1)
    lake.flow("b", group_number=1, execution_order=5)
    lake.flow("c", options={"depends_on": ["a"]})
    lake.flow("d", stage="clean", source={"connection_name": "raw", "table": "b"})
    assert reasons(lake, "raw/b") == [
        ("raw/a", "order", "group 1: order 5 after 0"),
        ("landing/b.csv", "source", "path"),
    ]
    assert ("raw/a", "declared", "depends_on: a") in reasons(lake, "raw/c")
    assert reasons(lake, "clean/d") == [("raw/b", "lineage", "reads lake/raw/b")]


def test_tables_of_a_sql_file_are_upstream(lake):
    lake.flow("a")
    (lake.root / "joined.sql").write_text("select * from a join elsewhere using (id)")
    lake.flow(
        "joined",
        stage="clean",
        source={"connection_name": "raw", "table": None, "query": "joined.sql"},
    )
    assert upstream(lake, "clean/joined") == ["raw/a", "raw/elsewhere"]


def test_a_bucket_waits_for_the_next_lower_one_alone(lake):
    for order in (0, 1, 2):
        for name in "ab":
            lake.flow(f"{name}{order}", group_number=1, execution_order=order)
    assert upstream(lake, "raw/a2") == ["landing/a2.csv", "raw/a1", "raw/b1"]


def test_an_inactive_bucket_does_not_break_the_order(lake):
    lake.flow("a", group_number=1, execution_order=0)
    lake.flow("b", group_number=1, execution_order=1, is_active=False)
    lake.flow("c", group_number=1, execution_order=2)
    assert upstream(lake, "raw/c") == ["landing/c.csv", "raw/a"]


def test_an_inactive_dataflow_stays_in_the_graph_without_a_step(lake):
    lake.flow("a", is_active=False)
    lake.flow("b", stage="clean", source={"connection_name": "raw", "table": "a"})
    graph = lake.definitions.resolve_asset_graph()
    assert upstream(lake, "clean/b") == ["raw/a"]
    assert not graph.get(dg.AssetKey(["raw", "a"])).is_materializable
    assert "not loaded: inactive" in lake.spec("raw/a").description
    assert lake.definitions.resolve_job_def("clean")
    assert {one.name for one in lake.definitions.jobs} == {"clean", "clean_incremental"}


def test_a_source_in_folders_has_a_key_of_its_folders(lake):
    lake.flow("a", source={"schema_name": "2024//q1", "table": "a.b.csv"})
    assert upstream(lake, "raw/a") == ["landing/2024/q1/a.b.csv"]
    spec = lake.spec("landing/2024/q1/a.b.csv")
    assert spec.kinds == {"csv"}
    assert spec.group_name == "landing"
    assert not lake.definitions.resolve_asset_graph().get(spec.key).is_materializable


def test_a_connection_named_like_a_stage_does_not_make_an_asset_its_own_source(lake):
    lake.connect("crm", "csv", "crm")
    lake.connect("out", "delta", "out")
    lake.flow(
        "a",
        stage="crm",
        source={"connection_name": "crm", "table": "a"},
        destination={"connection_name": "out"},
    )
    assert upstream(lake, "crm/a") == ["source/crm/a"]
    assert lake.definitions.resolve_asset_graph()


def test_what_depends_on_a_dataflow_follows_a_translated_key(lake):
    class Prefixed(DagsterDataCoolieTranslator):
        def get_asset_spec(self, data):
            spec = super().get_asset_spec(data)
            return spec.replace_attributes(key=spec.key.with_prefix("lake"), group_name="all")

    lake.flow("a")
    lake.flow("b", stage="clean", source={"connection_name": "raw", "table": "a"})
    lake.arguments["translator"] = Prefixed()
    assert upstream(lake, "lake/clean/b") == ["lake/raw/a"]
    assert lake.spec("lake/clean/b").group_name == "all"


def test_shards_are_tags(lake):
    from datacoolie_core.run.config import DataCoolieRunConfig

    lake.arguments["run_config"] = DataCoolieRunConfig(job_num=4)
    lake.flow("a", dataflow_id="abc")
    lake.flow("b", dataflow_id="flow-1")
    lake.flow("c", group_number=6)
    assert [lake.spec(f"raw/{n}").tags["datacoolie/shard"] for n in "abc"] == ["2", "3", "2"]


def test_what_dagster_would_refuse_is_said_at_once(lake):
    lake.flow("c", options={"owners": ["ana", "team:x"]})
    lake.flow("d", options={"cron": "99 * * * *", "automation": "on_cron"})
    with pytest.raises(MetadataError) as caught:
        _ = lake.definitions
    text = str(caught.value)
    assert "dataflow 'raw/c', configure.datacoolie.owners: 'ana' is no owner" in text
    assert "'99 * * * *' in 'UTC'" in text
    assert len(caught.value.problems) == 2


def test_two_dataflows_with_one_key_are_an_error_that_names_both(lake):
    class Flat(DagsterDataCoolieTranslator):
        def get_asset_spec(self, data):
            return super().get_asset_spec(data).replace_attributes(key="everything")

    lake.flow("a")
    lake.flow("b")
    lake.arguments["translator"] = Flat()
    with pytest.raises(MetadataError, match=r"'raw/b \[raw/b\]'.*everything.*'raw/a' \[raw/a\]"):
        _ = lake.definitions


def test_odd_names_become_names_that_dagster_takes(lake):
    lake.connect("stage", "delta", "lake/odd")
    for name in ("größe", "grösse", "a b", "a_b"):
        lake.flow(name, stage="übung 1", destination={"connection_name": "stage"})
    definitions = lake.definitions
    group = lake.spec("übung 1/a b").group_name
    assert re.fullmatch(r"_bung_1_[0-9a-f]{8}", group)
    assert {job.name for job in definitions.jobs} == {group, f"{group}_incremental"}
    dg.Definitions.validate_loadable(definitions)


def test_definitions_hold_no_path_of_this_machine(lake):
    lake.flow("a")
    lake.events_flow()
    specs = lake.definitions.resolve_all_asset_specs()
    assert len(specs) == 4
    assert str(lake.root) not in repr(specs)


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_safe_names_are_valid_and_keep_things_apart(one, other):
    letters = set(string.ascii_letters + string.digits + "_")
    assert set(safe_name(one, one)) <= letters
    assert set(safe_tag(one)) <= letters | set(".-")
    assert len(safe_tag(one)) <= 63
    if one != other:
        assert safe_tag(one) != safe_tag(other)
        assert safe_name(one, one) != safe_name(other, other)


FLOWS = st.lists(
    st.tuples(st.sampled_from([None, 0, 1]), st.integers(-2, 2), st.booleans()), max_size=9
)


@settings(max_examples=40, deadline=None)
@given(FLOWS)
def test_dagster_starts_nothing_before_what_its_order_waits_for(flows):
    made = [
        {
            "name": f"f{index}",
            "group_number": group,
            "execution_order": order,
            "is_active": active,
            "source": {"connection_name": "in", "table": f"f{index}"},
            "destination": {"connection_name": "out", "table": f"f{index}"},
        }
        for index, (group, order, active) in enumerate(flows)
    ]
    ends = [{"name": "in", "format": "csv"}, {"name": "out", "format": "delta"}]
    for end in ends:
        end["configure"] = {"base_path": end["name"]}
    metadata = metadata_from_documents([("x", {"connections": ends, "dataflows": made})])
    graph = build_datacoolie_definitions(metadata, project_dir=".").resolve_asset_graph()
    for index, (group, order, active) in enumerate(flows):
        if group is None or not active:
            continue
        ancestors = graph.get_ancestor_asset_keys(dg.AssetKey([f"f{index}"]))
        for other, (its_group, its_order, its_active) in enumerate(flows):
            if its_group == group and its_active and its_order < order:
                assert dg.AssetKey([f"f{other}"]) in ancestors
