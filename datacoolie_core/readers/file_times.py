"""Files that a bounded read can pass by, because of the time when they were written."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from datacoolie_core.readers.file_columns import FILE_TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.plan.windows import Window
    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.storage import FileInfo


def passed_by_time(files: Sequence[FileInfo], request: ReadRequest) -> list[bool]:
    """Return for each file whether no row of it can pass, if its time is what bounds the read.

    Args:
        files: The files of the source.
        request: Says the bounds.
    """
    if request.window is not None:
        return _outside(files, request.window)
    columns = {name.casefold(): name for name in request.dataflow.source.watermark_columns}
    bound = request.lower.get(columns[FILE_TIME]) if list(columns) == [FILE_TIME] else None
    bound = _instant(bound)
    if bound is None:
        return [False] * len(files)
    if request.inclusive:
        return [file.modified_at < bound for file in files]
    return [file.modified_at <= bound for file in files]


def _outside(files: Sequence[FileInfo], window: Window) -> list[bool]:
    lower, upper = _instant(window.lower), _instant(window.upper)
    if window.column.casefold() != FILE_TIME:
        return [False] * len(files)
    return [
        (lower is not None and file.modified_at < lower)
        or (upper is not None and file.modified_at >= upper)
        for file in files
    ]


def _instant(value: object) -> datetime | None:
    return value if isinstance(value, datetime) and value.tzinfo is not None else None
