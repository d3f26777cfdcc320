"""Tables with features of their own: maintained as far as that is safe, else left with a reason."""

from __future__ import annotations

import json

import polars as pl
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake

from datacoolie_core.writers.maintain import operations
from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
from datacoolie_core.writers.tables import Place
from tests.core.test_writers_features import delete_by_vector

ROWS = pl.DataFrame({"id": [1, 2], "v": ["a", "b"]})


def maintained(lake):
    options = MaintainOptions(retention_hours=0, allow_short_retention=True)
    return {name: work(Upkeep(Place(lake.uri), options, "m")) for name, work in operations(options)}


def constraint(lake):
    write_deltalake(lake.uri, ROWS)
    lake.table.alter.add_constraint({"positive": "id > 0"})


def change_feed(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.enableChangeDataFeed": "true"})


def append_only(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.appendOnly": "true"})


def generated_column(lake):
    double = Field("double", "long", metadata={"delta.generationExpression": "id * 2"})
    DeltaTable.create(lake.uri, Schema([Field("id", "long"), Field("v", "string"), double]))
    write_deltalake(lake.uri, ROWS, mode="append", schema_mode="merge")


def not_null(lake):
    DeltaTable.create(lake.uri, Schema([Field("id", "long", nullable=False), Field("v", "string")]))
    write_deltalake(lake.uri, ROWS, mode="append")


def naive_times(lake):
    rows = ROWS.with_columns(at=pl.datetime(2026, 1, 1, time_zone=None))
    write_deltalake(lake.uri, rows)


@pytest.mark.parametrize(
    "make", [constraint, change_feed, append_only, generated_column, not_null, naive_times]
)
def test_what_does_not_hang_on_files_is_maintained_like_any_table(lake, make):
    make(lake)
    write_deltalake(lake.uri, ROWS, mode="append", schema_mode="merge")
    before = lake.rows()
    done = maintained(lake)
    assert {name: one.status for name, one in done.items()} == dict.fromkeys(done, "succeeded")
    assert done["compact"].files_removed == done["vacuum"].files_removed == 2
    assert lake.rows() == before
    assert lake.files() == lake.live()


def test_a_change_feed_shows_no_change_of_a_compaction(lake):
    change_feed(lake)
    write_deltalake(lake.uri, ROWS, mode="append")
    version = lake.table.version()
    maintained(lake)
    changes = pl.DataFrame(lake.table.load_cdf(starting_version=version + 1).read_all())
    assert changes.height == 0


def test_rows_that_are_struck_out_stay_out(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.enableDeletionVectors": "true"})
    delete_by_vector(lake, [0])
    write_deltalake(lake.uri, ROWS, mode="append")
    before = lake.rows()
    done = maintained(lake)
    assert (done["compact"].status, done["compact"].message) == (
        "skipped",
        "the table uses deletion vectors: leave it to the engine that wrote it",
    )
    assert done["vacuum"].files_removed == 0
    assert lake.rows() == before == [(1, "a"), (2, "b"), (2, "b")]


def test_a_table_that_only_may_have_deletion_vectors_is_compacted(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.enableDeletionVectors": "true"})
    write_deltalake(lake.uri, ROWS, mode="append")
    assert maintained(lake)["compact"].files_removed == 2
    assert pl.scan_delta(lake.uri).collect().height == 4


def with_protocol(lake, *features):
    """Claim features of another engine in the table's log."""
    version = lake.table.version() + 1
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", *features],
    }
    lines = [{"commitInfo": {"timestamp": 1, "operation": "SET"}}, {"protocol": protocol}]
    path = lake.path / f"_delta_log/{version:020}.json"
    path.write_text("\n".join(map(json.dumps, lines)))


def test_a_feature_that_nobody_here_knows_keeps_every_file(lake):
    write_deltalake(lake.uri, ROWS)
    write_deltalake(lake.uri, ROWS, mode="overwrite")
    with_protocol(lake, "teleportation")
    before = lake.files()
    done = maintained(lake)
    assert {one.status for one in done.values()} == {"skipped"}
    assert all("teleportation" in one.message for one in done.values())
    assert lake.files() == before


def test_column_mapping_is_left_to_its_engine(lake):
    write_deltalake(lake.uri, ROWS)
    write_deltalake(lake.uri, ROWS, mode="append")
    version = lake.table.version() + 1
    log = lake.path / "_delta_log"
    first = [json.loads(one) for one in (log / f"{0:020}.json").read_text().splitlines()]
    (metadata,) = [one["metaData"] for one in first if "metaData" in one]
    schema = json.loads(metadata["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": field["name"],
        }
    metadata["schemaString"] = json.dumps(schema)
    metadata["configuration"] = {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "2",
    }
    lines = [
        {"commitInfo": {"timestamp": 1, "operation": "SET"}},
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": metadata},
    ]
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)))
    before = lake.files()
    done = maintained(lake)
    assert done["compact"].status == "skipped"
    assert "column mapping" in done["compact"].message
    assert done["vacuum"].status == "succeeded"
    assert lake.files() == before
