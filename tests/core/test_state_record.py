"""The state's formats last: golden files, values, stores."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from datacoolie_core.errors import WatermarkError
from datacoolie_core.state.known_files import KnownFiles
from datacoolie_core.state.record import Boundary, StateRecord
from datacoolie_core.state.stores import FileStateStore
from datacoolie_core.state.values import decode, encode
from datacoolie_core.storage import FileInfo

GOLDEN = Path(__file__).parent / "golden" / "state_format_1.json"

RECORD = StateRecord(
    dataflow_id="bronze/flights",
    sequence=14,
    watermark={
        "time_hour": datetime(2014, 1, 1, 4, 0, 0, 1, tzinfo=UTC),
        "id": 42,
        "amount": Decimal("1.10"),
    },
    boundary=Boundary(hashes={"Kc2": 2, "Jb1": 1}, schema="c1:abc"),
    covered_from={"time_hour": datetime(2013, 1, 1, 5, tzinfo=UTC)},
    table_id="7f7a3b0e-7d3c-4b7f-a1c5-3f0f3f7d1c55",
    table_version=14,
    run_id="run-1",
    updated_at="2026-11-30T22:40:00+00:00",
)


def test_the_written_format_is_the_golden_file():
    assert json.dumps(RECORD.to_json(), indent=2) + "\n" == GOLDEN.read_text()


def test_a_record_with_known_files_is_its_golden_file():
    golden = GOLDEN.with_name("state_format_1_files.json")
    files = KnownFiles().with_files(
        (path, FileInfo(path, 100, datetime(2025, 1, 31, tzinfo=UTC))) for path in ("a/1", "b/2")
    )
    watermark = {"__date_folder_partition__": "2025-01-31T00:00:00+00:00"}
    short = RECORD.evolve(
        watermark=watermark,
        covered_from=None,
        files={"v": 1, "count": 2, "digests": files.to_text()},
    )
    assert json.dumps(short.to_json(), indent=2) + "\n" == golden.read_text()
    assert StateRecord.from_json(json.loads(golden.read_text())) == short


def test_the_golden_file_reads_as_the_record():
    assert StateRecord.from_json(json.loads(GOLDEN.read_text())) == RECORD


scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.binary(),
)


@given(scalars)
def test_every_value_survives_json_exactly(value):
    again = decode(json.loads(json.dumps(encode(value))))
    assert again == value
    assert type(again) is type(value)


def test_an_aware_timestamp_is_stored_in_utc_to_the_microsecond():
    """wm-stored-in-milliseconds."""
    moment = datetime(2026, 1, 1, 21, 0, 0, 999999, tzinfo=timezone(timedelta(hours=9)))
    assert encode(moment) == {"__datetime__": "2026-01-01T12:00:00.999999+00:00"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), timedelta(days=1), [1]])
def test_what_is_no_watermark_is_refused(value):
    with pytest.raises(WatermarkError):
        encode(value)


@pytest.mark.parametrize("document", [{"__date__": "x"}, {"__weird__": "1"}, {"a": 1, "b": 2}, {}])
def test_malformed_text_is_an_error_and_never_a_first_run(document):
    with pytest.raises(WatermarkError):
        decode(document)


def test_dates_and_times_keep_their_type():
    assert decode(encode(date(2024, 2, 29))) == date(2024, 2, 29)
    assert decode(encode(time(1, 2, 3))) == time(1, 2, 3)


@pytest.mark.parametrize(
    "boundary",
    [
        Boundary(),
        Boundary(hashes={"a": 3}, schema="s"),
        Boundary(compare=True, ties_only=True),
        Boundary(compare=True),
        Boundary(compare=True, upto=date(2013, 2, 1)),
    ],
)
def test_a_boundary_survives_json(boundary):
    assert Boundary.from_json(json.loads(json.dumps(boundary.to_json()))) == boundary


def test_a_boundary_of_a_newer_version_is_compared_with_the_table():
    assert Boundary.from_json({"v": 2, "x": 1}) == Boundary(compare=True)


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    if request.param == "local":
        return FileStateStore(str(tmp_path / "state"))
    return FileStateStore(f"memory://state-{tmp_path.name}")


def test_a_store_gives_back_what_it_took(store):
    assert store.load("bronze/flights") is None
    store.save(RECORD)
    store.save(RECORD.evolve(sequence=15))
    assert store.load("bronze/flights") == RECORD.evolve(sequence=15)


def test_dataflows_whose_ids_look_like_paths_do_not_meet(store):
    """wm-parallel-flows-clobber-state: one file a dataflow."""
    store.save(StateRecord("a/b", 1))
    store.save(StateRecord("a%2Fb", 2))
    assert store.load("a/b").sequence == 1
    assert store.load("a%2Fb").sequence == 2


def test_a_truncated_file_is_named_with_the_way_out(tmp_path):
    """W43."""
    store = FileStateStore(str(tmp_path))
    store.save(RECORD)
    path = Path(store.path("bronze/flights"))
    path.write_text(path.read_text()[:40])
    with pytest.raises(WatermarkError) as caught:
        store.load("bronze/flights")
    assert str(path) in str(caught.value)
    assert "Delete the file" in str(caught.value)


def test_a_newer_format_is_refused(tmp_path):
    store = FileStateStore(str(tmp_path))
    document = {**RECORD.to_json(), "format": 2}
    Path(store.path("bronze/flights")).write_text(json.dumps(document))
    with pytest.raises(WatermarkError, match="format 2"):
        store.load("bronze/flights")


def test_a_file_of_another_dataflow_is_refused(tmp_path):
    store = FileStateStore(str(tmp_path))
    store.save(RECORD)
    Path(store.path("bronze/flights")).rename(store.path("silver/flights"))
    with pytest.raises(WatermarkError, match="belongs to dataflow 'bronze/flights'"):
        store.load("silver/flights")
