"""SQLite databases: tables and queries, their types, their bounds, what goes wrong."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import ReadError
from datacoolie_core.plan.windows import Window


@pytest.fixture
def shop(reading):
    """Makes tables: a declaration and rows, in the database ``shop.db`` of the project."""

    def table(columns: str, rows: list[tuple[Any, ...]], name: str = "t") -> None:
        with sqlite3.connect(reading.root / "shop.db") as handle:
            handle.execute(f'CREATE TABLE "{name}" ({columns})')
            marks = ", ".join("?" * len(rows[0])) if rows else ""
            for row in rows:
                handle.execute(f'INSERT INTO "{name}" VALUES ({marks})', row)
        handle.close()

    return table


def flow(reading, **given):
    connection = {
        "database": "shop.db",
        "database_type": "sqlite",
        **given.pop("connection", {}),
    }
    return reading.flow("sql", connection=connection, **given)


def read(reading, **given):
    request = {key: given.pop(key) for key in ("lower", "stored", "window") if key in given}
    found = flow(reading, **given)
    return reading.read(found, query=found.source.query, **request)


def column(reading, shop, declaration: str, values: list[Any], **given) -> pl.Series:
    shop(f"v {declaration}", [(value,) for value in values])
    return read(reading, **given)[0]["v"]


def refused(reading, **given) -> ReadError:
    with pytest.raises(ReadError) as caught:
        read(reading, **given)
    return caught.value


# Types


def test_whole_numbers_before_a_fraction_are_doubles_from_the_first_row_on(reading, shop):
    """Case db-ints-then-fraction."""
    for kind in ("NUMERIC", "INTEGER", "", "DECIMAL(10, 2)", "REAL"):
        values = column(reading, shop, kind, [*range(30_000), 0.5])
        assert values.dtype == pl.Float64
        assert (values[0], values[-1], len(values)) == (0.0, 0.5, 30_001)
        (reading.root / "shop.db").unlink()


def test_a_column_that_is_null_for_long_has_the_type_of_its_values(reading, shop):
    """Case db-nulls-then-value."""
    values = column(reading, shop, "", [*[None] * 25_000, "late"])
    assert values.dtype == pl.String
    assert values[-1] == "late"


@pytest.mark.parametrize(
    ("declaration", "dtype"),
    [
        ("TEXT", pl.String),
        ("VARCHAR(20)", pl.String),
        ("INTEGER", pl.Int64),
        ("UNSIGNED BIG INT", pl.Int64),
        ("DECIMAL(9)", pl.Int64),
        ("NUMERIC", pl.Float64),
        ("DOUBLE PRECISION", pl.Float64),
        ("BOOLEAN", pl.Boolean),
        ("BLOB", pl.Binary),
        ("DATETIME", pl.String),
        ("", pl.Null),
        ("GEOMETRY", pl.Null),
    ],
)
def test_a_column_without_values_has_its_declared_type(reading, shop, declaration, dtype):
    """W59, and case db-all-null-text-column-to-delta: nothing declared takes the table's type."""
    assert column(reading, shop, declaration, [None, None]).dtype == dtype


@pytest.mark.parametrize(
    ("declaration", "values", "dtype", "read_as"),
    [
        ("INTEGER", [2**53 + 1, -(2**63), 2**63 - 1], pl.Int64, None),
        ("NUMERIC", [2**53 + 1, 5], pl.Int64, None),
        ("BOOLEAN", [1, 0, None], pl.Boolean, [True, False, None]),
        ("BLOB", [b"\x00\xff", b""], pl.Binary, None),
        ("DATE", ["2024-01-31", None], pl.String, None),
        ("DATETIME", ["2024-01-31 06:00:00"], pl.String, None),
        ("DATE", [20240131, "2024-02-01"], pl.String, ["20240131", "2024-02-01"]),
        ("TIMESTAMP", [1706659200], pl.Int64, None),
        ("TEXT", ["1", "ünïcode 漢字 🎉", "a\nb", ""], pl.String, None),
        ("REAL", [1, 1e300, -0.0], pl.Float64, [1.0, 1e300, -0.0]),
        ("POINT", ["1 2"], pl.String, None),
        ("JSON", ['{"a": 1}'], pl.String, None),
    ],
)
def test_values_are_read_as_they_are(reading, shop, declaration, values, dtype, read_as):
    found = column(reading, shop, declaration, values)
    assert found.dtype == dtype
    assert found.to_list() == (values if read_as is None else read_as)


@pytest.mark.parametrize(
    ("declaration", "values", "said"),
    [
        ("INTEGER", [1, "n/a"], "'n/a' (text), but it is declared INTEGER"),
        ("INTEGER", ["n/a"], "'n/a' (text), but it is declared INTEGER"),
        ("TEXT", ["a", b"\x01"], "b'\\x01' (blob), but it is declared TEXT"),
        ("BOOLEAN", [1, 7], "7 (integer), but it is declared BOOLEAN"),
        ("", [1, "a"], "'a' (text), but other values are integer"),
        ("NUMERIC", [2**60 + 1, 0.5], f"can't hold the integer {2**60 + 1}"),
    ],
)
def test_values_that_do_not_go_together_are_named(reading, shop, declaration, values, said):
    shop(f"id INTEGER, v {declaration}", list(enumerate(values)))
    error = refused(reading)
    assert said in error.message
    assert error.place == "connection 'in', table 't', column 'v'"
    assert (error.code, error.retryable) == ("type_conflict", False)
    assert "schema hint" in error.remedy


def test_a_hint_of_text_takes_every_number_and_text(reading, shop):
    values = column(reading, shop, "INTEGER", [1, 2.5, "n/a", None], hints={"v": "STRING"})
    assert values.to_list() == ["1", "2.5", "n/a", None]


def test_dates_that_sqlite_made_numbers_of_are_text_for_a_hint_with_a_format(reading, shop):
    hints = {"v": {"data_type": "DATE", "format": "yyyyMMdd"}}
    values = column(reading, shop, "DATE", ["20240131", "20240201"], hints=hints, watermark=["v"])
    assert values.to_list() == ["20240131", "20240201"]


def test_text_that_is_not_utf8_is_named_with_its_column(reading, shop):
    shop("id INTEGER, name TEXT", [(1, "ok")])
    with sqlite3.connect(reading.root / "shop.db") as handle:
        handle.execute("UPDATE t SET name = CAST(x'ff41' AS TEXT)")
    assert refused(reading).place == "connection 'in', table 't', column 'name'"
    error = refused(reading, query="SELECT id, name AS title FROM t")
    assert error.place == "connection 'in', source.query, column 'title'"


# Names


def test_awkward_names_are_quoted(reading, shop):
    """W57: a reserved word, spaces, quotes, another script; also as a watermark."""
    shop('"select" INTEGER, "a b" TEXT, "q""q" TEXT, "日付" TEXT', [(1, "x", "y", "z")], "order by")
    frame, _ = read(reading, table="order by", watermark=["select"], lower={"select": 0})
    assert frame.columns == ["select", "a b", 'q"q', "日付"]
    assert frame.rows() == [(1, "x", "y", "z")]


def test_a_schema_is_part_of_the_name(reading, shop):
    shop("id INTEGER", [(1,)])
    assert read(reading, source={"schema_name": "main"})[0].rows() == [(1,)]
    error = refused(reading, source={"schema_name": "sales"})
    assert error.message == "the database has no table 'sales.t'"


def test_a_view_is_read_as_a_table(reading, shop):
    shop("id INTEGER, v TEXT", [(1, "a"), (2, "b")])
    with sqlite3.connect(reading.root / "shop.db") as handle:
        handle.execute("CREATE VIEW newest AS SELECT * FROM t UNION ALL SELECT v, id FROM t")
    error = refused(reading, table="newest")
    assert error.code == "type_conflict"
    frame, _ = read(reading, table="newest", hints={"id": "STRING", "v": "STRING"})
    assert sorted(frame["id"]) == ["1", "2", "a", "b"]


# Queries


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, v FROM t;",
        "SELECT id, v FROM t -- the newest\n",
        "SELECT id, v FROM t -- the newest",
        "SELECT id, v FROM t; -- done",
        "-- first\nSELECT id, v FROM t /* all */ ;  ",
        "WITH a AS (SELECT * FROM t) SELECT id, v FROM a ORDER BY id LIMIT 10",
        "SELECT id, v FROM t WHERE v <> ';--'",
    ],
)
@pytest.mark.parametrize("lower", [{}, {"id": 2}])
def test_a_query_may_end_as_people_end_it(reading, shop, query, lower):
    """W56: with and without a watermark."""
    shop("id INTEGER, v TEXT", [(1, "a"), (2, "b"), (3, "c")])
    frame, batch = read(reading, query=query, watermark=["id"], lower=lower, stored=lower)
    assert sorted(frame["id"]) == ([2, 3] if lower else [1, 2, 3])
    assert batch.source_action["query"].count("?") == len(lower)


def test_types_of_a_query_are_those_of_its_columns_and_values(reading, shop):
    shop("id INTEGER, flag BOOLEAN", [(1, 1), (2, 0)])
    query = "SELECT flag AS yes, id * 0.5 AS half, NULL AS none, COUNT(*) AS n FROM t GROUP BY id"
    frame, _ = read(reading, query=query)
    assert frame.dtypes == [pl.Boolean, pl.Float64, pl.Null, pl.Int64]


def test_a_union_keeps_every_value_as_it_is(reading, shop):
    """SQLite would make 7 of 007 in a table made from the query."""
    shop("a INTEGER, b TEXT", [(1, "007")])
    query = "SELECT a AS v FROM t UNION ALL SELECT b FROM t"
    frame, _ = read(reading, query=query, hints={"v": "STRING"})
    assert sorted(frame["v"]) == ["007", "1"]


@pytest.mark.parametrize(
    ("query", "line", "said"),
    [
        ("SELECT id\nFORM t", 2, 'near "t": syntax error'),
        ("SELECT id\nFROM t\nWHER id > 1", 3, 'near "id": syntax error'),
        ("SELECT id,\n  nope\nFROM t", 2, "no such column: nope"),
        ("SELECT id\nFROM orders", 2, "the database has no table 'orders'"),
        ("SELECT id,\n bad_fn(id) FROM t", 2, "no such function: bad_fn"),
        ("DELETE FROM t", 1, 'near "DELETE": syntax error'),
        ("SELECT 1; DROP TABLE t", None, "one statement at a time"),
    ],
)
def test_a_wrong_query_is_named_with_its_line(reading, shop, query, line, said):
    shop("id INTEGER", [(1,)])
    found = flow(reading, query="sales/new.sql")
    with pytest.raises(ReadError) as caught:
        reading.open(found, query=query)
    error = caught.value
    assert said in error.message
    assert error.place.startswith("connection 'in', sales/new.sql")
    assert line is None or error.place.endswith(f", line {line}")
    assert error.code in ("sql_error", "missing_table")
    assert not error.retryable
    assert read(reading)[0].rows() == [(1,)]


def test_two_columns_of_one_name_are_refused(reading, shop):
    shop("id INTEGER", [(1,)])
    error = refused(reading, query="SELECT a.id, b.id FROM t a JOIN t b")
    assert error.message == "the query gives more than one column called 'id'"


# Filters and bounds


def test_the_filter_is_in_the_sql_of_the_database(reading, shop):
    shop("id INTEGER, name TEXT", [(1, "Ann"), (2, "bob"), (3, "Al")])
    source = {"filter_expression": "name GLOB 'A*' -- theirs"}
    frame, batch = read(reading, source=source)
    assert frame["id"].to_list() == [1, 3]
    assert batch.observation.rows_read == 2
    assert "GLOB" in batch.source_action["query"]


@pytest.mark.parametrize("written", ["nme = 'x'", "\"nme\" = 'x'"])
def test_a_filter_on_a_column_that_is_not_there_is_refused(reading, shop, written):
    """SQLite takes a quoted unknown name for a text, and would find no row."""
    shop("id INTEGER, name TEXT", [(1, "x")])
    error = refused(reading, source={"filter_expression": written})
    assert (error.code, error.remedy) == ("missing_column", "Did you mean 'name'?")


def test_bounds_are_parameters_and_quotes_in_them_are_harmless(reading, shop):
    shop("k TEXT", [("a",), ("b'; DROP TABLE t; --",), ("c",)])
    lower = {"k": "b'; DROP TABLE t; --"}
    frame, batch = read(reading, watermark=["k"], lower=lower, hints={"k": "STRING"})
    assert sorted(frame["k"]) == ["b'; DROP TABLE t; --", "c"]
    assert batch.source_action["parameters"] == ["b'; DROP TABLE t; --"]


@pytest.mark.parametrize("hint", [None, "TIMESTAMP_NTZ"])
def test_text_dates_are_compared_as_dates(reading, shop, hint):
    """W7: as text, a space comes before T, so a row of the day before would be missed."""
    rows = [(1, "2025-01-01 10:00:00"), (2, "2025-01-01T23:59:59"), (3, "2025-01-02 00:00:00")]
    shop("id INTEGER, ts TEXT", rows)
    hints = {} if hint is None else {"ts": hint}
    window = Window("ts", datetime(2025, 1, 1), datetime(2025, 1, 2))
    frame, batch = read(reading, watermark=["ts"], window=window, hints=hints)
    assert sorted(frame["id"]) == [1, 2]
    assert batch.observation.candidate == {"ts": datetime(2025, 1, 1, 23, 59, 59)}
    bound = {"ts": datetime(2025, 1, 1, 10, 0, 1)}
    frame, _ = read(reading, watermark=["ts"], lower=bound, stored=bound, hints=hints)
    assert sorted(frame["id"]) == [2, 3]


def test_offsets_in_text_are_instants(reading, shop):
    rows = [
        (1, "2025-01-02T00:30:00+14:00"),
        (2, "2025-01-01T00:30:00-12:00"),
        (3, "2025-01-01T09:00Z"),
    ]
    shop("id INTEGER, ts TEXT", rows)
    bound = {"ts": datetime(2025, 1, 1, 10, 0, tzinfo=UTC)}
    frame, _ = read(reading, watermark=["ts"], lower=bound, stored=bound)
    assert sorted(frame["id"]) == [1, 2]


def test_a_hinted_format_of_days_first_is_read_whole(reading, shop):
    shop("id INTEGER, d TEXT", [(1, "31/12/2024"), (2, "01/02/2025"), (3, "02/01/2025")])
    hints = {"d": {"data_type": "DATE", "format": "dd/MM/yyyy"}}
    bound = {"d": date(2025, 1, 2)}
    frame, _ = read(reading, watermark=["d"], lower=bound, stored=bound, hints=hints)
    assert sorted(frame["id"]) == [2, 3]


def test_a_date_in_a_strange_form_stops_the_read_even_below_the_bound(reading, shop):
    """The database alone would leave it out without a word."""
    shop("id INTEGER, d TEXT", [(1, "2025-01-01"), (2, "01/02/2025")])
    bound = {"d": date(2025, 1, 1)}
    with pytest.raises(Exception, match="01/02/2025"):
        read(reading, watermark=["d"], lower=bound, stored=bound)


def test_rows_without_a_watermark_are_counted(reading, shop):
    shop("id INTEGER, ts INTEGER", [(1, None), (2, 5), (3, 6)])
    bound = {"ts": 5}
    frame, batch = read(reading, watermark=["ts"], lower=bound, stored=bound)
    assert batch.observation.rows_null_watermark == 1
    assert sorted(frame["id"]) == [1, 2, 3]


def test_a_row_above_in_one_of_several_columns_is_read(reading, shop):
    shop("a INTEGER, b TEXT", [(1, "2025-01-09"), (9, "2025-01-01"), (1, "2025-01-01"), (9, None)])
    bound = {"a": 5, "b": date(2025, 1, 5)}
    frame, _ = read(reading, watermark=["a", "b"], lower=bound, stored=bound)
    assert frame.rows() == [(1, "2025-01-09"), (9, "2025-01-01"), (9, None)]


@pytest.mark.parametrize("declaration", ["TEXT", "", "VARCHAR(9)"])
def test_numbers_kept_as_text_are_compared_as_numbers(reading, shop, declaration):
    """W1: 9 is not above 10."""
    shop(f"id {declaration}", [("9",), ("10",), ("11",)])
    frame, _ = read(reading, watermark=["id"], lower={"id": 10}, stored={"id": 10})
    assert sorted(frame["id"]) == ["10", "11"]
    query = "SELECT CAST(id AS TEXT) AS id FROM t"
    frame, _ = read(reading, query=query, watermark=["id"], lower={"id": 10}, stored={"id": 10})
    assert sorted(frame["id"]) == ["10", "11"]


@pytest.mark.parametrize(
    ("bound", "wanted"),
    [(2**53 + 1, [2]), (Decimal("1.5"), [1, 2]), (0.5, [0, 1, 2]), (2**70, [])],
)
def test_numbers_are_bounded_exactly(reading, shop, bound, wanted):
    shop("id INTEGER, v NUMERIC", [(0, 1), (1, 2**53), (2, 2**53 + 1)])
    frame, _ = read(reading, watermark=["v"], lower={"v": bound}, stored={"v": bound})
    assert sorted(frame["id"]) == wanted


def test_a_table_s_index_serves_a_bound_of_numbers(reading, shop):
    shop("id INTEGER PRIMARY KEY, v TEXT", [(one, "x") for one in range(10)])
    _, batch = read(reading, watermark=["id"], lower={"id": 5}, stored={"id": 5})
    action = batch.source_action
    with sqlite3.connect(reading.root / "shop.db") as handle:
        plan = handle.execute(f"EXPLAIN QUERY PLAN {action['query']}", action["parameters"])
        assert "SEARCH" in str(plan.fetchall())


_MOMENTS = st.datetimes(datetime(2024, 12, 28), datetime(2025, 1, 4))
_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moments=st.lists(st.tuples(_MOMENTS, st.sampled_from(_FORMS)), min_size=1, max_size=12),
    bound=_MOMENTS,
)
def test_no_text_date_at_or_above_the_bound_is_missed(reading, shop, moments, bound):
    (reading.root / "shop.db").unlink(missing_ok=True)
    texts = [moment.strftime(form) for moment, form in moments]
    shop("ts TEXT", [(one,) for one in texts])
    hints = {"ts": "TIMESTAMP_NTZ"}
    frame, _ = read(
        reading, watermark=["ts"], lower={"ts": bound}, stored={"ts": bound}, hints=hints
    )
    wanted = [one for one in texts if datetime.fromisoformat(one) >= bound]
    assert sorted(frame["ts"]) == sorted(wanted)
