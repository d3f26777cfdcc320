"""What people get to read when their metadata is wrong: all of it, at once, with a remedy."""

from __future__ import annotations

import json

import pytest
from inline_snapshot import snapshot

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.loader import load_metadata, metadata_from_documents

CONNECTIONS = [
    {"name": "files", "format": "csv", "configure": {"base_path": "in"}},
    {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
]


def flow(name="orders", *, source=None, destination=None, **more):
    return {
        "name": name,
        "source": {"connection_name": "files", "table": name, **(source or {})},
        "destination": {"connection_name": "lake", "table": name, **(destination or {})},
        **more,
    }


def load(*flows, connections=(), schema_hints=(), **options):
    document = {
        "connections": [*CONNECTIONS, *connections],
        "dataflows": list(flows),
        "schema_hints": list(schema_hints),
    }
    return metadata_from_documents([("shop.json", document)], **options)


def problems(*flows, **options):
    """Return the text of every problem, one for each line."""
    with pytest.raises(MetadataError) as caught:
        load(*flows, **options)
    return [str(problem) for problem in caught.value.problems]


def test_ten_different_mistakes_in_a_file_are_told_in_one_go(tmp_path):
    (tmp_path / "shop.yaml").write_text(
        """
connections:
  - {name: files, format: csv, configure: {base_path: in}}
  - {name: lake, format: delta, configure: {base_path: lake}}
  - {name: pages, connection_type: lakehouse, format: csv, configure: {base_path: pages}}
dataflows:
  - name: customers
    stage: bronze
    source: {connection_name: filse, table: customers}
    destination: {connection_name: lake, table: customers, load_type: upsert}
  - name: orders
    stage: bronze
    group_number: "1"
    is_active: "false"
    source: {connection_name: files, table: orders, watermark_column: changed_at}
    destination: {connection_name: lake, table: orders, load_type: merge_upsert, merge_key: id}
  - name: items
    source: {connection_name: files, table: items, filter_expression: "amount >"}
    destination: {connection_name: files, table: items, load_type: scd2, merge_keys: id}
    transform:
      schema_hints: [{column_name: amount, data_type: DECIML}]
"""
    )
    with pytest.raises(MetadataError) as caught:
        load_metadata(["shop.yaml"], project_dir=str(tmp_path))
    assert str(caught.value) == snapshot("""\
10 problems in the metadata
  shop.yaml:5: connection 'pages', format: connection_type lakehouse goes with format delta, iceberg; 'csv' does not fit.
  shop.yaml:9: dataflow 'bronze/customers', source.connection_name: no connection 'filse'. Did you mean 'files'?
  shop.yaml:10: dataflow 'bronze/customers', destination.load_type: expected one of append, overwrite, full_load, merge_upsert, merge_overwrite, scd2, got text 'upsert'. Did you mean 'merge_upsert'?
  shop.yaml:13: dataflow 'bronze/orders', group_number: expected a whole number, got text '1'; write it without quotes.
  shop.yaml:14: dataflow 'bronze/orders', is_active: expected true or false, got text 'false'; write it without quotes.
  shop.yaml:15: dataflow 'bronze/orders', source.watermark_column: unknown key 'watermark_column'. Did you mean 'watermark_columns'?
  shop.yaml:16: dataflow 'bronze/orders', destination.merge_key: unknown key 'merge_key'. Did you mean 'merge_keys'?
  shop.yaml:19: dataflow 'items', destination.load_type: csv can't do scd2, only append, overwrite, full_load.
  shop.yaml:18: dataflow 'items', source.filter_expression: 'amount >' is not a SQL expression.
  shop.yaml:21: dataflow 'items', transform.schema_hints[0].data_type: column 'amount': unknown type 'DECIML'. Did you mean 'decimal'?\
""")


def test_mistakes_side_by_side_in_one_dataflow_are_all_found():
    """A broken field hides neither its neighbours nor the rules that span other fields."""
    found = problems(
        flow(
            group_number="1",
            source={"query": "SELECT 1", "lookback": 3},
            destination={
                "load_type": "merge_overwrite",
                "configure": {"replace_by_watermark": True},
            },
            transform={
                "select_columns": ["id"],
                "drop_columns": ["x"],
                "value_rules": [{"operation": "case", "columns": ["a"]}, {"operation": "trim"}],
            },
            processing_mode="streaming",
        )
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', group_number: expected a whole number, got text '1'; write it without quotes.",
            "shop.json: dataflow 'orders', source.lookback: unknown key 'lookback'; a look-back is source.configure.backward: {days: 3}.",
            "shop.json: dataflow 'orders', transform.value_rules[1].columns: it is required.",
            "shop.json: dataflow 'orders', processing_mode: streaming can't be run; every dataflow is loaded in batches. Did you mean 'batch'?",
            "shop.json: dataflow 'orders', source.query: only database and lakehouse connections take it, this one is file.",
            "shop.json: dataflow 'orders', destination.merge_keys: load_type merge_overwrite needs them.",
            "shop.json: dataflow 'orders', destination.configure.replace_by_watermark: it needs a look-back: set source.configure.backward.",
            "shop.json: dataflow 'orders', transform.drop_columns: give select_columns or drop_columns, not both.",
            "shop.json: dataflow 'orders', transform.value_rules[0].mode: operation case needs it.",
        ]
    )


def test_unknown_keys_are_errors():
    """W48: a misspelt key must not be ignored."""
    found = problems(
        flow(
            source={"watermark_column": "changed_at", "filter": "amount > 0"},
            destination={"merge_key": "id"},
        )
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', source.watermark_column: unknown key 'watermark_column'. Did you mean 'watermark_columns'?",
            "shop.json: dataflow 'orders', source.filter: unknown key 'filter'. Did you mean 'filter_expression'?",
            "shop.json: dataflow 'orders', destination.merge_key: unknown key 'merge_key'. Did you mean 'merge_keys'?",
        ]
    )


def test_a_quoted_false_does_not_run():
    """W49."""
    found = problems(flow(is_active="false"))
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', is_active: expected true or false, got text 'false'; write it without quotes."
        ]
    )


@pytest.mark.parametrize("mode", ["streaming", "microbatch"])
def test_a_processing_mode_that_would_run_as_a_batch_is_refused(mode):
    """W50."""
    (found,) = problems(flow(processing_mode=mode))
    assert f"processing_mode: {mode} can't be run" in found


def test_a_nonsense_processing_mode_is_refused():
    """W50."""
    found = problems(flow(processing_mode="bach"))
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', processing_mode: expected one of batch, microbatch, streaming, got text 'bach'. Did you mean 'batch'?"
        ]
    )


def test_a_load_type_that_does_not_exist_is_found_at_load():
    """W51."""
    found = problems(flow(destination={"load_type": "upsert", "merge_keys": "id"}))
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', destination.load_type: expected one of append, overwrite, full_load, merge_upsert, merge_overwrite, scd2, got text 'upsert'. Did you mean 'merge_upsert'?"
        ]
    )


@pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite", "scd2"])
def test_a_merge_without_keys_is_found_at_load(load_type):
    (found,) = problems(flow(destination={"load_type": load_type}))
    assert f"destination.merge_keys: load_type {load_type} needs them" in found


def test_the_reason_of_a_broken_dataflow_is_told():
    """W54: not "Invalid dataflow definition at index 0", but what is wrong with it."""
    (found,) = problems(flow(transform={"hash_columns": [{"target_column": "h", "columns": []}]}))
    assert found == snapshot(
        "shop.json: dataflow 'orders', transform.hash_columns[0].columns: it needs at least one entry."
    )


def test_a_group_number_in_quotes_names_its_field():
    """W55."""
    found = problems(flow(group_number="1"))
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', group_number: expected a whole number, got text '1'; write it without quotes."
        ]
    )


def test_an_unknown_upstream_names_the_one_that_was_meant():
    """orch-missing-upstream."""
    found = problems(
        flow("customers"), flow(configure={"datacoolie": {"depends_on": ["custmers"]}})
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', configure.datacoolie.depends_on[0]: no dataflow 'custmers'. Did you mean 'customers'?"
        ]
    )


def test_a_look_back_without_a_unit_is_refused():
    """wm-lag-unit-depends-on-data."""
    found = problems(
        flow("a", source={"lookback": 3}),
        flow("b", source={"configure": {"backward": 3}}),
        flow("c", source={"configure": {"datacoolie": {"lookback": 3}}}),
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'a', source.lookback: unknown key 'lookback'; a look-back is source.configure.backward: {days: 3}.",
            "shop.json: dataflow 'b', source.configure.backward: 3 has no unit, write a mapping such as days: 3.",
            "shop.json: dataflow 'c', source.configure.datacoolie.lookback: unknown key 'lookback'; a look-back is source.configure.backward: {days: 3}.",
        ]
    )


def test_a_look_back_misspelt_in_the_open_configure_is_warned_about():
    metadata = load(flow(source={"configure": {"lookback": 3}}))
    assert [str(warning) for warning in metadata.warnings] == snapshot(
        [
            "shop.json: dataflow 'orders', source.configure.lookback: unknown key 'lookback' is passed on as it is. Did you mean 'backward'?"
        ]
    )
    assert metadata.dataflows[0].source.configure.model_extra == {"lookback": 3}


def test_keys_of_ours_in_the_wrong_place_say_where_they_belong():
    found = problems(
        flow("a", depends_on=["b"]),
        flow("b", configure={"datacoolie": {"null_watermark": "include"}}),
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'a', depends_on: unknown key 'depends_on' here; it belongs at configure.datacoolie.depends_on.",
            "shop.json: dataflow 'b', configure.datacoolie.null_watermark: unknown key 'null_watermark' here; it belongs at source.configure.datacoolie.null_watermark.",
        ]
    )


def test_two_dataflows_of_one_name_ask_for_an_id():
    found = problems(flow(stage="bronze"), flow(stage="silver"))
    assert found == snapshot(
        [
            "shop.json: dataflow 'silver/orders', dataflow_id: shop.json has a dataflow of this name too; give one of them a dataflow_id."
        ]
    )


def test_two_dataflows_of_one_stage_and_name_would_be_one_asset():
    found = problems(flow(stage="bronze", dataflow_id="a"), flow(stage="bronze", dataflow_id="b"))
    assert found == snapshot(
        [
            "shop.json: dataflow 'bronze/orders', name: shop.json has a dataflow 'bronze/orders' too; rename one of them."
        ]
    )


def test_dataflows_of_one_name_live_side_by_side_with_ids_of_their_own():
    metadata = load(
        flow(stage="bronze", dataflow_id="bronze/orders"),
        flow(stage="silver", dataflow_id="silver/orders"),
    )
    assert [one.label for one in metadata.dataflows] == ["bronze/orders", "silver/orders"]


def test_an_upstream_name_that_two_dataflows_have_is_ambiguous():
    after = {"datacoolie": {"depends_on": ["orders"]}}
    found = problems(
        flow(stage="bronze", dataflow_id="1"),
        flow(stage="silver", dataflow_id="2"),
        flow("report", configure=after),
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'report', configure.datacoolie.depends_on[0]: 'orders' names 2 dataflows; write stage/name or the id."
        ]
    )


@pytest.mark.parametrize("upstream", ["bronze/orders", "id-1"])
def test_an_upstream_is_named_by_stage_and_name_or_by_id(upstream):
    after = {"datacoolie": {"depends_on": [upstream]}}
    metadata = load(
        flow(stage="bronze", dataflow_id="id-1"),
        flow(stage="silver", dataflow_id="id-2"),
        flow("report", configure=after),
    )
    assert metadata.dataflows[2].options.depends_on == (upstream,)


def test_a_missing_connection_names_the_one_that_was_meant():
    found = problems(flow(source={"connection_name": "Files2"}))
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', source.connection_name: no connection 'Files2'. Did you mean 'files'?"
        ]
    )


def test_two_connections_of_one_name_can_be_told_apart_by_id():
    twin = {
        "name": "files",
        "connection_id": "b",
        "format": "json",
        "configure": {"base_path": "j"},
    }
    found = problems(flow(), connections=[twin])
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', source.connection_name: 'files' is ambiguous, connections in shop.json have that name; give the id."
        ]
    )
    metadata = load(flow(source={"connection_name": "b"}), connections=[twin])
    assert metadata.dataflows[0].source.connection.format == "json"


def test_a_broken_connection_is_told_once_not_for_each_dataflow():
    broken = {"name": "bad", "format": "csvv", "configure": {"base_path": "x"}}
    flows = [flow(name, source={"connection_name": "bad"}) for name in ("a", "b", "c")]
    found = problems(*flows, connections=[broken])
    assert found == snapshot(
        [
            "shop.json: connection 'bad', format: expected one of delta, iceberg, parquet, csv, json, jsonl, avro, excel, sql, api, function, got text 'csvv'. Did you mean 'csv'?"
        ]
    )


def test_connections_that_share_an_id_are_refused():
    twin = {"name": "other", "connection_id": "x", "format": "csv"}
    found = problems(connections=[twin, {**twin, "name": "another"}])
    assert found == snapshot(
        [
            "shop.json: connection 'another', connection_id: the id is also that of connection 'other' in shop.json; ids are unique."
        ]
    )


def test_an_inactive_dataflow_is_validated_too():
    (found,) = problems(flow(is_active=False, destination={"load_type": "nothing"}))
    assert "destination.load_type" in found


def test_lenient_loading_turns_unknown_keys_alone_into_warnings():
    with pytest.raises(MetadataError) as caught:
        load(flow(colour="red", destination={"load_type": "upsert"}), strict=False)
    assert [problem.field for problem in caught.value.problems] == ["destination.load_type"]
    metadata = load(
        flow(colour="red", transform='{"selct_columns": ["id"]}', source={"owner": "me"}),
        strict=False,
    )
    assert [str(warning) for warning in metadata.warnings] == snapshot(
        [
            "shop.json: dataflow 'orders', source.owner: unknown key 'owner', ignored.",
            "shop.json: dataflow 'orders', transform.selct_columns: unknown key 'selct_columns', ignored. Did you mean 'select_columns'?",
            "shop.json: dataflow 'orders', colour: unknown key 'colour', ignored.",
        ]
    )
    assert metadata.dataflows[0].name == "orders"


def test_values_of_a_connection_are_never_shown():
    """A connection's configure can hold passwords."""
    text = "\n".join(
        problems(
            connections=[
                {
                    "name": "db",
                    "format": "sql",
                    "configure": {"database_type": "sqlite", "read_options": "hunter2"},
                },
                {
                    "name": "db2",
                    "format": "sql",
                    "configure": {"use_schema_hint": "hunter2", "base_path": 4711},
                },
            ]
        )
    )
    assert "configure.use_schema_hint" in text
    assert "configure.base_path" in text
    assert "hunter2" not in text
    assert "4711" not in text


class TestQuarantine:
    def test_valid_dataflows_stay_and_broken_ones_stand_beside_them(self):
        metadata = load(
            flow("good"),
            flow("bad", stage="bronze", destination={"load_type": "upsert"}),
            on_invalid="quarantine",
        )
        assert [one.name for one in metadata.dataflows] == ["good"]
        (bad,) = metadata.invalid
        assert (bad.label, bad.stage) == ("bronze/bad", "bronze")
        assert [problem.field for problem in bad.problems] == ["destination.load_type"]

    def test_a_dataflow_of_a_broken_connection_says_why(self):
        broken = {"name": "bad", "format": "csvv"}
        metadata = load(
            flow("a", source={"connection_name": "bad"}),
            flow("b"),
            connections=[broken],
            on_invalid="quarantine",
        )
        assert [one.name for one in metadata.dataflows] == ["b"]
        assert [str(problem) for problem in metadata.invalid[0].problems] == snapshot(
            [
                "shop.json: dataflow 'a', source.connection_name: the connection 'bad' is invalid: format: expected one of delta, iceberg, parquet, csv, json, jsonl, avro, excel, sql, api, function, got text 'csvv'."
            ]
        )
        assert any("connection 'bad'" in str(warning) for warning in metadata.warnings)

    def test_both_dataflows_of_one_id_are_kept_apart(self):
        metadata = load(flow(stage="a"), flow(stage="b"), flow("c"), on_invalid="quarantine")
        assert [one.name for one in metadata.dataflows] == ["c"]
        assert [one.label for one in metadata.invalid] == ["a/orders", "b/orders"]

    def test_one_broken_file_does_not_stop_the_others(self, tmp_path):
        good = {"connections": CONNECTIONS, "dataflows": [flow("good")]}
        (tmp_path / "good.json").write_text(json.dumps(good))
        (tmp_path / "bad.yaml").write_text("dataflows:\n  - name: a: b\n")
        metadata = load_metadata(["."], project_dir=str(tmp_path), on_invalid="quarantine")
        assert [one.name for one in metadata.dataflows] == ["good"]
        (bad,) = metadata.invalid
        assert (bad.label, bad.problems[0].line) == ("bad.yaml", 2)

    def test_an_upstream_that_is_broken_is_still_known(self):
        metadata = load(
            flow("bad", destination={"load_type": "upsert"}),
            flow("good", configure={"datacoolie": {"depends_on": ["bad"]}}),
            on_invalid="quarantine",
        )
        assert [one.name for one in metadata.dataflows] == ["good"]

    def test_a_dataflow_whose_shared_hints_are_broken_is_kept_apart(self):
        group = {
            "connection_name": "files",
            "table_name": "orders",
            "hints": [{"column_name": "a", "data_type": "intt"}],
        }
        metadata = load(flow(), flow("other"), schema_hints=[group], on_invalid="quarantine")
        assert [one.name for one in metadata.dataflows] == ["other"]
        (problem,) = metadata.invalid[0].problems
        assert "its schema hints in shop.json are invalid" in str(problem)
        assert any("unknown type 'intt'" in str(warning) for warning in metadata.warnings)

    def test_hints_that_belong_to_nothing_stand_under_their_file(self):
        lost = {"connection_name": "gone", "table_name": "orders", "hints": []}
        broken = {"connection_name": "files", "hints": []}
        metadata = load(flow(), schema_hints=[lost, broken], on_invalid="quarantine")
        assert [one.name for one in metadata.dataflows] == ["orders"]
        (bad,) = metadata.invalid
        assert bad.label == "shop.json"
        assert [problem.field for problem in bad.problems] == ["connection_name", "table_name"]


def test_a_group_of_hints_must_say_whose_they_are():
    (found,) = problems(schema_hints=[{"table_name": "orders", "hints": []}])
    assert found == snapshot(
        "shop.json: schema_hints 'orders': give connection_name or connection_id."
    )


def test_values_that_are_no_mapping_are_told_by_their_kind():
    found = problems(
        flow(
            source={"configure": [1]},
            destination={"partition_columns": [5], "merge_keys": [["a"]]},
            transform={"rename_columns": {"a": None}, "value_rules": [None]},
            group_number=1.5,
            description={"a": 1},
        ),
        {"name": "x"},
        {"name": "y", "source": 5, "destination": "lake"},
    )
    assert found == snapshot(
        [
            "shop.json: dataflow 'orders', description: expected text, got a mapping.",
            "shop.json: dataflow 'orders', group_number: expected a whole number, got the number 1.5.",
            "shop.json: dataflow 'orders', source.configure: expected a mapping, got a list.",
            "shop.json: dataflow 'orders', destination.merge_keys[0]: expected text, got a list.",
            "shop.json: dataflow 'orders', destination.partition_columns[0]: expected a mapping, got the number 5.",
            "shop.json: dataflow 'orders', transform.rename_columns.a: expected text, got null.",
            "shop.json: dataflow 'orders', transform.value_rules[0]: expected a mapping, got null.",
            "shop.json: dataflow 'x', source: it is required.",
            "shop.json: dataflow 'x', destination: it is required.",
            "shop.json: dataflow 'y', source: expected a mapping, got the number 5.",
            "shop.json: dataflow 'y', destination: expected a mapping, or text that is a JSON object; this text is broken JSON.",
        ]
    )
