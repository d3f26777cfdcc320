"""Which partitions a load marks: the rule, for any range, watermark and history."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hypothesis import given, strategies as st

from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.run.results import DataflowResult
from datacoolie_core.state.record import StateRecord
from datacoolie_dagster.coverage import MOST_MARKS, marks_of
from datacoolie_dagster.partitions import replay_windows


def flow(column="at", **replay):
    ends = [{"name": name, "format": "delta"} for name in ("in", "out")]
    for end in ends:
        end["configure"] = {"base_path": end["name"]}
    made = {
        "name": "f",
        "source": {"connection_name": "in", "table": "f", "watermark_columns": [column]},
        "destination": {"connection_name": "out", "table": "f"},
        "configure": {"datacoolie": {"replay": replay}},
    }
    return metadata_from_documents([("x", {"connections": ends, "dataflows": [made]})]).dataflows[0]


DAILY = flow(start="2024-01-01", end="2024-01-21", chunk_interval={"days": 1})
OPEN = flow(start="2024-01-01", chunk_interval={"days": 1})
NOW = datetime(2024, 1, 15, 12, tzinfo=UTC)


def loaded(dataflow, watermark, before=None, *, status="succeeded", covered_from=None):
    """Return a load's result and the state before it."""
    column = dataflow.source.watermark_columns[0]
    floor = None if covered_from is None else {column: covered_from}
    state = StateRecord("f", 2, watermark={column: watermark}, covered_from=floor)
    earlier = None if before is None else StateRecord("f", 1, watermark={column: before})
    kind = "full" if before is None else "incremental"
    return DataflowResult(dataflow, status, run_kind=kind, state=state), earlier


def keys(dataflow, *arguments, materialized=(), **options):
    result, before = loaded(dataflow, *arguments, **options)
    return [window.key for window in marks_of(result, before, materialized, NOW).windows]


def day(number, hour=0):
    return datetime(2024, 1, number, hour, tzinfo=UTC)


def test_a_window_is_covered_when_it_ends_at_the_watermark():
    assert keys(DAILY, day(3))[-1] == "2024-01-02"
    assert keys(DAILY, day(3) - timedelta(microseconds=1))[-1] == "2024-01-01"


def test_dates_and_texts_are_watermarks_too():
    assert keys(DAILY, date(2024, 1, 3)) == ["2024-01-01", "2024-01-02"]
    assert keys(DAILY, "2024-01-03T00:00:00Z") == ["2024-01-01", "2024-01-02"]
    assert keys(DAILY, "blue") == []


def test_numbers_are_compared_as_numbers():
    numbers = flow("id", start=0, end=50, step=10)
    assert keys(numbers, 25) == ["00", "10"]
    assert keys(numbers, day(1)) == []


def test_the_running_window_of_an_open_range_is_loaded_up_to_now():
    assert keys(OPEN, day(15, 11), day(15, 3), materialized={"2024-01-14"})[-1] == "2024-01-15"


def test_a_run_without_rows_does_not_tell_touched_windows_again():
    everything = {window.key for window in replay_windows(DAILY)}
    assert keys(DAILY, day(5), day(5), status="skipped", materialized=everything) == []


def test_too_many_are_left_for_the_next_load():
    hours = flow(
        start="2024-01-01T00:00:00", end="2024-02-01T00:00:00", chunk_interval={"hours": 1}
    )
    result, before = loaded(hours, datetime(2024, 2, 1, tzinfo=UTC))
    marks = marks_of(result, before, ())
    assert (len(marks.windows), marks.left) == (MOST_MARKS, 31 * 24 - MOST_MARKS)
    assert marks.windows[-1].key == "2024-01-31T23:00Z"


HOURS = st.integers(0, 24 * 24)


@given(
    after=HOURS, back=HOURS, floor=st.none() | st.integers(0, 20), seen=st.sets(st.integers(0, 19))
)
def test_marks_are_what_is_covered_and_missing_or_new(after, back, floor, seen):
    windows = replay_windows(DAILY)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    now = start + timedelta(hours=after)
    earlier = start + timedelta(hours=max(0, after - back))
    low = None if floor is None else start + timedelta(days=floor)
    result, before = loaded(DAILY, now, earlier, covered_from=low)
    materialized = {windows[index].key for index in seen}
    marked = {window.key for window in marks_of(result, before, materialized).windows}
    for window in windows:
        lower = datetime.combine(window.lower, datetime.min.time(), UTC)
        upper = datetime.combine(window.upper, datetime.min.time(), UTC)
        covered = upper <= now and (low is None or low <= lower)
        if covered and (window.key not in materialized or upper > earlier):
            assert window.key in marked
        if low is not None and lower < low:
            assert window.key not in marked
    quiet = replace(result, status="skipped")
    for window in marks_of(quiet, before, materialized).windows:
        assert window.key not in materialized
