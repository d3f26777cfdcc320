"""SQLite databases: their files, their snapshots, their secrets, and whole loads from them."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import Any

import polars as pl
import pytest

from datacoolie_core import ReplayConfig
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.batch import ReadRequest
from datacoolie_core.readers.read import open_batch


class Shop:
    """A project with a SQLite database, loaded into ``lake/o``."""

    def __init__(self, project, columns: str = "id INTEGER, v TEXT") -> None:
        self.project, self.file = project, project.root / "shop.db"
        self.configure: dict[str, Any] = {"database_type": "sqlite", "database": "shop.db"}
        self.secrets: dict[str, list[str]] | None = None
        self.run(f"CREATE TABLE t ({columns})")

    def run(self, sql: str, *rows: tuple[Any, ...]) -> None:
        with closing(sqlite3.connect(self.file)) as handle, handle:
            for row in rows or [()]:
                handle.execute(sql, row)

    def add(self, *rows: tuple[Any, ...]) -> None:
        self.run(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", *rows)

    def flow(self, **given: Any) -> None:
        connection = {"name": "shop", "format": "sql", "configure": self.configure}
        if self.secrets is not None:
            connection["secrets_ref"] = self.secrets
        query = given.pop("query", None)
        source = {"connection": connection, **given.pop("source", {})}
        source.update({"query": query} if query else {"table": "t"})
        document = self.project.flow(**given)
        for key in ("connection_name", "table"):
            document["source"].pop(key)
        document["source"].update(source)

    def open(self, **request: Any):
        (flow,) = self.project.metadata.dataflows
        asked = ReadRequest(
            dataflow=flow,
            project_dir=str(self.project.root),
            query=flow.source.query,
            **request,
        )
        return open_batch(asked)

    def fails(self):
        (result,) = self.project.run().dataflows
        assert result.status == "failed"
        return result.error


@pytest.fixture
def shop(project):
    return Shop(project)


def test_new_rows_are_appended_once_and_a_tie_is_not_lost(shop):
    shop.add((1, "a"), (2, "b"))
    shop.flow(watermark=["id"])
    assert shop.project.run_one().rows["rows_read"] == 2
    shop.add((2, "late"), (3, "c"))
    assert shop.project.run_one().rows["rows_written"] == 2
    assert shop.project.run_one().status == "skipped"
    assert shop.project.table(sort="v")["v"].to_list() == ["a", "b", "c", "late"]


def test_text_dates_of_a_query_with_a_comment_load_run_after_run(project):
    """W7, W56: the second run has a bound."""
    shop = Shop(project, "id INTEGER, changed_at TEXT")
    shop.add((1, "2025-01-01 10:00:00"), (2, "2025-01-02T09:00:00"))
    shop.flow(
        query="SELECT id, changed_at FROM t; -- all of them",
        watermark=["changed_at"],
        load_type="merge_upsert",
        merge_keys=["id"],
    )
    project.run_one()
    shop.add((3, "2025-01-02 09:00:01"))
    assert project.run_one().rows["rows_read"] == 2
    assert project.ids() == [1, 2, 3]
    assert project.table()["changed_at"].dtype == pl.String


def test_a_replay_takes_the_days_that_it_is_asked_for(project):
    """W7: replay bounds against text."""
    shop = Shop(project, "id INTEGER, ts TEXT")
    shop.add((1, "2025-01-01 00:00:00"), (2, "2025-01-01 23:00:00"), (3, "2025-01-02 00:00:00"))
    shop.flow(watermark=["ts"])
    with project.driver() as driver:
        asked = ReplayConfig(start="2025-01-01T00:00:00", end="2025-01-02T00:00:00")
        (result,) = driver.run_replay(driver.metadata.dataflows, asked).dataflows
    assert result.status == "succeeded", result.error
    assert project.ids() == [1, 2]


def test_a_column_without_values_becomes_a_column_of_text_and_takes_values_later(project):
    """W59, and case db-all-null-text-column-to-delta."""
    shop = Shop(project, "id INTEGER, comment TEXT, anything")
    shop.add((1, None, None), (2, None, None))
    shop.flow(watermark=["id"])
    project.run_one()
    assert project.table().dtypes == [pl.Int64, pl.String, pl.String]
    shop.add((3, "at last", "too"))
    project.run_one()
    assert project.table().rows()[-1] == (3, "at last", "too")


def test_an_empty_batch_has_no_types_that_could_stop_a_load(shop):
    """What a query computes has no declared type; without rows nothing says which it has."""
    shop.add((1, "a"), (2, "b"))
    shop.flow(query="SELECT id, id * 1.5 AS amount FROM t", watermark=["id"])
    shop.configure["read_options"] = {"fetch_size": 1}
    shop.project.run_one()
    shop.run("DELETE FROM t")
    assert shop.project.run_one().status == "skipped"


def test_rows_are_fetched_a_few_at_a_time(shop):
    shop.add(*[(number, "x") for number in range(25)])
    shop.configure["read_options"] = {"fetchsize": 10}
    shop.flow()
    heights: list[int] = []
    batch = shop.open()
    with closing(batch):
        seen = batch.frame.map_batches(
            lambda frame: heights.append(frame.height) or frame, streamable=True
        )
        assert seen.collect(engine="streaming").height == 25
    assert max(heights) <= 10


@pytest.mark.parametrize("query", [None, "SELECT * FROM t"])
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_all_scans_of_a_load_see_one_snapshot(shop, query, journal):
    shop.run(f"PRAGMA journal_mode = {journal}")
    shop.add((1, "a"))
    shop.flow(**({} if query is None else {"query": query}))
    batch = shop.open()
    with closing(batch):
        assert batch.frame.collect().height == 1
        if query is None and journal == "DELETE":
            # a reader of a table keeps writers waiting here
            impatient = closing(sqlite3.connect(shop.file, timeout=0))
            with impatient as other:
                other.execute("INSERT INTO t VALUES (2, 'b')")
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.commit()
        else:
            shop.add((2, "b"))
        assert batch.frame.collect().height == 1
    shop.add((3, "c"))


def test_a_missing_file_is_an_error_and_is_not_made(shop):
    shop.configure["database"] = "data/shp.db"
    shop.flow()
    error = shop.fails()
    assert error.code == "missing_database"
    assert f"there is no database file {shop.project.root}/data/shp.db" in error.message
    assert not (shop.project.root / "data").exists()


def test_a_missing_table_names_the_one_that_was_meant(shop):
    shop.run("CREATE TABLE orders (id INTEGER)")
    shop.flow(source={"table": "order"})
    shop.project.flows[0]["source"]["table"] = "order"
    error = shop.fails()
    assert "the database has no table 'order'. Did you mean 'orders'?" in error.message


def test_a_file_that_is_no_database_is_refused(shop):
    shop.file.write_text("id,v\n1,a\n" * 200)
    shop.flow()
    error = shop.fails()
    assert (error.code, error.retryable) == ("unreadable_database", False)
    assert "shop.db can't be read: file is not a database" in error.message


def test_a_locked_database_is_tried_again(shop, monkeypatch):
    monkeypatch.setattr("datacoolie_core.readers.sqlite_file._WAIT", 0.05)
    shop.add((1, "a"))
    shop.flow()
    with closing(sqlite3.connect(shop.file)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        error = shop.fails()
    assert (error.code, error.retryable) == ("database_locked", True)


def test_what_a_killed_writer_left_is_rolled_back(shop):
    shop.add(*[(number, "x" * 500) for number in range(200)])
    script = f"""
import os, sqlite3
handle = sqlite3.connect({str(shop.file)!r})
handle.execute("PRAGMA cache_size = 1")
handle.execute("UPDATE t SET v = 'half written'")
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    assert shop.file.with_name("shop.db-journal").exists()
    shop.flow()
    shop.project.run_one()
    assert shop.project.table()["v"].unique().to_list() == ["x" * 500]


def test_nothing_is_written_to_the_database(shop):
    shop.add((1, "a"))
    before = shop.file.read_bytes()
    shop.flow(query="SELECT * FROM t")
    shop.project.run_one()
    assert shop.file.read_bytes() == before
    assert [path.name for path in shop.project.root.glob("shop*")] == ["shop.db"]


@pytest.mark.parametrize(
    "url",
    ["sqlite:///shop.db", "sqlite+pysqlite:///{database}", "jdbc:sqlite:shop.db", "shop.db"],
)
def test_a_url_names_the_file_too(shop, url):
    shop.add((1, "a"))
    shop.configure = {"url": url, "database_type": "sqlite"}
    if "{" in url:
        shop.configure["database"] = "shop.db"
    elif ":///" in url:
        del shop.configure["database_type"]
    shop.flow()
    assert shop.project.run_one().rows["rows_read"] == 1


@pytest.mark.parametrize(
    ("configure", "said"),
    [
        ({"database_type": "sqlite"}, "nothing names its file"),
        ({"database_type": "sqlite", "database": ":memory:"}, "in memory"),
        ({"database_type": "sqlite", "url": "sqlite:///{host}"}, "names {host}"),
        ({"database_type": "sqlite", "database": "s3://bucket/x.db"}, "a file of this machine"),
        ({"database": "shop.db"}, "nothing says which database it is"),
        ({"database_type": "oracle", "host": "x"}, "of type 'oracle' can't be read yet"),
    ],
)
def test_a_connection_that_leads_nowhere_says_why(shop, configure, said):
    shop.configure = configure
    shop.flow()
    error = shop.fails()
    assert said in error.message
    assert "connection 'shop'" in error.message
    assert error.remedy


def test_a_path_from_a_secret_is_used_and_never_shown(shop, monkeypatch):
    """Case sec-password-in-connection-error: the connection is named, the secret is not."""
    shop.add((1, "a"))
    monkeypatch.setenv("SHOP_DB", "shop.db")
    shop.configure["database"], shop.secrets = "SHOP_DB", {"": ["database"]}
    shop.flow()
    assert shop.project.run_one().rows["rows_read"] == 1
    monkeypatch.setenv("SHOP_DB", "./hidden/S3cr3t.db")
    error = shop.fails()
    assert error.code == "missing_database"
    assert "S3cr3t" not in f"{error.message}{error.trace}{error.place}{error.remedy}"
    monkeypatch.setenv("SHOP_DB", "sqlite:///shop.db?key=S3cr3t!")
    shop.configure, shop.secrets = {"database_type": "sqlite", "url": "SHOP_DB"}, {"": ["url"]}
    shop.flow()
    error = shop.fails()
    assert "options that SQLite does not take here: key" in error.message
    assert "S3cr3t" not in f"{error.message}{error.trace}{error.place}{error.remedy}"


def test_an_unknown_option_is_refused(shop):
    shop.configure["read_options"] = {"fetch_sizes": 5}
    shop.flow()
    assert shop.fails().code == "unknown_option"


def test_plan_connect_knows_the_columns_and_writes_nothing(shop):
    shop.add((1, "a"))
    shop.flow(query="SELECT id, v, id / 2.0 AS half FROM t", watermark=["id"])
    before = {path: path.read_bytes() for path in shop.project.root.rglob("*") if path.is_file()}
    with shop.project.driver() as driver:
        (found,) = driver.connect(driver.plan()).values()
    assert found.error is None
    columns = {name: kind for name, kind in found.fit.columns.items() if name[0] != "_"}
    assert columns == {"id": "long", "v": "string", "half": "double"}
    after = {path: path.read_bytes() for path in shop.project.root.rglob("*") if path.is_file()}
    assert after == before


def test_plan_connect_says_what_is_wrong_with_a_source(shop):
    shop.flow(query="SELECT id,\n nope FROM t")
    with shop.project.driver() as driver:
        (found,) = driver.connect(driver.plan()).values()
    assert "source.query, line 2: the query can't be run: no such column: nope" in (
        found.error.message
    )


def test_many_threads_may_read_one_batch(shop):
    shop.add(*[(number, str(number)) for number in range(2000)])
    shop.configure["read_options"] = {"fetch_size": 7}
    shop.flow()
    sums: list[int] = []
    batch = shop.open()
    with closing(batch):
        threads = [
            threading.Thread(target=lambda: sums.append(batch.source.collect()["id"].sum()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sums == [sum(range(2000))] * 4


def test_a_value_that_breaks_a_load_is_named_with_its_column(shop):
    shop.add((1, "2024-01-01"), (2, "soon"))
    shop.flow(transform={"schema_hints": [{"column_name": "v", "data_type": "DATE"}]})
    error = shop.fails()
    assert error.code == "cast_failed"
    assert "column 'v'" in error.message
    assert "soon" in error.message


def test_the_record_of_a_run_has_the_sql_as_sent(shop):
    shop.add((1, "a"), (2, "b"))
    shop.flow(watermark=["id"])
    shop.project.run_one()
    shop.add((3, "c"))
    result = shop.project.run_one()
    action = result.source_action
    assert (action["connection"], action["table"], action["parameters"]) == ("shop", "t", [2])
    assert action["query"].startswith('SELECT "id", "v" FROM "t"\nWHERE ')
    json.dumps(action, default=str)


def test_a_load_after_the_file_was_replaced_reads_the_new_one(shop):
    shop.add((1, "a"))
    shop.flow(watermark=["id"])
    shop.project.run_one()
    with closing(sqlite3.connect(shop.project.root / "other.db")) as handle, handle:
        handle.execute("CREATE TABLE t (id INTEGER, v TEXT, added_at TEXT)")
        handle.execute("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', '2024-01-01')")
    shutil.move(shop.project.root / "other.db", shop.file)
    shop.project.run_one()
    assert shop.project.ids() == [1, 2]
    assert "added_at" in shop.project.table().columns


def test_errors_of_a_read_are_read_errors(shop):
    """A value out of reach of the first look, such as one that another program adds meanwhile."""
    shop.add((1, "a"))
    shop.flow()
    batch = shop.open()
    batch.close()
    with pytest.raises(Exception, match="closed") as caught:
        batch.frame.collect()
    assert isinstance(batch.diagnose(caught.value) or caught.value, ReadError)
