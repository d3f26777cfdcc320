"""History as people met it: rows that return, nulls, doubled keys, closed keys, clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest
import time_machine

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
SNAPSHOT = {"scd2_close_missing": True}


def at(day: int) -> datetime:
    return FIRST + timedelta(days=day)


def loads(case, *batches: str) -> list:
    """Load each batch, a day after the one before; return the results."""
    results = []
    for day, batch in enumerate(batches):
        case.put(batch)
        with time_machine.travel(at(day), tick=False):
            results.append(case.works())
    return results


def history(case, *columns: str) -> list[tuple]:
    """The versions: values, first day, last day (None while open)."""
    rows = case.rows(*columns, "__valid_from", "__valid_to", "__is_current")
    for row in rows:
        assert row[-1] == (row[-2] is None)
    return sorted(
        ((*row[:-3], *[value and (value - FIRST).days for value in row[-3:-1]]) for row in rows),
        key=repr,
    )


def check_chained(stored: pl.DataFrame, *keys: str) -> None:
    """At most one open version a key, no overlaps."""
    for group in stored.sort("__valid_from").partition_by(*keys):
        spans = group.select("__valid_from", "__valid_to").rows()
        assert all(end is not None and end <= start for (_, end), (start, _) in pairwise(spans))
        assert all(end is None or start < end for start, end in spans)


def test_a_row_that_comes_back_is_open_again(case):
    """scd2-row-comes-back."""
    case.load("scd2", "nk", own=SNAPSHOT)
    both, one = "nk,c1\n1,foo\n2,bar\n", "nk,c1\n2,bar\n"
    results = loads(case, both, one, both, both, one, both)
    expected = [("1", 0, 1), ("1", 2, 4), ("1", 5, None), ("2", 0, None)]
    assert history(case, "nk") == sorted(expected, key=repr)
    assert results[3].status == "succeeded"


def test_a_row_that_comes_back_changed_leaves_a_gap_too(case):
    """scd2-row-comes-back."""
    case.load("scd2", "nk", own=SNAPSHOT)
    loads(case, "nk,c1\n1,foo\n2,\n", "nk,c1\n2,\n", "nk,c1\n1,baz\n2,\n")
    expected = [("1", "baz", 2, None), ("1", "foo", 0, 1), ("2", None, 0, None)]
    assert history(case, "nk", "c1") == expected


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [("string", "x", "y"), ("int", "0", "1"), ("double", "NaN", "0.0"), ("boolean", "f", "t"),
     ("date", "2026-01-01", "2026-01-02"), ("decimal(9,2)", "0.00", "0.01")],
)  # fmt: skip
def test_from_null_to_a_value_and_back_are_changes(case, kind, first, second):
    """scd2-null-to-value: null equals null, NaN equals NaN, and neither equals a value."""
    case.load("scd2", "id", hints={"name": kind})
    values = ["", "", first, first, "", second, first]
    loads(case, *(f"id,name\n3,{value}\n" for value in values))
    assert [row[-2:] for row in history(case, "id")] == [(0, 2), (2, 4), (4, 5), (5, 6), (6, None)]


def test_one_key_with_two_rows_of_one_instant_is_an_error(case):
    """scd2-key-twice-in-batch, W15."""
    case.load("scd2", "nk", "part")
    case.put("nk,part,v\n1,,x\n1,,y\n2,a,z\n")
    error = case.fails()
    assert error.code == "duplicate_keys"
    assert "nk='1'" in error.message
    assert "latest_data_columns" in error.message
    assert not case.root.joinpath("lake").exists()
    loads(case, "nk,part,v\n1,,x\n1,,x\n2,a,z\n")  # the same row twice is one row
    assert len(history(case)) == 2


def test_one_key_with_two_rows_is_decided_by_the_declared_order(case):
    """scd2-key-twice-in-batch."""
    case.load("scd2", "nk", transform={"latest_data_columns": ["n"]}, hints={"n": "int"})
    loads(case, "nk,v,n\n1,x,2\n1,y,10\n1,z,\n", "nk,v,n\n1,y,10\n")
    assert history(case, "nk", "v") == [("1", "y", 0, None)]


def test_a_changed_row_is_closed_and_opened_in_one_commit(case):
    """scd2-changed-row-needs-two-actions, W36."""
    case.load("scd2", "code")
    loads(case, "code,cat\nA,CAT\n", "code,cat\nA,CAT1\nB,CAT\n", "code,cat\nA,CAT\n")
    assert history(case, "code", "cat") == [
        ("A", "CAT", 0, 1), ("A", "CAT", 2, None), ("A", "CAT1", 1, 2), ("B", "CAT", 1, None),
    ]  # fmt: skip


@pytest.mark.parametrize("partition", [[], ["__is_current"], ["name"]])
def test_only_keys_that_are_missing_are_closed(case, partition):
    """scd2-only-missing-rows-closed; keys with a null part too."""
    case.load("scd2", "id", "part", own=SNAPSHOT, partition_columns=partition)
    first = "id,part,name\n1,,Al\n2,a,Bo\n3,,Cy\n4,a,Di\n5,a,Ed\n,,No\n"
    result = loads(case, first, "id,part,name\n1,,Al\n2,a,Bo\n5,a,Ed\n,,No\n")[1]
    assert (result.rows["rows_updated"], result.rows["rows_unchanged"]) == (2, 4)
    closed = [row[0] for row in history(case, "id") if row[-1] is not None]
    assert closed == ["3", "4"]


def test_an_empty_snapshot_closes_nothing_unless_that_is_what_it_means(case):
    """scd2-only-missing-rows-closed."""
    case.load("scd2", "id", own=SNAPSHOT)
    results = loads(case, "id,name\n1,Al\n", "id,name\n")
    assert (results[1].status, history(case, "id")) == ("skipped", [("1", 0, None)])
    case.load("scd2", "id", own={**SNAPSHOT, "empty_source": "overwrite"})
    case.put("id,name\n")
    with time_machine.travel(at(2), tick=False):
        case.works()
    assert history(case, "id") == [("1", 0, 2)]


def test_a_date_that_was_given_for_one_load_does_not_stick(case):
    """scd2-fixed-boundary-sticks."""
    given = {"configure": {"scd2_effective_column": "CAST('2025-12-12' AS DATE)"}}
    case.load("scd2", "id", destination=given)
    loads(case, "id,a\n1,1\n")
    case.load("scd2", "id")
    case.put("id,a\n1,2\n")
    with time_machine.travel(at(9), tick=False):
        case.works()
    assert history(case, "id", "a") == [("1", "1", -20, 9), ("1", "2", 9, None)]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("nosuch", "no column 'nosuch'"),
        ("CAST(a AS INT)", "`CAST(a AS INT)` is Int32"),
        ("a", "the value 'soon' is no timestamp"),
        ("CAST(NULLIF(a, 'soon') AS DATE)", "id='1'"),
    ],
)
def test_an_instant_that_is_none_is_refused(case, written, told):
    """W16."""
    case.load("scd2", "id", destination={"configure": {"scd2_effective_column": written}})
    case.put("id,a\n1,soon\n")
    assert told in case.fails().message
    assert not case.root.joinpath("lake").exists()


def test_an_instant_may_be_cut_to_the_day(case):
    """A function whose meaning hangs on types; the column that it names makes no version."""
    written = "DATE_TRUNC('day', seen)"
    given = {"configure": {"scd2_effective_column": written}}
    case.load("scd2", "id", destination=given, hints={"seen": "timestamp"})
    loads(
        case,
        "id,v,seen\n1,a,2026-01-01T05:00:00Z\n",
        "id,v,seen\n1,a,2026-01-03T23:00:00Z\n",
        "id,v,seen\n1,b,2026-01-04T07:00:00Z\n",
    )
    assert history(case, "id", "v") == [("1", "a", 0, 3), ("1", "b", 3, None)]


def test_processes_in_other_time_zones_write_one_chain(case):
    """scd2-mixed-naive-aware-validity."""
    case.load("scd2", "id")
    for value, zone in (("a", "Asia/Kolkata"), ("b", "UTC"), ("c", "America/St_Johns")):
        case.put(f"id,v\n1,{value}\n")
        before = datetime.now(UTC)
        assert case.calls("run", TZ=zone)["status"] == "succeeded"
        newest = case.stored().filter("__is_current")["__valid_from"].item()
        assert before <= newest <= datetime.now(UTC)
    stored = case.stored()
    assert stored.schema["__valid_from"] == pl.Datetime("us", "UTC")
    spans = stored.sort("__valid_from").select("__valid_from", "__valid_to").rows()
    assert all(end == start for (_, end), (start, _) in pairwise(spans))
    check_chained(stored, "id")


def test_two_runs_at_once_leave_one_open_version(case):
    """scd2-two-runs-at-once."""
    case.load("scd2", "id")
    case.put("id,v\n1,a\n2,b\n")
    case.works()
    case.put("id,v\n1,A\n2,B\n3,C\n")
    ended = [case.ends(one) for one in [case.start("run") for _ in range(3)]]
    assert {one["exit_code"] for one in ended} == {0}
    assert min(history(case, "id", "v"), key=repr)[1] == "A"
    stored = case.stored()
    assert stored.height == 5
    check_chained(stored, "id")


def test_late_rows_and_replays_of_them_give_one_table(cases):
    """W14, W17: in whatever order the rows of three keys come."""
    rows = [
        (key, f"{key}{day}", (FIRST + timedelta(days=day)).strftime("%Y-%m-%d %H:%M:%S"))
        for key in ("a", "b", "ü")
        for day in (0, 3, 9)
    ]
    found = []
    for order in (rows, rows[::-1], rows[1::2] + rows[::2]):
        case = cases()
        case.load("scd2", "k", watermark=["ts"], hints={"ts": "timestamp"})
        case.put("k,v,ts\n" + "".join(f"{','.join(row)}\n" for row in order[:4]))
        case.works()
        case.put("k,v,ts\n" + "".join(f"{','.join(row)}\n" for row in order))
        for _ in range(2):
            result = case.replays("2026-01-01", "2026-02-01", chunk_interval={"days": 7})
            assert result.status == "succeeded", result.error
        found.append(history(case, "k", "v"))
        check_chained(case.stored(), "k")
    assert found[0] == found[1] == found[2]
    assert [row for row in found[0] if row[0] == "ü"] == [
        ("ü", "ü0", 0, 3), ("ü", "ü3", 3, 9), ("ü", "ü9", 9, None),
    ]  # fmt: skip
