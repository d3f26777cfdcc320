"""What a load tells the user of odd rows, beside its counts."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from datacoolie_core.engines.names import listed
from datacoolie_core.run.results import Notice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.readers.batch import Observation, ReadRequest

FUTURE = timedelta(days=1)


def notices(
    told: Iterable[tuple[str, str]], seen: Observation, request: ReadRequest, now: datetime
) -> tuple[Notice, ...]:
    """Return a load's warnings: those that its parts gave, and those of its rows.

    Args:
        told: Code and message, from reconciliation, reader and writer.
        seen: What passed through the frame.
        request: What was asked of the reader.
        now: The current instant, aware.
    """
    return tuple(Notice(code, text) for code, text in (*told, *_of_rows(seen, request, now)))


def _of_rows(seen: Observation, request: ReadRequest, now: datetime) -> Iterator[tuple[str, str]]:
    if seen.rows_null_watermark and request.window is None:
        fate = "left out" if request.null_watermark == "exclude" else "loaded"
        yield (
            "null_watermark",
            f"{_counted(seen.rows_null_watermark, 'has', 'have')} no watermark: {fate} "
            f"({listed(request.dataflow.source.watermark_columns)}; "
            "source.configure.datacoolie.null_watermark)",
        )
    if seen.rows_beyond_max:
        yield (
            "beyond_max_watermark",
            f"{_counted(seen.rows_beyond_max, 'lies', 'lie')} above max_watermark: loaded, but "
            f"the watermark does not move that far "
            f"({listed(request.dataflow.source.watermark_columns)})",
        )
    for column, value in seen.candidate.items():
        if request.window is None and _in_the_future(value, now):
            yield (
                "future_watermark",
                f"the watermark of '{column}' is in the future ({value}): rows that come later "
                "with an earlier value are not loaded. Set source.configure.datacoolie."
                "max_watermark, such as 'now + 1d', and run with --full-refresh",
            )


def _counted(rows: int, one: str, many: str) -> str:
    return f"1 row {one}" if rows == 1 else f"{rows} rows {many}"


def _in_the_future(value: Scalar, now: datetime) -> bool:
    limit = now + FUTURE
    if isinstance(value, datetime):
        return value > (limit if value.tzinfo else limit.replace(tzinfo=None))
    return isinstance(value, date) and value > limit.date()
