"""Compaction: few large files, the same rows, and no race that doubles or loses one."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import threading
from dataclasses import replace

import polars as pl
import pytest
from deltalake import Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, create_table_with_add_actions
from hypothesis import given, settings, strategies as st

from datacoolie_core.errors import WriteError
from datacoolie_core.writers import delta, maintain_compact
from datacoolie_core.writers.maintain_layout import along_curve, bins_of, compact, zorder
from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
from datacoolie_core.writers.tables import LiveFile, Place


def upkeep(lake, **options):
    return Upkeep(Place(lake.uri), MaintainOptions(**options), "m1", sleep=lambda _: None)


def fill(lake, count=4, **options):
    for n in range(count):
        write_deltalake(lake.uri, pl.DataFrame({"id": [n], "v": [0]}), mode="append", **options)


def between(monkeypatch, action):
    """Do something after the new files are written and before they are committed, once."""
    real, done = maintain_compact.with_redo, []

    def redo(*given):
        if not done:
            done.append(1)
            action()
        return real(*given)

    monkeypatch.setattr(maintain_compact, "with_redo", redo)


def a_thousand_files(lake):
    lake.path.mkdir(parents=True)
    rows = pl.DataFrame({"id": [0]})
    adds = []
    for n in range(1000):
        rows.with_columns(id=pl.lit(n)).write_parquet(lake.path / f"{n}.parquet")
        stats = json.dumps({"numRecords": 1})
        size = (lake.path / f"{n}.parquet").stat().st_size
        adds.append(AddAction(f"{n}.parquet", size, {}, n, True, stats))
    schema = Schema([Field("id", PrimitiveType("integer"))])
    create_table_with_add_actions(lake.uri, schema, adds, mode="error", partition_by=[])


def test_a_thousand_small_files_become_one(lake):
    a_thousand_files(lake)
    done = compact(upkeep(lake))
    assert (done.files_removed, done.files_added, len(lake.live())) == (1000, 1, 1)
    assert done.bytes_saved > 0
    assert lake.rows() == [(n,) for n in range(1000)]


def test_a_second_pass_finds_nothing_to_do(lake):
    fill(lake)
    compact(upkeep(lake))
    version = lake.table.version()
    done = compact(upkeep(lake))
    assert (done.status, done.files_removed, lake.table.version()) == ("succeeded", 0, version)


def test_partitions_stay_apart_and_keep_their_odd_values(lake):
    odd = ["a b", "c/ü%", None, "2026-01-01 00:00", "x=y"]
    for n in range(3):
        frame = pl.DataFrame({"id": [n] * 5, "p é": odd})
        lake.load(frame, partition_by=("p é",))
    rows = lake.rows()
    done = compact(upkeep(lake))
    assert (done.files_removed, done.files_added) == (15, 5)
    assert lake.rows() == rows
    assert lake.live() <= lake.files()


def test_older_versions_are_still_there_and_a_restore_works(lake):
    fill(lake, 3)
    compact(upkeep(lake))
    assert pl.scan_delta(lake.uri, version=1).collect().height == 2
    lake.table.restore(1)
    assert lake.rows("id") == [(0,), (1,)]
    assert compact(upkeep(lake)).files_removed == 2
    assert lake.rows("id") == [(0,), (1,)]


def test_new_files_have_statistics_for_the_columns_that_loads_search_by(lake):
    wide = {f"c{n}": [n] for n in range(40)}
    for n in range(2):
        lake.load(pl.DataFrame(wide | {"id": [n]}), "merge_upsert", keys=("id",))
    compact(replace(upkeep(lake), searched=("id",)))
    log = (lake.path / f"_delta_log/{lake.table.version():020}.json").read_text()
    (stats,) = [
        json.loads(json.loads(one)["add"]["stats"]) for one in log.splitlines() if '"add"' in one
    ]
    assert (stats["minValues"]["id"], stats["maxValues"]["id"], stats["numRecords"]) == (0, 1, 2)
    assert stats["minValues"]["c31"] == 31


def test_files_from_before_a_column_was_added_are_put_together_with_newer_ones(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    lake.load(pl.DataFrame({"id": [2], "new": ["a"]}))
    assert compact(upkeep(lake)).files_added == 1
    assert lake.rows() == [(1, None), (2, "a")]


@pytest.mark.parametrize("other", ["compact", "zorder", "ours"])
def test_two_compactions_at_once_double_no_row(lake, monkeypatch, other):
    """delta-rs's OPTIMIZE succeeds beside another one, and every row is there twice."""
    fill(lake)
    actions = {
        "compact": lambda: lake.table.optimize.compact(),
        "zorder": lambda: lake.table.optimize.z_order(["id"]),
        "ours": lambda: compact(upkeep(lake)),
    }
    between(monkeypatch, actions[other])
    done = compact(upkeep(lake))
    assert lake.rows("id") == [(0,), (1,), (2,), (3,)]
    assert (done.status, done.details["groups_lost"], done.files_added) == ("succeeded", 1, 0)
    assert len(lake.live()) == 1


def test_an_append_meanwhile_costs_another_look_but_not_the_work(lake, monkeypatch):
    """maint-compact-while-loading, first half."""
    fill(lake)
    between(monkeypatch, lambda: fill(lake, 1))
    done = compact(upkeep(lake))
    assert (done.files_removed, done.files_added) == (4, 1)
    assert lake.rows("id") == [(0,), (0,), (1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("action", "left"),
    [
        (lambda t: t.delete("id = 1"), [0, 2, 3]),
        (lambda t: t.restore(1), [0, 1]),
        (lambda t: t.alter.add_columns([Field("new", PrimitiveType("long"))]), [0, 1, 2, 3]),
    ],
)
def test_what_others_change_meanwhile_stands(lake, monkeypatch, action, left):
    fill(lake)
    between(monkeypatch, lambda: action(lake.table))
    compact(upkeep(lake))
    assert [row[0] for row in lake.rows("id")] == left
    assert lake.live() <= lake.files()


def test_a_table_that_was_made_anew_meanwhile_is_left_alone(lake, monkeypatch):
    fill(lake)

    def anew():
        shutil.rmtree(lake.path)
        write_deltalake(lake.uri, pl.DataFrame({"id": [9], "v": [0]}))

    between(monkeypatch, anew)
    assert compact(upkeep(lake)).files_added == 0
    assert lake.rows() == [(9, 0)]
    assert lake.files() == lake.live()


def test_files_that_were_not_committed_are_deleted(lake, monkeypatch):
    fill(lake)
    before = lake.files()

    def broken(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(maintain_compact._Rewrite, "_submit", broken)
    with pytest.raises(WriteError, match="no space left"):
        compact(upkeep(lake))
    assert lake.files() == before


def test_a_load_goes_on_from_its_own_commit_below_a_compaction(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    lake.load(pl.DataFrame({"id": [2]}))
    compact(upkeep(lake))
    found = delta.inspect(lake.uri, "flow", {})
    assert (found.sequence, found.commit_version, found.foreign) == (2, 1, ())
    assert found.commit["sequence"] == 2
    assert (found.rewound, found.history_lost) == (False, False)


def test_a_size_is_taken_from_the_options_or_from_the_table(lake):
    fill(lake, 4, configuration={"delta.targetFileSize": "1"})
    assert compact(upkeep(lake)).files_removed == 0
    assert compact(upkeep(lake, target_size=10_000)).files_removed == 4


def test_a_dry_run_changes_nothing_and_says_what_it_would(lake):
    fill(lake)
    done = compact(upkeep(lake, dry_run=True))
    assert (done.status, done.details["files_planned"], lake.table.version()) == ("skipped", 4, 3)
    assert done.message.startswith("dry run: 4 files")


sizes = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 3)), max_size=30)


@given(sizes)
@settings(max_examples=60)
def test_bins_hold_small_neighbours_of_one_partition_and_nothing_else(files):
    live = [
        LiveFile(str(n), True, size, 1, {"p": part}, {}, {}, {})
        for n, (size, part) in enumerate(files)
    ]
    bins = bins_of(live, 100)
    paths = [file.path for one in bins for file in one]
    assert len(paths) == len(set(paths))
    for one in bins:
        assert len(one) > 1
        assert len({file.partition["p"] for file in one}) == 1
        assert sum(file.size for file in one) <= 100
        assert all(file.size < 50 for file in one)


def test_a_z_order_keeps_every_row_and_bounds_both_columns(lake, monkeypatch):
    monkeypatch.setattr("datacoolie_core.writers.staging.ROWS_PER_FILE", 250)
    side = range(32)
    rows = pl.DataFrame([{"x": x, "y": y} for x in side for y in side])
    for part in rows.sample(fraction=1, shuffle=True, seed=1).iter_slices(256):
        write_deltalake(lake.uri, part, mode="append")
    done = zorder(upkeep(lake, zorder_columns=("x", "y")))
    assert done.status == "succeeded"
    assert lake.rows() == rows.sort("x", "y").rows()
    stats = pl.DataFrame(lake.table.get_add_actions(flatten=True))
    hit = stats.filter((pl.col("min.x") <= 3) & (pl.col("min.y") <= 3))
    assert hit.height < stats.height

    version = lake.table.version()
    assert zorder(upkeep(lake, zorder_columns=("x", "y"))).message.startswith("no rows came")
    assert lake.table.version() == version


@pytest.mark.parametrize(
    "values",
    [
        ["b", None, "a"],
        [1.5, float("nan"), None],
        [True, False, None],
        [None, None, None],
        [2**62, -(2**62), 0],
    ],
)
def test_any_plain_column_can_be_z_ordered(values):
    frame = pl.LazyFrame({"k": values, "id": [0, 1, 2]})
    assert sorted(along_curve(frame, ["k", "id"]).collect()["id"]) == [0, 1, 2]
    assert along_curve(frame, ["id"]).collect()["id"].to_list() == [0, 1, 2]


def test_a_z_order_by_an_unknown_column_names_it(lake):
    fill(lake)
    with pytest.raises(WriteError, match="no column 'idd'"):
        zorder(upkeep(lake, zorder_columns=("idd",)))


def keeper(path, turns, told):
    from datacoolie_core.writers.maintain import operations
    from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
    from datacoolie_core.writers.tables import Place

    told.put("ready")
    for turn in range(turns):
        options = MaintainOptions(zorder_columns=("id",) if turn % 3 == 2 else ())
        for name, work in operations(options):
            try:
                work(Upkeep(Place(path), options, "m"))
            except Exception as error:  # noqa: BLE001 - the test shows it
                if "tries lost" not in str(error):
                    told.put(f"{name}: {error!r}")
                    return
    told.put("done")


def test_maintenance_in_other_processes_beside_loads_loses_and_doubles_no_row(lake):
    """maint-compact-while-loading: appends and merges win, nobody's rows change."""
    fill(lake, 3)
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    others = [spawn.Process(target=keeper, args=(lake.uri, 6, told)) for _ in range(2)]
    for process in others:
        process.start()
    assert [told.get(timeout=60) for _ in others] == ["ready", "ready"]
    failed = []

    def load(kind, number):
        for turn in range(6):
            frame = pl.DataFrame({"id": [1000 * number + turn], "v": [number]})
            if kind == "merge_upsert":
                frame = pl.DataFrame({"id": [0, 1000 * number + turn], "v": [turn, number]})
            try:
                lake.load(frame, kind, keys=("id",), dataflow_id=f"f{number}")
            except Exception as error:  # noqa: BLE001 - the test shows it
                failed.append(error)

    threads = [threading.Thread(target=load, args=("append", 1))]
    threads.append(threading.Thread(target=load, args=("merge_upsert", 2)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [told.get(timeout=60) for _ in others] == ["done", "done"]
    for process in others:
        process.join()
    assert failed == []
    assert lake.rows("id") == sorted(
        [(0,), (1,), (2,), *((1000 * n + turn,) for n in (1, 2) for turn in range(6))]
    )
    assert dict(lake.rows())[0] == 5
    kinds = ["datacoolie_maintenance" in one for one in lake.table.history()]
    assert True in kinds[kinds.index(False) :], "no maintenance came between the loads"
