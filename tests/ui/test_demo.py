"""``make demo``: what it prints and what it leaves in the lake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    import subprocess

    from tests.ui.conftest import Demo

pytestmark = [pytest.mark.ui, pytest.mark.xdist_group("ui"), pytest.mark.timeout(900)]

ROWS = {
    "bronze/airlines": 16,
    "bronze/airports": 1_458,
    "bronze/planes": 3_322,
    "bronze/weather": 26_115,
    "bronze/flights": 336_776,
    "silver/planes": 3_322,
    "silver/flights": 336_776,
}
ALWAYS_LOADED = ("bronze/airlines", "bronze/airports", "bronze/planes", "silver/planes")
GOLD = ("gold/daily_delays", "gold/delay_by_weather")
INCREMENTAL = ("bronze/weather", "bronze/flights", "silver/flights")


def table(printed: str) -> dict[str, list[str]]:
    """Return the printed table: asset → its other cells."""
    rows = [re.split(r"\s*[│┃|]\s*", line.strip(" │┃|")) for line in printed.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) == 5 and "/" in row[0]}


def scan(demo: Demo, name: str) -> pl.DataFrame:
    """Return a table of the lake."""
    return pl.read_delta(str(demo.lake / name))


def test_the_demo_loads_every_table_with_its_rows(demo: Demo) -> None:
    counts = {name: len(scan(demo, name)) for name in ROWS}
    assert counts == ROWS


def test_the_demo_prints_each_asset_with_its_rows(demo: Demo) -> None:
    shown = table(demo.first)
    assert set(shown) == {*ROWS, *GOLD}
    assert {name: shown[name][0] for name in shown} == dict.fromkeys(shown, "succeeded")
    assert {name: shown[name][1] for name in ROWS} == {n: f"{c:,}" for n, c in ROWS.items()}
    assert shown["bronze/flights"][2].startswith("2014-01-01 04:00")


def test_a_second_demo_loads_whole_tables_again_and_skips_the_others(demo: Demo) -> None:
    first, second = table(demo.first), table(demo.second)
    assert [second[name][0] for name in (*ALWAYS_LOADED, *GOLD)] == ["succeeded"] * 6
    assert [second[name][0] for name in INCREMENTAL] == ["skipped"] * 3
    assert {n: second[n][1] for n in second} == {n: first[n][1] for n in first}


def test_a_second_demo_backfills_no_month_again(demo: Demo) -> None:
    assert "months 2013-01 to 2013-12" in demo.first
    assert "months 2013" not in demo.second


def test_january_is_new_yorks(demo: Demo) -> None:
    local = pl.col("time_hour").dt.convert_time_zone("America/New_York")
    january = scan(demo, "bronze/flights").filter(local.dt.month() == 1)
    assert len(january) == 27_004


def test_silver_is_typed_and_its_key_is_unique(demo: Demo) -> None:
    flights = scan(demo, "silver/flights")
    assert flights.select("carrier", "flight", "time_hour").n_unique() == len(flights)
    assert flights.schema["flight_date"] == pl.Date
    assert flights.schema["dep_delay"] == pl.Int32
    assert flights["cancelled"].sum() == 8_255
    assert "manufactured_year" in scan(demo, "silver/planes").columns


def test_gold_counts_every_flight_once(demo: Demo) -> None:
    daily = scan(demo, "gold/daily_delays")
    assert daily["flights"].sum() == 336_776
    assert daily["cancelled"].sum() == 8_255
    one = daily.filter(
        (pl.col("flight_date") == pl.date(2013, 1, 1))
        & (pl.col("carrier_name") == "United Air Lines Inc.")
        & (pl.col("origin") == "EWR")
    )
    figures = one.select("flights", "cancelled", "mean_dep_delay", "p90_dep_delay")
    assert figures.row(0) == (130, 0, 8.27, 29.2)
    assert len(scan(demo, "gold/delay_by_weather")) == 26


def test_a_demo_that_fails_says_why_and_ends_with_an_error(
    broken_demo: subprocess.CompletedProcess[str],
) -> None:
    assert broken_demo.returncode == 1
    said = " ".join(broken_demo.stdout.split())
    assert "bronze/weather" in said
    assert "yesterday" in said
    assert table(broken_demo.stdout)["bronze/weather"][0] == "failed"
    assert table(broken_demo.stdout)["bronze/airlines"][0] == "succeeded"
    assert "silver/flights" not in table(broken_demo.stdout)
