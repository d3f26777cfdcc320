"""The forms in which the format's values may be written."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given, strategies as st

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.coercions import to_list
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.metadata.models import Connection, Dataflow, Source

LAKE = Connection(name="lake", format="delta", configure={"base_path": "lake"})


def flow(**parts):
    document = {
        "name": "f",
        "source": {"connection": LAKE, "table": "t", **parts.pop("source", {})},
        "destination": {"connection": LAKE, "table": "o", **parts.pop("destination", {})},
        **parts,
    }
    return Dataflow.model_validate(document)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("id, line_no", ("id", "line_no")),
        ("id", ("id",)),
        (" id ,, ", ("id",)),
        ('["a,b", "c"]', ("a,b", "c")),
        (["Order ID", "x"], ("Order ID", "x")),
        ("", ()),
        ([], ()),
        (None, ()),
    ],
)
def test_lists_of_names_have_four_forms(written, read):
    assert flow(destination={"merge_keys": written}).destination.merge_keys == read


@given(st.lists(st.from_regex(r"[a-z_]{1,8}", fullmatch=True)))
def test_names_survive_being_written_with_commas(names):
    assert to_list(", ".join(names)) == tuple(names)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a, b", [("a", None), ("b", None)]),
        (["a", {"column": "b", "expression": "year(x)"}], [("a", None), ("b", "year(x)")]),
        ({"column": "a"}, [("a", None)]),
        ('{"column": "a", "expression": " "}', [("a", None)]),
        ('[{"column": "a"}, "b"]', [("a", None), ("b", None)]),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_partition_columns_have_three_forms_and_two_places(written, read, inside):
    given_at = {"partition_columns": written}
    loaded = flow(destination={"configure": given_at} if inside else given_at).destination
    assert [(one.column, one.expression) for one in loaded.partition_columns] == read
    assert not loaded.configure.model_extra


def test_partition_columns_at_the_top_win_over_those_in_configure():
    loaded = flow(
        destination={"partition_columns": "a", "configure": {"partition_columns": "b"}}
    ).destination
    assert [one.column for one in loaded.partition_columns] == ["a"]


def test_mappings_may_be_json_text():
    loaded = flow(
        configure='{"datacoolie": {"owners": "ada"}, "mine": 1}',
        transform='{"rename_columns": "{\\"a\\": \\"b\\"}"}',
        source={"configure": " "},
    )
    assert loaded.options.owners == ("ada",)
    assert loaded.configure.model_extra == {"mine": 1}
    assert loaded.transform.rename_columns == {"a": "b"}


def test_null_means_not_given():
    loaded = flow(
        stage=None,
        transform=None,
        configure=None,
        is_active=None,
        destination={"load_type": None, "merge_keys": None, "schema_name": " "},
        source={"configure": {"backward": None, "mine": None}},
    )
    assert (loaded.is_active, loaded.destination.load_type) == (True, "append")
    assert loaded.destination.schema_name is None
    assert loaded.source.configure.model_extra == {"mine": None}


def test_load_type_format_and_mode_are_trimmed_and_lowered():
    loaded = flow(destination={"load_type": " FULL_LOAD "}, processing_mode="Batch")
    assert (loaded.destination.load_type, loaded.processing_mode) == ("full_load", "batch")
    assert Connection(name="x", format=" Delta ").connection_type == "lakehouse"


def test_catalog_and_database_are_lifted_from_configure():
    lifted = Connection(name="x", format="iceberg", configure={"catalog": "c", "database": "d"})
    assert (lifted.catalog, lifted.database) == ("c", "d")
    secret = Connection(
        name="x", format="sql", configure={"database": "KEY"}, secrets_ref={"env:": "database"}
    )
    assert secret.database is None


def test_a_connection_is_named_or_inline():
    inline = {"name": "x", "format": "csv", "configure": {"base_path": "in"}}
    document: ClassVar = {
        "connections": [{"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}],
        "dataflows": [
            {
                "name": name,
                "source": {**connection, "table": "t"},
                "destination": {"connection": "lake", "table": "o"},
            }
            for name, connection in (
                ("a", {"connection": inline}),
                ("b", {"connection": "lake"}),
                ("c", {"connection_name": "lake", "connection": None}),
            )
        ],
    }
    loaded = metadata_from_documents([("m", document)]).dataflows
    assert [one.source.connection.name for one in loaded] == ["x", "lake", "lake"]


def test_extensions_are_free_everywhere():
    free = {"extensions": {"anything": [1, {"a": None}]}}
    loaded = flow(
        **free,
        source={**free, "configure": {"backward": {"days": 1, **free}, "datacoolie": free}},
        destination=free,
        transform={"value_rules": [{"operation": "trim", "columns": "a", **free}], **free},
    )
    assert loaded.extensions == loaded.transform.value_rules[0].extensions == free["extensions"]


@pytest.mark.parametrize(
    ("configure", "connection", "expected"),
    [
        ({"backward": {"days": 3}, "backward_days": 1, "backward_hours": 2}, {}, (3, 2)),
        ({"backward_days": 1}, {"backward": {"days": 5, "hours": 5}}, (1, None)),
        ({}, {"backward": {"hours": 5}}, (None, 5)),
    ],
)
def test_look_back_nests_over_flat_and_the_source_replaces_the_connection(
    configure, connection, expected
):
    place = Connection(name="c", configure={"base_path": "x", **connection})
    found = Source(connection=place, table="t", configure=configure).look_back()
    assert found is not None
    assert (found.days, found.hours) == expected


def test_there_may_be_no_look_back():
    assert flow().source.look_back() is None


class TestTextValues:
    """Excel and databases give text where booleans and numbers are meant."""

    document: ClassVar = {
        "connections": [{"name": "lake", "format": "delta", "configure": {"base_path": "lake"}}],
        "dataflows": [
            {
                "name": "f",
                "is_active": "No",
                "group_number": "7",
                "execution_order": 2.0,
                "source": {"connection_name": "lake", "table": "t"},
                "destination": {"connection_name": "lake", "table": "o", "load_type": "append"},
                "configure": '{"datacoolie": {"retry_delay": "1.5"}}',
            }
        ],
    }

    def test_text_stands_for_values_where_it_must(self):
        (loaded,) = metadata_from_documents([("x", self.document)], text_values=True).dataflows
        assert (loaded.is_active, loaded.group_number, loaded.execution_order) == (False, 7, 2)
        assert loaded.options.retry_delay == 1.5

    def test_and_nowhere_else(self):
        with pytest.raises(MetadataError) as caught:
            metadata_from_documents([("x", self.document)])
        assert {problem.field for problem in caught.value.problems} == {
            "is_active",
            "group_number",
            "execution_order",
            "configure.datacoolie.retry_delay",
        }

    def test_what_is_no_boolean_is_still_refused(self):
        flows = [{**self.document["dataflows"][0], "is_active": "perhaps"}]
        with pytest.raises(MetadataError, match="is_active: expected true or false"):
            metadata_from_documents(
                [("x", {**self.document, "dataflows": flows})], text_values=True
            )
