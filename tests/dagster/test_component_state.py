"""Metadata of an API, asked for once: by the refresh, never by what loads definitions or runs."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from datacoolie_dagster.state_backed_secrets import inline_secrets
from tests.dagster.component_project import DgProject

PROVIDER = """\
import json
from dataclasses import dataclass
from urllib.request import urlopen

import dagster as dg
from datacoolie_dagster import StateBackedDataCoolieComponent


@dataclass(kw_only=True)
class FromApi(StateBackedDataCoolieComponent):
    url: str

    def fetch_metadata(self):
        with urlopen(self.url, timeout=20) as answer:
            return {self.url: json.load(answer)}
"""
CONNECTIONS: list[dict[str, Any]] = [
    {"name": "files", "format": "csv", "configure": {"base_path": "data"}},
    {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
    {
        "name": "crm",
        "format": "sql",
        "configure": {"url": "postgresql://db/crm", "password": "CRM_PASSWORD"},
        "secrets_ref": {"env:": ["password"]},
    },
]
FLOW = {
    "name": "orders",
    "stage": "bronze",
    "source": {"connection_name": "files", "table": "orders.csv"},
    "destination": {"connection_name": "lake", "table": "orders", "load_type": "full_load"},
}


class Api:
    """Serves a document on a loopback port and counts who asks."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {"connections": CONNECTIONS, "dataflows": [FLOW]}
        self.calls = 0
        self.url = ""

    @contextmanager
    def serving(self):
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.calls += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(api.document).encode())

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/metadata"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def api():
    with Api().serving() as served:
        yield served


@pytest.fixture
def project(tmp_path, api) -> DgProject:
    made = DgProject(tmp_path / "shop")
    (made.package / "api.py").write_text(PROVIDER)
    state = {"management_type": "LOCAL_FILESYSTEM", "refresh_if_dev": False}
    folder = made.component("ingest", f"{made.name}.api.FromApi", url=api.url, defs_state=state)
    (folder / "data").mkdir()
    (folder / "data/orders.csv").write_text("id\n1\n2\n")
    return made


def keys(project: DgProject) -> set[str]:
    specs = project.load().resolve_all_asset_specs()
    return {one.key.to_user_string() for one in specs}


def snapshot(project: DgProject) -> str:
    (file,) = (project.defs / ".local_defs_state").glob("FromApi*/state")
    return file.read_text()


def test_the_api_is_asked_by_the_refresh_alone(project, api):
    assert keys(project) == set()
    assert api.calls == 0
    project.run("dg", "utils", "refresh-defs-state")
    assert api.calls == 1
    project.run("dg", "check", "defs")
    assert keys(project) == {"bronze/orders", "files/orders.csv"}
    project.run("dg", "launch", "--job", "bronze")
    assert (project.defs / "ingest/lake/orders/_delta_log").is_dir()
    assert api.calls == 1
    kept = json.loads(snapshot(project))
    assert kept == {"version": 1, "documents": {api.url: api.document}}


def test_a_wrong_answer_leaves_what_was_kept(project, api):
    project.run("dg", "utils", "refresh-defs-state")
    before = snapshot(project)
    secret = "Tr0ub4dor-and-3"
    api.document = {
        "connections": [
            *CONNECTIONS[:2],
            {**CONNECTIONS[2], "secrets_ref": {}, "configure": {"password": secret}},
        ],
        "dataflows": [FLOW],
    }
    said = project.run("dg", "utils", "refresh-defs-state", fails=True)
    assert "connections[2].configure.password" in said
    assert secret not in said
    api.document = {"connections": CONNECTIONS, "dataflows": [{**FLOW, "stag": 1}]}
    assert "'stag'" in project.run("dg", "utils", "refresh-defs-state", fails=True)
    assert snapshot(project) == before


@pytest.mark.parametrize(
    ("connection", "field"),
    [
        ({"configure": {"password": "x" * 9}}, "connections[0].configure.password"),
        ({"configure": {"options": {"api_key": "k"}}}, "connections[0].configure.options.api_key"),
        ({"configure": '{"token": "abc"}'}, "connections[0].configure.token"),
        ({"configure": {"url": "postgresql://me:pw123@db/x"}}, "connections[0].configure.url"),
        (
            {"configure": {"a": 1, "password": "p"}, "secrets_ref": {"env:": ["a"]}},
            "connections[0].configure.password",
        ),
    ],
)
def test_a_secret_in_the_open_is_found_and_not_told(connection, field):
    (problem,) = inline_secrets("api", {"connections": [connection]})
    assert (problem.field, problem.source) == (field, "api")
    assert "pw123" not in str(problem)


@pytest.mark.parametrize(
    "document",
    [
        {"connections": CONNECTIONS},
        {"connections": [{"configure": {"token": "T"}, "secrets_ref": '{"env:": "token"}'}]},
        {"connections": [{"configure": {"password": "", "use_token": True}}]},
        {"dataflows": [{"transform": {"rename_columns": {"password": "hash"}}}]},
    ],
)
def test_references_and_columns_are_no_secrets(document):
    assert list(inline_secrets("api", document)) == []
