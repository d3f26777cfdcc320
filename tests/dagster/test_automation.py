"""Automation that fires after loads, and never for what it should not load."""

import warnings
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
import time_machine

DAYS = ("2024-01-10", "2024-02-10", "2024-03-10")
OPEN = {"start": "2024-01-01", "chunk_interval": {"months": 1}}


class Daemon:
    """Evaluates a lake's automation conditions tick by tick, as the daemon does."""

    def __init__(self, lake):
        self.lake, self.cursor = lake, None

    def tick(self, at=None):
        definitions = self.lake.definitions
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)  # of Dagster's own call
            result = dg.evaluate_automation_conditions(
                defs=definitions,
                instance=self.lake.instance,
                cursor=self.cursor,
                evaluation_time=at or datetime.now(UTC),
            )
        self.cursor = result.cursor
        return {
            one.key.to_user_string(): sorted(
                map(str, one.true_subset.expensively_compute_partition_keys())
            )
            if one.true_subset.is_partitioned
            else True
            for one in result.results
            if not one.true_subset.is_empty
        }


@pytest.fixture
def daemon(lake):
    return Daemon(lake)


def eager_copy(lake, **options):
    lake.flow(
        "copy",
        stage="clean",
        source={"connection_name": "raw", "table": "events"},
        options={"automation": "eager", **options},
    )


def test_what_is_downstream_of_a_partitioned_asset_fires_after_its_incremental_load(lake, daemon):
    """One month is missing, and the source outside was never materialized: both stop Dagster's
    own eager for ever."""
    lake.events_flow()
    lake.events_csv(*DAYS)
    eager_copy(lake)
    assert daemon.tick() == {}
    lake.incremental()
    assert "missing" in lake.statuses("raw/events").values()
    assert daemon.tick() == {"clean/copy": True}
    assert daemon.tick() == {}


def test_it_fires_again_when_rows_come_into_a_month_that_is_not_complete(lake, daemon):
    lake.events_flow()
    lake.events_csv(*DAYS)
    eager_copy(lake)
    daemon.tick()
    lake.incremental()
    assert daemon.tick() == {"clean/copy": True}
    lake.materialize("clean/copy")
    assert daemon.tick() == {}
    lake.events_csv(*DAYS, "2024-03-11")
    lake.incremental()
    assert daemon.tick() == {"clean/copy": True}


def test_a_load_without_news_marks_nothing_and_fires_nothing(lake, daemon):
    lake.events_flow()
    lake.events_csv(*DAYS)
    eager_copy(lake)
    daemon.tick()
    lake.incremental()
    daemon.tick()
    lake.incremental()
    assert daemon.tick() == {}


def test_a_backfilled_month_fires_what_is_downstream(lake, daemon):
    lake.events_flow()
    lake.events_csv(*DAYS)
    eager_copy(lake)
    daemon.tick()
    lake.materialize("raw/events", partitions="2024-01")
    assert daemon.tick() == {"clean/copy": True}


def test_an_order_edge_is_no_reason_to_run(lake, daemon):
    lake.flow("a", group_number=1)
    lake.flow("b", group_number=1, execution_order=1, options={"automation": "eager"})
    lake.csv("a", "1,2")
    daemon.tick()
    lake.materialize("raw/a")
    assert daemon.tick() == {}


def test_an_eager_dataflow_waits_until_all_that_it_reads_is_there(lake, daemon):
    lake.flow("a")
    lake.flow("b")
    lake.csv("a", "1,2")
    lake.csv("b", "1,2")
    lake.flow(
        "joined",
        stage="clean",
        source={"connection_name": "raw", "table": None, "query": "-- \nselect * from a, b"},
        options={"automation": "eager"},
    )
    daemon.tick()
    lake.materialize("raw/a")
    assert daemon.tick() == {}
    lake.materialize("raw/b")
    assert daemon.tick() == {"clean/joined": True}


CRON = {"automation": "on_cron", "cron": {"cron": "0 6 * * *", "timezone": "America/New_York"}}


def test_on_cron_fires_below_a_source_that_nothing_materializes(lake, daemon):
    lake.flow("a", options=CRON)
    before = datetime(2024, 3, 1, 10, 59, tzinfo=UTC)
    assert daemon.tick(before) == {}
    assert daemon.tick(before + timedelta(minutes=2)) == {"raw/a": True}
    assert daemon.tick(before + timedelta(minutes=3)) == {}


def test_on_cron_of_an_open_range_loads_up_to_now(lake, daemon):
    lake.events_flow(OPEN, options=CRON)
    before = datetime(2024, 3, 2, 10, 59, tzinfo=UTC)
    with time_machine.travel(before, tick=False):
        assert daemon.tick(before) == {}
        assert daemon.tick(before + timedelta(minutes=2)) == {"raw/events": ["2024-03"]}


def test_on_cron_waits_for_those_that_tick_with_it(lake, daemon):
    lake.events_flow(OPEN, options=CRON)
    lake.flow(
        "copy", stage="clean", source={"connection_name": "raw", "table": "events"}, options=CRON
    )
    lake.events_csv(*DAYS)
    before = datetime(2024, 3, 12, 9, 59, tzinfo=UTC)  # summer time began on the 10th
    with time_machine.travel(before) as clock:
        daemon.tick()
        clock.shift(120)
        assert daemon.tick() == {"raw/events": ["2024-03"]}
        lake.materialize("raw/events", partitions="2024-03")
        clock.shift(120)
        assert daemon.tick() == {"clean/copy": True}
        lake.materialize("clean/copy")
        clock.shift(120)
        assert daemon.tick() == {}


def test_a_closed_range_is_not_automated_since_that_would_be_a_replay(lake):
    lake.events_flow(options={"automation": "eager"})
    spec = lake.spec("raw/events")
    assert spec.automation_condition is None
    assert "raw_incremental" in spec.metadata["datacoolie/automation"]
