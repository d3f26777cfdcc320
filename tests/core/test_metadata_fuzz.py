"""Whatever stands in a metadata file, loading it ends in metadata or in a list of problems."""

from __future__ import annotations

import copy

from hypothesis import given, strategies as st

from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.loader import metadata_from_documents

DOCUMENT = {
    "connections": [
        {
            "name": "files",
            "connection_type": "file",
            "format": "csv",
            "configure": {"base_path": "in", "backward": {"days": 1}, "read_options": {"sep": ";"}},
            "secrets_ref": {"env:": ["base_path"]},
        },
        {"name": "lake", "format": "delta", "configure": {"base_path": "lake", "backward_days": 2}},
    ],
    "dataflows": [
        {
            "name": "orders",
            "stage": "bronze",
            "group_number": 1,
            "source": {
                "connection_name": "files",
                "table": "orders",
                "watermark_columns": ["at"],
                "filter_expression": "amount > 0",
                "configure": {"datacoolie": {"max_watermark": "now + 1d"}, "mine": 1},
            },
            "destination": {
                "connection": {"name": "x", "format": "delta", "configure": {"base_path": "y"}},
                "table": "orders",
                "load_type": "merge_overwrite",
                "merge_keys": ["id"],
                "partition_columns": [{"column": "day", "expression": "date(at)"}],
                "configure": {"replace_by_watermark": True},
            },
            "transform": {
                "schema_hints": [{"column_name": "id", "data_type": "decimal(9,2)", "scale": 2}],
                "select_columns": ["id", "day"],
                "rename_columns": {"a": "b"},
                "value_rules": [
                    {"operation": "regex_replace", "columns": ["a"], "pattern": "[0-9]"},
                    {"operation": "map", "columns": ["a"], "mapping": {"x": "y"}},
                ],
                "hash_columns": [{"target_column": "h", "columns": ["a"]}],
                "masking_rules": [{"method": "partial", "columns": ["a"], "keep_end": 2}],
                "additional_columns": [{"column": "c", "expression": "a + 1"}],
            },
            "configure": {
                "datacoolie": {
                    "depends_on": ["other"],
                    "replay": {"start": "2013-01-01", "chunk_interval": {"months": 1}},
                    "cron": {"cron": "0 6 * * *", "timezone": "UTC"},
                    "freshness": {"warn": "6h"},
                    "checks": [{"name": "c"}],
                }
            },
        },
        {
            "name": "other",
            "source": {"connection_name": "files", "table": "other"},
            "destination": {"connection_name": "lake", "table": "other"},
        },
    ],
    "schema_hints": [
        {
            "connection_name": "files",
            "table_name": "other",
            "hints": [{"column_name": "a", "data_type": "int"}],
        }
    ],
}


def places(value, path=()):
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from places(inner, (*path, key))


PLACES = [path for path in places(DOCUMENT) if path]
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["{", "[", '{"a": 1}', "[1]", "a, b", "\x00", "../..", "lake", "orders", "(", "\\"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
changes = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["set", "drop", "add"]), values), max_size=3
)


def changed(document, path, how, value):
    *outer, last = path
    here = document
    for step in outer:
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(here, dict) and how == "add":
        here[f"{last}s"] = value
    elif isinstance(here, dict) and how == "drop":
        here.pop(last, None)
    elif isinstance(here, dict) or (isinstance(here, list) and last in range(len(here))):
        here[last] = value


def load(document, strict, text_values, on_invalid):
    try:
        return metadata_from_documents(
            [("m", document)], strict=strict, text_values=text_values, on_invalid=on_invalid
        )
    except MetadataError as error:
        return error


@given(changes, st.booleans(), st.booleans(), st.sampled_from(["fail", "quarantine"]))
def test_any_document_loads_or_says_why(several, strict, text_values, on_invalid):
    document = copy.deepcopy(DOCUMENT)
    for change in several:
        changed(document, *change)
    before = copy.deepcopy(document)
    outcome = load(document, strict, text_values, on_invalid)
    if isinstance(outcome, MetadataError):
        assert on_invalid == "fail"
        assert outcome.problems
        assert all(str(problem).startswith("m") for problem in outcome.problems)
    else:
        assert all(one.source.connection.name != "?" for one in outcome.dataflows)
    assert repr(document) == repr(before)


def test_the_document_that_is_changed_is_right_itself():
    loaded = metadata_from_documents([("m", copy.deepcopy(DOCUMENT))])
    assert [str(one) for one in loaded.warnings] == []
    assert loaded.dataflows[1].transform.schema_hints
