"""Loads through the driver: several writers of a table, merge keys, types, names, broken SQL."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

KILLER = Path(__file__).parents[1] / "faults" / "killed_run.py"


def frame(*ids, **more):
    return pl.DataFrame({"id": list(ids)}, schema={"id": pl.Int64}).with_columns(
        **{name: pl.lit(value) for name, value in more.items()}
    )


def many(project, count, load_type, ids, **more):
    for number in range(count):
        project.write(f"s{number}", "a.parquet", ids(number))
        project.flow(f"f{number}", source_table=f"s{number}", load_type=load_type, **more)


def test_two_overwrites_of_one_table_leave_the_last_one_whole(project):
    """W38."""
    many(project, 2, "overwrite", lambda number: frame(*range(number * 10, number * 10 + 3)))
    for _ in range(3):
        assert project.run().succeeded == 2
        assert project.ids() in ([0, 1, 2], [10, 11, 12])


def test_six_merges_onto_a_table_that_is_not_there_keep_one_row_a_key(project):
    """W39."""
    many(
        project,
        6,
        "merge_upsert",
        lambda number: frame(*range(200), flow=number),
        merge_keys=["id"],
    )
    assert project.run().succeeded == 6
    assert project.ids() == list(range(200))


def test_six_appends_onto_a_table_that_is_not_there_all_arrive(project):
    """W41."""
    many(project, 6, "append", lambda number: frame(number), watermark=["id"])
    assert project.run().succeeded == 6
    assert project.ids() == list(range(6))
    assert project.run().skipped == 6


def test_processes_that_create_one_table_together_lose_nothing(project):
    """W41 across processes."""
    processes = []
    for number in range(4):
        project.write(f"s{number}", "a.parquet", frame(number))
        project.flows = []
        project.flow(f"f{number}", source_table=f"s{number}", watermark=["id"])
        metadata = project.root / f"m{number}.json"
        metadata.write_text(json.dumps(project.document))
        command = [sys.executable, str(KILLER), str(metadata), "none", "load"]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE))
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert project.ids() == [0, 1, 2, 3]


def test_a_key_that_changes_its_partition_stays_one_row(project):
    """W22."""
    project.flow(
        load_type="merge_upsert",
        merge_keys=["id"],
        watermark=["v"],
        partition_columns=[{"column": "region"}],
    )
    project.write("t", "a.parquet", frame(1, 2, region="a", v=1))
    project.run_one()
    project.write("t", "b.parquet", frame(1, region="b", v=2))
    project.run_one()
    assert project.table().select("id", "region", "v").rows() == [(1, "b", 2), (2, "a", 1)]


def test_a_merge_key_that_is_not_in_the_data_fails_before_anything_is_written(project):
    """W52."""
    project.flow(load_type="merge_upsert", merge_keys=["idd"])
    project.write("t", "a.parquet", frame(1))
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert "'idd'" in result.error.message
    assert "'id'" in result.error.message
    assert not Path(project.path()).exists()


def test_a_merge_key_with_a_space_is_found_under_its_cleaned_name(project):
    """W53."""
    project.flow(load_type="merge_upsert", merge_keys=["Order ID"])
    for value in (1, 2):
        project.write("t", "a.parquet", pl.DataFrame({"Order ID": [1, 2], "Value": [value, 7]}))
        project.run_one()
    assert project.table().rows() == [(1, 2), (2, 7)]
    assert project.table().columns == ["order_id", "value"]


def test_names_can_be_kept_as_they_are(project):
    """merge-awkward-column-names, merge-mixed-case-columns."""
    columns = [
        "id",
        "1inch",
        "order",
        "unit price",
        "a.b",
        'say "hi"',
        "naïve",
        "tick`s",
        "UserCode",
    ]
    for key in columns:
        project.flow(
            f"by {key}",
            dataflow_id=f"by {key}",
            table=f"t{columns.index(key)}",
            load_type="merge_upsert",
            merge_keys=[key],
            transform={"configure": {"column_name_mode": "none"}},
        )
    for value in (1, 2):
        rows = {name: [1, 2] for name in columns} | {"value": [value, value]}
        project.write("t", "a.parquet", pl.DataFrame(rows))
        result = project.run()
        assert not result.errors
    for number in range(len(columns)):
        table = project.table(f"t{number}")
        assert table.columns == [*columns, "value"]
        assert table["value"].to_list() == [2, 2]


def test_null_keys_meet_each_other(project):
    """W20, merge-null-in-key."""
    project.flow(load_type="merge_upsert", merge_keys=["a", "b"])
    for value in (5, 6, 7):
        rows = pl.DataFrame(
            {"a": [10], "b": [None], "v": [value]}, schema_overrides={"b": pl.Int64}
        )
        project.write("t", "a.parquet", rows)
        project.run_one()
    assert project.table().rows() == [(10, None, 7)]


def test_a_row_that_is_older_than_the_stored_one_is_not_applied(project):
    """merge-late-row-overwrites-newer."""
    project.flow(
        load_type="merge_upsert", merge_keys=["id"], transform={"latest_data_columns": ["ts"]}
    )
    project.write("t", "a.parquet", frame(1, ts=20, v="new"))
    project.run_one()
    project.write("t", "a.parquet", frame(1, ts=10, v="old"))
    result = project.run_one()
    assert project.table().rows() == [(1, 20, "new")]
    assert result.rows["rows_stale"] == 1


def test_duplicate_keys_without_an_order_fail_and_are_shown(project):
    """W21, merge-source-key-twice-new."""
    project.flow(load_type="merge_upsert", merge_keys=["id"])
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 1, 2], "v": ["a", "b", "c"]}))
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert "id" in result.error.message
    assert "1" in result.error.message
    assert not Path(project.path()).exists()


def test_duplicate_keys_with_an_order_keep_the_newest(project):
    project.flow(load_type="merge_upsert", merge_keys=["id"], watermark=["ts"])
    project.write(
        "t", "a.parquet", pl.DataFrame({"id": [1, 1, 2], "ts": [1, 2, 1], "v": ["a", "b", "c"]})
    )
    project.run_one()
    assert project.table().rows() == [(1, 2, "b"), (2, 1, "c")]


def test_unchanged_rows_are_not_touched(project):
    """W71."""
    project.flow(load_type="merge_upsert", merge_keys=["id"])
    project.write("t", "a.parquet", frame(1, 2, v="a"))
    project.run_one()
    before = pl.read_delta(project.path()).sort("id")
    project.write("t", "a.parquet", pl.concat([frame(1, v="a"), frame(2, v="b")]))
    result = project.run_one()
    after = pl.read_delta(project.path()).sort("id")
    assert (result.rows["rows_updated"], result.rows["rows_unchanged"]) == (1, 1)
    assert after.row(0) == before.row(0)
    assert after["__created_at"].to_list() == before["__created_at"].to_list()
    assert after["__updated_at"][1] > before["__updated_at"][1]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT id FROM o WHERE (", "SQL"),
        ("SELECT nope FROM o", "nope"),
        ("SELECT * FROM no_such_table", "no_such_table"),
    ],
)
def test_a_broken_sql_file_is_named_and_nothing_is_written(project, sql, said):
    project.flow("base")
    project.write("t", "a.parquet", frame(1))
    project.run()
    (project.root / "sql").mkdir()
    (project.root / "sql/q.sql").write_text(sql)
    project.flow(
        "q",
        table="gold",
        load_type="full_load",
        source={"connection_name": "lake_in", "query": "sql/q.sql", "table": None},
    )
    result = next(one for one in project.run().dataflows if one.dataflow.name == "q")
    assert result.status == "failed"
    assert said in result.error.message
    assert "q" in result.error.message
    assert len(result.attempts) == 1
    assert not Path(project.path("gold")).exists()


def test_a_missing_sql_file_fails_that_dataflow_alone(project):
    project.flow("base")
    project.write("t", "a.parquet", frame(1))
    project.flow(
        "q",
        table="gold",
        load_type="full_load",
        source={"connection_name": "lake_in", "query": "sql/none.sql", "table": None},
    )
    result = project.run()
    assert (result.succeeded, result.failed) == (1, 1)
    (message,) = result.errors.values()
    assert "sql/none.sql" in message


def test_sql_over_tables_of_the_lake_is_ordered_by_lineage(project):
    project.flow("base")
    project.write("t", "a.parquet", frame(1, 2, 3))
    (project.root / "sql").mkdir()
    (project.root / "sql/q.sql").write_text("-- sum\nSELECT sum(id) AS total FROM o;\n")
    project.flow(
        "a_gold",
        table="gold",
        load_type="full_load",
        source={"connection_name": "lake_in", "query": "sql/q.sql", "table": None},
    )
    assert [one.dataflow.name for one in project.run().dataflows] == ["base", "a_gold"]
    assert project.table("gold").rows() == [(6,)]


GOLDEN = Path(__file__).parent / "golden" / "commit_format_1.json"


def test_the_commit_info_is_the_golden_file(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    info = DeltaTable(project.path()).history(1)[0]["datacoolie"]
    for changing in ("run_id", "updated_at"):
        assert isinstance(info[changing], str)
        info[changing] = "…"
    assert (
        json.dumps(info, indent=2, sort_keys=True, ensure_ascii=False) + "\n" == GOLDEN.read_text()
    )


def test_a_date_partition_is_written_and_read_back(project):
    project.flow(partition_columns=[{"column": "day", "expression": "ts"}], load_type="full_load")
    days = pl.DataFrame({"id": [1, 2], "ts": ["2024-02-29", "2024-03-01"]})
    project.write("t", "a.parquet", days)
    project.run_one()
    assert DeltaTable(project.path()).metadata().partition_columns == ["day"]
    assert project.table()["day"].to_list() == ["2024-02-29", "2024-03-01"]


def test_a_full_refresh_of_a_shared_append_is_refused_and_takes_no_row(project):
    many(project, 2, "append", lambda number: frame(number), watermark=["id"])
    project.run()
    result = project.run(full_refresh=True, include=["f0"])
    (message,) = result.errors.values()
    assert "other active dataflows" in message
    assert project.ids() == [0, 1]


def test_a_full_refresh_of_a_shared_merge_keeps_the_rows_of_others(project):
    many(project, 2, "merge_upsert", lambda number: frame(number), merge_keys=["id"])
    project.run()
    assert project.run(full_refresh=True, include=["f0"]).failed == 0
    assert project.ids() == [0, 1]


def test_tables_may_lie_in_folders_of_any_name(new_project):
    project = new_project()
    project.root = project.root / "a b" / "50% é#?"
    project.root.mkdir(parents=True)
    project.flow("a", watermark=["id"], table="my täble", partition_columns=[{"column": "r"}])
    project.flow(
        "b",
        table="cöpy",
        source={"connection_name": "lake_in", "table": "my täble", "watermark_columns": ["id"]},
    )
    project.flow(
        "c",
        table="sql",
        load_type="full_load",
        source={"connection_name": "lake_in", "query": 'SELECT id, r FROM "cöpy"', "table": None},
    )
    project.write("t", "a.parquet", frame(1, r="x y/é%"))
    assert project.run().succeeded == 3
    project.write("t", "b.parquet", frame(2, r="%20"))
    assert project.run().failed == 0
    (result,) = project.run(include=["c"]).dataflows
    assert (result.rows["rows_read"], result.table_rows) == (2, 2)


def test_a_partition_value_that_would_break_the_table_is_refused(project):
    from decimal import Decimal

    project.flow(partition_columns=[{"column": "p"}])
    good = pl.DataFrame({"id": [1], "p": [Decimal("1.05")]})
    project.write("t", "a.parquet", good)
    project.run_one()
    project.write("t", "a.parquet", good.with_columns(p=pl.lit(Decimal("-0.05"))))
    (result,) = project.run().dataflows
    assert (result.status, result.error.code) == ("failed", "unsupported_partition_value")
    assert "-0.05" in result.error.message
    assert project.table().rows() == [(1, Decimal("1.05"))]


@pytest.mark.parametrize("name", ["unit price", 'say "hi"', "naïve", "a.b", "tick`s", "50%"])
def test_a_table_partitioned_by_an_awkward_name_can_be_read_on(project, name):
    project.flow(
        partition_columns=[{"column": name}],
        transform={"configure": {"column_name_mode": "none"}},
    )
    project.flow("g", table="g", source={"connection_name": "lake_in", "table": "o"})
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 2], name: ["q r", "é/%"]}))
    assert not project.run().errors
    assert pl.read_delta(project.path())[name].sort().to_list() == ["q r", "é/%"]


def test_a_digit_that_a_wider_type_would_lose_is_named_with_its_column(project):
    project.flow(load_type="full_load")
    project.write("t", "a.parquet", pl.DataFrame({"id": [9007199254740993]}))
    project.write("t", "b.parquet", pl.DataFrame({"id": [1.5]}))
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert "'id'" in result.error.message
    assert "9007199254740993" in result.error.message
    assert "fault of the product" not in result.error.message


@pytest.mark.parametrize(("kind", "value"), [("float", "1e300"), ("double", "1e999")])
def test_a_number_too_large_for_its_float_is_no_silent_infinity(project, kind, value):
    project.source_format = "csv"
    project.flow(
        load_type="full_load",
        transform={"schema_hints": [{"column_name": "x", "data_type": kind}]},
    )
    project.write("t", "a.csv", pl.DataFrame({"x": ["0.5", value]}))
    (result,) = project.run().dataflows
    assert result.status == "failed"
    assert value in result.error.message
    project.write("t", "a.csv", pl.DataFrame({"x": ["0.5", "inf"]}))
    project.run_one()
