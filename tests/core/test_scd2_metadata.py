"""What the metadata may ask of scd2, and the instants that it gives."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from datacoolie_core.errors import MetadataError, TransformError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.transforms.apply import TransformContext, apply

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
CONTEXT = TransformContext(run_id="run-1", now=NOW)
CONNECTIONS = [
    {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
    {"name": "files", "format": "csv", "configure": {"base_path": "in"}},
    {
        "name": "dated",
        "format": "csv",
        "configure": {"base_path": "in", "date_folder_partitions": "{year}/{month}/{day}"},
    },
]


def problems(source=None, destination=None, **parts):
    """Return ``field: message`` of each problem of one dataflow."""
    flow = {
        "name": "f",
        "source": {"connection_name": "files", "table": "t", **(source or {})},
        "destination": {
            "connection_name": "lake",
            "table": "o",
            "load_type": "scd2",
            "merge_keys": ["id"],
            **(destination or {}),
        },
        **parts,
    }
    try:
        metadata_from_documents([("m", {"connections": CONNECTIONS, "dataflows": [flow]})])
    except MetadataError as error:
        return [f"{problem.field}: {problem.message}" for problem in error.problems]
    return []


def own(**keys):
    return {"configure": {"datacoolie": keys}}


CLOSE = own(scd2_close_missing=True)
CLOSE_FIELD = "destination.configure.datacoolie.scd2_close_missing"
REPLAY = {"datacoolie": {"replay": {"start": "2025-01-01", "chunk_column": "ts"}}}


def test_a_history_needs_keys_and_nothing_else():
    assert problems() == []
    assert problems(destination=CLOSE) == []
    assert "merge_keys: load_type scd2 needs them" in problems(destination={"merge_keys": []})[0]


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"watermark_columns": ["ts"]}, "source.watermark_columns"),
        ({"connection_name": "dated"}, "date_folder_partitions"),
        ({"configure": {"datacoolie": {"file_registry": True}}}, "file_registry"),
    ],
)
def test_missing_keys_can_only_be_closed_after_a_read_of_everything(source, named):
    (problem,) = problems(source, CLOSE)
    assert problem.startswith(f"{CLOSE_FIELD}: it needs a read of the whole source")
    assert named in problem


def test_options_that_mean_nothing_are_refused():
    (problem,) = problems(destination={**CLOSE, "load_type": "merge_upsert"})
    assert problem == f"{CLOSE_FIELD}: it needs load_type scd2, not merge_upsert"
    (problem,) = problems(destination=own(delete_when="gone = 1"))
    assert "scd2 removes no row" in problem
    (problem,) = problems(destination={"merge_keys": ["id", "__Valid_From"]})
    assert problem.startswith("destination.merge_keys: '__Valid_From' tells the versions")


def test_a_partition_that_follows_the_end_of_a_version_is_refused():
    made = [{"column": "open", "expression": "CASE WHEN __is_current THEN 1 ELSE 0 END"}]
    (problem,) = problems(destination={"partition_columns": made})
    assert "partition by __is_current itself" in problem
    assert problems(destination={"partition_columns": ["__is_current"]}) == []


def test_a_replay_needs_instants_of_its_own():
    (problem,) = problems(configure=REPLAY)
    assert "set destination.configure.scd2_effective_column" in problem
    by_load = {"configure": {"scd2_effective_column": "CURRENT_TIMESTAMP"}}
    (problem,) = problems(destination=by_load, configure=REPLAY)
    assert "valid from the time of the load" in problem
    by_row = {"configure": {"scd2_effective_column": "ts"}}
    assert problems(destination=by_row, configure=REPLAY) == []
    assert problems({"watermark_columns": ["ts"]}, configure=REPLAY) == []


def test_the_time_of_the_load_stands_alone():
    mixed = {"configure": {"scd2_effective_column": "COALESCE(ts, CURRENT_TIMESTAMP)"}}
    (problem,) = problems(destination=mixed)
    assert "can only stand alone" in problem


def valid_from(reading, frame, effective=None, **given):
    configure = {} if effective is None else {"scd2_effective_column": effective}
    destination = {"load_type": "scd2", "merge_keys": ["id"], "configure": configure}
    flow = reading.flow(destination=destination, **given)
    lazy, applied = apply(frame.lazy(), flow, CONTEXT)
    assert "scd2" in applied
    made = lazy.collect(engine="streaming")
    assert made["__valid_from"].dtype == pl.Datetime("us", "UTC")
    assert made["__valid_to"].dtype == pl.Datetime("us", "UTC")
    assert made["__valid_to"].null_count() == made.height
    assert made["__is_current"].all()
    return made["__valid_from"].to_list()


def one(**values):
    return pl.DataFrame({"id": [1], **{name: [value] for name, value in values.items()}})


def test_without_an_instant_versions_are_valid_from_the_load(reading):
    assert valid_from(reading, one()) == [NOW]
    for written in ("CURRENT_TIMESTAMP", " current_timestamp() ", "now()"):
        assert valid_from(reading, one(), written) == [NOW]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2025, 1, 1, 6, tzinfo=UTC), datetime(2025, 1, 1, 6, tzinfo=UTC)),
        (datetime(2025, 1, 1, 6), datetime(2025, 1, 1, 5, tzinfo=UTC)),
        (date(2025, 7, 1), datetime(2025, 6, 30, 22, tzinfo=UTC)),
        ("2025-01-01 06:00:00", datetime(2025, 1, 1, 5, tzinfo=UTC)),
        ("2025-01-01T06:00:00Z", datetime(2025, 1, 1, 6, tzinfo=UTC)),
        (None, None),
    ],
)
def test_dates_times_and_their_texts_become_instants_of_the_declared_zone(reading, value, expected):
    frame = one(ts=value)
    if value is None:
        frame = frame.with_columns(pl.col("ts").cast(pl.Date))
    zone = {"configure": {"timestamp_timezone": "Europe/Berlin"}}
    assert valid_from(reading, frame, "ts", transform=zone) == [expected]
    assert valid_from(reading, frame, "COALESCE(ts, ts)", transform=zone) == [expected]
    assert valid_from(reading, frame, watermark=["TS"], transform=zone) == [expected]


def test_the_history_of_a_history_may_begin_as_that_one_does(reading):
    source = one(__valid_from=datetime(2025, 3, 1, tzinfo=UTC), __is_current=False)
    assert valid_from(reading, source, "__valid_from") == [datetime(2025, 3, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"effective": "n"}, "`n` is Int64"),
        ({"watermark": ["n"]}, "the watermark column 'n', which stands in for it, is Int64"),
        ({"effective": "gone"}, "there is no column 'gone'"),
    ],
)
def test_what_is_no_instant_is_refused_before_anything_is_read(reading, given, said):
    with pytest.raises(TransformError) as raised:
        valid_from(reading, one(n=1), **given)
    assert said in str(raised.value)


def test_a_text_that_is_no_instant_names_its_column(reading):
    with pytest.raises(Exception, match="seen_at"):
        valid_from(reading, one(seen_at="soon"), "seen_at")


def test_validity_columns_of_other_load_types_are_the_sources_own(reading):
    source = one(__valid_from=datetime(2025, 3, 1, tzinfo=UTC), v="a")
    lazy, _ = apply(source.lazy(), reading.flow(), CONTEXT)
    assert lazy.collect_schema().names()[:3] == ["id", "__valid_from", "v"]
