"""Which tables are maintained: each once, whoever writes it, and who stands for it."""

from __future__ import annotations

import pytest

from datacoolie_core.errors import SelectionError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.plan.selection import shard_of
from datacoolie_core.plan.targets import maintenance_targets, writing_to


def flows(*given, connections=()):
    """Each given: id, table, and what else the dataflow says."""
    document = {
        "connections": [
            {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
            {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
            {"name": "dot", "format": "delta", "configure": {"base_path": "./lake/"}},
            {"name": "double", "format": "delta", "configure": {"base_path": "lake//"}},
            {"name": "absolute", "format": "delta", "configure": {"base_path": "/p/lake"}},
            {"name": "uri", "format": "delta", "configure": {"base_path": "file:///p/lake"}},
            {"name": "files", "format": "csv", "configure": {"base_path": "out"}},
            {
                "name": "off",
                "format": "delta",
                "is_active": False,
                "configure": {"base_path": "lake"},
            },
            *connections,
        ],
        "dataflows": [
            {
                "name": identifier,
                "dataflow_id": identifier,
                "source": {"connection_name": more.pop("reads", "in"), "table": "t"},
                "destination": {
                    "connection_name": more.pop("through", "lake"),
                    "table": table,
                    **more.pop("destination", {}),
                },
                **more,
            }
            for identifier, table, more in (
                (one[0], one[1], dict(one[2]) if len(one) > 2 else {}) for one in given
            )
        ],
    }
    return metadata_from_documents([("test.json", document)]).dataflows


def told(found):
    return [(one.dataflow.dataflow_id, one.skip_reason) for one in found]


def test_of_several_writers_the_first_by_id_stands_for_the_table():
    found = maintenance_targets(
        flows(("c", "o"), ("a", "o"), ("b", "p"), ("d", "o")), project_dir="/p"
    )
    assert told(found) == [("a", None), ("b", None)]
    assert [one.identity for one in found] == ["/p/lake/o", "/p/lake/p"]


def test_blocked_writers_are_reported_and_never_displace_an_active_one():
    found = maintenance_targets(
        flows(
            ("a", "o", {"is_active": False}),
            ("b", "o", {"through": "off"}),
            ("c", "o"),
            ("d", "o"),
            ("e", "p", {"is_active": False}),
        ),
        project_dir="/p",
    )
    assert told(found) == [
        ("a", "inactive"),
        ("b", "destination connection 'off' is inactive"),
        ("c", None),
        ("e", "inactive"),
    ]


@pytest.mark.parametrize("other", ["dot", "double", "absolute", "uri"])
def test_five_spellings_of_a_place_are_one_table(other):
    """path-same-table-two-spellings."""
    found = maintenance_targets(flows(("a", "o"), ("b", "o", {"through": other})), project_dir="/p")
    assert told(found) == [("a", None)]


def test_flat_files_are_skipped_with_a_reason():
    ((_, reason),) = told(
        maintenance_targets(flows(("a", "o", {"through": "files"})), project_dir="/p")
    )
    assert reason.startswith("format csv: every load clears up its own files")


def test_shards_share_the_tables_by_who_stands_for_them():
    given = [(f"f{n:02}", f"t{n % 7}") for n in range(20)] + [
        (f"g{n}", f"u{n}", {"group_number": n}) for n in range(6)
    ]
    everything = flows(*given)
    whole = maintenance_targets(everything, project_dir="/p")
    parts = [maintenance_targets(everything, project_dir="/p", shard=(4, n)) for n in range(4)]
    assert sorted(one.identity for part in parts for one in part) == sorted(
        one.identity for one in whole
    )
    for index, part in enumerate(parts):
        for one in part:
            flow = one.dataflow
            assert shard_of(flow.dataflow_id, flow.group_number, 4) == index


def test_tables_are_chosen_by_connection_and_by_name():
    everything = flows(
        ("a", "o"),
        ("b", "o", {"through": "absolute", "destination": {"schema_name": "s"}}),
        ("c", "p"),
    )
    names = [one.dataflow_id for one in writing_to(everything, connections=["absolute"])]
    assert names == ["b"]
    assert [one.dataflow_id for one in writing_to(everything, tables=["s.o", "p"])] == ["b", "c"]
    assert [one.dataflow_id for one in writing_to(everything, tables=["o"])] == ["a", "b"]
    assert writing_to(everything, connections=["in"], known=["in"]) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"connections": ["lak"]}, "no connection 'lak'. Did you mean 'lake'?"),
        ({"tables": ["zzz"]}, "no table 'zzz'. There are o."),
    ],
)
def test_an_unknown_name_is_an_error_that_helps(given, message):
    with pytest.raises(SelectionError) as raised:
        writing_to(flows(("a", "o")), **given)
    assert message in str(raised.value)
