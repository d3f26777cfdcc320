"""Look-back moves the lower bound of a read, and nothing else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from datacoolie_core.metadata.models import Backward, Dataflow
from datacoolie_core.plan.lookback import effective_lower, looked_back

NOW = datetime(2025, 3, 10, 12, tzinfo=UTC)


def moved(value: Any, **backward: int) -> Any:
    return looked_back({"c": value}, Backward(**backward), NOW)["c"]


@pytest.mark.parametrize(
    ("value", "backward", "expected"),
    [
        (datetime(2025, 1, 10, 12), {"days": 1, "hours": 2}, datetime(2025, 1, 9, 10)),
        (
            datetime(2025, 1, 10, 12, tzinfo=UTC),
            {"hours": 36},
            datetime(2025, 1, 9, 0, tzinfo=UTC),
        ),
        (datetime(2025, 3, 31, 8), {"months": 1}, datetime(2025, 2, 28, 8)),
        (date(2024, 2, 29), {"years": 1}, date(2023, 2, 28)),
        (date(2025, 3, 31), {"months": 1, "days": 1}, date(2025, 2, 27)),
        (date(2025, 3, 31), {"hours": 25}, date(2025, 3, 29)),
        ("2025-01-10 12:00:00", {"days": 1}, "2025-01-09 12:00:00"),
        ("2025-01-10T12:00", {"days": 1}, "2025-01-09T12:00"),
        ("2025-01-10T12:00:00Z", {"hours": 1}, "2025-01-10T11:00:00+00:00"),
        ("2025-01-10", {"days": 1}, "2025-01-09"),
        ("order-17", {"days": 1}, "order-17"),
        ("2025-99-99", {"days": 1}, "2025-99-99"),
        (17, {"days": 1}, 17),
        (True, {"days": 1}, True),
    ],
)
def test_a_bound_moves_by_its_kind(value: Any, backward: dict[str, int], expected: Any) -> None:
    """W8: the text keeps its separator."""
    assert moved(value, **backward) == expected


@pytest.mark.parametrize(
    ("closing_day", "more", "expected"),
    [
        (9, {}, date(2025, 3, 1)),
        (10, {}, date(2025, 2, 1)),
        (10, {"months": 1}, date(2025, 1, 1)),
        (9, {"years": 1}, date(2024, 3, 1)),
    ],
)
def test_a_closing_day_reads_the_open_months_again(
    closing_day: int, more: dict[str, int], expected: date
) -> None:
    assert moved(date(2025, 3, 9), closing_day=closing_day, **more) == expected
    at_midnight = datetime(expected.year, expected.month, expected.day, tzinfo=UTC)
    value = datetime(2025, 3, 9, 5, tzinfo=UTC)
    assert moved(value, closing_day=closing_day, **more) == at_midnight


def test_a_closing_day_never_moves_a_bound_up() -> None:
    assert moved(date(2024, 12, 24), closing_day=1) == date(2024, 12, 24)


def test_the_key_of_dated_folders_moves_alone() -> None:
    watermark = {"__date_folder_partition__": "2025-01-10T00:00:00", "ts": date(2025, 1, 10)}
    assert looked_back(watermark, Backward(days=1), NOW) == {
        "__date_folder_partition__": "2025-01-09T00:00:00",
        "ts": date(2025, 1, 10),
    }


def flow_with(connection: dict[str, Any], own: dict[str, Any]) -> Dataflow:
    source = {"connection": {"name": "s", "configure": connection}, "table": "t", "configure": own}
    destination = {"connection": {"name": "d"}, "table": "t"}
    return Dataflow.model_validate({"name": "f", "source": source, "destination": destination})


def test_the_look_back_of_a_source_replaces_that_of_its_connection_wholly() -> None:
    stored = {"c": datetime(2025, 3, 10, 12)}
    both = flow_with({"backward_days": 3, "backward_months": 1}, {"backward_hours": 6})
    assert effective_lower(both, stored, NOW) == {"c": datetime(2025, 3, 10, 6)}
    inherited = flow_with({"backward_days": 3, "backward": {"months": 1}}, {})
    assert effective_lower(inherited, stored, NOW) == {"c": datetime(2025, 2, 7, 12)}


def test_without_look_back_nothing_moves() -> None:
    watermark = {"c": date(2025, 1, 10)}
    assert effective_lower(flow_with({}, {}), watermark, NOW) == watermark
