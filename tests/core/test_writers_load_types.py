"""What holds for every load type alike: names, types, growing tables, several writers at first."""

from __future__ import annotations

import math
import multiprocessing
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from deltalake import write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers import spill, staging
from tests.core.conftest import Lake

LOAD_TYPES = ["append", "overwrite", "full_load", "merge_upsert", "merge_overwrite"]
AWKWARD = ["1inch", "order", "unit price", "a.b", 'say "hi"', "naïve", "tick`s", "\\", "Ünit", "x=y",
           "{x}", "a/b", "%41", "null", "ÄÖ ü", "'", "日付"]  # fmt: skip


def load(lake, load_type, frame, **given):
    keys = given.pop("keys", ("id",))
    keys = keys if "merge" in load_type else ()
    return lake.load(frame, load_type, keys=keys, **given)


def after(load_type, old, new):
    """The rows of two loads, of which the second has the keys of the first and more."""
    return [*old, *new] if load_type == "append" else new


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_awkward_names_work_everywhere(lake, load_type, partitioned):
    """merge-awkward-column-names, merge-mixed-case-columns: as values, keys and partitions."""
    partition_by = ("unit price", "a.b", "tick`s", "%41", "日付") if partitioned else ()
    first = pl.DataFrame({name: [f"{name} {n}" for n in range(2)] for name in AWKWARD})
    second = pl.DataFrame({name: [f"{name} {n}" for n in range(3)] for name in AWKWARD})
    second = second.with_columns(pl.lit("new").alias("x=y"))
    keys = tuple(name for name in AWKWARD if name != "x=y")
    for frame in (first, second):
        load(lake, load_type, frame, keys=keys, partition_by=partition_by)

    assert [field.name for field in lake.table.schema().fields] == AWKWARD
    expected = after(load_type, first.rows(), second.rows())
    assert sorted(lake.rows(*AWKWARD)) == sorted(expected)


@pytest.mark.parametrize("name", ["a/b", "x=y", "\\", "a\nb"])
def test_a_partition_column_that_no_folder_can_carry_is_refused(lake, name):
    with pytest.raises(WriteError, match="no folder can carry") as raised:
        lake.load(pl.DataFrame({"id": [1], name: [1]}), partition_by=(name,))
    assert raised.value.code == "unsupported_column_name"
    assert lake.asked == []


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("load_type", ["append", "merge_overwrite"])
def test_awkward_names_bound_windows_and_filters(lake, load_type, name):
    frame = pl.DataFrame({"id": [1, 2, 3], name: [1, 2, 3]})
    load(lake, load_type, frame)
    quoted = '"' + name.replace('"', '""') + '"'
    load(
        lake,
        load_type,
        frame.filter(pl.col("id") == 2).with_columns(id=pl.lit(9, pl.Int64)),
        mode="replace_window",
        window=Window(name, 2, 4),
        replay_filter=f"{quoted} < 3",
    )
    assert lake.rows() == [(1, 1), (3, 3), (9, 2)]


@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_a_table_grows_by_the_columns_of_each_batch(lake, load_type):
    """W18: also by fields inside structs and lists."""
    load(lake, load_type, pl.DataFrame({"id": [1], "s": [{"a": 1}]}))
    result = load(
        lake,
        load_type,
        pl.DataFrame({"id": [1, 2], "s": [{"b": "x", "a": 2}] * 2, "n": [[{"c": 1}]] * 2}),
    )
    assert result.schema["n"] == "array<struct<c:long>>"
    fields = "b:string,a:long" if "load" in load_type or load_type == "overwrite" else None
    assert result.schema["s"] == f"struct<{fields or 'a:long,b:string'}>"
    rows = lake.rows("id", "s", "n")
    assert (2, {"a": 2, "b": "x"}, [{"c": 1}]) in rows
    assert len(rows) == (3 if load_type == "append" else 2)


@pytest.mark.parametrize("load_type", ["append", "merge_upsert", "merge_overwrite"])
def test_a_column_of_nothing_but_nulls_takes_the_tables_type(lake, load_type):
    """se-all-null-column."""
    load(lake, load_type, pl.DataFrame({"id": [1], "v": [1.5], "s": [{"a": 1}]}))
    load(lake, load_type, pl.DataFrame({"id": [2], "v": [None], "s": [None], "new": [None]}))
    assert lake.rows("id", "v", "s", "new") == [(1, 1.5, {"a": 1}, None), (2, None, None, None)]
    assert pl.Schema(lake.table.schema())["new"] == pl.String


VALUES = {
    "unsigned": pl.Series([0, 255], dtype=pl.UInt8),
    "large": pl.Series([0, 2**64 - 1], dtype=pl.UInt64),
    "huge": pl.Series([-(10**30), 10**30], dtype=pl.Int128),
    "decimal": pl.Series([Decimal("-0.01"), Decimal("9.99")], dtype=pl.Decimal(38, 2)),
    "float": pl.Series([-0.0, math.inf]),
    "nan": pl.Series([math.nan, None]),
    "instant": pl.Series([datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]),
    "clock": pl.Series([datetime(2024, 2, 29, 23, 59, 59, 999999), None]),
    "nanos": pl.Series([1_000, -1_000], dtype=pl.Int64).cast(pl.Datetime("ns")),
    "day": pl.Series([date(1, 1, 1), date(9999, 12, 31)]),
    "category": pl.Series(["a", None], dtype=pl.Categorical),
    "text": pl.Series(["", "a\0b"]),
    "bytes": pl.Series([b"", b"\x00\xff"]),
    "list": pl.Series([[], [None, 1]]),
    "struct": pl.Series([{"a": None, "b": [{"c": 1.5}]}, None]),
    "array": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int16, 2)),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_a_value_of_any_type_comes_back_and_is_the_same_next_time(lake, load_type, name):
    frame = pl.DataFrame({"id": [1, 2], "v": VALUES[name]})
    load(lake, load_type, frame)
    found = lake.rows("id", "v")
    result = load(lake, load_type, frame)

    assert [str(row[1]) for row in found] == [str(v) for v in frame["v"].to_list()]
    assert list(map(str, lake.rows("id", "v"))) == sorted(map(str, after(load_type, found, found)))
    if "merge" in load_type:
        assert (result.committed, result.rows_unchanged) == (False, 2)


@pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite"])
@pytest.mark.parametrize("name", [n for n in VALUES if n not in ("list", "struct", "array")])
def test_a_key_of_any_plain_type_is_met_again(lake, load_type, name):
    frame = pl.DataFrame({"k": VALUES[name], "v": [1, 1]})
    load(lake, load_type, frame, keys=("k",))
    result = load(lake, load_type, frame.with_columns(v=pl.lit(2)), keys=("k",))
    assert (result.rows_updated, result.rows_inserted, result.table_rows) == (2, 0, 2)
    assert lake.rows("v") == [(2,), (2,)]


@pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite"])
@pytest.mark.parametrize("name", ["list", "struct", "array"])
def test_a_nested_key_is_refused(lake, load_type, name):
    with pytest.raises(WriteError, match="merge key 'v' is") as raised:
        load(lake, load_type, pl.DataFrame({"v": VALUES[name]}), keys=("v",))
    assert raised.value.code == "unsupported_key_type"


@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_what_cannot_be_stored_names_its_column_and_leaves_nothing(lake, load_type):
    """types-nanoseconds-to-microseconds, types-time-duration-categorical."""
    lossy = pl.DataFrame({"id": [1], "at": pl.Series([1_001]).cast(pl.Datetime("ns"))})
    with pytest.raises(WriteError, match=r"column 'at': 1970-01-01 00:00:00\.000001001") as raised:
        load(lake, load_type, lossy)
    assert raised.value.code == "value_lost"

    things = pl.DataFrame({"id": [1], "thing": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(WriteError, match="'thing' is object") as raised:
        load(lake, load_type, things)
    assert raised.value.code == "unsupported_type"
    assert not lake.path.exists()


@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_large_batches_go_through_the_disk_into_many_files(lake, load_type, monkeypatch):
    monkeypatch.setattr(spill, "_IN_MEMORY", 0)
    monkeypatch.setattr(staging, "ROWS_PER_FILE", 1_000)
    first = pl.DataFrame({"id": range(5_000), "v": [0] * 5_000})
    second = pl.DataFrame({"id": range(2_500, 7_500), "v": [1] * 5_000})
    load(lake, load_type, first)
    load(lake, load_type, second)

    expected = {"append": (10_000, 5_000), "overwrite": (5_000, 5_000), "full_load": (5_000, 5_000)}
    table = pl.read_delta(lake.uri)
    assert (table.height, table["v"].sum()) == expected.get(load_type, (7_500, 5_000))
    assert len(lake.live()) >= 5


@pytest.mark.parametrize("mode", ["load", "replace_window", "replace_all"])
@pytest.mark.parametrize("load_type", LOAD_TYPES)
def test_a_table_that_appears_meanwhile_is_written_into(lake, load_type, mode):
    """W38 to W41: the race to create the table restarts as a write."""
    if (load_type, mode) == ("merge_upsert", "replace_window"):
        return
    happened: list[str] = []

    def meanwhile(phase):
        if phase == "staged" and not happened:
            happened.append(phase)
            write_deltalake(lake.uri, pl.DataFrame({"id": [1, 2], "v": [0, 0]}))

    window = Window("id", 1, 2) if mode == "replace_window" else None
    batch = pl.DataFrame({"id": [1], "v": [1]})
    load(lake, load_type, batch, mode=mode, window=window, on_phase=meanwhile)

    whole = mode == "replace_all" or (mode == "load" and "over" in load_type[:4])
    if mode == "load":
        expected = {"append": [(1, 0), (1, 1), (2, 0)], "overwrite": [(1, 1)]}
        expected["full_load"] = expected["overwrite"]
        assert lake.rows() == expected.get(load_type, [(1, 1), (2, 0)])
    else:
        assert lake.rows() == ([(1, 1)] if whole else [(1, 1), (2, 0)])


def first_load(path, load_type, number, results):
    import time
    from pathlib import Path

    lake = Lake(Path(path))
    lake.slept = type("Sleeping", (list,), {"append": lambda _, seconds: time.sleep(seconds)})()
    frame = pl.DataFrame({"id": range(number * 10, number * 10 + 10), "by": [number] * 10})
    try:
        load(lake, load_type, frame, dataflow_id=f"flow-{number}")
    except Exception as error:  # noqa: BLE001 - the test shows it
        results.put(repr(error))
    else:
        results.put("done")


@pytest.mark.parametrize("load_type", ["merge_overwrite", "overwrite"])
def test_several_processes_make_one_table_at_once(lake, load_type):
    """W38, W40: dataflows with keys of their own onto a table that is not there."""
    lake.path.parent.mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=first_load, args=(lake.uri, load_type, number, results))
        for number in range(4)
    ]
    for process in processes:
        process.start()
    assert [results.get(timeout=120) for _ in processes] == ["done"] * 4
    for process in processes:
        process.join()

    rows = lake.rows()
    if load_type == "merge_overwrite":
        assert rows == [(n, n // 10) for n in range(40)]
    else:
        assert len(rows) == 10
        assert len({by for _, by in rows}) == 1
    assert lake.files() >= lake.live()
