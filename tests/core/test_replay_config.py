"""ReplayConfig: what a caller asks for, refused where it makes no sense."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from datacoolie_core import ReplayConfig
from datacoolie_core.errors import SettingsError
from datacoolie_core.metadata.options import ReplayOptions
from datacoolie_core.plan.replay_config import parse_every


def keys(config: ReplayConfig, **given: Any) -> list[str]:
    return [window.key for window in config.windows("c", **given)]


def test_the_chunks_of_a_quarter_are_its_months() -> None:
    config = ReplayConfig(start="2025-01-01", end="2025-04-01", chunk_interval={"months": 1})
    assert keys(config) == ["2025-01", "2025-02", "2025-03"]
    assert {window.column for window in config.windows("ts")} == {"ts"}


def test_what_comes_after_the_interval_keeps_its_place() -> None:
    """A caller may pass the first five by position."""
    config = ReplayConfig(1, 10, {"step": 4}, True, "id")
    assert (config.save_watermark, config.chunk_column) == (True, "id")
    assert keys(config) == ["0", "4", "8"]
    assert keys(ReplayConfig(1, 10, step=4)) == ["0", "4", "8"]


def test_progress_stays_and_order_does_not_count_unless_asked_for() -> None:
    config = ReplayConfig(1, 2)
    assert (config.save_watermark, config.respect_order, config.timezone) == (False, False, "UTC")


def test_without_an_interval_the_range_is_one_chunk() -> None:
    (window,) = ReplayConfig("2025-01-01", "2025-04-01").windows("c")
    assert (window.lower, window.upper) == (date(2025, 1, 1), date(2025, 4, 1))


def test_an_open_end_goes_up_to_now() -> None:
    config = ReplayConfig("2025-01-01", None, {"months": 1})
    assert keys(config, now=datetime(2025, 2, 3, tzinfo=UTC)) == ["2025-01", "2025-02"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "bool": ({"start": True, "end": 5}, "start is True"),
    "kinds": ({"start": 1, "end": Decimal(2)}, "start is a int and end is a Decimal"),
    "date and timestamp": (
        {"start": date(2025, 1, 1), "end": datetime(2025, 1, 2)},
        "start is a date and end is a timestamp",
    ),
    "zones": (
        {"start": "2025-01-01T00:00Z", "end": "2025-01-02T00:00"},
        "one of start and end has an offset",
    ),
    "digits": ({"start": "2025-01-01T00:00:00.1234567", "end": "2025-01-02T00:00"}, "finer than"),
    "equal": ({"start": 5, "end": 5}, "not before"),
    "days 0": ({"start": "2025-01-01", "end": "2025-02-01", "chunk_interval": {"days": 0}}, "is 0"),
    "unknown": (
        {"start": "2025-01-01", "end": "2025-02-01", "chunk_interval": {"day": 1}},
        "Did you mean 'days'",
    ),
    "hours of dates": (
        {"start": "2025-01-01", "end": "2025-02-01", "chunk_interval": {"hours": 1}},
        "as timestamps",
    ),
    "days of numbers": ({"start": 1, "end": 5, "chunk_interval": {"days": 1}}, "Use a step"),
    "step of dates": (
        {"start": "2025-01-01", "end": "2025-02-01", "chunk_interval": {"step": 1}},
        "the interval is a step",
    ),
    "empty": ({"start": 1, "end": 5, "chunk_interval": {}}, "empty"),
    "zone": ({"start": 1, "end": 5, "timezone": "Mars/Base"}, "no time zone 'Mars/Base'"),
    "column": ({"start": 1, "end": 5, "chunk_column": " "}, "chunk_column is blank"),
    "flag": ({"start": 1, "end": 5, "save_watermark": "no"}, "save_watermark is 'no'"),
    "gap": (
        {
            "start": "2024-03-10T02:30",
            "end": "2024-03-11T00:00",
            "timezone": "America/New_York",
        },
        "does not exist in America/New_York",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_range_that_makes_no_sense_can_not_be_made(case: str) -> None:
    given, words = REFUSED[case]
    with pytest.raises(SettingsError, match=words) as caught:
        ReplayConfig(**given)
    assert caught.value.remedy


def test_a_mapping_that_changes_later_changes_nothing() -> None:
    interval = {"months": 1}
    config = ReplayConfig("2025-01-01", "2025-03-01", interval)
    interval["months"] = 0
    assert len(config.windows("c")) == 2
    assert pickle.loads(pickle.dumps(config)) == config


def test_it_can_be_made_from_a_dataflows_own_options() -> None:
    options = ReplayOptions(
        start="2025-01-01",
        end="2025-03-01",
        chunk_interval={"months": 1},
        timezone="Europe/Paris",
        chunk_column="day",
        respect_order=True,
    )
    config = ReplayConfig.of_options(options, save_watermark=True)
    assert (config.chunk_column, config.respect_order, config.save_watermark) == ("day", True, True)
    assert config.windows("day")[0].lower == datetime(2024, 12, 31, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("1y", {"years": 1}),
        ("1mo", {"months": 1}),
        ("2w", {"weeks": 2}),
        ("1d", {"days": 1}),
        ("6h", {"hours": 6}),
        ("15min", {"minutes": 15}),
        (" 1mo1d ", {"months": 1, "days": 1}),
    ],
)
def test_intervals_of_the_command_line(text: str, units: dict[str, int]) -> None:
    assert parse_every(text) == units


@given(st.text(max_size=6))
def test_a_text_is_an_interval_or_an_error_that_says_how_to_write_one(text: str) -> None:
    try:
        units = parse_every(text)
    except SettingsError as error:
        units = {}
        told = str(error)
    assert units or "Write 1y, 1mo" in told


@pytest.mark.parametrize("text", ["", "1", "mo", "1m", "1 mo", "1mo1mo", "-1d", "1d ago", "1M"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="no interval"):
        parse_every(text)


def test_windows_remember_whose_clocks_showed_the_bounds() -> None:
    """What was written without an offset can be compared with values that have none."""
    (naive,) = ReplayConfig("2025-01-01T00:00", "2025-01-02T00:00").windows("c")
    assert naive.zone == "UTC"
    (paris,) = ReplayConfig("2025-01-01", "2025-01-02", timezone="Europe/Paris").windows("c")
    assert paris.zone == "Europe/Paris"
    (aware,) = ReplayConfig("2025-01-01T00:00Z", "2025-01-02T00:00Z").windows("c")
    assert aware.zone is None
