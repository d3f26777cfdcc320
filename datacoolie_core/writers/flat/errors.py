"""Trouble of the storage as an error of the load."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacoolie_core.errors import StorageError, WriteError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def storing() -> Generator[None]:
    """Turn an error of the storage into one of the load."""
    try:
        yield
    except StorageError as error:
        raise WriteError(
            error.message,
            place=error.place,
            remedy=error.remedy,
            code=error.code,
            retryable=error.retryable or error.code == "disk_full",
        ) from error
