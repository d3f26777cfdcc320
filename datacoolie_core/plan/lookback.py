"""Look-back: how far below the stored watermark a run starts to read again.

Only the lower bound of a read moves; the stored watermark stays. Numbers don't move.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from dateutil.relativedelta import relativedelta

from datacoolie_core.plan.columns import DATE_FOLDER, FILE_COLUMNS

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Backward, Dataflow
    from datacoolie_core.plan.windows import Scalar, Watermark


_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:(?P<separator>[T ])\d{2}:\d{2}(?P<seconds>:\d{2}.*)?(?:Z|[+-].*)?)?"
)


def effective_lower(dataflow: Dataflow, watermark: Watermark, now: datetime) -> Watermark:
    """Return the bounds above which the next run of a dataflow reads.

    Args:
        dataflow: Its source says the look-back, or the source's connection does.
        watermark: What is stored.
        now: The current instant, aware.
    """
    return looked_back(watermark, dataflow.source.look_back(), now)


def appends_files_again(dataflow: Dataflow) -> bool:
    """Say whether every run appends the files of its look-back again, so that their rows double.

    It does where files are looked at by their own time and the destination is flat files:
    nothing but a comparison with the whole folder could tell whether a file is in it.
    """
    destination, source = dataflow.destination, dataflow.source
    flat = destination.connection.connection_type == "file" and destination.load_type == "append"
    columns = source.watermark_columns
    by_file = bool(columns) and all(name.casefold() in FILE_COLUMNS for name in columns)
    return flat and by_file and source.look_back() is not None


def looked_back(watermark: Watermark, backward: Backward | None, now: datetime) -> Watermark:
    """Return the bounds from which a run reads.

    Args:
        watermark: What is stored.
        backward: The look-back of the source.
        now: The current instant, aware; ``closing_day`` counts from its day in UTC.
    """
    if backward is None:
        return watermark
    # where there are dated folders, they alone decide what is read again
    moving = {DATE_FOLDER} & watermark.keys() or watermark.keys()
    return {
        column: _moved(value, backward, now) if column in moving else value
        for column, value in watermark.items()
    }


def _moved(value: Scalar, backward: Backward, now: datetime) -> Scalar:
    if isinstance(value, str):
        return _moved_text(value, backward, now)
    if isinstance(value, date):
        return _earlier(value, backward, now)
    return value


def _moved_text(text: str, backward: Backward, now: datetime) -> str:
    found = _ISO.fullmatch(text)
    if found is None:
        return text
    separator, seconds = found.group("separator"), found.group("seconds")
    try:
        if separator is None:
            return _earlier(date.fromisoformat(text), backward, now).isoformat()
        moved = _earlier(datetime.fromisoformat(text), backward, now)
    except ValueError:
        return text
    assert isinstance(moved, datetime)
    # written as it was: text is compared as text, where ' ' is less than 'T'
    return moved.isoformat(sep=separator, timespec="auto" if seconds else "minutes")


def _earlier(value: date, backward: Backward, now: datetime) -> date:
    if backward.closing_day is not None:
        return min(value, _closing_bound(value, backward, now))
    moved = value - relativedelta(years=backward.years or 0, months=backward.months or 0)
    if isinstance(moved, datetime):
        return moved - timedelta(days=backward.days or 0, hours=backward.hours or 0)
    # a date has no hours: whole days are enough to cover them
    return moved - timedelta(days=(backward.days or 0) + -(-(backward.hours or 0) // 24))


def _closing_bound(value: date, backward: Backward, now: datetime) -> date:
    today = now.astimezone(UTC).date()
    closing = backward.closing_day or 0
    first = today.replace(day=1) - relativedelta(months=1 if today.day <= closing else 0)
    first -= relativedelta(years=backward.years or 0, months=backward.months or 0)
    if not isinstance(value, datetime):
        return first
    return datetime(first.year, first.month, first.day, tzinfo=value.tzinfo)
