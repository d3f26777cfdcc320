"""Tell a full or read-only disk of the destination from trouble with the source."""

from __future__ import annotations

import errno
import re

from datacoolie_core.errors import WriteError

_WRITING = {
    errno.ENOSPC: "no space is left",
    errno.EDQUOT: "the quota is used up",
    errno.EROFS: "it is read-only",
}
_NUMBER = re.compile(r"os error (\d+)")


def disk_trouble(error: BaseException, uri: str) -> WriteError | None:
    """Return what a full or read-only disk means for a load; None for any other error.

    Args:
        error: What came up while the frame was consumed, which reads and writes at once.
        uri: The destination.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None and (found := _NUMBER.search(str(error))):
        number = int(found[1])
    reason = _WRITING.get(number) if number is not None else None
    if reason is None:
        return None
    return WriteError(
        f"the destination can't be written: {reason}",
        place=uri,
        remedy="Make room or make it writable, and run it again. Nothing was changed.",
        code="disk_full" if number != errno.EROFS else "read_only",
        retryable=True,
    )
