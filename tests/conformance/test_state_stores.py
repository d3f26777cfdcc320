"""What every state store must do, whatever it keeps its records in."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import sys
import threading
import traceback
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core import FileStateStore, SqlStateStore, open_store
from datacoolie_core.errors import SettingsError, WatermarkError
from datacoolie_core.state.record import Boundary, StateRecord

pytest_plugins = ("tests.postgres",)


def place_of(kind, request, tmp_path):
    if kind == "postgresql":
        return request.getfixturevalue("postgres_url")
    return {
        "file": str(tmp_path / "state"),
        "memory": f"memory://state-{uuid4().hex}",
        "sqlite": f"sqlite:///{tmp_path}/new folder/state.db",
    }[kind]


@pytest.fixture(params=["file", "memory", "sqlite", "postgresql"])
def location(request, tmp_path):
    return place_of(request.param, request, tmp_path)


@pytest.fixture(params=["file", "sqlite", "postgresql"])
def shared_location(request, tmp_path):
    """A place that several processes reach."""
    return place_of(request.param, request, tmp_path)


@pytest.fixture
def store(location, tmp_path):
    opened = open_store(location, str(tmp_path))
    yield opened
    getattr(opened, "close", lambda: None)()


def name():
    return f"flow {uuid4().hex}/ä'\"%_\\"


SCALARS = (
    st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.times()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.binary()
    | st.booleans()
)


def test_a_dataflow_that_never_ran_has_no_record(store):
    assert store.load(name()) is None


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    watermark=st.dictionaries(st.text(st.characters(categories=["L"]), min_size=1), SCALARS),
    sequence=st.integers(0, 2**40),
    hashes=st.dictionaries(
        st.text("0123456789abcdef", min_size=32, max_size=32), st.integers(1, 9)
    ),
)
def test_every_value_comes_back_as_it_was(store, watermark, sequence, hashes):
    record = StateRecord(
        name(),
        sequence=sequence,
        watermark=watermark,
        boundary=Boundary(hashes=hashes, schema="x"),
        run_id="r",
        updated_at="2025-01-01T00:00:00+00:00",
    )
    store.save(record)
    assert store.load(record.dataflow_id) == record


@pytest.mark.parametrize(
    "value",
    [
        7,
        2.5,
        "text",
        date(2025, 1, 31),
        datetime(2025, 1, 31, 5, 6, 7, 8),
        datetime(2025, 1, 31, tzinfo=UTC),
        time(1, 2),
        Decimal("1.50"),
        b"\x00\xff",
    ],
)
def test_types_are_exact(store, value):
    record = StateRecord(name(), 1, {"c": value}, replace_next=True)
    store.save(record)
    found = store.load(record.dataflow_id)
    assert type(found.watermark["c"]) is type(value)
    assert found == record


def test_a_record_replaces_the_one_before_and_no_other(store):
    one, other = name(), name()
    store.save(StateRecord(one, 1, {"c": 1}))
    store.save(StateRecord(other, 5, {"c": 5}))
    store.save(StateRecord(one, 2, {"c": 2}))
    assert store.load(one).watermark == {"c": 2}
    assert store.load(other).sequence == 5


def test_an_explicit_lower_record_wins(store):
    one = name()
    store.save(StateRecord(one, 2, {"c": 9}))
    store.save(StateRecord(one, 3, {"c": 1}))
    assert store.load(one).watermark == {"c": 1}


def test_threads_that_save_at_once_leave_whole_records(store):
    names = [name() for _ in range(4)]

    def work(number):
        for sequence in range(1, 6):
            store.save(StateRecord(names[number % 4], sequence, {"c": "x" * 500}))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.load(one).watermark for one in names] == [{"c": "x" * 500}] * 4


def save_many(location, folder, identifier):
    store = open_store(location, folder)
    for sequence in range(1, 8):
        store.save(StateRecord(identifier, sequence, {"c": sequence}))


def test_processes_that_begin_at_once_all_find_the_store_made(shared_location, tmp_path):
    """wm-parallel-flows-clobber-state."""
    names = [f"p{uuid4().hex}" for _ in range(3)]
    spawn = multiprocessing.get_context("spawn")
    children = [
        spawn.Process(target=save_many, args=(shared_location, str(tmp_path), one)) for one in names
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    store = open_store(shared_location, str(tmp_path))
    assert [store.load(one).sequence for one in names] == [7, 7, 7]


def spoil(store, identifier, text):
    """Put another text where a record is."""
    if isinstance(store, SqlStateStore):
        from sqlalchemy import text as sql

        with store._engine.begin() as link:
            link.execute(
                sql("UPDATE datacoolie_state SET document = :t WHERE dataflow_id = :i"),
                {"t": text, "i": identifier},
            )
        return store.place
    from datacoolie_core import storage

    storage.write_atomic(store.path(identifier), text.encode())
    return store.path(identifier)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "null", "{}", '{"format": 1}'])
def test_a_broken_record_names_its_place_and_the_way_out(store, text):
    """W43."""
    one = name()
    store.save(StateRecord(one, 1))
    place = spoil(store, one, text)
    with pytest.raises(WatermarkError) as caught:
        store.load(one)
    assert place in str(caught.value)
    assert caught.value.remedy


def test_a_newer_format_is_refused_and_an_unknown_one_too(store):
    one = name()
    document = StateRecord(one, 1).to_json()
    store.save(StateRecord(one, 1))
    for version, remedy in ((2, "Upgrade"), (0, "restore")):
        spoil(store, one, json.dumps({**document, "format": version}))
        with pytest.raises(WatermarkError, match=remedy) as caught:
            store.load(one)
        assert caught.value.code == "state_format"


def test_an_older_format_is_migrated(store, monkeypatch):
    from datacoolie_core.state import record

    one = name()
    store.save(StateRecord(one, 3, {"c": 1}))
    old = {**StateRecord(one, 3, {"c": 1}).to_json(), "format": 0, "high": {"c": 1}}
    del old["watermark"]

    def lift(document):
        rest = {key: value for key, value in document.items() if key != "high"}
        return {**rest, "format": 1, "watermark": document["high"]}

    monkeypatch.setitem(record._MIGRATIONS, 0, lift)
    spoil(store, one, json.dumps(old))
    assert store.load(one) == StateRecord(one, 3, {"c": 1})


def test_a_record_of_another_dataflow_is_refused(store):
    one = name()
    store.save(StateRecord(one, 1))
    spoil(store, one, json.dumps(StateRecord("other", 1).to_json()))
    with pytest.raises(WatermarkError, match="other"):
        store.load(one)


def test_a_database_that_does_not_answer_is_an_error_that_can_heal_without_the_password(tmp_path):
    store = open_store("postgresql://me:hunter2@127.0.0.1:1/db", str(tmp_path))
    with pytest.raises(WatermarkError) as caught:
        store.load("x")
    assert caught.value.retryable
    assert "hunter2" not in str(caught.value) + repr(store)
    with pytest.raises(WatermarkError, match="rows are safe"):
        store.save(StateRecord("x", 1))


def test_a_password_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("STATE_PASSWORD", "p@ss/word")
    store = open_store("postgresql://me:${env:STATE_PASSWORD}@h/db", str(tmp_path))
    assert store._engine.url.password == "p@ss/word"
    assert "p@ss" not in repr(store)
    with pytest.raises(SettingsError, match="NOT_SET"):
        open_store("postgresql://me:${env:NOT_SET}@h/db", str(tmp_path))


def test_relative_places_start_at_the_project(tmp_path):
    assert open_store("state", str(tmp_path)) == FileStateStore(str(tmp_path / "state"))
    open_store("sqlite:///here.db", str(tmp_path)).save(StateRecord("x", 1))
    with sqlite3.connect(tmp_path / "here.db") as link:
        columns = [row[1] for row in link.execute("PRAGMA table_info(datacoolie_state)")]
    assert columns == ["dataflow_id", "sequence", "document", "run_id", "updated_at"]


SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        f"sqlite+nonsense://me:{SECRET}@/x",
        f"postgresql://me:{SECRET}@host:noport/db",
        f"postgresql://me:{SECRET}@host:99999999999/db",
        f"postgresql+nonsense://me:{SECRET}@host/db",
        f"postgresql:me:{SECRET}@host/db",
        f"postgresql://127.0.0.1:1/db?user=me&password={SECRET}",
        f"postgresql://me:{SECRET}@127.0.0.1:1/db?nonsense={SECRET}",
    ],
)
def test_no_error_shows_a_secret_of_the_url(tmp_path, url):
    store = open_store(url, str(tmp_path))
    with pytest.raises((SettingsError, WatermarkError)) as caught:
        store.load("x")
    told = "".join(traceback.format_exception(caught.value)) + repr(store)
    assert SECRET not in told
    assert caught.value.remedy


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(tmp_path, url):
    with pytest.raises(SettingsError, match=r"sqlite:///state\.db"):
        open_store(url, str(tmp_path)).load("x")


def test_a_missing_driver_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"datacoolie-dagster\[postgresql\]"):
        open_store("postgresql://me@host/db", str(tmp_path)).load("x")


def test_a_folder_that_a_file_is_in_the_way_of_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    for place in ("taken/state", "sqlite:///taken/state.db"):
        with pytest.raises(WatermarkError, match="taken") as caught:
            open_store(place, str(tmp_path)).save(StateRecord("x", 1))
        assert caught.value.code == "state_not_saved"


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "state.db").write_text("no database at all, but long enough to be read as one" * 9)
    with pytest.raises(WatermarkError, match=r"state\.db"):
        open_store("sqlite:///state.db", str(tmp_path)).load("x")
