"""Append: every row once, columns grow, conflicts are refused before anything is written."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers import delta
from datacoolie_core.writers.request import SupersededError


def test_the_first_load_makes_the_table_and_all_of_it_in_version_0(lake):
    result = lake.load(pl.DataFrame({"id": [1, 2], "name": ["a", None]}))

    assert lake.rows() == [(1, "a"), (2, None)]
    assert (result.committed, result.table_version, result.table_rows) == (True, 0, 2)
    assert (result.rows_written, result.rows_inserted, result.files_added) == (2, 2, 1)
    assert result.schema == {"id": "long", "name": "string"}
    assert result.table_id == str(lake.table.metadata().id)
    assert lake.phases == ["staging", "staged", "committing", "committed"]
    assert lake.asked == [2]


def test_the_commit_carries_transaction_and_state(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    result = lake.load(pl.DataFrame({"id": [2]}))

    (newest,) = lake.table.history(1)
    assert newest["datacoolie"] == dict(result.info)
    assert result.info["sequence"] == 2
    assert result.info["run_id"] == "run-2"
    assert result.info["rows_inserted"] == 1
    assert lake.table.transaction_version("flow") == 2
    assert lake.rows() == [(1,), (2,)]


def test_columns_are_matched_by_name_and_missing_ones_are_null(lake):
    """se-append-column-order-and-missing."""
    lake.load(pl.DataFrame({"id": [1], "a": ["x"], "b": ["y"]}))
    lake.load(pl.DataFrame({"b": ["q"], "id": [2], "a": ["p"]}))
    lake.load(pl.DataFrame({"id": [3]}))

    assert lake.rows("id", "a", "b") == [(1, "x", "y"), (2, "p", "q"), (3, None, None)]


def test_a_new_column_is_added_just_before(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    result = lake.load(pl.DataFrame({"id": [2], "new": [1.5]}))

    assert lake.rows("id", "new") == [(1, None), (2, 1.5)]
    assert [entry["operation"] for entry in lake.table.history()] == [
        "WRITE",
        "ADD COLUMN",
        "CREATE TABLE",
    ]
    assert result.table_version == 2
    assert result.schema == {"id": "long", "new": "double"}


def test_a_new_field_inside_a_list_of_structs_is_added(lake):
    """se-new-field-inside-list-of-structs."""
    lake.load(pl.DataFrame({"uid": ["a"], "ev": [{"p": [{"m": "x"}]}]}))
    lake.load(pl.DataFrame({"uid": ["b"], "ev": [{"p": [{"m": "y", "n": 7}]}], "extra": [1]}))
    lake.load(pl.DataFrame({"uid": ["c"], "ev": [{"p": [{"m": "z"}]}]}))

    assert lake.rows("uid", "ev", "extra") == [
        ("a", {"p": [{"m": "x", "n": None}]}, None),
        ("b", {"p": [{"m": "y", "n": 7}]}, 1),
        ("c", {"p": [{"m": "z", "n": None}]}, None),
    ]


def test_struct_fields_in_another_order_are_matched_by_name(lake):
    lake.load(pl.DataFrame({"s": [{"a": 1, "b": 2}]}))
    lake.load(pl.DataFrame({"s": [{"b": 20, "a": 10}, None]}))

    assert [row[0] for row in lake.rows(sort=False) if row[0] and row[0]["a"] == 10] == [
        {"a": 10, "b": 20}
    ]
    assert (None,) in lake.rows()


@pytest.mark.parametrize(
    ("stored", "batch", "names"),
    [
        (pl.Series("v", ["a"]), pl.Series("v", [1]), ("string", "long")),
        (pl.Series("v", [1]), pl.Series("v", ["a"]), ("long", "string")),
        (pl.Series("v", [1], pl.Int32), pl.Series("v", [2**40]), ("integer", "long")),
        (pl.Series("v", [1]), pl.Series("v", [1.5]), ("long", "double")),
        (pl.Series("v", [date(2026, 1, 1)]), pl.Series("v", [datetime(2026, 1, 1)]), ("date",)),
        (
            pl.Series("v", [datetime(2026, 1, 1)], pl.Datetime("us", "UTC")),
            pl.Series("v", [datetime(2026, 1, 1)]),
            ("timestamp", "timestamp_ntz"),
        ),
        (pl.Series("v", [[1]]), pl.Series("v", [["x"]]), ("'v.element'", "long", "string")),
        (pl.Series("v", [{"a": 1}]), pl.Series("v", [{"a": "x"}]), ("'v.a'", "long", "string")),
    ],
)
def test_a_type_conflict_is_refused_with_both_types(lake, stored, batch, names):
    """merge-type-mismatch and its kind."""
    lake.load(stored.to_frame())
    before = lake.table.version()

    with pytest.raises(WriteError) as raised:
        lake.load(batch.to_frame())

    assert raised.value.code == "type_conflict"
    assert all(name in str(raised.value) for name in ("'v", *names))
    assert lake.table.version() == before
    assert lake.files() == lake.live()


@pytest.mark.parametrize(
    ("stored", "batch", "expected"),
    [
        (pl.Series("v", [1]), pl.Series("v", [2], pl.Int8), 2),
        (pl.Series("v", [1]), pl.Series("v", [3_000_000_000], pl.UInt32), 3_000_000_000),
        (pl.Series("v", [1.5]), pl.Series("v", [2]), 2.0),
        (pl.Series("v", [1.5]), pl.Series("v", [2.5], pl.Float32), 2.5),
        (pl.Series("v", [Decimal(1)], pl.Decimal(38, 2)), pl.Series("v", [7]), Decimal("7.00")),
        (
            pl.Series("v", [Decimal("1.25")], pl.Decimal(10, 2)),
            pl.Series("v", [Decimal("9.5")], pl.Decimal(5, 1)),
            Decimal("9.50"),
        ),
        (
            pl.Series("v", [Decimal("1.5")], pl.Decimal(2, 1)),
            pl.Series("v", [Decimal("-2.500")], pl.Decimal(38, 3)),
            Decimal("-2.5"),
        ),
        (pl.Series("v", ["a"]), pl.Series("v", ["b"], pl.Categorical), "b"),
    ],
)
def test_what_fits_without_loss_is_widened_into_the_table(lake, stored, batch, expected):
    lake.load(stored.to_frame())
    lake.load(batch.to_frame())

    assert lake.table.schema() is not None
    assert [row[0] for row in lake.rows()].count(expected) == 1


@pytest.mark.parametrize("value", ["12.34", "1.25", "12.3", "-0.05", "99999"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("load_type", ["append", "merge_upsert", "merge_overwrite"])
def test_a_decimal_with_too_many_digits_is_refused(lake, value, nested, load_type):
    """types-decimal-wider-than-table: neither rounded nor written as it is."""

    def amounts(text, kind):
        amount = pl.Series("amount", [Decimal(text), None], kind)
        frame = pl.DataFrame({"id": [1, 2], "amount": amount})
        return frame.select("id", amount=pl.struct(v="amount")) if nested else frame

    lake.load(amounts("1.5", pl.Decimal(2, 1)))
    with pytest.raises(WriteError, match=f"'amount': .*{value}.*decimal\\(2,1\\)") as raised:
        lake.load(amounts(value, pl.Decimal(9, 2)), load_type, keys=("id",))

    assert raised.value.code == "value_lost"
    assert lake.table.version() == 0
    assert lake.files() == lake.live()


def test_a_whole_number_that_is_not_exact_as_double_is_refused(lake):
    lake.load(pl.DataFrame({"v": [0.5]}))

    with pytest.raises(WriteError, match=r"column 'v': 9007199254740993 is not exact as double"):
        lake.load(pl.DataFrame({"v": [2**53 + 1]}))
    assert lake.rows() == [(0.5,)]
    assert lake.files() == lake.live()


def test_names_that_differ_in_case_only_are_refused(lake):
    lake.load(pl.DataFrame({"Id": [1]}))
    with pytest.raises(WriteError, match="'Id' and 'id' differ in upper and lower case"):
        lake.load(pl.DataFrame({"id": [2]}))


def test_nothing_is_committed_for_no_rows_unless_it_is_required(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    empty = pl.DataFrame({"id": []}, schema={"id": pl.Int64})

    assert not lake.load(empty).committed
    assert lake.table.version() == 0

    result = lake.load(empty, required=True)
    assert (result.committed, result.table_version, result.rows_written) == (True, 1, 0)
    assert lake.sequence() == 2
    assert lake.rows() == [(1,)]


def test_a_required_first_commit_without_rows_makes_an_empty_table(lake):
    result = lake.load(pl.DataFrame(schema={"id": pl.Int64}), required=True)

    assert (result.committed, result.table_rows) == (True, 0)
    assert lake.sequence() == 1
    assert lake.rows() == []


def test_none_from_finish_leaves_no_trace(lake):
    result = lake.load(pl.DataFrame({"id": [1]}), commit=False)

    assert not result.committed
    assert not lake.path.exists()


def test_a_frame_that_fails_half_way_leaves_no_file(lake):
    lake.load(pl.DataFrame({"id": [0]}))

    def broken(frame: pl.DataFrame) -> pl.DataFrame:
        if frame["id"].max() > 400_000:
            raise ValueError("source went away")
        return frame

    frame = pl.LazyFrame({"id": range(1_000_000)}).map_batches(broken, streamable=True)
    with pytest.raises(Exception, match="source went away"):
        lake.load(frame)

    assert lake.files() == lake.live()
    assert lake.asked == [1]
    assert lake.rows() == [(0,)]


def test_a_run_that_started_from_an_older_sequence_is_superseded(lake):
    """retry-append-twice: same sequence, and a lower one."""
    flow_rows = pl.DataFrame({"id": [1, 2, 3]})
    lake.load(flow_rows, sequence=7, expected_sequence=None)

    for sequence, expected in ((7, None), (8, None), (6, 5)):
        with pytest.raises(SupersededError, match="sequence 7"):
            lake.load(flow_rows, sequence=sequence, expected_sequence=expected)

    assert len(lake.rows()) == 3
    assert lake.files() == lake.live()


def test_another_dataflow_has_a_sequence_of_its_own(lake):
    lake.load(pl.DataFrame({"id": [1]}))
    lake.load(pl.DataFrame({"id": [2]}), dataflow_id="other")

    assert (lake.sequence("flow"), lake.sequence("other")) == (1, 1)
    assert lake.rows() == [(1,), (2,)]


def test_other_partition_columns_than_the_tables_are_refused(lake):
    lake.load(pl.DataFrame({"id": [1], "p": ["x"]}), partition_by=("p",))
    with pytest.raises(WriteError, match=r"partitioned by \['p'\], the metadata says \['id'\]"):
        lake.load(pl.DataFrame({"id": [1], "p": ["x"]}), partition_by=("id",))


def test_partition_columns_of_a_table_need_not_be_repeated(lake):
    lake.load(pl.DataFrame({"id": [1], "p": ["x"]}), partition_by=("p",))
    lake.load(pl.DataFrame({"id": [2], "p": ["y"]}))

    assert lake.rows("id", "p") == [(1, "x"), (2, "y")]
    assert all(name.startswith("p=") for name in lake.live())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("q",), "partition column 'q' is not among the columns"),
        (("l",), r"partition column 'l' is array<long>"),
        (("id", "l"), "partition column 'l'"),
    ],
)
def test_partition_columns_that_cannot_be_are_refused(lake, columns, message):
    with pytest.raises(WriteError, match=message):
        lake.load(pl.DataFrame({"id": [1], "l": [[1]]}), partition_by=columns)
    assert not lake.path.exists()


def test_a_not_null_column_keeps_nulls_out(lake):
    from deltalake import DeltaTable, Field, Schema

    DeltaTable.create(lake.uri, Schema([Field("id", "long", nullable=False), Field("v", "long")]))

    with pytest.raises(WriteError, match=r"may not be null: 'id' \(1 rows\)"):
        lake.load(pl.DataFrame({"id": [1, None], "v": [1, 2]}))
    with pytest.raises(WriteError, match="no column 'id', which may not be null"):
        lake.load(pl.DataFrame({"v": [1]}))
    assert lake.files() == set()

    lake.load(pl.DataFrame({"id": [1], "v": [None]}))
    assert lake.rows() == [(1, None)]


def test_a_very_wide_table_survives(lake):
    """se-very-wide-table: 2,000 columns, a filter on the last one, small commits."""
    wide = pl.DataFrame({f"c{n}": [n] for n in range(2000)})
    lake.load(wide)
    lake.load(wide.with_columns(pl.all() + 10_000))

    assert len(lake.table.schema().fields) == 2000
    assert pl.scan_delta(lake.uri).filter(pl.col("c1999") == 11_999).collect().height == 1
    logs = list((lake.path / "_delta_log").glob("*.json"))
    assert max(path.stat().st_size for path in logs) < 1024 * 1024


def test_a_file_uri_and_a_plain_path_are_the_same_table(lake):
    lake.load(pl.DataFrame({"id": [1]}), uri=lake.path.as_uri())
    lake.load(pl.DataFrame({"id": [2]}))
    assert lake.rows() == [(1,), (2,)]


@pytest.mark.parametrize("name", ["a b", "50%", "ü", "a[1]*", "it's", "a=b"])
def test_a_folder_may_have_almost_any_name(lake, name):
    """path-brackets-are-not-patterns, for destinations. polars' own scan_delta can't read these."""
    lake.path = lake.path.parent / name / "t"
    lake.load(pl.DataFrame({"id": [1]}))
    lake.load(pl.DataFrame({"id": [2]}))
    lake.merge(pl.DataFrame({"id": [2, 3]}))

    assert lake.path.is_dir()
    assert sorted(lake.table.to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
    assert delta.table_row_count(lake.uri) == 3
    assert delta.count_windows(lake.uri, "id", [Window("id", 2, None)]) == [2]


def test_vacuum_would_delete_none_of_the_live_files(lake):
    lake.load(pl.DataFrame({"id": [1], "p": ["a b"]}), partition_by=("p",))
    lake.load(pl.DataFrame({"id": [2], "p": ["a b"]}), partition_by=("p",))
    lake.load(pl.DataFrame({"id": [3], "p": ["c"]}), "overwrite", partition_by=("p",))

    doomed = set(lake.table.vacuum(0, dry_run=True, enforce_retention_duration=False))
    assert not doomed & lake.live()
    assert len(doomed) == 2
