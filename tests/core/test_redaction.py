"""Secrets in what others say: a database's error, a driver's traceback, a URL."""

from __future__ import annotations

import json
import logging
from urllib.parse import quote

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core import create_driver, registry
from datacoolie_core.errors import ReadError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.redaction import Redaction, hidden

SECRET = "S3cr3t!pa@ss"
ENCODED = quote(SECRET, safe="")


class DriverError(Exception):
    """What a database's driver raises."""


def dump(root):
    """Everything that the project's folder holds, as one text."""
    return "".join(
        path.read_bytes().decode(errors="replace") for path in root.rglob("*") if path.is_file()
    )


@pytest.fixture
def refusing():
    """A reader that tells its whole connection string when it can't connect."""

    def use(make):
        def open_refused(request):
            password = request.dataflow.source.connection.configure.password
            plain = password if isinstance(password, str) else password.reveal()
            url = f"postgresql://etl:{quote(plain, safe='')}@127.0.0.1:1/db"
            raise make(f"no route to {url} with {plain}")

        registry.readers.register("sql", open_refused)

    yield use
    registry.readers.unregister("sql")


def metadata(secrets_ref):
    configure = {"database_type": "postgresql", "host": "127.0.0.1", "database": "db"}
    configure |= {"username": "etl", "password": "DC_TEST_PASSWORD" if secrets_ref else SECRET}
    crm = {
        "name": "crm",
        "connection_type": "database",
        "format": "sql",
        "configure": configure,
        "secrets_ref": secrets_ref,
    }
    lake = {"name": "lake", "connection_type": "lakehouse", "format": "delta"}
    lake["configure"] = {"base_path": "lake"}
    flow = {"name": "orders", "source": {"connection_name": "crm", "table": "orders"}}
    flow["destination"] = {"connection_name": "lake", "table": "orders"}
    flow["configure"] = {"datacoolie": {"retry_count": 1, "retry_delay": 0}}
    return metadata_from_documents([("x", {"connections": [crm, lake], "dataflows": [flow]})])


@pytest.mark.parametrize(
    "make",
    [
        lambda text: ReadError(text, place=text, remedy=text, retryable=True),
        DriverError,
    ],
    ids=["told", "unexpected"],
)
@pytest.mark.parametrize("secrets_ref", [None, {"env:": ["password"]}], ids=["open", "reference"])
def test_no_password_of_a_connection_is_in_an_error_a_log_or_a_record(
    tmp_path, monkeypatch, caplog, refusing, make, secrets_ref
):
    """sec-password-in-connection-error"""
    monkeypatch.setenv("DC_TEST_PASSWORD", SECRET)
    refusing(make)
    events = []
    with (
        caplog.at_level(logging.DEBUG),
        create_driver(
            metadata(secrets_ref),
            project_dir=str(tmp_path),
            log_base_path="logs",
            listeners=[events.append],
        ) as driver,
    ):
        result = driver.run()
    shown = (
        json.dumps(result.to_json()) + caplog.text + repr(events) + repr(result) + dump(tmp_path)
    )
    assert result.failed == 1
    assert "no route to postgresql://etl:***@127.0.0.1:1/db with ***" in shown
    assert SECRET not in shown
    assert ENCODED not in shown


def test_the_system_log_has_the_traceback_of_a_failure_without_the_secret(
    tmp_path, monkeypatch, refusing
):
    monkeypatch.setenv("DC_TEST_PASSWORD", SECRET)
    refusing(ReadError)
    with create_driver(
        metadata({"env:": ["password"]}), project_dir=str(tmp_path), log_base_path="logs"
    ) as driver:
        driver.run()
    [path] = tmp_path.rglob("system_*.json")
    told = [json.loads(line) for line in path.read_text().splitlines()]
    [finished] = [one for one in told if one["event_name"] == "dataflow.finished"]
    assert "open_refused" in finished["exc_info"]
    assert "***" in finished["exc_info"]


def test_what_starts_no_more_is_told(project):
    project.flow("bad", source_table="missing", group_number=1, execution_order=1)
    project.flow("later", group_number=1, execution_order=2, table="p")
    project.write("t", "a.parquet", pl.DataFrame({"id": [1]}))
    from datacoolie_core.run.config import DataCoolieRunConfig

    with create_driver(
        project.metadata,
        project_dir=str(project.root),
        log_base_path="logs",
        config=DataCoolieRunConfig(stop_on_error=True),
    ) as driver:
        assert driver.run().pending == 1
    [path] = project.root.rglob("system_*.json")
    told = [json.loads(line) for line in path.read_text().splitlines()]
    [stopped] = [one for one in told if one["event_name"] == "scheduler.admission_stopped"]
    assert stopped["msg"] == "stopped after a failure: 1 dataflows do not start"
    assert stopped["level"] == "WARNING"


@given(secret=st.text(min_size=6, max_size=30), before=st.text(), after=st.text())
def test_no_form_of_a_secret_survives(secret, before, after):
    known = Redaction()
    known.learn(secret)
    for form in (secret, quote(secret, safe="")):
        cleaned = known.clean(f"{before}|{form}|{after}")
        assert secret not in cleaned or secret in "***"
        assert "***" in cleaned


def test_a_longer_secret_is_taken_out_whole():
    known = Redaction()
    known.learn("abc")
    known.learn("abcdef")
    assert known.clean("abcdef abc") == "*** ***"


def test_a_url_shows_all_but_its_password():
    assert hidden({"url": "postgresql://etl:x1@h/db", "tables": ["a"]}) == {
        "url": "postgresql://etl:***@h/db",
        "tables": ["a"],
    }
