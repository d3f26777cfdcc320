"""Watermarks: values have a type before they are compared, and nothing is dropped silently."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from datacoolie_core.errors import ReadError, WatermarkError
from datacoolie_core.plan.windows import Window

JAN = datetime(2025, 1, 1, 10)
NEW_YORK = ZoneInfo("America/New_York")


def csv(reading, column: str, values: list[str], **given):
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values, 1))
    reading.write("t/a.csv", f"id,{column}\n{rows}")
    return reading.flow(watermark=[column], **given)


def parquet(reading, values: pl.Series | list, **given):
    series = pl.Series("ts", values)
    reading.write("t/a.parquet", pl.DataFrame({"id": range(1, len(series) + 1), "ts": series}))
    return reading.flow("parquet", watermark=["ts"], **given)


def ids(reading, flow, **request) -> list[int]:
    frame, _ = reading.read(flow, **request)
    return [int(value) for value in frame["id"].sort()]


def since(value, name="ts", **request):
    return {"lower": {name: value}, "stored": {name: value}, **request}


def refused(reading, flow, **request) -> str:
    with pytest.raises((ReadError, WatermarkError)) as caught:
        reading.read(flow, **request)
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "9", "12", "10"], 12),
        (["1.5", "10", "9.25"], 10.0),
        (["2024-01-01", "2023-12-31"], date(2024, 1, 1)),
        (["2024-01-01 10:00:00", "2024-01-01T09:59"], datetime(2024, 1, 1, 10)),
        (
            ["2024-01-01T10:00:00Z", "2024-01-01 10:00:00+02:00"],
            datetime(2024, 1, 1, 10, tzinfo=UTC),
        ),
    ],
)
def test_text_gets_the_type_of_its_values(reading, values, expected):
    """W1, W7."""
    flow = csv(reading, "w", values)
    frame, batch = reading.read(flow)
    assert batch.observation.candidate == {"w": expected}
    assert type(batch.observation.candidate["w"]) is type(expected)
    assert frame["w"].to_list() == values


def test_a_numeric_watermark_in_text_is_compared_as_a_number(reading):
    """W1."""
    flow = csv(reading, "n", [str(n) for n in range(1, 13)])
    assert ids(reading, flow, **since(9, "n"), inclusive=False) == [10, 11, 12]


def test_a_window_over_text_timestamps_reads_the_rows_inside(reading):
    """W7."""
    values = ["2025-01-01 10:00:00", "2025-01-01 23:59:59", "2025-01-02 00:00:00"]
    window = Window("ts", datetime(2025, 1, 1), datetime(2025, 1, 2))
    assert ids(reading, csv(reading, "ts", values), window=window) == [1, 2]


def test_a_look_back_over_text_timestamps_finds_late_rows(reading):
    """W8."""
    flow = csv(reading, "ts", ["2025-01-09 13:00:00", "2025-01-08 13:00:00"])
    stored = datetime(2025, 1, 10, 12)
    lower = {"ts": stored - timedelta(days=1)}
    assert ids(reading, flow, lower=lower, stored={"ts": stored}) == [1]


@pytest.mark.parametrize("values", [["a", "b"], ["1", "x2"], ["01/02/2003", "03/04/2005"]])
def test_text_of_no_known_type_is_refused_with_a_remedy(reading, values):
    message = refused(reading, csv(reading, "w", values))
    assert "watermark column 'w': it is text, and the type of values such as" in message
    assert "Add a schema hint" in message


def test_text_with_a_string_hint_is_compared_as_text(reading):
    flow = csv(reading, "w", ["b", "a", "C"], hints={"w": "string"})
    _, batch = reading.read(flow)
    assert batch.observation.candidate == {"w": "b"}
    assert ids(reading, flow, **since("a", "w"), inclusive=False) == [1]


def test_a_hint_with_a_pattern_types_the_watermark_and_leaves_the_frame_alone(reading):
    hints = {"w": {"data_type": "date", "format": "dd/MM/yyyy"}}
    flow = csv(reading, "w", ["02/01/2003", "01/02/2003"], hints=hints)
    frame, batch = reading.read(flow)
    assert batch.observation.candidate == {"w": date(2003, 2, 1)}
    assert frame["w"].to_list() == ["02/01/2003", "01/02/2003"]


def test_a_late_value_that_does_not_fit_the_inferred_type_stops_the_read(reading):
    path = reading.write("t/a.csv", "w\n" + "1\n" * 2000 + "12b\n")
    with pytest.raises(Exception, match="12b") as caught:
        reading.read(reading.flow(watermark=["w"]))
    assert str(path) in str(caught.value)


def test_an_unknown_watermark_column_is_refused_with_the_name_meant(reading):
    flow = parquet(reading, [JAN])
    wrong = flow.model_copy(
        update={"source": flow.source.model_copy(update={"watermark_columns": ("tss",)})}
    )
    assert refused(reading, wrong) == (
        "read, source.watermark_columns: the source has no column 'tss'. Did you mean 'ts'?"
    )


def test_names_of_watermark_columns_may_differ_in_case(reading):
    flow = csv(reading, "Updated_At", ["1", "2"])
    source = flow.source.model_copy(update={"watermark_columns": ("UPDATED_AT",)})
    frame, batch = reading.read(
        flow.model_copy(update={"source": source}), **since(1, "updated_at"), inclusive=False
    )
    assert frame["id"].to_list() == ["2"]
    assert batch.observation.candidate == {"UPDATED_AT": 2}


def test_the_time_of_the_file_can_be_the_watermark(reading):
    path = reading.write("t/a.csv", "id\n1\n")
    flow = reading.flow(watermark=["__file_modification_time"])
    _, batch = reading.read(flow)
    (seen,) = batch.observation.candidate.values()
    assert seen.timestamp() == pytest.approx(path.stat().st_mtime, abs=1e-5)


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([timedelta(1)]),
        pl.Series([True]),
        pl.Series([b"x"]),
        pl.Series([[1]]),
    ],
)
def test_values_without_an_order_to_rely_on_are_refused(reading, values):
    """W61."""
    assert "can't be a watermark. Use a number" in refused(reading, parquet(reading, values))


@pytest.mark.parametrize(
    "value",
    [Decimal("1.50"), 7, 2.5, date(2024, 1, 1), JAN, JAN.replace(tzinfo=UTC), "text"],
)
def test_a_watermark_comes_back_as_the_value_that_it_was(reading, value):
    hints = {"ts": "string"} if isinstance(value, str) else {}
    flow = parquet(reading, [value], hints=hints)
    _, batch = reading.read(flow)
    assert batch.observation.candidate == {"ts": value}
    assert ids(reading, flow, **since(value), inclusive=False) == []
    assert ids(reading, flow, **since(value)) == [1]


def test_microseconds_survive(reading):
    """wm-stored-in-milliseconds."""
    moment = datetime(2026, 1, 1, 12, 0, 0, 999999)
    flow = parquet(reading, [moment - timedelta(microseconds=899), moment])
    _, batch = reading.read(flow)
    assert batch.observation.candidate == {"ts": moment}
    assert ids(reading, flow, **since(moment), inclusive=False) == []


def test_nanoseconds_closer_than_a_microsecond_are_ties(reading):
    """types-nanoseconds-to-microseconds: none of them is lost, none comes twice."""
    start = 1_767_225_600_000_000_000
    values = pl.Series([start + 1, start + 2]).cast(pl.Datetime("ns"))
    flow = parquet(reading, values)
    _, first = reading.read(flow, track_boundary=True)
    boundary = first.observation.boundary
    assert boundary.rows == 2
    later = parquet(reading, pl.Series([start + 1, start + 2, start + 3]).cast(pl.Datetime("ns")))
    request = since(first.observation.candidate["ts"], boundary=boundary, track_boundary=True)
    assert ids(reading, later, **request) == [3]


# Zones


def test_a_bound_with_an_offset_meets_values_of_a_declared_zone(reading):
    """W9."""
    zone = {"configure": {"timestamp_timezone": "Asia/Tokyo"}}
    flow = parquet(reading, [datetime(2025, 1, 1, 8, 59), datetime(2025, 1, 1, 9)], transform=zone)
    tokyo = timezone(timedelta(hours=9))
    window = Window("ts", datetime(2025, 1, 1, 9, tzinfo=tokyo), None)
    assert ids(reading, flow, window=window) == [2]
    same = Window("ts", datetime(2025, 1, 1, 0, tzinfo=UTC), None)
    assert ids(reading, flow, window=same) == [2]
    _, batch = reading.read(flow)
    assert batch.observation.candidate == {"ts": datetime(2025, 1, 1, tzinfo=UTC)}


def test_an_offset_is_never_dropped(reading):
    """W9."""
    window = Window("ts", datetime(2025, 1, 1, tzinfo=UTC), None)
    message = refused(reading, parquet(reading, [JAN]), window=window)
    assert (
        "the bound 2025-01-01T00:00:00+00:00 (datetime) has an offset, the values have none"
        in message
    )
    assert "transform.configure.timestamp_timezone" in message


def test_a_bound_without_an_offset_takes_the_declared_zone(reading):
    moments = [datetime(2025, 1, 1, 4, 59, tzinfo=UTC), datetime(2025, 1, 1, 5, tzinfo=UTC)]
    window = Window("ts", datetime(2025, 1, 1), None)
    assert ids(reading, parquet(reading, moments), window=window) == [1, 2]
    zone = {"configure": {"timestamp_timezone": "America/New_York"}}
    assert ids(reading, parquet(reading, moments, transform=zone), window=window) == [2]


def test_a_window_in_local_time_bounds_a_column_of_another_zone(reading):
    moments = pl.Series(
        [datetime(2024, 11, 4, 4, 30, tzinfo=UTC), datetime(2024, 11, 4, 5, tzinfo=UTC)]
    )
    flow = parquet(reading, moments.dt.convert_time_zone("Europe/Berlin"))
    window = Window(
        "ts", datetime(2024, 11, 3, tzinfo=NEW_YORK), datetime(2024, 11, 4, tzinfo=NEW_YORK)
    )
    assert ids(reading, flow, window=window) == [1]


def test_a_day_in_local_time_bounds_a_column_of_dates(reading):
    flow = parquet(reading, [date(2013, 1, 31), date(2013, 2, 1)])
    window = Window(
        "ts", datetime(2013, 1, 1, tzinfo=NEW_YORK), datetime(2013, 2, 1, tzinfo=NEW_YORK)
    )
    assert ids(reading, flow, window=window) == [1]
    odd = Window("ts", datetime(2013, 1, 1, 5, tzinfo=UTC), None)
    assert "has an offset" in refused(reading, flow, window=odd)


def test_a_stored_instant_meets_values_without_zone_if_their_zone_is_declared(reading):
    """wm-naive-meets-aware."""
    stored = datetime(2025, 4, 4, 10, tzinfo=UTC)
    moments = [datetime(2025, 4, 4, 9, 59), datetime(2025, 4, 4, 10), datetime(2025, 4, 4, 10, 1)]
    zone = {"configure": {"timestamp_timezone": "UTC"}}
    flow = parquet(reading, moments, transform=zone)
    assert ids(reading, flow, **since(stored), inclusive=False) == [3]
    message = refused(reading, parquet(reading, moments), **since(stored))
    assert "the stored watermark is 2025-04-04T10:00:00+00:00 (datetime)" in message
    assert "transform.configure.timestamp_timezone" in message


def test_a_source_that_changes_from_local_time_to_instants_is_told_with_both(reading):
    """W62."""
    flow = parquet(reading, [JAN.replace(tzinfo=UTC)])
    with pytest.raises(WatermarkError) as caught:
        reading.read(flow, **since(JAN))
    assert str(caught.value) == (
        "state, column 'ts': the stored watermark is 2025-01-01T10:00:00 (datetime), but the column's "
        "values are of type Datetime(time_unit='us', time_zone='UTC'). Declare the zone of the stored "
        "value (transform.configure.timestamp_timezone), or set the watermark anew with `datacoolie "
        "watermark set`, or reset it to load everything again."
    )


@pytest.mark.parametrize("stored", ["9", JAN])
def test_a_stored_watermark_of_another_kind_is_refused(reading, stored):
    with pytest.raises(WatermarkError, match="the stored watermark is"):
        reading.read(parquet(reading, [1, 2]), **since(stored))


def test_a_number_bounds_no_timestamps(reading):
    """W10."""
    message = refused(reading, parquet(reading, [JAN]), window=Window("ts", 1, 5))
    assert "the bound 1 (int) can't be compared with values of type Datetime" in message


def test_a_time_that_does_not_exist_is_refused_with_column_value_and_zone(reading):
    """dst-gap-local-time."""
    zone = {"configure": {"timestamp_timezone": "America/New_York"}}
    flow = parquet(reading, [datetime(2011, 3, 13, 2, 55)], transform=zone)
    with pytest.raises(Exception, match="'2011-03-13 02:55:00'") as caught:
        reading.read(flow)
    assert "column 'ts'" in str(caught.value)
    assert "this time does not exist in America/New_York" in str(caught.value)


def test_a_time_that_exists_twice_is_refused(reading):
    """dst-repeated-hour."""
    zone = {"configure": {"timestamp_timezone": "America/Chicago"}}
    flow = parquet(reading, [datetime(2022, 11, 6, 1, 30)], transform=zone)
    with pytest.raises(Exception, match="this time exists twice in America/Chicago"):
        reading.read(flow)


# Several columns, nulls, the future


def test_with_several_columns_a_row_above_in_one_is_read(reading):
    frame = pl.DataFrame({"id": [1, 2, 3, 4], "a": [1, 9, 1, None], "b": [1, 1, 9, 9]})
    reading.write("t/a.parquet", frame)
    flow = reading.flow("parquet", watermark=["a", "b"])
    bounds = {"a": 5, "b": 5}
    assert ids(reading, flow, lower=bounds, stored=bounds) == [2, 3, 4]
    _, batch = reading.read(flow, lower=bounds, stored=bounds)
    assert batch.observation.candidate == {"a": 9, "b": 9}


def test_a_column_that_never_had_a_value_bounds_nothing(reading):
    frame = pl.DataFrame({"id": [1, 2, 3], "a": [1, 1, 9], "b": [None, 1, None]})
    reading.write("t/a.parquet", frame)
    flow = reading.flow("parquet", watermark=["a", "b"])
    assert ids(reading, flow, lower={"a": 5}, stored={"a": 5}) == [2, 3]


@pytest.mark.parametrize("values", [[1.0, 2.0, None], [1.0, 2.0, float("nan")]])
@pytest.mark.parametrize(("policy", "expected"), [("include", [1, 2, 3]), ("exclude", [1, 2])])
def test_rows_without_a_watermark_are_counted_and_follow_the_policy(
    reading, values, policy, expected
):
    """W3, W5, wm-nan-cursor."""
    flow = parquet(reading, values)
    frame, batch = reading.read(flow, null_watermark=policy)
    assert frame["id"].to_list() == expected
    assert batch.observation.rows_null_watermark == 1
    assert batch.observation.rows_read == len(expected)
    assert batch.observation.candidate == {"ts": 2.0}


def test_a_nan_is_not_read_again_each_time(reading):
    """W5."""
    flow = parquet(reading, [1.0, 2.0, float("nan"), 3.0])
    assert ids(reading, flow, **since(2.0), inclusive=False, null_watermark="exclude") == [4]


def test_rows_without_a_watermark_can_stop_the_load(reading):
    flow = parquet(reading, [1, None, None])
    message = refused(reading, flow, null_watermark="fail")
    assert "rows have no value (null or NaN) in ts" in message


def test_rows_without_a_watermark_are_in_no_window(reading):
    flow = parquet(reading, [1, None, 3])
    frame, batch = reading.read(flow, window=Window("ts", 0, 9))
    assert frame["id"].to_list() == [1, 3]
    assert batch.observation.rows_null_watermark == 0


@pytest.mark.parametrize("dtype", [pl.Null(), pl.Int64(), pl.String(), pl.Datetime("us")])
def test_a_column_without_any_value_moves_nothing(reading, dtype):
    """W4, wm-empty-source."""
    flow = parquet(reading, pl.Series([None, None], dtype=dtype))
    _, batch = reading.read(flow)
    assert batch.observation.candidate == {}
    assert batch.observation.rows_null_watermark == 2
    if dtype in (pl.Null(), pl.String()):
        assert ids(reading, flow, **since(7), null_watermark="exclude") == []


def test_values_beyond_the_limit_are_loaded_and_move_nothing(reading):
    """wm-future-dated-row."""
    flow = parquet(reading, [datetime(2026, 1, 1), datetime(9999, 12, 31)])
    limit = datetime(2026, 1, 5, tzinfo=UTC)
    frame, batch = reading.read(flow, max_watermark=limit)
    assert frame.height == 2
    assert batch.observation.candidate == {"ts": datetime(2026, 1, 1)}
    assert batch.observation.rows_beyond_max == 1


def test_the_watermark_never_goes_back(reading):
    """W6, wm-lookback-window."""
    stored = datetime(2026, 3, 1, 10)
    flow = parquet(reading, [stored - timedelta(minutes=30)])
    _, batch = reading.read(flow, lower={"ts": stored - timedelta(hours=1)}, stored={"ts": stored})
    assert batch.observation.rows_read == 1
    assert batch.observation.candidate == {"ts": stored}
    assert batch.observation.lowest == {"ts": stored - timedelta(minutes=30)}


def test_one_pass_is_enough(reading):
    """The source is read once, however much is observed."""
    flow = parquet(reading, list(range(10_000)))
    batch = reading.open(flow, track_boundary=True, **since(5))
    plan = batch.frame.explain(engine="streaming")
    assert plan.count("Parquet SCAN") == 1
    assert "SELECTION" in plan  # the bound reaches the files' statistics
    assert batch.frame.collect(engine="streaming").height == 9_995
