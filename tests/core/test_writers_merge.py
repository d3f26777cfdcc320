"""merge_upsert: keys, duplicates, order, what is left alone, what goes."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import uuid4

import polars as pl
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import WriteError


def test_stored_keys_are_updated_and_new_ones_added(lake):
    lake.merge(pl.DataFrame({"id": [1, 2], "v": ["a", "b"]}))
    result = lake.merge(pl.DataFrame({"id": [2, 3], "v": ["B", "c"]}))

    assert lake.rows() == [(1, "a"), (2, "B"), (3, "c")]
    assert (result.rows_inserted, result.rows_updated, result.rows_written) == (1, 1, 2)
    assert (result.files_added, result.files_removed, result.table_rows) == (1, 1, 3)
    assert lake.table.history(1)[0]["datacoolie"]["rows_updated"] == 1


def test_a_null_in_a_key_is_one_key(lake):
    """W20, merge-null-in-key."""
    for clicks in (5, 6, 7):
        frame = pl.DataFrame(
            {"campaign": [10, 10], "device": [None, "tv"], "clicks": [clicks, clicks]}
        )
        lake.merge(frame, ("campaign", "device"))

    assert lake.rows() == [(10, None, 7), (10, "tv", 7)]


def test_a_key_of_another_type_is_refused(lake):
    """W19."""
    lake.merge(pl.DataFrame({"id": [1], "v": ["a"]}))
    with pytest.raises(WriteError, match="'id' is long in the table and double in the batch"):
        lake.merge(pl.DataFrame({"id": [1.5], "v": ["b"]}))
    assert lake.rows() == [(1, "a")]


def test_another_type_of_a_value_is_refused(lake):
    """merge-type-mismatch."""
    lake.merge(pl.DataFrame({"id": [1, 2], "value": ["a", "b"]}))
    with pytest.raises(WriteError, match="'value' is string in the table and long in the batch"):
        lake.merge(pl.DataFrame({"id": [2, 3], "value": [99, 100]}))


def test_a_missing_key_is_named_with_the_nearest_column(lake):
    """W52, W53."""
    with pytest.raises(WriteError) as raised:
        lake.merge(pl.DataFrame({"order_id": [1], "v": [1]}), ("Order ID",))

    assert raised.value.code == "missing_column"
    assert "'Order ID'" in str(raised.value)
    assert "after name cleaning" in str(raised.value)
    assert "Did you mean 'order_id'?" in str(raised.value)
    assert lake.asked == []
    assert not lake.path.exists()


def test_a_key_that_the_table_lacks_is_refused(lake):
    lake.load(pl.DataFrame({"v": [1]}))
    with pytest.raises(WriteError, match="'id' is not a column of the table"):
        lake.merge(pl.DataFrame({"id": [1], "v": [1]}))


@pytest.mark.parametrize("keys", [(), ("l",)])
def test_keys_that_cannot_serve_are_refused(lake, keys):
    with pytest.raises(WriteError, match=r"needs keys|'l' is array<long>"):
        lake.merge(pl.DataFrame({"id": [1], "l": [[1]]}), keys)


@pytest.mark.parametrize("stored", [[1], [3], []])
def test_duplicate_keys_without_an_order_are_refused(lake, stored):
    """W21, merge-source-key-twice-matched, merge-source-key-twice-new."""
    if stored:
        lake.merge(pl.DataFrame({"id": stored, "v": ["a"] * len(stored)}))
    before = lake.rows() if stored else None

    with pytest.raises(WriteError) as raised:
        lake.merge(pl.DataFrame({"id": [1, 1, 2], "v": ["b", "c", "d"]}))

    assert raised.value.code == "duplicate_keys"
    assert "1 key is in the batch more than once: id=1 (2 rows)" in str(raised.value)
    assert before is None or lake.rows() == before
    assert not stored or lake.files() == lake.live()


def test_duplicate_keys_keep_the_newest_by_the_order_columns(lake):
    batch = pl.DataFrame(
        {
            "id": [1, 1, 1, 2, 2, None, None],
            "ts": [1, 3, 2, None, 0, 5, 5],
            "v": ["old", "new", "mid", "null", "zero", "first", "last"],
        }
    )
    result = lake.merge(batch, order_columns=("ts",))

    assert lake.rows("id", "v") == [(None, "last"), (1, "new"), (2, "zero")]
    assert (result.rows_inserted, result.rows_stale) == (3, 4)


def test_a_stale_row_is_not_applied(lake):
    """merge-late-row-overwrites-newer."""
    lake.merge(
        pl.DataFrame({"k": ["a", "b"], "ts": ["2022-12-02", None], "v": ["new", "x"]}), ("k",)
    )
    late = pl.DataFrame({"k": ["a", "b"], "ts": ["2022-11-29", "2022-01-01"], "v": ["old", "y"]})
    result = lake.merge(late, ("k",), order_columns=("ts",))

    assert lake.rows("k", "v") == [("a", "new"), ("b", "y")]
    assert (result.rows_stale, result.rows_updated) == (1, 1)
    # without order columns the last writer wins
    lake.merge(late, ("k",))
    assert lake.rows("k", "v") == [("a", "old"), ("b", "y")]


def test_several_order_columns_decide_in_their_order(lake):
    stored = {"id": [1, 2, 3, 4], "day": [5, 5, 5, None], "n": [5, 5, None, 1], "v": ["s"] * 4}
    lake.merge(pl.DataFrame(stored))
    batch = pl.DataFrame(
        {"id": [1, 2, 3, 4], "day": [4, 5, 5, None], "n": [9, 4, 0, None], "v": ["b"] * 4}
    )
    result = lake.merge(batch, order_columns=("day", "n"))

    assert lake.rows("id", "v") == [(1, "s"), (2, "s"), (3, "b"), (4, "s")]
    assert result.rows_stale == 3


def test_equally_old_rows_are_applied(lake):
    lake.merge(pl.DataFrame({"id": [1], "ts": [1], "v": ["a"]}))
    lake.merge(pl.DataFrame({"id": [1], "ts": [1], "v": ["b"]}), order_columns=("ts",))
    assert lake.rows("v") == [("b",)]


def test_an_order_column_that_is_not_there_is_refused(lake):
    with pytest.raises(WriteError, match="order column 'ts'"):
        lake.merge(pl.DataFrame({"id": [1]}), order_columns=("ts",))


def test_unchanged_rows_are_left_alone(lake):
    """W71: __updated_at is not bumped, __created_at survives, no file is written."""
    first = pl.DataFrame(
        {
            "id": [1, 2],
            "f": [float("nan"), None],
            "l": [[1, None], None],
            "__created_at": [1, 1],
            "__updated_at": [1, 1],
        }
    )
    lake.merge(first)
    files = lake.live()
    again = first.with_columns(pl.lit(2).alias("__created_at"), pl.lit(2).alias("__updated_at"))
    again = again.with_columns(pl.col("__created_at", "__updated_at").cast(pl.Int64))

    result = lake.merge(again)
    assert not result.committed
    assert result.rows_unchanged == 2
    assert lake.live() == files

    result = lake.merge(again.with_columns(f=pl.Series([float("nan"), 2.0])), required=True)
    assert (result.rows_unchanged, result.rows_updated) == (1, 1)
    assert lake.rows("id", "__created_at", "__updated_at") == [(1, 1, 1), (2, 1, 2)]


def test_a_required_commit_without_a_change_keeps_the_files(lake):
    lake.merge(pl.DataFrame({"id": [1]}))
    files = lake.live()
    result = lake.merge(pl.DataFrame({"id": [1]}), required=True)

    assert (result.committed, result.rows_unchanged, result.rows_written) == (True, 1, 0)
    assert lake.live() == files
    assert lake.sequence() == 2


def test_a_new_column_is_added_and_counts_as_a_change(lake):
    """W18, merge-new-column."""
    lake.merge(pl.DataFrame({"id": [1, 2], "v": [1, 2]}))
    result = lake.merge(pl.DataFrame({"id": [1, 2, 3], "v": [1, 2, 3], "new": ["x", None, "y"]}))

    assert lake.rows("id", "v", "new") == [(1, 1, "x"), (2, 2, None), (3, 3, "y")]
    assert (result.rows_updated, result.rows_unchanged, result.rows_inserted) == (1, 1, 1)


def test_a_new_column_into_an_empty_table(lake):
    """merge-new-column."""
    lake.load(pl.DataFrame(schema={"code": pl.String, "idx": pl.Int64}), required=True)
    batch = pl.DataFrame({"code": ["12", "23"], "date": ["2018", "2019"], "idx": [0, 1]})
    lake.merge(batch, ("code",))
    assert lake.rows("code", "date", "idx") == [("12", "2018", 0), ("23", "2019", 1)]


def test_columns_that_the_batch_lacks_keep_their_values(lake):
    lake.merge(pl.DataFrame({"id": [1, 2], "a": ["x", "y"], "b": [1, 2]}))
    lake.merge(pl.DataFrame({"id": [2, 3], "b": [20, 30]}))
    assert lake.rows("id", "a", "b") == [(1, "x", 1), (2, "y", 20), (3, None, 30)]


def test_a_key_that_moves_to_another_partition_is_one_row(lake):
    """W22."""
    first = pl.DataFrame({"id": [1, 2], "reg": ["a", "a"], "v": [1, 2]})
    lake.merge(first, partition_by=("reg",))
    lake.merge(pl.DataFrame({"id": [1], "reg": ["b"], "v": [1]}), partition_by=("reg",))

    assert lake.rows("id", "reg", "v") == [(1, "b", 1), (2, "a", 2)]


def test_partition_columns_in_the_key_prune_and_tell_rows_apart(lake):
    keys = ("id", "reg")
    first = pl.DataFrame({"id": [1, 1, 1], "reg": ["a", "b", None], "v": [1, 2, 3]})
    lake.merge(first, keys, partition_by=("reg",))
    untouched = {name for name in lake.live() if name.startswith("reg=a")}
    lake.merge(
        pl.DataFrame({"id": [1, 1], "reg": ["b", None], "v": [20, 30]}), keys, partition_by=("reg",)
    )

    assert lake.rows("reg", "v") == [(None, 30), ("a", 1), ("b", 20)]
    assert untouched <= lake.live()


def test_delete_when_removes_matched_rows_and_adds_none(lake):
    lake.merge(pl.DataFrame({"id": [1, 2, 3], "op": ["u", "u", "u"]}))
    result = lake.merge(
        pl.DataFrame({"id": [1, 2, 9], "op": ["d", "x", "d"]}), delete_when="op = 'd'"
    )

    assert lake.rows() == [(2, "x"), (3, "u")]
    assert (result.rows_deleted, result.rows_updated, result.rows_inserted) == (1, 1, 0)
    assert result.table_rows == 2


def test_delete_when_holds_on_the_first_load_and_for_stale_rows(lake):
    batch = pl.DataFrame({"id": [1, 2], "ts": [5, 5], "gone": [True, None]})
    lake.merge(batch, delete_when="gone")
    assert lake.rows("id") == [(2,)]

    late = pl.DataFrame({"id": [2], "ts": [4], "gone": [True]})
    result = lake.merge(late, delete_when="gone", order_columns=("ts",))
    assert (result.rows_stale, lake.rows("id")) == (1, [(2,)])


@pytest.mark.parametrize("condition", ["nope = 1", "id +", "id + 1"])
def test_a_delete_when_that_cannot_be_is_refused_before_reading(lake, condition):
    with pytest.raises(WriteError, match="delete_when") as raised:
        lake.merge(pl.DataFrame({"id": [1]}), delete_when=condition)
    assert raised.value.code == "bad_delete_when"
    assert lake.asked == []


AWKWARD = ["id", "1inch", "order", "unit price", "a.b", 'say "hi"', "naïve", "tick`s", "\\", "{x}"]


@pytest.mark.parametrize("key", AWKWARD)
def test_awkward_column_names_work_as_values_and_as_keys(lake, key):
    """merge-awkward-column-names, merge-mixed-case-columns."""
    lake.merge(pl.DataFrame({name: [1, 2] for name in AWKWARD}), (key,))
    changed = pl.DataFrame({name: [2 if name == key else 20, 3] for name in AWKWARD})
    result = lake.merge(changed, (key,))

    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert [field.name for field in lake.table.schema().fields] == AWKWARD
    assert sorted(row[0] for row in lake.rows(key)) == [1, 2, 3]


@pytest.mark.parametrize("name", ["same", "stale", "action", "row", "file", "len", "literal"])
def test_names_that_the_merge_uses_itself_do_not_collide(lake, name):
    lake.merge(pl.DataFrame({"id": [1, 2], name: ["a", "b"], "v": [1, 2]}))
    lake.merge(pl.DataFrame({"id": [2], "v": [3]}))
    assert lake.rows("id", name, "v") == [(1, "a", 1), (2, "b", 3)]


def test_capitals_in_names_are_kept(lake):
    """merge-mixed-case-columns."""
    lake.merge(pl.DataFrame({"UserCode": ["a"], "Amount": [1]}), ("UserCode",))
    lake.merge(pl.DataFrame({"UserCode": ["a", "b"], "Amount": [2, 3]}), ("UserCode",))
    assert lake.rows("UserCode", "Amount") == [("a", 2), ("b", 3)]


def test_decimal_keys_of_another_scale_match(lake):
    """types-decimal-merge-key."""
    one = pl.DataFrame(
        {"alt": [Decimal("150.5")], "v": [1]}, schema_overrides={"alt": pl.Decimal(7, 2)}
    )
    two = pl.DataFrame(
        {"alt": [Decimal("150.5")], "v": [2]}, schema_overrides={"alt": pl.Decimal(6, 1)}
    )
    lake.merge(one, ("alt",))
    lake.merge(two, ("alt",))
    assert lake.rows() == [(Decimal("150.50"), 2)]


def test_not_null_keys_and_nested_not_null_fields_hold(lake):
    """merge-not-null-key, merge-nested-not-null."""
    from deltalake import DeltaTable, Field, Schema
    from deltalake.schema import StructType

    oid = StructType([Field("oid", "string", nullable=False)])
    DeltaTable.create(
        lake.uri, Schema([Field("uid", "string", nullable=False), Field("params", oid)])
    )
    lake.merge(pl.DataFrame({"uid": ["A", "B"], "params": [{"oid": "42"}, {"oid": "7"}]}), ("uid",))
    lake.merge(pl.DataFrame({"uid": ["A"], "params": [{"oid": "43"}], "pages": [3]}), ("uid",))

    assert lake.rows("uid", "params", "pages") == [
        ("A", {"oid": "43"}, 3),
        ("B", {"oid": "7"}, None),
    ]
    assert not lake.table.schema().fields[0].nullable
    with pytest.raises(WriteError, match=r"may not be null: 'params.oid' \(1 rows\)"):
        lake.merge(pl.DataFrame({"uid": ["C"], "params": [{"oid": None}]}), ("uid",))
    with pytest.raises(WriteError, match=r"may not be null: 'uid'"):
        lake.merge(pl.DataFrame({"uid": [None]}, schema={"uid": pl.String}), ("uid",))


def test_a_column_that_may_not_be_null_is_needed_for_new_rows_only(lake):
    from deltalake import DeltaTable, Field, Schema

    DeltaTable.create(
        lake.uri,
        Schema([Field("id", "long"), Field("must", "string", nullable=False), Field("v", "long")]),
    )
    lake.merge(pl.DataFrame({"id": [1], "must": ["x"], "v": [1]}))
    lake.merge(pl.DataFrame({"id": [1], "v": [2]}))
    assert lake.rows() == [(1, "x", 2)]
    with pytest.raises(WriteError, match="no column 'must'"):
        lake.merge(pl.DataFrame({"id": [2], "v": [2]}))


def test_a_big_merge_of_every_row_succeeds(lake):
    """merge-big-clean-batch."""
    frame = pl.DataFrame({"id": range(100_000), "v": range(100_000)})
    lake.merge(frame)
    result = lake.merge(frame.with_columns(pl.col("v") + 1))

    assert result.rows_updated == 100_000
    total = pl.scan_delta(lake.uri).select(pl.len(), pl.col("v").sum()).collect().row(0)
    assert total == (100_000, sum(range(1, 100_001)))


def test_only_files_that_hold_a_changed_key_are_written_anew(lake):
    for start in (0, 100, 200):
        lake.load(pl.DataFrame({"id": range(start, start + 100), "v": [0] * 100}))
    before = lake.live()
    result = lake.merge(pl.DataFrame({"id": [150, 300], "v": [1, 1]}))

    assert len(before & lake.live()) == 2
    assert (result.files_removed, result.files_added) == (1, 1)
    assert len(lake.rows()) == 301


def test_a_file_whose_range_fits_but_that_holds_no_key_is_left_alone(lake):
    lake.load(pl.DataFrame({"id": [0, 1000], "v": [0, 0]}))
    lake.load(pl.DataFrame({"id": [1, 999], "v": [0, 0]}))
    before = lake.live()
    lake.merge(pl.DataFrame({"id": [1], "v": [5]}))
    assert len(before & lake.live()) == 1


def test_stored_duplicates_of_a_key_become_one_row(lake):
    write_deltalake(lake.uri, pl.DataFrame({"id": [1, 1, 2], "v": [1, 1, 2]}))
    result = lake.merge(pl.DataFrame({"id": [1], "v": [1]}))

    assert lake.rows() == [(1, 1), (2, 2)]
    assert (result.rows_updated, result.rows_deleted, result.table_rows) == (1, 1, 2)


def test_tables_of_other_writers_without_statistics_are_merged_right(lake):
    write_deltalake(
        lake.uri,
        pl.DataFrame({"id": [1, 2], "t": [datetime(2026, 1, 1)] * 2}),
        configuration={"delta.dataSkippingNumIndexedCols": "0"},
    )
    lake.merge(pl.DataFrame({"id": [2, 3], "t": [datetime(2026, 2, 1)] * 2}))
    assert lake.rows("id") == [(1,), (2,), (3,)]


def test_a_full_refresh_of_a_merge_replaces_all_and_checks_its_keys(lake):
    lake.merge(pl.DataFrame({"id": [1, 2], "v": ["a", "b"]}))
    with pytest.raises(WriteError, match="id=5"):
        lake.merge(pl.DataFrame({"id": [5, 5], "v": [1, 2]}), mode="replace_all")
    lake.merge(
        pl.DataFrame({"id": [5, 5, 6], "v": [1, 2, 3]}),
        mode="replace_all",
        order_columns=("v",),
        delete_when="v = 3",
    )
    assert lake.rows() == [(5, 2)]


def test_a_batch_too_large_for_memory_is_merged_the_same(lake, monkeypatch):
    monkeypatch.setattr("datacoolie_core.writers.spill._IN_MEMORY", 0)
    lake.merge(pl.DataFrame({"id": [1, 2, 2], "v": [1, 2, 3]}), order_columns=("v",))
    result = lake.merge(pl.DataFrame({"id": [2, 3], "v": [30, 40]}))
    assert lake.rows() == [(1, 1), (2, 30), (3, 40)]
    assert (result.rows_updated, result.rows_inserted) == (1, 1)


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 6)),
        st.one_of(st.none(), st.sampled_from(["a", "b/c", "d e"])),
        # 0.0 and -0.0 are equal, so that one does not replace the other
        st.one_of(st.none(), st.floats(width=16).map(lambda value: value + 0.0)),
    ),
    max_size=8,
    unique_by=lambda row: row[0],
)
SCHEMA = {"id": pl.Int64, "s": pl.String, "f": pl.Float64}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=st.lists(ROWS, min_size=1, max_size=4), partitioned=st.booleans())
def test_a_table_after_merges_is_what_a_dictionary_would_hold(lake, batches, partitioned):
    lake.path = lake.path.parent / uuid4().hex
    expected: dict[int | None, str] = {}
    for batch in batches:
        frame = pl.DataFrame(batch, schema=SCHEMA, orient="row")
        lake.merge(frame, partition_by=("s",) if partitioned else (), required=True)
        expected.update({row[0]: str(row) for row in frame.rows()})

    stored = lake.table.to_pyarrow_table().select(list(SCHEMA))
    found = pl.DataFrame(stored).rows()
    assert sorted(map(str, found)) == sorted(expected.values())
