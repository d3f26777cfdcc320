"""History in real Delta tables, through the writer itself."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from datacoolie_core.errors import TransformError, WriteError
from datacoolie_core.metadata.options import DestinationOptions

INSTANT = pl.Datetime("us", "UTC")
VALIDITY = ("__valid_from", "__valid_to", "__is_current")


def at(day, month=1):
    return datetime(2025, month, day, tzinfo=UTC)


def versions(*rows, columns=("id", "v"), schema=None, load=1):
    """A batch as the transforms give it: the columns, then the instant."""
    frame = pl.DataFrame(
        list(rows), schema=[*columns, "__valid_from"], orient="row", infer_schema_length=None
    )
    return frame.with_columns(
        *(pl.col(name).cast(kind) for name, kind in (schema or {}).items()),
        pl.col("__valid_from").cast(INSTANT),
        pl.lit(None, dtype=INSTANT).alias("__valid_to"),
        pl.lit(value=True).alias("__is_current"),
        pl.lit(at(load, 6), dtype=INSTANT).alias("__created_at"),
        pl.lit(at(load, 6), dtype=INSTANT).alias("__updated_at"),
        pl.lit(f"run-{load}").alias("__dataflow_run_id"),
    )


@pytest.fixture
def flow(make_dataflow):
    def make(keys=("id",), effective="ts", close=False, **given):
        made = make_dataflow("scd2", keys=keys, **given)
        configure = made.destination.configure.model_copy(
            update={
                "scd2_effective_column": effective,
                "datacoolie": DestinationOptions(scd2_close_missing=close),
            }
        )
        destination = made.destination.model_copy(update={"configure": configure})
        return made.model_copy(update={"destination": destination})

    return make


@pytest.fixture
def keep(lake, flow):
    """Makes a load into the lake's table."""

    def load(frame, *, request=None, **given):
        return lake.write(lake.request(flow(**given), **(request or {})), frame)

    return load


def history(lake, *names):
    return lake.rows(*(names or ("id", "v")), *VALIDITY)


def test_a_changed_row_is_closed_and_its_new_version_opened_in_one_commit(lake, keep):
    """W36, scd2-changed-row-needs-two-actions."""
    keep(versions(("A", "CAT", at(1))))
    result = keep(versions(("A", "CAT1", at(2)), ("B", "CAT", at(2)), load=2))
    assert history(lake) == [
        ("A", "CAT", at(1), at(2), False),
        ("A", "CAT1", at(2), None, True),
        ("B", "CAT", at(2), None, True),
    ]
    assert (result.rows_inserted, result.rows_updated, result.rows_written) == (2, 1, 3)
    assert (result.table_version, result.table_rows) == (1, 3)
    assert lake.rows("v", "__created_at", "__updated_at", "__dataflow_run_id") == [
        ("CAT", at(1, 6), at(2, 6), "run-2"),
        ("CAT", at(2, 6), at(2, 6), "run-2"),
        ("CAT1", at(2, 6), at(2, 6), "run-2"),
    ]


def test_the_same_batch_again_makes_no_commit(lake, keep):
    """W13."""
    batch = versions((1, "a", at(1)), (2, None, at(1)))
    keep(batch)
    result = keep(batch)
    assert (result.committed, result.rows_unchanged) == (False, 2)
    assert lake.table.version() == 0


def test_a_change_to_null_and_from_null_is_a_change(lake, keep):
    """scd2-null-to-value."""
    for day, value in enumerate([None, "Name3", None, None], 1):
        keep(versions((3, value, at(day)), schema={"v": pl.String}))
    assert history(lake) == [
        (3, None, at(1), at(2), False),
        (3, None, at(3), None, True),
        (3, "Name3", at(2), at(3), False),
    ]


def test_several_versions_in_the_first_batch_are_chained(lake, keep):
    """W15."""
    keep(
        versions(
            (1, "a", at(1)), (1, "c", at(9)), (1, "b", at(5)), (1, "b", at(7)), (2, "x", at(1))
        )
    )
    assert history(lake) == [
        (1, "a", at(1), at(5), False),
        (1, "b", at(5), at(9), False),
        (1, "c", at(9), None, True),
        (2, "x", at(1), None, True),
    ]
    result = keep(versions((1, "d", at(10))))
    assert (result.rows_inserted, result.rows_updated) == (1, 1)


def test_a_late_version_goes_into_its_place(lake, keep):
    """W14."""
    keep(versions((1, "a", at(1))))
    keep(versions((1, "b", at(1, 2))))
    result = keep(versions((1, "c", at(15))))
    assert history(lake) == [
        (1, "a", at(1), at(15), False),
        (1, "b", at(1, 2), None, True),
        (1, "c", at(15), at(1, 2), False),
    ]
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 0)


def test_a_late_version_that_was_valid_then_is_nothing_new(lake, keep):
    keep(versions((1, "a", at(1)), (1, "b", at(9))))
    assert not keep(versions((1, "a", at(4)))).committed


def test_a_late_version_equal_to_the_one_after_it_lets_that_one_begin_earlier(lake, keep):
    keep(versions((1, "a", at(1)), (1, "b", at(9))))
    result = keep(versions((1, "b", at(4)), load=2))
    assert history(lake) == [(1, "a", at(1), at(4), False), (1, "b", at(4), None, True)]
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (0, 2, 0)


def test_a_row_of_the_same_instant_corrects_the_stored_one(lake, keep):
    keep(versions((1, "a", at(1)), (1, "b", at(9))))
    result = keep(versions((1, "B", at(9)), load=2))
    assert history(lake)[0] == (1, "B", at(9), None, True)
    assert (result.rows_inserted, result.rows_updated) == (0, 1)
    result = keep(versions((1, "a", at(9))))
    assert history(lake) == [(1, "a", at(1), None, True)]
    assert (result.rows_updated, result.rows_deleted) == (1, 1)


def test_a_correction_that_is_older_by_the_order_columns_is_stale(lake, keep):
    names = ("id", "v", "n")
    order = {"order_columns": ("n",)}
    keep(versions((1, "a", 5, at(1)), columns=names), request=order)
    result = keep(versions((1, "old", 4, at(1)), columns=names), request=order)
    assert (result.committed, result.rows_stale) == (False, 1)
    keep(versions((1, "new", 6, at(1)), columns=names), request=order)
    assert history(lake) == [(1, "new", at(1), None, True)]


def test_one_key_and_instant_with_two_contents_is_an_error_that_shows_it(lake, keep):
    """scd2-key-twice-in-batch."""
    with pytest.raises(WriteError, match=r"id=1, __valid_from=2025-01-01T00") as raised:
        keep(versions((1, "x", at(1)), (1, "y", at(1)), (2, "z", at(1))))
    assert raised.value.code == "duplicate_keys"
    assert not DeltaTable.is_deltatable(lake.uri)
    keep(versions((1, "x", at(1)), (1, "x", at(1))))
    assert history(lake) == [(1, "x", at(1), None, True)]


def test_order_columns_decide_between_rows_of_one_instant(lake, keep):
    names = ("id", "v", "n")
    rows = [(1, "x", 2, at(1)), (1, "y", 1, at(1)), (1, "z", 1, at(1))]
    result = keep(versions(*rows, columns=names), request={"order_columns": ("n",)})
    assert history(lake) == [(1, "x", at(1), None, True)]
    assert result.rows_stale == 2
    with pytest.raises(WriteError, match="different rows of one instant"):
        keep(versions(*rows[1:], columns=names), request={"order_columns": ("n",)})


def test_a_row_without_an_instant_is_an_error_that_names_its_key(lake, keep):
    """W16."""
    with pytest.raises(TransformError, match="id=7") as raised:
        keep(versions((7, "a", None), (8, "b", at(1))))
    assert raised.value.code == "null_effective_value"
    assert not lake.files()


def test_null_keys_are_one_key_and_types_are_not_mixed(lake, keep):
    """W20, W19."""
    keep(versions((None, "a", at(1)), (1, "b", at(1)), schema={"id": pl.Int64}))
    keep(versions((None, "c", at(2)), schema={"id": pl.Int64}))
    assert history(lake) == [
        (None, "a", at(1), at(2), False),
        (None, "c", at(2), None, True),
        (1, "b", at(1), None, True),
    ]
    with pytest.raises(WriteError, match="'id' is long in the table and double in the batch"):
        keep(versions((1.5, "b", at(3))))


def test_the_columns_of_the_instant_make_no_version_but_others_do(lake, keep):
    names = ("id", "v", "ts")
    keep(versions((1, "a", at(1), at(1)), columns=names))
    assert not keep(versions((1, "a", at(5), at(5)), columns=names)).committed
    keep(versions((1, "b", at(6), at(6)), columns=names))
    assert history(lake, *names) == [
        (1, "a", at(1), at(1), at(6), False),
        (1, "b", at(6), at(6), None, True),
    ]


def test_a_new_column_makes_versions_of_the_rows_that_have_a_value(lake, keep):
    keep(versions((1, "a", at(1)), (2, "b", at(1))))
    wide = versions((1, "a", 7, at(2)), (2, "b", None, at(2)), columns=("id", "v", "w"))
    result = keep(wide)
    assert history(lake, "id", "v", "w") == [
        (1, "a", None, at(1), at(2), False),
        (1, "a", 7, at(2), None, True),
        (2, "b", None, at(1), None, True),
    ]
    assert (result.rows_inserted, result.rows_unchanged) == (1, 1)


def test_a_column_that_the_batch_lacks_goes_on_as_it_was(lake, keep):
    keep(versions((1, "a", 7, at(1)), (2, "b", 8, at(1)), columns=("id", "v", "w")))
    keep(versions((1, "c", at(3)), (2, "b", at(3)), (3, "n", at(3))))
    keep(versions((1, "late", at(2))))
    assert history(lake, "id", "v", "w") == [
        (1, "a", 7, at(1), at(2), False),
        (1, "c", 7, at(3), None, True),
        (1, "late", 7, at(2), at(3), False),
        (2, "b", 8, at(1), None, True),
        (3, "n", None, at(3), None, True),
    ]


def test_values_of_every_kind_are_compared_as_they_are(lake, keep):
    names = ("id", "n", "d", "s", "l", "b")
    one = (1, float("nan"), Decimal("1.10"), {"x": None, "y": 1}, [1, None], b"\x00")
    keep(versions((*one, at(1)), columns=names))
    assert not keep(versions((*one, at(2)), columns=names)).committed
    for column, other in ((3, {"x": None, "y": 2}), (4, [1]), (5, b""), (1, None)):
        changed = [*one[:column], other, *one[column + 1 :]]
        schema = {"n": pl.Float64, "s": pl.Struct({"x": pl.Int64, "y": pl.Int64})}
        kinds = {"n": pl.Float64} if column == 1 else {}
        result = keep(versions((*changed, at(column + 10)), columns=names, schema=kinds))
        assert result.rows_inserted == 1, (column, schema)


def test_awkward_names_are_only_names(lake, keep):
    names = ("Order ID", 'a "quoted" b', "select", "ünï")
    keep(versions((1, "a", "b", "c", at(1)), columns=names), keys=("Order ID", "select"))
    keep(versions((1, "x", "b", "c", at(2)), columns=names), keys=("Order ID", "select"))
    assert history(lake, *names) == [
        (1, "a", "b", "c", at(1), at(2), False),
        (1, "x", "b", "c", at(2), None, True),
    ]


def test_files_without_a_row_that_changes_are_not_touched(lake, keep):
    keep(versions((1, "a", at(1)), (2, "b", at(1))))
    first = lake.live()
    keep(versions((10, "c", at(1)), (11, "d", at(1))))
    second = lake.live() - first
    result = keep(versions((10, "e", at(2))))
    assert first < lake.live()
    assert not second & lake.live()
    assert (result.files_removed, result.files_added) == (1, 1)


def test_a_row_that_is_closed_moves_to_the_partition_of_closed_rows(lake, keep):
    where = {"partition_by": ("__is_current",)}
    keep(versions((1, "a", at(1)), (2, "b", at(1))), **where)
    keep(versions((1, "c", at(2))), **where)
    assert history(lake) == [
        (1, "a", at(1), at(2), False),
        (1, "c", at(2), None, True),
        (2, "b", at(1), None, True),
    ]
    closed = {path for path in lake.live() if "__is_current=false" in path}
    result = keep(versions((1, "d", at(3))), **where)
    # what ended before the batch begins is not even opened
    assert closed < lake.live()
    assert result.files_removed == 1


def test_a_partition_column_is_no_part_of_the_key(lake, keep):
    """W22."""
    where = {"partition_by": ("v",)}
    keep(versions((1, "a", at(1))), **where)
    keep(versions((1, "b", at(2))), **where)
    assert history(lake) == [(1, "a", at(1), at(2), False), (1, "b", at(2), None, True)]


def test_missing_keys_are_closed_and_only_they(lake, keep):
    """scd2-only-missing-rows-closed."""
    how = {"close": True, "effective": None}
    all_ids = [(number, f"n{number}", at(1)) for number in range(1, 6)]
    keep(versions(*all_ids), request={"complete": True, "now": at(1)}, **how)
    rows = [(number, f"n{number}", at(2)) for number in (1, 2, 5)]
    result = keep(versions(*rows, load=2), request={"complete": True, "now": at(2)}, **how)
    assert [row[0] for row in history(lake, "id") if row[3]] == [1, 2, 5]
    assert [(row[0], row[2]) for row in history(lake, "id") if not row[3]] == [
        (3, at(2)),
        (4, at(2)),
    ]
    assert {row[1] for row in history(lake, "id")} == {at(1)}
    assert (result.rows_updated, result.rows_inserted, result.rows_unchanged) == (2, 0, 3)


def test_a_batch_that_is_not_everything_closes_nothing(lake, keep):
    how = {"close": True, "effective": None}
    keep(versions((1, "a", at(1)), (2, "b", at(1))), **how)
    assert not keep(versions((1, "a", at(2))), **how).committed


def test_a_key_that_comes_back_with_an_old_instant_is_open_from_the_load(lake, keep):
    how = {"close": True}
    keep(
        versions((1, "a", at(1)), (2, "b", at(1))), request={"complete": True, "now": at(1)}, **how
    )
    keep(versions((2, "b", at(1))), request={"complete": True, "now": at(5)}, **how)
    back = versions((1, "a", at(1)), (2, "b", at(1)))
    keep(back, request={"complete": True, "now": at(9)}, **how)
    assert history(lake) == [
        (1, "a", at(1), at(5), False),
        (1, "a", at(9), None, True),
        (2, "b", at(1), None, True),
    ]
    assert not keep(back, request={"complete": True, "now": at(11)}, **how).committed


def test_a_clock_that_goes_back_puts_no_load_before_what_is_stored(lake, keep):
    how = {"effective": None}
    keep(versions((1, "a", at(5))), **how)
    keep(versions((1, "b", at(3))), **how)
    assert [row[:2] + row[4:] for row in history(lake)] == [(1, "a", False), (1, "b", True)]
    (_, _, since, until, _), (_, _, after, _, _) = history(lake)
    assert since < until == after


def test_a_table_without_validity_columns_is_refused(lake, keep):
    write_deltalake(lake.uri, pl.DataFrame({"id": [1], "v": ["a"]}))
    with pytest.raises(WriteError, match="it holds no history"):
        keep(versions((1, "b", at(1))))


def test_a_large_batch_gives_the_same_table_as_a_small_one(lake, keep, monkeypatch):
    keep(versions(*[(number, "a", at(1)) for number in range(20)]))
    monkeypatch.setattr("datacoolie_core.writers.scd2.LARGE", 3)
    changed = [(number, "a" if number % 4 else "b", at(2)) for number in range(25)]
    result = keep(versions(*changed, (1, "c", at(3)), (1, "a", at(4))))
    assert (result.rows_inserted, result.rows_updated) == (5 + 5 + 2, 5 + 1)
    assert result.rows_unchanged == 15
    assert [row[1:4] for row in history(lake) if row[0] == 1] == [
        ("a", at(1), at(3)),
        ("a", at(4), None),
        ("c", at(3), at(4)),
    ]


def test_a_history_is_never_replaced(lake, keep):
    with pytest.raises(WriteError, match="it is not replaced"):
        keep(versions((1, "a", at(1))), request={"mode": "replace_all"})
