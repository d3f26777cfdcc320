"""Delta tables by path, and SQL over the tables of a connection."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import polars as pl
import pytest

from datacoolie_core.errors import ReadError


@pytest.fixture
def lake(reading):
    def table(name: str, frame: pl.DataFrame, mode: str = "append") -> str:
        path = str(reading.root / "lake" / name)
        frame.write_delta(path, mode=mode)
        return path

    return table


def flow(reading, **given):
    return reading.flow("delta", base_path="lake", **given)


def refused(reading, dataflow, **request) -> ReadError:
    with pytest.raises(ReadError) as caught:
        reading.read(dataflow, **request)
    return caught.value


def test_a_delta_table_is_read_at_one_version(reading, lake):
    path = lake("silver/flights", pl.DataFrame({"id": [1]}))
    table = flow(reading, table="flights", source={"schema_name": "silver"})
    batch = reading.open(table)
    lake("silver/flights", pl.DataFrame({"id": [2]}))
    assert batch.frame.collect().rows() == [(1,)]
    assert batch.source_action == {"path": path, "version": 0}
    assert sorted(reading.rows(table)) == [(1,), (2,)]


@pytest.mark.parametrize("option", ["version", "versionAsOf"])
def test_an_older_version_can_be_named(reading, lake, option):
    lake("t", pl.DataFrame({"id": [1]}))
    lake("t", pl.DataFrame({"id": [2]}))
    assert reading.rows(flow(reading, options={option: 0})) == [(1,)]


def test_a_version_that_is_not_there_is_refused(reading, lake):
    lake("t", pl.DataFrame({"id": [1]}))
    error = refused(reading, flow(reading, options={"version": 7}))
    assert (error.code, error.retryable) == ("missing_version", False)


def test_a_missing_table_is_refused_with_its_path(reading):
    error = refused(reading, flow(reading))
    assert f"{reading.root}/lake/t: there is no Delta table" in str(error)
    assert error.code == "missing_table"


def test_a_watermark_of_a_delta_table_bounds_the_read(reading, lake):
    moments = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    lake("t", pl.DataFrame({"id": [1, 2, 3], "ts": moments}))
    table = flow(reading, watermark=["TS"])
    frame, batch = reading.read(table, lower={"ts": moments[1]}, stored={"ts": moments[1]})
    assert sorted(frame["id"]) == [2, 3]
    assert batch.observation.candidate == {"TS": moments[2]}


def test_a_query_names_tables_of_several_stages(reading, lake):
    lake("silver/flights", pl.DataFrame({"carrier": ["UA", "UA", "AA"], "delay": [1.0, 3.0, 5.0]}))
    lake("bronze/airlines", pl.DataFrame({"carrier": ["UA", "AA"], "name": ["United", "American"]}))
    query = """
      -- a comment; with a semicolon
      WITH names AS (SELECT carrier, name FROM bronze.airlines)
      SELECT names.name, AVG(f.delay) AS delay
      FROM silver.flights AS f JOIN names ON names.carrier = f.carrier
      GROUP BY names.name ORDER BY names.name;
    """
    frame, batch = reading.read(flow(reading, query=query), query=query)
    assert frame.rows() == [("American", 5.0), ("United", 2.0)]
    assert set(batch.source_action["tables"]) == {"silver.flights", "bronze.airlines"}


def test_a_table_without_a_schema_is_looked_for_in_the_schema_of_the_source(reading, lake):
    lake("silver/t", pl.DataFrame({"id": ["in the schema"]}))
    lake("t", pl.DataFrame({"id": ["at the base"]}))
    lake("u", pl.DataFrame({"id": ["at the base"]}))
    for name, place in (("t", "in the schema"), ("u", "at the base")):
        query = f"SELECT id FROM {name}"
        found = flow(reading, query=query, source={"schema_name": "silver"})
        assert reading.rows(found, query=query) == [(place,)]


def test_a_table_that_a_query_names_and_nobody_has_is_refused(reading, lake):
    lake("silver/flights", pl.DataFrame({"id": [1]}))
    query = "SELECT * FROM silver.flights WHERE id IN (SELECT id FROM gold.nothing)"
    error = refused(reading, flow(reading, query="gold/x.sql"), query=query)
    assert error.code == "missing_table"
    assert (
        f"gold/x.sql: the query reads 'gold.nothing', but there is no Delta table at "
        f"{reading.root}/lake/gold/nothing" in str(error)
    )


@pytest.mark.parametrize(
    "query",
    ["CHOOSE 1", "SELECT nope FROM t", "SELECT no_such_function(id) FROM t", "DROP TABLE t"],
)
def test_a_wrong_query_is_an_error_with_its_place_that_no_retry_cures(reading, lake, query):
    lake("t", pl.DataFrame({"id": [1]}))
    error = refused(reading, flow(reading, query="gold/wrong.sql"), query=query)
    assert error.code == "sql_error"
    assert str(error).startswith("read, gold/wrong.sql: the query can't be run: ")
    assert not error.retryable


def test_reading_a_delta_table_needs_no_pyarrow(reading, lake):
    """It is no dependency of ours."""
    import subprocess

    lake("t", pl.DataFrame({"id": [1]}))
    script = f"""
import sys
sys.modules["pyarrow"] = None  # importing it fails
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.readers.read import open_batch
from datacoolie_core.readers.batch import ReadRequest
document = {{"connections": [{{"name": "l", "format": "delta", "configure": {{"base_path": "lake"}}}}],
  "dataflows": [{{"name": "f", "source": {{"connection_name": "l", "table": "t"}},
                  "destination": {{"connection_name": "l", "table": "o"}}}}]}}
flow = metadata_from_documents([("x.json", document)]).dataflows[0]
batch = open_batch(ReadRequest(dataflow=flow, project_dir={str(reading.root)!r}))
assert batch.frame.collect(engine="streaming").rows() == [(1,)]
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
