"""merge_overwrite: the rows of keys, or of what was read again, are replaced as a whole."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from uuid import uuid4

import polars as pl
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers.request import Reread

EARLY, LATE = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)


def replace_keys(lake, frame, keys=("id",), **given):
    return lake.load(frame, "merge_overwrite", keys=keys, **given)


def replace_window(lake, frame, lower, upper, column="d", keys=("id",), **given):
    window = Window(column, lower, upper)
    return replace_keys(lake, frame, keys, mode="replace_window", window=window, **given)


def counts(result):
    return (
        result.rows_inserted,
        result.rows_updated,
        result.rows_deleted,
        result.rows_unchanged,
    )


def test_all_rows_of_a_key_go_and_all_of_the_batch_come(lake):
    replace_keys(lake, pl.DataFrame({"id": [1, 1, 2], "v": ["a", "b", "c"]}))
    result = replace_keys(lake, pl.DataFrame({"id": [1, 3, 3], "v": ["A", "x", "x"]}))

    assert lake.rows() == [(1, "A"), (2, "c"), (3, "x"), (3, "x")]
    assert counts(result) == (2, 1, 1, 0)
    assert result.table_rows == 4


def test_it_is_one_commit(lake):
    """W35: no instant at which the old rows are gone and the new ones are not there."""
    replace_keys(lake, pl.DataFrame({"id": [1, 2], "v": ["a", "b"]}))
    before = lake.table.version()
    replace_keys(lake, pl.DataFrame({"id": [1], "v": ["A"]}))

    assert lake.table.version() == before + 1
    assert lake.table.history(1)[0]["datacoolie"]["rows_updated"] == 1


def test_a_key_whose_rows_are_the_same_is_left_alone(lake):
    first = pl.DataFrame({"id": [1, 1, 2], "v": ["a", "b", "c"], "__updated_at": [EARLY] * 3})
    replace_keys(lake, first)
    files = lake.live()
    again = pl.DataFrame({"id": [1, 1, 2], "v": ["b", "a", "c"], "__updated_at": [LATE] * 3})
    result = replace_keys(lake, again)

    assert counts(result) == (0, 0, 0, 3)
    assert not result.committed
    assert lake.live() == files


def test_a_row_more_or_less_of_a_key_is_a_change(lake):
    replace_keys(lake, pl.DataFrame({"id": [1, 1], "v": ["a", "a"]}))
    assert counts(replace_keys(lake, pl.DataFrame({"id": [1], "v": ["a"]}))) == (0, 1, 1, 0)
    assert counts(replace_keys(lake, pl.DataFrame({"id": [1] * 3, "v": ["a"] * 3}))) == (2, 1, 0, 0)
    assert lake.rows() == [(1, "a")] * 3


def test_the_earliest_created_at_of_a_key_survives(lake):
    replace_keys(lake, pl.DataFrame({"id": [1, 1], "v": [1, 2], "__created_at": [LATE, EARLY]}))
    newer = datetime(2026, 1, 1, tzinfo=UTC)
    replace_keys(lake, pl.DataFrame({"id": [1, 2], "v": [3, 4], "__created_at": [newer, newer]}))

    assert lake.rows() == [(1, 3, EARLY), (2, 4, newer)]


def test_a_null_in_a_key_is_one_key(lake):
    for value in (5, 6):
        frame = pl.DataFrame({"a": [10, 10], "b": [None, "tv"], "v": [value, value]})
        replace_keys(lake, frame, ("a", "b"))

    assert lake.rows() == [(10, None, 6), (10, "tv", 6)]


def test_nan_and_minus_zero_are_keys_as_any_other(lake):
    for value in (1, 2):
        replace_keys(lake, pl.DataFrame({"id": [float("nan"), -0.0], "v": [value, value]}))
        replace_keys(lake, pl.DataFrame({"id": [0.0], "v": [value]}))

    assert lake.table.to_pyarrow_table().num_rows == 2
    assert {row[1] for row in lake.rows()} == {2}


def test_a_key_that_moved_to_another_partition_is_found(lake):
    """W22."""
    frame = pl.DataFrame({"id": [1, 2], "region": ["eu", "eu"]})
    replace_keys(lake, frame, partition_by=("region",))
    replace_keys(lake, pl.DataFrame({"id": [1], "region": ["us"]}), partition_by=("region",))
    assert lake.rows() == [(1, "us"), (2, "eu")]


def test_new_columns_are_added_and_absent_ones_become_null(lake):
    """W18; the rows are replaced, so nothing of the old ones is kept."""
    replace_keys(lake, pl.DataFrame({"id": [1, 2], "v": [1, 2]}))
    replace_keys(lake, pl.DataFrame({"id": [1], "w": ["x"]}))
    assert lake.rows("id", "v", "w") == [(1, None, "x"), (2, 2, None)]


def test_a_key_of_another_type_is_refused(lake):
    replace_keys(lake, pl.DataFrame({"id": [1]}))
    with pytest.raises(WriteError, match="'id' is long in the table and string in the batch"):
        replace_keys(lake, pl.DataFrame({"id": ["1"]}))


def test_nested_values_are_compared_by_value(lake):
    frame = pl.DataFrame({"id": [1, 2], "l": [[1, None], [2]], "s": [{"a": 1}, {"a": None}]})
    replace_keys(lake, frame)
    result = replace_keys(lake, frame.with_columns(l=pl.Series([[1, None], [3]])))
    assert counts(result) == (0, 1, 0, 1)
    assert lake.rows() == [(1, [1, None], {"a": 1}), (2, [3], {"a": None})]


def test_only_files_with_changed_keys_are_written_anew(lake):
    for start in (0, 10, 20):
        lake.load(pl.DataFrame({"id": range(start, start + 10), "v": [0] * 10}))
    before = lake.live()
    result = replace_keys(lake, pl.DataFrame({"id": [3, 15], "v": [0, 1]}))
    assert result.files_removed == 1
    assert len(before & lake.live()) == 2


def test_a_column_added_by_others_meanwhile_keeps_its_values(lake):
    replace_keys(lake, pl.DataFrame({"id": [1, 2], "v": [1, 2]}))

    def meanwhile(phase):
        if phase == "staged" and lake.table.version() == 0:
            other = pl.DataFrame({"id": [3], "v": [3], "note": ["theirs"]})
            write_deltalake(lake.uri, other, mode="append", schema_mode="merge")

    replace_keys(lake, pl.DataFrame({"id": [1, 3], "v": [9, 9]}), on_phase=meanwhile)
    assert lake.rows("id", "v", "note") == [(1, 9, None), (2, 2, None), (3, 9, None)]


class TestWindow:
    @pytest.fixture(autouse=True)
    def _stored(self, lake):
        days = [date(2024, 1, day) for day in (1, 2, 3, 4)]
        replace_keys(lake, pl.DataFrame({"id": [1, 2, 3, 4], "d": days, "v": list("abcd")}))

    def test_rows_of_the_window_that_the_batch_lacks_go(self, lake):
        batch = pl.DataFrame({"id": [2, 9], "d": [date(2024, 1, 2)] * 2, "v": ["b", "z"]})
        result = replace_window(lake, batch, date(2024, 1, 2), date(2024, 1, 4))

        assert lake.rows("id", "v") == [(1, "a"), (2, "b"), (4, "d"), (9, "z")]
        assert counts(result) == (1, 0, 1, 1)

    def test_an_emptied_window_is_emptied(self, lake):
        """W12."""
        batch = pl.DataFrame(schema={"id": pl.Int64, "d": pl.Date, "v": pl.String})
        result = replace_window(lake, batch, date(2024, 1, 4), date(2024, 1, 5))
        assert [row[0] for row in lake.rows("id")] == [1, 2, 3]
        assert counts(result) == (0, 0, 1, 0)

    def test_rows_outside_stay_whatever_their_key(self, lake):
        batch = pl.DataFrame({"id": [1], "d": [date(2024, 1, 3)], "v": ["new"]})
        replace_window(lake, batch, date(2024, 1, 3), date(2024, 1, 4))
        assert lake.rows("id", "v") == [(1, "a"), (1, "new"), (2, "b"), (4, "d")]

    def test_a_batch_row_outside_the_window_is_an_error(self, lake):
        batch = pl.DataFrame({"id": [1], "d": [date(2024, 2, 1)], "v": ["new"]})
        with pytest.raises(WriteError, match=r"'d' = datetime.date\(2024, 2, 1\) is outside"):
            replace_window(lake, batch, date(2024, 1, 3), date(2024, 1, 4))

    def test_what_was_read_again_reaches_up_to_the_highest_value_of_either(self, lake):
        again = Reread({"d": date(2024, 1, 3)}, {"d": date(2024, 1, 4)})
        batch = pl.DataFrame({"id": [3], "d": [date(2024, 1, 3)], "v": ["c"]})
        result = replace_keys(lake, batch, mode="replace_window", reread=again)
        assert lake.rows("id") == [(1,), (2,), (3,)]
        assert counts(result) == (0, 0, 1, 1)

        later = pl.DataFrame(
            {"id": [3, 7], "d": [date(2024, 1, 3), date(2024, 1, 9)], "v": ["c"] * 2}
        )
        for _ in range(2):
            replace_keys(lake, later, mode="replace_window", reread=again)
            assert lake.rows("id") == [(1,), (2,), (3,), (7,)]

    def test_rows_without_a_value_belong_to_it_only_if_they_were_read_again(self, lake):
        valueless = pl.DataFrame(
            {"id": [8], "d": [None], "v": ["n"]}, schema_overrides={"d": pl.Date}
        )
        lake.load(valueless)
        again = Reread({"d": date(2024, 1, 4)}, {"d": date(2024, 1, 4)})
        empty = valueless.clear()
        replace_keys(lake, empty, mode="replace_window", reread=again)
        assert lake.rows("id") == [(1,), (2,), (3,), (8,)]

        everything = Reread(again.lower, again.upto, valueless=True)
        for _ in range(2):
            replace_keys(lake, valueless, mode="replace_window", reread=everything)
            assert lake.rows("id") == [(1,), (2,), (3,), (8,)]
        replace_keys(lake, empty, mode="replace_window", reread=everything)
        assert lake.rows("id") == [(1,), (2,), (3,)]

    def test_created_at_survives_in_a_window(self, lake):
        def batch(value, created):
            day = [date(2024, 1, 4)]
            return pl.DataFrame({"id": [4], "d": day, "v": [value], "__created_at": [created]})

        window = (date(2024, 1, 4), date(2024, 1, 5))
        replace_window(lake, batch("x", EARLY), *window)
        replace_window(lake, batch("y", LATE), *window)
        assert lake.rows("v", "__created_at")[-1] == ("y", EARLY)


keys = st.one_of(st.none(), st.integers(0, 4))
rows = st.lists(st.tuples(keys, st.integers(0, 1), st.sampled_from([None, "a", "b"])), max_size=8)
SCHEMA = {"id": pl.Int64, "d": pl.Int64, "v": pl.String}


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(rows, st.booleans()), min_size=1, max_size=4), st.booleans())
def test_any_batches_give_what_a_naive_replacement_gives(lake, batches, partitioned):
    lake = type(lake)(lake.path.with_name(uuid4().hex))
    model: list[tuple] = []
    partition_by = ("d",) if partitioned else ()
    for batch, by_window in batches:
        if by_window:
            batch = [row for row in batch if row[1] == 1]
        frame = pl.DataFrame(batch, schema=SCHEMA, orient="row")
        old = list(model)
        if by_window:
            result = replace_window(lake, frame, 1, 2, partition_by=partition_by)
            model = [row for row in model if row[1] != 1] + batch
        else:
            result = replace_keys(lake, frame, partition_by=partition_by)
            there = {row[0] for row in batch}
            model = [row for row in model if row[0] not in there] + batch
        if result.committed:
            assert Counter(lake.rows("id", "d", "v")) == Counter(model)
            assert result.table_rows == len(model)
            assert result.rows_inserted - result.rows_deleted == len(model) - len(old)
        else:
            assert Counter(old) == Counter(model)
        assert result.rows_inserted + result.rows_updated + result.rows_unchanged == len(batch)
