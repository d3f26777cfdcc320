"""Trouble of the storage as an error of the load, and what others took away meanwhile."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import DataCoolieError, StorageError, WriteError
from datacoolie_core.writers.request import SupersededError

if TYPE_CHECKING:
    from collections.abc import Generator

    from datacoolie_core.writers.flat.place import Look


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


@contextmanager
def reading(look: Look) -> Generator[None]:
    """Tell files that another load replaced meanwhile from files that can't be read.

    Args:
        look: Names the files that are read.

    Raises:
        SupersededError: Some of them are gone, so the run has to look at the folder again.
    """
    try:
        yield
    except (DataCoolieError, OSError, pl.exceptions.PolarsError) as error:
        gone = look.data.keys() - look.place.look().data.keys()
        if not gone:
            raise
        raise SupersededError(
            f"{min(gone)} was taken away while it was read",
            place=look.place.uri,
            remedy="Another load replaced it meanwhile; run it again.",
            retryable=True,
        ) from error
