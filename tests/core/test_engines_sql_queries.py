"""Queries over tables: the functions mean what they mean in an expression."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from datacoolie_core.engines.bad_value import BadValue
from datacoolie_core.engines.sql.queries import query_frame
from datacoolie_core.engines.sql.values import SqlError
from datacoolie_core.errors import ReadError

ORDERS = pl.DataFrame(
    {
        "id": [1, 2, 3, 4, 5],
        "cust": [1, 1, 2, None, 9],
        "ts": [datetime(2024, month, 5, 3, tzinfo=UTC) for month in (1, 1, 2, 3, 3)],
        "amount": ["1.5", "2", "30", None, "7"],
        "Region": ["N", "n", "S", "S", None],
    }
)
CUSTOMERS = pl.DataFrame({"id": [1, 2, 3], "name": ["Ann", "Bob", None], "region": ["N", "S", "S"]})
TABLES = {"orders": ORDERS, "silver.cust": CUSTOMERS}

QUERIES = """
SELECT id, date_trunc('month', ts) m FROM orders ORDER BY id
SELECT *, upper(region) r FROM orders ORDER BY id
SELECT date_trunc('month', ts) AS m, count(*) n, sum(CAST(amount AS DOUBLE)) a FROM orders GROUP BY date_trunc('month', ts) ORDER BY m
SELECT date_trunc('month', ts) AS m, count(*) n FROM orders GROUP BY 1 ORDER BY 1 DESC
SELECT date_trunc('month', ts) AS m, count(*) n FROM orders GROUP BY m HAVING count(*) > 1 ORDER BY n DESC, m
SELECT round(sum(CAST(amount AS DOUBLE)) / count(*), 2) x FROM orders
SELECT sum(CASE WHEN upper(region) = 'S' THEN 1 ELSE 0 END) s, count(DISTINCT upper(region)) c FROM orders
SELECT o.id, c.name, concat_ws('-', o.id, c.name) k FROM orders o LEFT JOIN silver.cust c ON o.cust = c.id ORDER BY o.id
SELECT o.id, c.name FROM orders o JOIN silver.cust c ON upper(o.region) = c.region AND o.cust = c.id ORDER BY o.id
SELECT silver.cust.id, upper(orders.region) r FROM orders JOIN silver.cust ON orders.cust = silver.cust.id ORDER BY 1, 2
SELECT c.name, max(o.ts) t FROM orders o RIGHT JOIN silver.cust c ON o.cust = c.id AND year(o.ts) = 2024 GROUP BY c.name ORDER BY c.name
SELECT lower(c.name) n FROM silver.cust c LEFT ANTI JOIN orders o ON o.cust = c.id ORDER BY n
SELECT lower(c.name) n FROM silver.cust c LEFT SEMI JOIN orders o ON o.cust = c.id ORDER BY n
SELECT id, name, nvl(amount, '0') a FROM orders JOIN silver.cust USING (id) ORDER BY id
SELECT o.id, o.ts + INTERVAL 1 DAY d FROM orders AS o, silver.cust AS c WHERE o.cust = c.id ORDER BY o.id
WITH m AS (SELECT id, month(ts) mo FROM orders), k AS (SELECT mo, count(*) n FROM m GROUP BY mo) SELECT m.id, k.n * 2 d FROM m JOIN k ON m.mo = k.mo ORDER BY id
SELECT id FROM orders WHERE cust IN (SELECT id FROM silver.cust WHERE upper(name) LIKE 'A%') ORDER BY id
SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM silver.cust) AND year(ts) = 2024 ORDER BY id
SELECT id FROM orders WHERE amount = (SELECT max(amount) FROM orders) AND upper(region) = 'S'
SELECT id, row_number() OVER (PARTITION BY date_trunc('month', ts) ORDER BY id DESC) rn FROM orders ORDER BY id
SELECT id, sum(id) OVER (PARTITION BY month(ts)) + 1 s FROM orders ORDER BY id
SELECT id, avg(CAST(amount AS DOUBLE)) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) a FROM orders ORDER BY id
SELECT id, ts FROM (SELECT id, ts, row_number() OVER (PARTITION BY month(ts) ORDER BY id DESC) rn FROM orders) WHERE rn = 1 ORDER BY id
SELECT DISTINCT upper(region) r FROM orders ORDER BY r
SELECT id + 1 x FROM orders UNION ALL SELECT id * 10 FROM silver.cust ORDER BY x
SELECT id, upper(region) u FROM orders ORDER BY region NULLS LAST, id LIMIT 3 OFFSET 1
SELECT id, upper(region) u FROM orders ORDER BY region, id DESC
SELECT 'x' AS k, 1 + 1 AS n FROM orders
SELECT CASE WHEN amount RLIKE '^[0-9]+$' THEN CAST(amount AS INT) END a FROM orders ORDER BY id
SELECT id FROM orders WHERE NOT (upper(region) = 'S' OR cust IS NULL) ORDER BY id
"""
WRITTEN = [one for one in QUERIES.strip().splitlines() if one]


def rows(written: str) -> pl.DataFrame:
    frame = query_frame(written, lambda name: TABLES[name].lazy())
    assert frame is not None
    return frame.collect()


@pytest.mark.parametrize("written", WRITTEN)
def test_a_query_gives_what_spark_gives(spark, tmp_path, written):
    for name, table in TABLES.items():
        path = str(tmp_path / f"{name}.parquet")
        table.write_parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(name.replace(".", "_"))
    other = spark.sql(
        written.replace("silver.cust.", "silver_cust.").replace("silver.cust", "silver_cust")
    )
    theirs = pl.DataFrame(other.toArrow())
    mine = rows(written)
    assert (mine.columns, mine.rows()) == (theirs.columns, theirs.rows())


@pytest.mark.parametrize(
    "written",
    [
        "SELECT id, region FROM orders WHERE id > 1",
        "SELECT cust, count(*) FROM orders GROUP BY cust",
        "SELECT only_the_engine_knows(id), upper(region) FROM orders",
        "SELECT upper(region) FROM orders GROUP BY ALL",
        "this is no query",
    ],
)
def test_what_needs_none_of_our_functions_or_a_form_of_the_engine_is_left_to_it(written):
    assert query_frame(written, lambda name: TABLES[name].lazy()) is None


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("SELECT upper(nope) FROM orders", "there is no column 'nope'"),
        ("SELECT upper(o.nope) FROM orders o", "there is no column 'o.nope'"),
        ("SELECT upper(x.*) FROM orders", "there is no column 'x'"),
        ("SELECT x.*, upper(region) FROM orders", "there is no table 'x'"),
        ("SELECT substr(region) FROM orders", "'substring' has 1 arguments"),
        (
            "SELECT upper(id) FROM orders o JOIN silver.cust c ON o.cust = c.id",
            "more than one table",
        ),
        ("SELECT upper(region) FROM orders WHERE upper(region)", "where a condition is needed"),
        ("SELECT upper(region) r FROM orders ORDER BY 2", "no column number 2"),
    ],
)
def test_what_has_no_meaning_is_refused(written, says):
    with pytest.raises(SqlError, match=says.replace("*", r"\*")):
        rows(written)


def test_sums_of_whole_numbers_never_overflow_in_silence():
    large = pl.DataFrame({"a": [2**62, 2**62]})
    frame = query_frame("SELECT sum(a + 0) FROM t", lambda _name: large.lazy())
    assert frame is not None
    with pytest.raises(BadValue, match="a sum is too large"):
        frame.collect()


def test_a_table_that_only_a_query_of_with_has_is_not_asked_for():
    asked: list[str] = []

    def table(name: str) -> pl.LazyFrame:
        asked.append(name)
        return TABLES[name].lazy()

    query_frame("WITH a AS (SELECT upper(region) r FROM orders) SELECT r FROM A", table)
    assert asked == ["orders"]


def test_a_source_query_over_delta_tables_has_the_functions_of_the_reference(reading):
    for name, table in TABLES.items():
        place = reading.root / "lake" / name.replace(".", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        table.write_delta(str(place))
    query = (
        "SELECT trunc(to_date(o.ts), 'MM') AS month, md5(c.name) AS who, count(*) AS n"
        " FROM orders o JOIN silver.cust c ON o.cust = c.id"
        " WHERE o.ts < current_timestamp GROUP BY 1, 2 ORDER BY month"
    )
    flow = reading.flow("delta", base_path="lake", query=query)
    frame, batch = reading.read(flow, query=query)
    assert len(frame["who"][0]) == 32
    assert frame.select("month", "n").rows() == [(date(2024, 1, 1), 2), (date(2024, 2, 1), 1)]
    assert set(batch.source_action["tables"]) == {"orders", "silver.cust"}


def test_a_wrong_function_in_a_source_query_is_an_error_with_its_place(reading):
    ORDERS.write_delta(str(reading.root / "lake" / "orders"))
    query = "SELECT to_date(ts, 'yyyy-QQ') FROM orders"
    with pytest.raises(ReadError, match="'QQ' in the pattern 'yyyy-QQ' has no meaning"):
        reading.rows(reading.flow("delta", base_path="lake", query=query), query=query)
