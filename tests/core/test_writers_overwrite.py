"""Overwrite and full load: one commit puts the batch in the place of everything."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from deltalake import write_deltalake

from datacoolie_core.errors import WriteError


@pytest.mark.parametrize("load_type", ["overwrite", "full_load"])
def test_everything_is_replaced_in_one_commit(lake, load_type):
    lake.load(pl.DataFrame({"id": [1, 2, 3]}), load_type)
    result = lake.load(pl.DataFrame({"id": [9]}), load_type)

    assert lake.rows() == [(9,)]
    assert (result.table_version, result.table_rows) == (1, 1)
    assert (result.rows_inserted, result.rows_deleted) == (1, 3)
    assert (result.files_added, result.files_removed) == (1, 1)
    assert result.bytes_removed > 0


def test_columns_and_types_follow_the_batch(lake):
    lake.load(pl.DataFrame({"id": [1], "gone": ["x"]}), "overwrite")
    result = lake.load(pl.DataFrame({"id": ["a"], "new": [1.5]}), "overwrite")

    assert lake.rows("id", "new") == [("a", 1.5)]
    assert result.schema == {"id": "string", "new": "double"}
    assert [field.name for field in lake.table.schema().fields] == ["id", "new"]


def test_a_first_timestamp_without_a_zone_keeps_the_table_readable(lake):
    """The bare write transaction leaves a table that no one can open any more."""
    lake.load(pl.DataFrame({"id": [1]}), "overwrite")
    lake.load(pl.DataFrame({"t": [datetime(2026, 1, 1)]}), "overwrite")
    lake.load(pl.DataFrame({"s": [{"t": [datetime(2026, 1, 1)]}]}), "overwrite")

    assert lake.rows() == [({"t": [datetime(2026, 1, 1)]},)]
    assert "timestampNtz" in (lake.table.protocol().reader_features or [])


def test_partition_columns_may_change(lake):
    frame = pl.DataFrame({"id": [1, 2], "p": ["x", "y"], "q": [1, 2]})
    lake.load(frame, "overwrite", partition_by=("p",))
    table_id = lake.table.metadata().id
    result = lake.load(frame, "overwrite", partition_by=("q",))

    assert lake.table.metadata().partition_columns == ["q"]
    assert lake.table.metadata().id == table_id
    assert lake.rows("id", "p", "q") == [(1, "x", 1), (2, "y", 2)]
    assert result.committed
    assert lake.sequence() == 2
    assert lake.table.history(1)[0]["datacoolie"]["sequence"] == 2
    lake.load(frame.drop("p"), "overwrite")
    assert lake.table.metadata().partition_columns == ["q"]
    lake.load(frame.drop("q"), "overwrite")
    assert lake.table.metadata().partition_columns == []
    assert lake.rows("id", "p") == [(1, "x"), (2, "y")]
    assert not [name for name in lake.files() if "run-2" in name or "run-4" in name]


def test_an_emptied_source_empties_the_table(lake):
    """W27: the pipeline decides, the writer obeys."""
    lake.load(pl.DataFrame({"id": [1, 2]}), "overwrite")
    empty = pl.DataFrame(schema={"id": pl.Int64})

    assert not lake.load(empty, "overwrite", commit=False).committed
    assert lake.rows() == [(1,), (2,)]

    result = lake.load(empty, "overwrite")
    assert (result.committed, result.rows_deleted, result.table_rows) == (True, 2, 0)
    assert lake.rows() == []

    assert not lake.load(empty, "overwrite").committed
    assert lake.load(empty, "overwrite", required=True).committed


def test_table_properties_and_id_survive(lake):
    write_deltalake(
        lake.uri,
        pl.DataFrame({"id": [1]}),
        configuration={"delta.logRetentionDuration": "interval 60 days"},
    )
    before = lake.table.metadata()
    lake.load(pl.DataFrame({"x": ["a"]}), "overwrite")

    after = lake.table.metadata()
    assert (after.id, after.configuration) == (before.id, before.configuration)


def test_an_append_only_table_is_not_overwritten(lake):
    write_deltalake(lake.uri, pl.DataFrame({"id": [1]}), configuration={"delta.appendOnly": "true"})
    with pytest.raises(WriteError, match=r"append only \(delta.appendOnly\)") as raised:
        lake.load(pl.DataFrame({"id": [2]}), "overwrite")
    assert raised.value.code == "append_only_table"
    assert lake.files() == lake.live()

    lake.load(pl.DataFrame({"id": [2]}))
    assert lake.rows() == [(1,), (2,)]


def test_a_full_refresh_of_an_append_replaces_everything(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    result = lake.load(pl.DataFrame({"id": ["x"]}), mode="replace_all")

    assert lake.rows() == [("x",)]
    assert result.info["load_type"] == "append"
