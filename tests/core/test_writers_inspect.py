"""What a table's log says of a dataflow: the newest load still in effect, and what others did."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.state.destination import DestinationState, ForeignChange
from datacoolie_core.writers import delta, log


def state(lake, dataflow_id="flow"):
    return delta.inspect(lake.uri, dataflow_id)


def test_no_table_and_a_folder_without_one_do_not_exist(lake):
    assert state(lake) == DestinationState()
    lake.path.mkdir(parents=True)
    (lake.path / "note.txt").write_text("hello")
    assert state(lake) == DestinationState()


def test_a_file_in_the_tables_place_is_named(lake):
    lake.path.parent.mkdir(parents=True)
    lake.path.write_text("x")
    with pytest.raises(WriteError, match="a file where the table's folder should be"):
        state(lake)


def test_a_store_that_does_not_answer_may_be_tried_again():
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hidden-value",
        "AWS_REGION": "x",
        "AWS_ALLOW_HTTP": "true",
        "max_retries": "0",
        "retry_timeout": "1s",
    }
    with pytest.raises(WriteError, match="can't be opened") as raised:
        delta.inspect("s3://bucket/t", "flow", options)
    assert (raised.value.code, raised.value.retryable) == ("unreachable", True)
    assert "hidden-value" not in str(raised.value)


def test_a_broken_log_is_not_taken_for_no_table(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    (lake.path / "_delta_log" / f"{0:020}.json").write_text("{nonsense")
    with pytest.raises(WriteError, match="Look at its _delta_log") as raised:
        state(lake)
    assert not raised.value.retryable


def test_the_newest_commit_is_found_by_one_look(lake, monkeypatch):
    for n in range(3):
        result = lake.load(pl.DataFrame({"id": [n]}))
    looks = []
    original = log.read_file
    monkeypatch.setattr(log, "read_file", lambda *a, **k: looks.append(a) or original(*a, **k))

    found = state(lake)
    assert found == DestinationState(
        exists=True,
        table_id=str(lake.table.metadata().id),
        version=2,
        sequence=3,
        commit=result.info,
        commit_version=2,
    )
    assert len(looks) == 1


def test_another_dataflow_knows_nothing_of_it(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    found = state(lake, "other")
    assert (found.exists, found.sequence, found.commit, found.history_lost) == (
        True,
        None,
        None,
        False,
    )


def test_appends_optimize_vacuum_and_metadata_are_no_change(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    write_deltalake(lake.uri, pl.DataFrame({"id": [2]}), mode="append")
    lake.load(pl.DataFrame({"id": [3]}), dataflow_id="other")
    lake.table.optimize.compact()
    lake.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    lake.table.alter.set_table_properties({"delta.appendOnly": "false"})

    found = state(lake)
    assert found.foreign == ()
    assert (found.commit_version, found.version) == (0, lake.table.version())


def test_what_others_take_out_is_listed_newest_first(lake):
    lake.load(pl.DataFrame({"id": [1, 2, 3, 4]}))
    lake.table.delete("id = 1")
    lake.table.update({"id": "9"}, predicate="id = 2")
    source = pl.DataFrame({"id": [3]})
    (
        lake.table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_delete()
        .execute()
    )
    write_deltalake(lake.uri, pl.DataFrame({"id": [5]}), mode="overwrite")
    lake.merge(pl.DataFrame({"id": [5, 6], "v": [1, 1]}), dataflow_id="other")

    found = state(lake)
    assert found.foreign == (
        ForeignChange(6, "merge_upsert", "other"),
        ForeignChange(4, "WRITE (Overwrite)"),
        ForeignChange(3, "MERGE"),
        ForeignChange(2, "UPDATE"),
        ForeignChange(1, "DELETE"),
    )
    assert found.commit_version == 0
    assert not found.rewound


def test_an_overwrite_of_another_dataflow_is_a_change(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    lake.load(pl.DataFrame({"id": [2]}), "overwrite", dataflow_id="other")
    assert state(lake).foreign == (ForeignChange(1, "overwrite", "other"),)


def test_a_restore_takes_our_commits_back(lake):
    for n in range(4):
        lake.load(pl.DataFrame({"id": [n]}))
    lake.table.restore(1)

    found = state(lake)
    assert (found.sequence, found.rewound, found.foreign) == (4, True, ())
    assert (found.commit_version, found.commit["sequence"]) == (1, 2)
    assert lake.rows() == [(0,), (1,)]

    lake.load(pl.DataFrame({"id": [9]}), sequence=5)
    found = state(lake)
    assert (found.commit["sequence"], found.rewound) == (5, False)


def test_a_restore_of_a_restore_is_followed(lake):
    for n in range(3):
        lake.load(pl.DataFrame({"id": [n]}))
    lake.table.restore(0)
    lake.table.delete("id = 0")
    lake.table.restore(2)
    assert state(lake).commit["sequence"] == 3
    assert not state(lake).rewound
    lake.table.restore(3)
    assert state(lake).commit["sequence"] == 1
    lake.table.restore(4)
    assert state(lake).foreign == (ForeignChange(4, "DELETE"),)


def test_a_restore_to_a_moment_is_followed(lake):
    import os

    for n in range(3):
        lake.load(pl.DataFrame({"id": [n]}))
        path = lake.path / "_delta_log" / f"{n:020}.json"
        stamp = 1_700_000_000 + n * 100
        text = path.read_text()
        old = text.split('"timestamp":')[1].split(",")[0]
        path.write_text(text.replace(f'"timestamp":{old}', f'"timestamp":{stamp * 1000}'))
        os.utime(path, (stamp, stamp))
    lake.table.restore(datetime.fromtimestamp(1_700_000_150, UTC))

    assert lake.rows() == [(0,), (1,)]
    assert state(lake).commit["sequence"] == 2


def test_a_restore_to_before_us_leaves_no_commit(lake):
    write_deltalake(lake.uri, pl.DataFrame({"id": [0]}))
    lake.load(pl.DataFrame({"id": [1]}))
    lake.table.restore(0)

    found = state(lake)
    assert (found.sequence, found.commit, found.rewound, found.history_lost) == (
        1,
        None,
        True,
        False,
    )


def test_a_cleaned_log_leaves_only_the_transaction(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    write_deltalake(lake.uri, pl.DataFrame({"id": [2]}), mode="append")
    lake.table.create_checkpoint()
    (lake.path / "_delta_log" / f"{0:020}.json").unlink()

    found = state(lake)
    assert (found.sequence, found.commit, found.history_lost) == (1, None, True)
    assert not found.rewound


def test_a_table_made_anew_knows_nothing(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    table_id = state(lake).table_id
    shutil.rmtree(lake.path)
    write_deltalake(lake.uri, pl.DataFrame({"id": [2]}))

    found = state(lake)
    assert found.table_id != table_id
    assert (found.sequence, found.commit) == (None, None)


def test_an_empty_commit_is_a_commit(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    lake.load(pl.DataFrame(schema={"id": pl.Int64}), required=True)
    assert state(lake).commit["sequence"] == 2
    assert DeltaTable(lake.uri).history(1)[0]["operation"] == "WRITE"
