"""Others write at the same time, processes die, stores answer late: no row is lost, none doubled."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections import Counter

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import commit as committing
from datacoolie_core.writers.request import SupersededError


def once(action):
    """Do something at the first ``committing``."""
    done = []

    def reached(phase):
        if phase == "committing" and not done:
            done.append(1)
            action()

    return reached


def others_append(lake, values):
    return lambda: write_deltalake(lake.uri, values, mode="append")


def test_a_merge_sees_a_key_that_another_writer_added_meanwhile(lake):
    """q-two-merges-same-key: a bare transaction would let both in."""
    lake.merge(pl.DataFrame({"id": [1], "v": ["0"]}))
    other = others_append(lake, pl.DataFrame({"id": [2], "v": ["a"]}))
    result = lake.merge(pl.DataFrame({"id": [1, 2], "v": ["b", "b"]}), on_phase=once(other))

    assert lake.rows() == [(1, "b"), (2, "b")]
    assert (result.rows_updated, result.rows_inserted) == (2, 0)
    assert lake.asked == [1, 2]
    assert len(lake.slept) == 1
    assert lake.files() == lake.live() | {name for name in lake.files() if "run-1" in name} | {
        name for name in lake.files() if name.startswith("part-00000")
    }


def test_the_frame_is_consumed_once_whatever_happens(lake):
    lake.merge(pl.DataFrame({"id": [1], "v": [0]}))
    passes = []

    def count(frame):
        passes.append(frame.height)
        return frame

    frame = pl.LazyFrame({"id": [1], "v": [1]}).map_batches(count, streamable=True)
    request = lake.request(dataflow_of(), sequence=2)
    other = others_append(lake, pl.DataFrame({"id": [5], "v": [5]}))
    lake.write(request, frame, on_phase=once(other))
    assert sum(passes) == 1
    assert lake.rows() == [(1, 1), (5, 5)]


def dataflow_of(load_type="merge_upsert", keys=("id",)):
    from datacoolie_core.metadata.models import Connection, Dataflow, Destination, Source

    lake = Connection(name="lake", connection_type="lakehouse", format="delta")
    return Dataflow(
        name="flow",
        dataflow_id="flow",
        source=Source(connection=lake, table="t"),
        destination=Destination(connection=lake, table="t", load_type=load_type, merge_keys=keys),
    )


def test_an_overwrite_really_replaces_everything(lake):
    """q-append-computed-from-old-version: a stale overwrite kept the other writer's row."""
    lake.load(pl.DataFrame({"id": [1]}), "overwrite")
    other = others_append(lake, pl.DataFrame({"id": [5]}))
    lake.load(pl.DataFrame({"id": [6]}), "overwrite", on_phase=once(other))
    assert lake.rows() == [(6,)]


def test_an_append_beside_an_append_needs_no_second_try(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    other = others_append(lake, pl.DataFrame({"id": [2]}))
    result = lake.load(pl.DataFrame({"id": [3]}), on_phase=once(other))

    assert lake.rows() == [(1,), (2,), (3,)]
    assert (result.table_version, lake.slept) == (2, [])
    assert result.table_rows is None


def test_an_append_beside_an_overwrite_comes_after_it(lake):
    lake.load(pl.DataFrame({"id": [1]}))

    def other():
        write_deltalake(lake.uri, pl.DataFrame({"id": [2]}), mode="overwrite")

    lake.load(pl.DataFrame({"id": [3]}), on_phase=once(other))
    assert lake.rows() == [(2,), (3,)]
    assert lake.files() >= lake.live()


def test_a_merge_that_loses_against_compaction_is_redone(lake):
    """maint-compact-while-loading."""
    for n in range(3):
        lake.load(pl.DataFrame({"id": [n], "v": [0]}))
    result = lake.merge(
        pl.DataFrame({"id": [1, 9], "v": [1, 1]}),
        on_phase=once(lambda: lake.table.optimize.compact()),
    )
    assert lake.rows() == [(0, 0), (1, 1), (2, 0), (9, 1)]
    assert result.table_rows == 4


@pytest.mark.parametrize("load_type", ["append", "overwrite", "merge_upsert"])
def test_a_lost_race_to_create_the_table_goes_on_as_a_write(lake, load_type):
    """W38 to W41."""
    other = lambda: write_deltalake(lake.uri, pl.DataFrame({"id": [1], "v": [0]}))  # noqa: E731
    keys = ("id",) if load_type == "merge_upsert" else ()
    lake.load(pl.DataFrame({"id": [1], "v": [1]}), load_type, keys=keys, on_phase=once(other))

    expected = {"append": [(1, 0), (1, 1)], "overwrite": [(1, 1)], "merge_upsert": [(1, 1)]}
    assert lake.rows() == expected[load_type]


def test_a_run_of_the_same_dataflow_meanwhile_supersedes_this_one(lake):
    """W42: the other run's commit of the same sequence has other rows."""
    lake.load(pl.DataFrame({"id": [1]}))

    def other():
        lake.load(pl.DataFrame({"id": [2]}), run_id="other-run")

    with pytest.raises(SupersededError):
        lake.load(pl.DataFrame({"id": [2], "v": [5]}), on_phase=once(other))
    assert lake.rows("id") == [(1,), (2,)]
    assert lake.files() == lake.live()


def test_ten_lost_races_end_in_an_error_that_names_the_winner(lake):
    lake.merge(pl.DataFrame({"id": [1], "v": [0]}))

    def other(phase):
        if phase == "committing":
            lake_rows = pl.DataFrame({"id": [99], "v": [0]})
            write_deltalake(lake.uri, lake_rows, mode="append")

    with pytest.raises(WriteError) as raised:
        lake.merge(pl.DataFrame({"id": [1], "v": [1]}), on_phase=other)

    assert raised.value.code == "commit_conflict"
    assert raised.value.retryable
    assert "10 tries lost" in str(raised.value)
    assert "version 10: WRITE (Append)" in str(raised.value)
    assert len(lake.slept) == 9
    assert all(0 < wait <= 3 for wait in lake.slept)
    assert len(set(lake.slept)) > 1
    assert lake.files() == lake.live()


def test_a_column_that_two_writers_add_at_once_is_added_once(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    other = others_append_with_schema(lake, pl.DataFrame({"id": [2], "new": ["a"]}))
    reached = []

    def at_staged(phase):
        if phase == "staged" and not reached:
            reached.append(1)
            other()

    lake.load(pl.DataFrame({"id": [3], "new": ["b"]}), on_phase=at_staged)
    assert lake.rows() == [(1, None), (2, "a"), (3, "b")]


def others_append_with_schema(lake, values):
    return lambda: write_deltalake(lake.uri, values, mode="append", schema_mode="merge")


def test_a_type_that_another_writer_changed_meanwhile_is_an_error_to_try_again(lake):
    lake.load(pl.DataFrame({"id": [1], "v": [1]}))

    def other():
        write_deltalake(
            lake.uri,
            pl.DataFrame({"id": [1], "v": ["x"]}),
            mode="overwrite",
            schema_mode="overwrite",
        )

    with pytest.raises(WriteError, match="'v' became string") as raised:
        lake.load(pl.DataFrame({"id": [2], "v": [2]}), on_phase=once(other))
    assert raised.value.retryable
    assert lake.files() >= lake.live()


@pytest.mark.parametrize("load_type", ["append", "overwrite", "merge_upsert"])
def test_a_commit_that_was_made_though_it_failed_counts(lake, monkeypatch, load_type):
    """retry-append-twice: the client times out after the commit."""
    keys = ("id",) if load_type == "merge_upsert" else ()
    lake.load(pl.DataFrame({"id": [1]}), load_type, keys=keys)
    submit = committing._submit

    def late(*given):
        submit(*given)
        raise OSError("operation timed out")

    monkeypatch.setattr(committing, "_submit", late)
    result = lake.load(pl.DataFrame({"id": [2]}), load_type, keys=keys)

    assert (result.committed, result.table_version) == (True, 1)
    assert (2,) in lake.rows()
    assert lake.live() <= lake.files()


def test_a_commit_that_failed_for_sure_leaves_nothing(lake, monkeypatch):
    lake.load(pl.DataFrame({"id": [1]}))

    def broken(*given):
        raise OSError("no space left on device")

    monkeypatch.setattr(committing, "_submit", broken)
    with pytest.raises(WriteError, match="no space left on device") as raised:
        lake.load(pl.DataFrame({"id": [2]}))

    assert (raised.value.code, raised.value.retryable) == ("commit_failed", True)
    assert lake.files() == lake.live()


def test_new_files_stay_if_nobody_can_say_whether_they_were_committed(lake, monkeypatch):
    from datacoolie_core.errors import StorageError

    lake.load(pl.DataFrame({"id": [1]}))

    def blind(*given):
        raise OSError("connection reset")

    def unreadable(*given):
        raise StorageError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr(committing, "_submit", blind)
        patch.setattr(committing, "entries_after", unreadable)
        with pytest.raises(WriteError) as raised:
            lake.load(pl.DataFrame({"id": [2]}))
    assert (raised.value.code, raised.value.retryable) == ("commit_unknown", True)
    assert len(lake.files()) == 2


def test_the_committing_handle_is_the_one_that_is_checked(lake):
    """Our own column change and a run of the same dataflow between look and commit."""
    lake.load(pl.DataFrame({"id": [1]}))
    reached = []

    def at_staged(phase):
        if phase == "staged" and not reached:
            reached.append(1)
            lake.load(pl.DataFrame({"id": [2]}), run_id="other")

    with pytest.raises(SupersededError):
        lake.load(pl.DataFrame({"id": [2], "new": [1]}), on_phase=at_staged)
    assert lake.rows("id") == [(1,), (2,)]


def worker(path, load_type, number, loads, results):
    from pathlib import Path

    import polars as pl

    from datacoolie_core import clock
    from datacoolie_core.writers import delta
    from datacoolie_core.writers.request import Commit, WriteRequest

    flow = dataflow_of(load_type, ("id",) if load_type == "merge_upsert" else ())

    def always_commit(_rows):
        return Commit({}, required=True)

    flow = flow.model_copy(update={"dataflow_id": f"flow-{number}"})
    for turn in range(loads):
        rows = list(range(20)) if load_type == "merge_upsert" else [number * 1000 + turn]
        frame = pl.LazyFrame({"id": rows, "by": [number] * len(rows)})
        request = WriteRequest(
            dataflow=flow,
            uri=str(Path(path)),
            sequence=turn + 1,
            run_id=f"{number}-{turn}",
            expected_sequence=turn or None,
        )
        try:
            delta.write(request, frame, always_commit, lambda _: None, sleep=clock.sleep)
        except Exception as error:  # noqa: BLE001 - the test shows it
            results.put(repr(error))
            return
    results.put("done")


def run_together(path, load_type, workers, loads):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=worker, args=(str(path), load_type, n, loads, results))
        for n in range(workers)
    ]
    for process in processes:
        process.start()
    told = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert told == ["done"] * workers


def test_processes_that_append_at_once_lose_and_double_nothing(lake):
    """q-parallel-appends, W41: the table does not exist at the start."""
    lake.path.parent.mkdir(parents=True)
    run_together(lake.path, "append", 3, 5)
    assert lake.rows("id") == sorted((n * 1000 + turn,) for n in range(3) for turn in range(5))
    assert lake.files() == lake.live()


def test_processes_that_merge_the_same_keys_at_once_leave_one_row_per_key(lake):
    """W39, q-two-merges-same-key."""
    lake.path.parent.mkdir(parents=True)
    run_together(lake.path, "merge_upsert", 3, 3)
    counted = Counter(lake.rows("id"))
    assert counted == {(n,): 1 for n in range(20)}
    assert len({row[0] for row in lake.rows("by")}) == 1


def dying(path, phase):
    import polars as pl

    from datacoolie_core.writers import delta
    from datacoolie_core.writers.request import Commit, WriteRequest

    def reached(now):
        if now == phase:
            os.kill(os.getpid(), signal.SIGKILL)

    request = WriteRequest(
        dataflow=dataflow_of(), uri=path, sequence=2, run_id="dying", expected_sequence=1
    )
    frame = pl.LazyFrame({"id": [1, 2], "v": [1, 1]})
    delta.write(request, frame, lambda _: Commit({}), reached)


@pytest.mark.parametrize(
    ("phase", "sequence", "rows"),
    [
        ("staging", 1, [(1, 0)]),
        ("staged", 1, [(1, 0)]),
        ("committing", 1, [(1, 0)]),
        ("committed", 2, [(1, 1), (2, 1)]),
    ],
)
def test_a_killed_process_leaves_all_or_nothing(lake, phase, sequence, rows):
    lake.merge(pl.DataFrame({"id": [1], "v": [0]}))
    process = multiprocessing.get_context("spawn").Process(target=dying, args=(lake.uri, phase))
    process.start()
    process.join(60)

    assert process.exitcode == -signal.SIGKILL
    assert DeltaTable(lake.uri).transaction_version("flow") == sequence
    assert lake.rows() == rows
    lake.merge(pl.DataFrame({"id": [1, 2], "v": [1, 1]}), required=True)
    assert lake.rows() == [(1, 1), (2, 1)]


def test_a_table_that_was_made_anew_while_the_batch_was_staged_is_opened_anew(lake):
    for n in range(3):
        lake.load(pl.DataFrame({"id": [n]}))

    def other(phase):
        if phase == "staging":
            shutil.rmtree(lake.path)
            write_deltalake(lake.uri, pl.DataFrame({"id": [7]}))

    with pytest.raises(SupersededError, match="sequence None"):
        lake.load(pl.DataFrame({"id": [8]}), on_phase=other)
    assert lake.rows() == [(7,)]
    assert lake.table.version() == 0
