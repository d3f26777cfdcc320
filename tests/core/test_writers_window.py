"""Replays of a window, and appends that read again what is there."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from deltalake import write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers.partitions import NULL_FOLDER
from datacoolie_core.writers.request import Overlap


def replay(lake, frame, column, lower, upper, **given):
    window = Window(column, lower, upper)
    return lake.load(frame, mode="replace_window", window=window, **given)


def test_a_window_run_twice_changes_nothing_but_the_version(lake):
    """merge-interval-rerun."""
    lake.load(
        pl.DataFrame({"day": [date(2026, 7, 14), date(2026, 7, 15)], "v": ["row_4", "row_5"]})
    )
    again = pl.DataFrame({"day": [date(2026, 7, 16)], "v": ["row_7"]})
    for turn in (1, 2):
        result = replay(lake, again, "day", date(2026, 7, 16), date(2026, 7, 17))
        assert lake.rows() == [
            (date(2026, 7, 14), "row_4"),
            (date(2026, 7, 15), "row_5"),
            (date(2026, 7, 16), "row_7"),
        ]
        assert (result.rows_inserted, result.rows_deleted) == (1, turn - 1)
        assert result.table_rows == 3


def test_only_files_on_the_edge_are_written_anew(lake):
    for start in (0, 10, 20, 30):
        lake.load(pl.DataFrame({"n": range(start, start + 10)}))
    before = {
        row["path"]: row for row in pl.DataFrame(lake.table.get_add_actions()).rows(named=True)
    }
    result = replay(lake, pl.DataFrame({"n": [12]}), "n", 10, 25)

    assert lake.rows() == [(n,) for n in [*range(10), 12, *range(25, 40)]]
    assert (result.rows_deleted, result.files_removed, result.files_added) == (15, 2, 2)
    assert len(set(before) & lake.live()) == 2


def test_a_file_in_range_that_holds_no_row_of_the_window_is_left_alone(lake):
    lake.load(pl.DataFrame({"n": [0, 100]}))
    before = lake.live()
    replay(lake, pl.DataFrame({"n": [50]}), "n", 40, 60)
    assert before < lake.live()


def test_an_empty_batch_clears_the_window(lake):
    """pb-empty-chunk-must-clear-partition."""
    lake.load(pl.DataFrame({"day": [date(2026, 1, 1)] * 2 + [date(2026, 1, 2)], "v": [1, 2, 3]}))
    empty = pl.DataFrame(schema={"day": pl.Date, "v": pl.Int64})
    result = replay(lake, empty, "day", date(2026, 1, 1), date(2026, 1, 2))

    assert lake.rows() == [(date(2026, 1, 2), 3)]
    assert (result.rows_deleted, result.committed) == (2, True)
    assert not replay(lake, empty, "day", date(2026, 1, 1), date(2026, 1, 2)).committed


def test_a_window_of_a_table_that_is_not_there_makes_it(lake):
    replay(lake, pl.DataFrame({"n": [1]}), "n", 0, 5)
    assert lake.rows() == [(1,)]


def test_rows_without_a_value_stay(lake):
    lake.load(pl.DataFrame({"n": [None, 1, 7]}))
    replay(lake, pl.DataFrame({"n": [2]}), "n", None, 5)
    assert lake.rows() == [(None,), (2,), (7,)]


@pytest.mark.parametrize("batch", [[7], [None], [2, 5]])
@pytest.mark.parametrize("partition_by", [(), ("n",)])
def test_batch_rows_outside_the_window_are_refused(lake, batch, partition_by):
    lake.load(pl.DataFrame({"n": [1], "v": [1]}), partition_by=partition_by)
    frame = pl.DataFrame({"n": batch, "v": [0] * len(batch)}, schema={"n": pl.Int64, "v": pl.Int64})
    with pytest.raises(WriteError, match="outside the window") as raised:
        replay(lake, frame, "n", 0, 5)

    assert raised.value.code == "outside_window"
    assert lake.rows("n") == [(1,)]
    assert lake.files() == lake.live()


@pytest.mark.parametrize(
    ("values", "lower", "upper"),
    [
        (pl.Series("c", ["2024", "2025", "2026"]), "2025", "2026"),
        (
            pl.Series("c", [date(2024, 5, 1), date(2025, 5, 1), date(2026, 5, 1)]),
            date(2025, 1, 1),
            date(2026, 1, 1),
        ),
        (
            pl.Series("c", [date(2024, 5, 1), date(2025, 5, 1), date(2026, 5, 1)]),
            datetime(2025, 1, 1),
            datetime(2026, 1, 1),
        ),
        (
            pl.Series(
                "c",
                [datetime(2024, 12, 31, 23, 59, 59), datetime(2025, 6, 1), datetime(2026, 1, 1)],
            ),
            date(2025, 1, 1),
            date(2026, 1, 1),
        ),
        (
            pl.Series(
                "c",
                [datetime(2024, 12, 31, 23, 59, 59), datetime(2025, 6, 1), datetime(2026, 1, 1)],
            ),
            "2025-01-01T00:00:00",
            "2026-01-01",
        ),
        (
            pl.Series(
                "c",
                [datetime(2024, 12, 31, 23), datetime(2025, 6, 1), datetime(2026, 1, 1)],
                pl.Datetime("us", "UTC"),
            ),
            datetime(2025, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 1),
        ),
        (pl.Series("c", [1.5, 2.5, float("nan")]), 2, 3),
        (
            pl.Series("c", [Decimal("1.50"), Decimal("2.50"), Decimal("3.00")], pl.Decimal(10, 2)),
            Decimal("1.51"),
            3,
        ),
        (pl.Series("c", [1, 2, 3], pl.Int8), 2, 3),
    ],
)
@pytest.mark.parametrize("partition_by", [(), ("c",)])
def test_bounds_follow_the_columns_type(lake, values, lower, upper, partition_by):
    """pb-predicate-follows-column-type, pb-text-partition-wipes-table, W9."""
    if partition_by and values.dtype.is_float():
        pytest.skip("a NaN partition is nobody's wish")
    frame = values.to_frame().with_columns(v=pl.Series([1, 2, 3]))
    lake.load(frame, partition_by=partition_by)
    lake.load(frame.slice(1, 1))
    result = replay(lake, frame.slice(1, 1).with_columns(v=pl.lit(20, pl.Int64)), "c", lower, upper)

    assert lake.rows("v") == [(1,), (3,), (20,)]
    assert result.rows_deleted == 2


@pytest.mark.parametrize(
    ("value", "lower", "code"),
    [
        ("2025", datetime(2025, 1, 1), "bound_type"),
        (1, "2025", "bound_type"),
        (datetime(2025, 1, 1), datetime(2025, 1, 1, tzinfo=UTC), "zone_unknown"),
        (date(2025, 1, 1), datetime(2025, 1, 1, 12), "bound_type"),
        (True, 1, "bound_type"),
    ],
)
def test_bounds_that_do_not_fit_are_refused_and_the_table_kept(lake, value, lower, code):
    lake.load(pl.DataFrame({"c": [value]}))
    with pytest.raises(WriteError) as raised:
        replay(lake, pl.DataFrame({"c": [value]}), "c", lower, None)
    assert raised.value.code == code
    assert "'c'" in str(raised.value)
    assert lake.table.version() == 0


def test_a_naive_column_takes_the_declared_zone(lake):
    lake.load(pl.DataFrame({"c": [datetime(2025, 1, 1, h) for h in (0, 12, 23)]}))
    lower = datetime(2025, 1, 1, 17, tzinfo=UTC)
    replay(
        lake,
        pl.DataFrame({"c": [datetime(2025, 1, 1, 12)]}),
        "c",
        lower,
        None,
        zone="America/New_York",
    )
    assert lake.rows() == [(datetime(2025, 1, 1, 0),), (datetime(2025, 1, 1, 12),)]


def test_a_window_needs_a_column_of_the_destination(lake):
    with pytest.raises(WriteError, match="no column 'nope'"):
        replay(lake, pl.DataFrame({"n": [1]}), "nope", 1, 2)
    with pytest.raises(WriteError, match="replays its windows as merges"):
        lake.merge(pl.DataFrame({"id": [1]}), mode="replace_window", window=Window("id", 1, 2))


@pytest.mark.parametrize(
    "value",
    ["profile 1", "a/b", "50%", "x=y", "O'Brien", "ü", "c#d?e", 'q"', "b\\", "a:b", "*", "a%20b"],
)
def test_awkward_partition_values_survive_replays(lake, value):
    """pb-space-in-partition-value."""
    lake.load(pl.DataFrame({"p": ["other", value], "v": [1, 1]}), partition_by=("p",))
    for turn in (2, 3):
        frame = pl.DataFrame({"p": [value], "v": [turn]})
        replay(lake, frame, "p", value, value + "\0")
        assert set(lake.rows("p", "v")) == {("other", 1), (value, turn)}
    doomed = set(lake.table.vacuum(0, dry_run=True, enforce_retention_duration=False))
    assert len(doomed) == 2


def test_an_empty_partition_value_is_refused_since_it_would_become_null(lake):
    """pb-null-and-empty-partition-values."""
    frame = pl.DataFrame({"region": [None, "", "EU"], "v": [1, 2, 3]})
    with pytest.raises(WriteError, match="'region' holds an empty text") as raised:
        lake.load(frame, partition_by=("region",))
    assert raised.value.code == "empty_partition_value"
    assert not lake.path.exists()
    with pytest.raises(WriteError, match="'__HIVE_DEFAULT_PARTITION__', which would be read as"):
        lake.load(frame.with_columns(region=pl.lit(NULL_FOLDER)), partition_by=("region",))

    lake.load(frame.filter(pl.col("v") != 2), partition_by=("region",))
    lake.merge(pl.DataFrame({"region": [None], "v": [10]}, schema=frame.schema), ("region",))
    assert lake.rows("region", "v") == [(None, 10), ("EU", 3)]


def overlap(lake, frame, known, **given):
    return lake.load(frame, overlap=known, **given)


def test_only_the_surplus_of_an_overlap_is_appended(lake):
    """W47 for tables: a look-back reads rows again."""
    lake.load(pl.DataFrame({"t": [1, 5, 5, 9], "v": ["a", "b", "b", None], "__file": ["1"] * 4}))
    batch = pl.DataFrame(
        {"t": [5, 5, 5, 9, 9, 10], "v": ["b", "b", "b", None, "new", "c"], "__file": ["2"] * 6}
    )
    result = overlap(lake, batch, Overlap("t", 5, None))

    assert (result.rows_inserted, result.rows_unchanged) == (3, 3)
    assert lake.rows("t", "v") == [
        (1, "a"), (5, "b"), (5, "b"), (5, "b"), (9, None), (9, "new"), (10, "c")
    ]  # fmt: skip


def test_rows_outside_the_region_are_appended_whatever_is_there(lake):
    lake.load(pl.DataFrame({"t": [1, 2, 3]}))
    result = overlap(lake, pl.DataFrame({"t": [1, 2, 3]}), Overlap("t", 2, 3))
    assert (result.rows_inserted, result.rows_unchanged) == (2, 1)
    result = overlap(lake, pl.DataFrame({"t": [3]}), Overlap("t", 2, 3, upper_inclusive=True))
    assert (result.rows_inserted, result.rows_unchanged) == (0, 1)
    assert not result.committed


def test_an_overlap_without_a_column_compares_everything(lake):
    frame = pl.DataFrame(
        {
            "f": [float("nan"), None, -0.0],
            "l": [[1, None], None, []],
            "s": [{"a": 1}, None, {"a": None}],
        }
    )
    lake.load(frame)
    result = overlap(lake, pl.concat([frame, frame.slice(0, 1)]), Overlap())
    assert (result.rows_inserted, result.rows_unchanged) == (1, 3)


def test_an_overlap_with_a_table_that_is_not_there_appends_all(lake):
    assert overlap(lake, pl.DataFrame({"t": [1, 1]}), Overlap("t", 1, None)).rows_inserted == 2
    assert lake.rows() == [(1,), (1,)]


def test_an_overlap_redoes_its_comparison_when_others_append(lake):
    """q-append-computed-from-old-version."""
    lake.load(pl.DataFrame({"t": [1]}))
    meanwhile = []

    def other(phase):
        if phase == "committing" and not meanwhile:
            meanwhile.append(write_deltalake(lake.uri, pl.DataFrame({"t": [2]}), mode="append"))

    result = overlap(lake, pl.DataFrame({"t": [1, 2, 3]}), Overlap(), on_phase=other)

    assert lake.rows() == [(1,), (2,), (3,)]
    assert (result.rows_inserted, result.rows_unchanged) == (1, 2)
    assert len(lake.slept) == 1
    assert lake.asked == [1, 3]
    assert lake.files() == lake.live()
